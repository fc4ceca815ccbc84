#include "apps/studies/cost/rank_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "apps/run/model/frozen_parameters.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "apps/run/training/rank_split.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

struct MemoryLine {
  const char* name;
  const char* json_name;
  std::int64_t RankMemory::*bytes;
};
constexpr MemoryLine kMemoryLines[] = {{"parameters", "parameters", &RankMemory::values},
                                       {"gradients", "gradients", &RankMemory::gradients},
                                       {"means of parameters", "averages", &RankMemory::averages},
                                       {"bf16 copies of parameters", "bf16_parameters", &RankMemory::rounded},
                                       {"optimiser state", "optimizer_state", &RankMemory::state},
                                       {"gradients of other ranks", "received_gradients", &RankMemory::exchange},
                                       {"sums over pieces", "piece_sums", &RankMemory::sums},
                                       {"sums of squares", "squared_norms", &RankMemory::norms},
                                       {"tables of values", "tables", &RankMemory::tables},
                                       {"their optimiser state", "table_state", &RankMemory::table_state},
                                       {"running statistics", "buffers", &RankMemory::buffers},
                                       {"the same before a step", "kept_buffers", &RankMemory::kept_buffers}};

struct TrafficLine {
  const char* name;
  const char* json_name;
  std::int64_t bytes;
};
std::vector<TrafficLine> lines_of(const RankTraffic& traffic) {
  return {{"gradients", "gradients", traffic.exchanged()},
          {"values after the update", "values", traffic.gathered()},
          {"sums of squares", "squared_norms", traffic.squares},
          {"reads of tables' rows", "table_rows", traffic.rows},
          {"running statistics", "buffers", traffic.buffers},
          {"losses", "losses", traffic.losses},
          {"whether to stop", "stop", traffic.stop}};
}

std::string pieces_text(const RankReport& report) {
  const std::int64_t own = report.split / report.question.ranks;
  return fmt::format("{} ranks, {} of {} pieces each", report.question.ranks, own, report.split) +
         (report.split != report.asked_split ? fmt::format(" (training.split is {})", report.asked_split) : "");
}

std::string prediction_lines(const RankReport& report) {
  const RankQuestion& question = report.question;
  const StepPrediction& found = *report.prediction;
  std::string lines = fmt::format(
      "\nprediction for a link of {:g} Gbit/s and {:g} us for each rank\n"
      "exchange of gradients {:>12.3f} ms in {} buckets, all else {:.3f} ms\n",
      question.gigabits, question.latency, found.exchange_seconds * 1e3, report.traffic.buckets.size(),
      found.gather_seconds * 1e3);
  if (question.step_seconds == 0)
    return lines + "--step-seconds, as engram bench measures them, says what backward hides\n";
  lines += fmt::format("hidden by backward    {:>12.1f} %  of the exchange; {:.3f} ms are waited for\n",
                       100 * found.hidden(), found.exposed_seconds * 1e3);
  lines += fmt::format("a step                {:>12.2f} ms of {} tokens, {:.0f} tokens/s; one rank {:.2f} ms\n",
                       found.step_seconds * 1e3, report.tokens, static_cast<double>(report.tokens) / found.step_seconds,
                       question.step_seconds * 1e3);
  return lines +
         fmt::format("efficiency            {:>12.3f}    of {} times one rank\n", found.efficiency, question.ranks);
}

}  // namespace

std::vector<KeptMemory> kept_memory(const RankMemory& memory) {
  std::vector<KeptMemory> kept;
  for (const MemoryLine& line : kMemoryLines) kept.push_back({line.name, line.json_name, memory.*line.bytes});
  return kept;
}

