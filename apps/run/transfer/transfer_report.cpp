#include "apps/run/transfer/transfer_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "apps/data/vocabulary/placeholders.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"
#include "nn/optim/shards.hpp"

namespace engram {
namespace {

constexpr std::string_view kLayerPart = "layers.";
constexpr std::size_t kMostNames = 12;  // of a list for people

/// "layers.3.attention.query" in its parts; of what is in no layer the layer is -1.
struct LayerName {
  int layer = -1;
  std::string rest;
};

LayerName layer_name(std::string_view name) {
  LayerName found{.rest = std::string(name)};
  if (!name.starts_with(kLayerPart)) return found;
  int layer = -1;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kLayerPart.size(), end, layer);
  if (error != std::errc() || rest == end || *rest != '.') return found;
  return {.layer = layer, .rest = std::string(rest + 1, end)};
}

/// "layers.3", then "layers.3.attention" of "layers.3.attention.query"; "output" of "output.bias".
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t dot = part_of_model(name).size(); dot != std::string::npos && dot < name.size();
       dot = name.find('.', dot + 1))
    parts.push_back(name.substr(0, dot));
  return parts;
}

/// How many names are of each part.
using PartCounts = std::map<std::string, std::int64_t>;
PartCounts part_counts(const std::vector<std::string>& names) {
  PartCounts counts;
  for (const std::string& name : names)
    for (const std::string& part : parts_of(name)) ++counts[part];
  return counts;
}

/// "0-3,7" of ascending numbers.
std::string ranges_of(const std::vector<int>& numbers) {
  std::string ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", numbers[i]);
    if (last > i) ranges += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return ranges;
}

std::vector<std::string> tensor_names(const std::vector<WeightTransfer::Tensor>& tensors) {
  std::vector<std::string> names;
  for (const WeightTransfer::Tensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

/// A heading, a list after it, and where it is long how many more there are.
void add_list(std::string& lines, const std::string& heading, std::vector<std::string> list, std::size_t width) {
  if (list.empty()) return;
  if (list.size() > kMostNames) {
    const std::size_t more = list.size() - kMostNames;
    list.resize(kMostNames);
    list.push_back(fmt::format("and {} more, all of which metrics.jsonl lists", more));
  }
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i] += ',';
  std::vector<std::string> parts = wrapped_text(heading, width);
  parts.insert(parts.end(), list.begin(), list.end());
  lines += "  " + hanging(wrapped_parts(parts, width - 2, 2), 4);
}

std::string tensors_text(std::size_t count) { return fmt::format("{} tensor{}", count, count == 1 ? "" : "s"); }

std::string vocabulary_text(const WeightTransfer& transfer) {
  const SymbolMatch& symbols = transfer.symbols;
  if (!symbols.same_kind)
    return fmt::format("vocabulary: of another kind, so that all {} symbols are new", symbols.now());
  std::string said = fmt::format("vocabulary: {} of {} symbols keep their vectors", transfer.vectors, symbols.now());
  if (const std::int64_t fresh = symbols.now() - symbols.shared; fresh > 0)
    said += fmt::format(", {} {} new", fresh, fresh == 1 ? "is" : "are");
  if (const std::int64_t moved = symbols.shared - transfer.vectors; moved > 0)
    said += fmt::format(", {} {} anew in another cluster or width", moved, moved == 1 ? "starts" : "start");
  if (const std::int64_t left = symbols.before - symbols.shared; left > 0)
    said += fmt::format(", {} of the {} before {} left out", left, symbols.before, left == 1 ? "is" : "are");
  return said;
}

}  // namespace

std::vector<std::string> grouped_names(const std::vector<std::string>& names, const std::vector<std::string>& all) {
  const PartCounts of_names = part_counts(names), of_all = part_counts(all);
  std::vector<std::pair<std::string, std::vector<int>>> groups;  // what comes after the layer, and layers
  std::set<std::string> said;
  for (const std::string& name : names) {
    std::string whole = name;
    for (const std::string& part : parts_of(name)) {
      if (of_names.at(part) < 2 || of_names.at(part) != of_all.at(part)) continue;
      whole = part + ".*";
      break;
    }
    if (!said.insert(whole).second) continue;
    const LayerName found = layer_name(whole);
    const auto known = std::ranges::find_if(
        groups, [&](const auto& group) { return group.first == found.rest && !group.second.empty(); });
    if (found.layer >= 0 && known != groups.end())
      known->second.push_back(found.layer);
    else
      groups.emplace_back(found.rest, found.layer >= 0 ? std::vector{found.layer} : std::vector<int>());
  }
  std::vector<std::string> grouped;
  for (auto& [rest, layers] : groups) {
    std::ranges::sort(layers);  // by name 10 comes before 2
    grouped.push_back(layers.empty() ? rest : fmt::format("layers.{}.{}", ranges_of(layers), rest));
  }
  return grouped;
}

