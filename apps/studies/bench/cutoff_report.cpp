#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/studies/bench/cutoff_bench.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

std::string choice_lines(const char* name, const TimedCutoffs& choice) {
  std::string lines = fmt::format("{:<12} {}\n", name, fmt::join(choice.cutoffs, ","));
  lines += "  words     ";
  for (const double share : choice.shares) lines += fmt::format(" {:.2f}%", 100 * share);
  return lines + fmt::format("\n  a step     predicted {:.2f} ms, median of {} {:.2f} ms ({:.2f} to {:.2f})\n",
                             choice.predicted * 1e3, choice.seconds.size(), choice.median() * 1e3,
                             choice.seconds.front() * 1e3, choice.seconds.back() * 1e3);
}

nlohmann::json choice_json(const TimedCutoffs& choice) {
  return {{"cutoffs", choice.cutoffs},
          {"cluster_shares", choice.shares},
          {"predicted_milliseconds", choice.predicted * 1e3},
          {"milliseconds_median", choice.median() * 1e3},
          {"milliseconds_fastest", choice.seconds.front() * 1e3},
          {"milliseconds_slowest", choice.seconds.back() * 1e3}};
}

}  // namespace

std::string table_of(const CutoffReport& report) {
  std::string lines =
      fmt::format("{}, words of '{}'\n{} symbols in {} clusters, vectors of {} numbers\n", report.config, report.data,
                  report.vocabulary, report.widths.size(), fmt::join(report.widths, ", "));
  lines += fmt::format("input and output of {} tokens on {}, {} sizes of clusters\n\n", report.tokens, report.device,
                       report.points);
  lines += choice_lines("chosen", report.chosen);
  if (report.own) {
    lines += choice_lines("the config's", *report.own);
    lines += fmt::format("the choice takes {:.3f} times as long\n", report.chosen.median() / report.own->median());
  }
  return lines + fmt::format("\n--set model.cutoffs={}\n", fmt::join(report.chosen.cutoffs, ","));
}

nlohmann::json json_of(const CutoffReport& report) {
  nlohmann::json object{{"config", report.config},          {"data", report.data},
                        {"device", report.device},          {"vocabulary", report.vocabulary},
                        {"tokens_per_step", report.tokens}, {"widths", report.widths},
                        {"sizes_timed", report.points},     {"chosen", choice_json(report.chosen)}};
  if (report.own) object["config_cutoffs"] = choice_json(*report.own);
  return object;
}

}  // namespace engram