RankReport rank_report(const RunConfig& config, const RankQuestion& question) {
  RankReport report{.question = question, .asked_split = config.training.split};
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  ParameterStore store;
  collect(*model, store);
  freeze_parameters(store, config.training.freeze);
  RunConfig shared = config;
  report.split = shared.training.split = split_for_ranks(config, question.ranks);
  report.tokens = config.training.batch * config.training.block;
  const RankSetting setting = rank_setting(shared);
  report.alone = largest_rank_memory(rank_setting(config), store, 1);
  report.first = rank_memory(setting, store, question.ranks).front();
  report.largest = largest_rank_memory(setting, store, question.ranks);
  for (int rank = 0; rank < question.ranks; ++rank) {
    RankTraffic traffic = rank_traffic(setting, store, question.ranks, rank);
    if (rank == 0) report.first_traffic = traffic;
    if (rank == 0 || traffic.total() > report.traffic.total()) report.traffic = std::move(traffic);
  }
  if (question.gigabits == 0) return report;
  const RankLink link{.bytes_per_second = question.gigabits * 1e9 / 8, .latency_seconds = question.latency * 1e-6};
  report.prediction = question.step_seconds > 0
                          ? predict_step(report.traffic, link, question.step_seconds, question.ranks, report.split)
                          : predict_link(report.traffic, link);
  return report;
}

std::string table_of(const RankReport& report) {
  std::string lines = fmt::format("\n{}\n", pieces_text(report));
  lines += fmt::format("{:<26} {:>16} {:>16}\n", "memory of a rank, bytes", "one rank",
                       fmt::format("one of {}", report.question.ranks));
  for (const MemoryLine& line : kMemoryLines)
    if (report.alone.*line.bytes > 0 || report.largest.*line.bytes > 0)
      lines += fmt::format("{:<26} {:>16} {:>16}\n", line.name, report.alone.*line.bytes, report.largest.*line.bytes);
  lines += fmt::format("{:<26} {:>16} {:>16}\n", "together", report.alone.total(), report.largest.total());
  lines += "caches of hidden states and what a step takes come on top (--memory)\n\n";
  lines += fmt::format("{:<26} {:>16}\n", "a rank sends in a step", "bytes");
  for (const TrafficLine& line : lines_of(report.traffic))
    if (line.bytes > 0) lines += fmt::format("{:<26} {:>16}\n", line.name, line.bytes);
  lines += fmt::format("{:<26} {:>16}  in {} messages\n", "together", report.traffic.total(), report.traffic.messages);
  if (report.prediction) lines += prediction_lines(report);
  return lines;
}

nlohmann::json json_of(const RankReport& report) {
  const auto memory_json = [](const RankMemory& memory) {
    nlohmann::json object{{"bytes", memory.total()}};
    for (const MemoryLine& line : kMemoryLines) object[line.json_name] = memory.*line.bytes;
    return object;
  };
  nlohmann::json object{{"ranks", report.question.ranks},
                        {"split", report.split},
                        {"memory",
                         {{"one_rank", memory_json(report.alone)},
                          {"rank_0", memory_json(report.first)},
                          {"largest_rank", memory_json(report.largest)}}},
                        {"messages_per_step", report.traffic.messages},
                        {"buckets", report.traffic.buckets.size()}};
  const auto traffic_json = [](const RankTraffic& traffic) {
    nlohmann::json bytes{{"all", traffic.total()}};
    for (const TrafficLine& line : lines_of(traffic)) bytes[line.json_name] = line.bytes;
    return bytes;
  };
  object["bytes_sent_per_step"] = traffic_json(report.traffic);
  object["bytes_rank_0_sends_per_step"] = traffic_json(report.first_traffic);
  if (!report.prediction) return object;
  const StepPrediction& found = *report.prediction;
  nlohmann::json& prediction = object["prediction"];
  prediction = {{"gigabits_per_second", report.question.gigabits},
                {"latency_microseconds", report.question.latency},
                {"exchange_seconds", found.exchange_seconds},
                {"gather_seconds", found.gather_seconds}};
  if (report.question.step_seconds > 0)
    prediction.update({{"one_rank_step_seconds", report.question.step_seconds},
                       {"exposed_seconds", found.exposed_seconds},
                       {"hidden_share", found.hidden()},
                       {"step_seconds", found.step_seconds},
                       {"tokens_per_second", static_cast<double>(report.tokens) / found.step_seconds},
                       {"efficiency", found.efficiency}});
  return object;
}

}  // namespace engram
