#include "apps/tape/tape_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace engram {
namespace {

using nlohmann::json;

json rounded(double number) {
  if (!std::isfinite(number)) return nullptr;
  return std::stod(fmt::format("{:.7g}", number));
}

/// With so many digits that the difference of two of them, a share of a gradient, keeps some.
json numbers_json(const std::vector<double>& numbers) {
  json list = json::array();
  for (const double number : numbers)
    list.push_back(std::isfinite(number) ? json(std::stod(fmt::format("{:.13g}", number))) : json());
  return list;
}

/// A member that is left out where there is nothing.
void add_numbers(json& object, const char* name, const std::vector<double>& numbers) {
  if (!numbers.empty()) object[name] = numbers_json(numbers);
}

json shape_json(const Shape& shape) {
  json sizes = json::array();
  for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  return sizes;
}

json milliseconds(double seconds) { return rounded(seconds * 1e3); }

json value_json(const RecordedValue& value) {
  json object{{"kind", name_of(value.kind)},           {"name", value.name},   {"shape", shape_json(value.shape)},
              {"dtype", name_of(value.dtype)},         {"bytes", value.bytes}, {"maker", value.maker},
              {"wants_gradient", value.wants_gradient}};
  if (value.shares) object["shares"] = true;
  add_numbers(object, "numbers", value.numbers);
  add_numbers(object, "gradient", value.gradient);
  add_numbers(object, "numeric", value.numeric);
  if (!value.numeric.empty()) object["difference"] = rounded(value.difference);
  return object;
}

json memory_json(const RecordedMemory& memory) {
  return {{"kept", memory.kept}, {"gradients", memory.gradients}, {"used", memory.used}};
}

json pass_json(const RecordedPass& pass) {
  json shares = json::array();
  for (const RecordedShare& share : pass.shares) {
    json object{{"value", share.value}, {"shape", shape_json(share.shape)}, {"how", name_of(share.how)}};
    add_numbers(object, "before", share.before);
    add_numbers(object, "after", share.after);
    shares.push_back(std::move(object));
  }
  return {{"ms", milliseconds(pass.seconds)},
          {"kernels", pass.kernels},
          {"shares", std::move(shares)},
          {"memory", memory_json(pass.memory)}};
}

json op_json(const RecordedOp& op) {
  json inputs = json::array(), kept = json::array();
  for (const RecordedInput& input : op.inputs)
    inputs.push_back({{"value", input.value}, {"shape", shape_json(input.shape)}});
  for (const RecordedTensor& tensor : op.kept)
    kept.push_back(
        {{"name", tensor.name}, {"shape", shape_json(tensor.shape)}, {"bytes", tensor.bytes}, {"value", tensor.value}});
  return {{"name", op.name},
          {"scope", op.scope},
          {"inputs", std::move(inputs)},
          {"outputs", op.outputs},
          {"kept", std::move(kept)},
          {"kept_bytes", op.kept_bytes},
          {"reached", op.reached},
          {"forward", pass_json(op.forward)},
          {"backward", pass_json(op.backward)}};
}

}  // namespace

json json_of(const TapeRecording& recording) {
  json values = json::array(), ops = json::array();
  for (const RecordedValue& value : recording.values) values.push_back(value_json(value));
  for (const RecordedOp& op : recording.ops) ops.push_back(op_json(op));
  return {{"title", recording.title},
          {"about", recording.about},
          {"values", std::move(values)},
          {"ops", std::move(ops)},
          {"losses", recording.losses},
          {"loss", rounded(recording.loss)},
          {"turn", memory_json(recording.turn)},
          {"most_numbers", recording.most_numbers},
          {"checked", recording.checked},
          {"agreed", recording.agreed},
          {"moved_by", recording.moved_by},
          {"tolerance", recording.tolerance},
          {"unchecked", recording.unchecked},
          {"worst", rounded(recording.worst)},
          {"worst_value", recording.worst_value},
          {"forward_ms", milliseconds(recording.forward_seconds())},
          {"backward_ms", milliseconds(recording.backward_seconds())},
          {"peak_bytes", recording.peak_bytes()}};
}

}  // namespace engram