std::string table_of(const WeightTransfer& transfer, std::size_t width) {
  const std::vector<std::string> all = tensor_names(transfer.tensors);
  std::vector<std::string> fresh, partly, reshaped;
  std::size_t taken = 0;
  for (const WeightTransfer::Tensor& tensor : transfer.tensors) {
    if (tensor.taken > 0) ++taken;
    if (tensor.taken == 0) (tensor.before.empty() ? fresh : reshaped).push_back(tensor.name);
    if (tensor.taken > 0 && tensor.taken < tensor.numbers) partly.push_back(tensor.name);
  }
  std::vector<std::string> left = transfer.left;  // but for what is named among those of another shape
  std::erase_if(left, [&](const std::string& name) { return std::ranges::count(reshaped, name) > 0; });
  std::vector<std::string> before = left;
  for (const WeightTransfer::Tensor& tensor : transfer.tensors)
    if (tensor.taken > 0 || !tensor.before.empty()) before.push_back(tensor.name);
  std::vector<std::string> changed;
  for (const ConfigDifference& difference : transfer.model)
    changed.push_back(fmt::format("{} {} -> {}", difference.key, difference.before, difference.after));
  std::string lines;
  const auto add_line = [&](std::string_view said) { lines += "  " + hanging(wrapped_text(said, width - 4), 4); };
  add_line(fmt::format("from '{}', step {}{}, {}", transfer.checkpoint, transfer.step,
                       transfer.averaged ? ", weights averaged" : "", transfer.identity));
  add_line(fmt::format("taken: {} of {}, {} of {} numbers", taken, tensors_text(all.size()), transfer.taken_numbers(),
                       transfer.all_numbers()));
  add_line(vocabulary_text(transfer));
  add_list(lines, "in part:", grouped_names(partly, all), width);
  add_list(lines, fmt::format("new ({}):", tensors_text(fresh.size())), grouped_names(fresh, all), width);
  add_list(lines, fmt::format("of another shape, so new ({}):", tensors_text(reshaped.size())),
           grouped_names(reshaped, all), width);
  add_list(lines, fmt::format("left ({}):", tensors_text(left.size())), grouped_names(left, before), width);
  add_list(lines, "model changed:", changed, width);
  return lines;
}

std::vector<std::string> warnings_of(const WeightTransfer& transfer) {
  // Tables of symbols are left out: how much of them is taken is a matter of the vocabularies, which a line tells.
  const auto has_symbols = [](const std::string& name) {
    return name.starts_with("embedding.") || name.starts_with("output.");
  };
  std::int64_t common = 0, reshaped = 0;  // numbers of tensors that both models have, and of those of another shape
  for (const WeightTransfer::Tensor& tensor : transfer.tensors) {
    if (has_symbols(tensor.name) || (tensor.taken == 0 && tensor.before.empty())) continue;
    common += tensor.numbers;
    if (tensor.taken == 0) reshaped += tensor.numbers;
  }
  std::vector<std::string> warnings;
  if (2 * reshaped > common) {
    std::string changed;
    for (const ConfigDifference& difference : transfer.model)
      changed += text(changed.empty() ? "" : ", ", difference.key, " (", difference.before, ")");
    warnings.push_back(text(
        "most of the model begins anew: ", transfer.taken_numbers(), " of its ", transfer.all_numbers(),
        " numbers were taken, as ", reshaped, " of ", common, " that both models have are in tensors of another shape",
        changed.empty() ? "" : text("\n  with the values of '", transfer.checkpoint, "' they fit: ", changed)));
  }
  if (transfer.placeholders && transfer.symbols.shared == 0)
    warnings.push_back(
        text("no symbol of the data keeps its vector: ", data::placeholder_advice(transfer.symbols.before)));
  return warnings;
}

void tell(const WeightTransfer& transfer, std::size_t width) {
  std::string table = table_of(transfer, width);
  table.pop_back();  // its last line end
  log(LogLevel::info, text("the run begins with weights\n", table));
  for (const std::string& warning : warnings_of(transfer)) log(LogLevel::warning, warning);
}

nlohmann::json json_of(const WeightTransfer& transfer) {
  nlohmann::json taken = nlohmann::json::array(), partly = taken, fresh = taken, changed = nlohmann::json::object();
  for (const WeightTransfer::Tensor& tensor : transfer.tensors) {
    if (tensor.taken == 0) {
      nlohmann::json one{{"name", tensor.name}};
      if (!tensor.before.empty()) one["shape_before"] = tensor.before;
      fresh.push_back(std::move(one));
    } else if (tensor.taken < tensor.numbers) {
      partly.push_back({{"name", tensor.name}, {"taken", tensor.taken}, {"numbers", tensor.numbers}});
    } else {
      taken.push_back(tensor.name);
    }
  }
  for (const ConfigDifference& difference : transfer.model)
    changed[difference.key] = {difference.before, difference.after};
  const SymbolMatch& symbols = transfer.symbols;
  return {{"checkpoint", transfer.checkpoint},
          {"checksum", transfer.identity},
          {"step", transfer.step},
          {"averaged", transfer.averaged},
          {"numbers", transfer.all_numbers()},
          {"numbers_taken", transfer.taken_numbers()},
          {"symbols",
           {{"now", symbols.now()},
            {"before", symbols.before},
            {"shared", symbols.shared},
            {"vectors_taken", transfer.vectors}}},
          {"taken", taken},
          {"partly", partly},
          {"new", fresh},
          {"left", transfer.left},
          {"model", changed}};
}

}  // namespace engram
