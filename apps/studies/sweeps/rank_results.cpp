#include "apps/studies/sweeps/rank_results.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"
#include "core/files/parse_json.hpp"

namespace engram {
namespace {

using nlohmann::json;

// In JSON a number cannot be infinite.
json number_json(double number) { return fmt::format("{:a}", number); }
double number_of(const json& written) { return std::strtod(written.get<std::string>().c_str(), nullptr); }

/// Calls use(name, number) for each optional number.
template <class Result, class F>
void for_numbers(Result& result, F&& use) {
  use("tokens_per_second", result.tokens_per_second);
  use("inference_tokens", result.inference_tokens);
  use("inference_words", result.inference_words);
  use("mean_span", result.mean_span);
  use("released_span", result.released_span);
  use("valid", result.valid);
  use("best_valid", result.best_valid);
  use("test", result.test);
  use("best_test", result.best_test);
}

}  // namespace

std::string text_of_result(const RunResult& result) {
  json object{{"outcome", name_of(result.outcome)}, {"reason", result.reason}, {"step", result.step}};
  for_numbers(result, [&object](const char* name, const std::optional<double>& number) {
    if (number) object[name] = number_json(*number);
  });
  if (result.best_step) object["best_step"] = *result.best_step;
  for (const ProductKeyFigures& memory : result.memories)
    object["memories"].push_back(
        {memory.layer, number_json(memory.usage), number_json(memory.top_usage), number_json(memory.kl)});
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

RunResult result_of_text(std::string_view written) try {
  const json object = parse_json_or_discard(written);
  if (!object.is_object()) throw Error(text("sweep: a result must be JSON, got '", written, "'"));
  RunResult result;
  result.outcome = find_named<RunOutcome>(object.at("outcome").get<std::string>()).value_or(RunOutcome::failed);
  result.reason = object.at("reason").get<std::string>();
  result.step = integer_of<std::int64_t>(object.at("step"));
  for_numbers(result, [&object](const char* name, std::optional<double>& number) {
    if (object.contains(name)) number = number_of(object.at(name));
  });
  if (object.contains("best_step")) result.best_step = integer_of<std::int64_t>(object.at("best_step"));
  if (object.contains("memories"))
    for (const json& memory : object.at("memories"))
      result.memories.push_back({.layer = integer_of<std::int64_t>(memory.at(0)),
                                 .usage = number_of(memory.at(1)),
                                 .top_usage = number_of(memory.at(2)),
                                 .kl = number_of(memory.at(3))});
  return result;
} catch (const json::exception& error) {
  throw Error(text("sweep: a result must have its members, got this: ", error.what()));
}

}  // namespace engram
