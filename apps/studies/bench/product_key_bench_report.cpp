#include "apps/studies/bench/product_key_bench_report.hpp"

#include <fmt/format.h>

#include "apps/report/text_table.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr double kMilliseconds = 1e3, kGigabyte = 1e9;

/// Columns, filled row by row.
class Rows {
 public:
  explicit Rows(std::initializer_list<const char*> headings) {
    for (const char* heading : headings) columns_.push_back({.heading = heading, .cells = {}});
  }
  void add(std::vector<std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) columns_[i].cells.push_back(std::move(cells[i]));
  }
  std::string text() const { return columns_.front().cells.empty() ? std::string() : aligned(columns_); }

 private:
  std::vector<TableColumn> columns_;
};

std::string number(double value, int digits = 1) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-"; }
std::string whole(std::int64_t value) { return fmt::format("{}", value); }
double ratio(double a, double b) { return b > 0 ? a / b : 0; }

const char* keys_of(const LayerRun& run) { return run.keys == KeyKind::flat ? "flat" : "product"; }
const char* rule_of(const ProductKeyTrainingRun& run) {
  if (run.kind == TableKind::row_adagrad) return "row_adagrad";
  return run.mode == TableMode::deferred ? "adam deferred" : "adam lazy";
}
const PassTimes& stage(const LayerRun& run, LayerStage stage) { return run.stages[static_cast<std::size_t>(stage)]; }

double bytes_per_token(const ProductKeyBench& bench) { return static_cast<double>(bench.reads() * bench.row_bytes()); }

/// Bytes per second of a copy on so many threads.
double copy_rate(const ProductKeyBenchResult& result, int threads) {
  return threads == 1 ? result.one_thread_copy : result.machine.bytes_per_second;
}

std::string read_text(const ProductKeyBench& bench, const ProductKeyBenchResult& result) {
  const double bytes = bytes_per_token(bench);
  Rows rows{"slots", "threads", "tokens/s", "GB/s",  "of copy", "plain",
            "times", "flushed", "in order", "plain", "times"};
  for (const ReadRun& run : result.reads)
    rows.add({whole(run.slots), whole(run.threads), number(run.speed(), 0), number(run.speed() * bytes / kGigabyte),
              number(ratio(run.speed() * bytes, copy_rate(result, run.threads)), 2), number(run.plain_speed(), 0),
              number(ratio(run.speed(), run.plain_speed()), 2), number(run.flushed_speed(), 0),
              number(ratio(run.flushed_speed(), run.in_order_speed()), 2), number(run.flushed_plain_speed(), 0),
              number(ratio(run.flushed_speed(), run.flushed_plain_speed()), 2)});
  if (result.reads.empty()) return {};
  return fmt::format(
             "\nReading values: {} rows of {} bytes a token, {:.0f} bytes; medians of {} passes of {} tokens\n"
             "plain: a loop without prefetches over ordinary pages; of copy: share of a copy's rate\n"
             "flushed: distinct rows, put out of the caches first; in order: share of reading front to back\n",
             bench.reads(), bench.row_bytes(), bytes, bench.steps, bench.tokens) +
         rows.text();
}

std::string layer_text(const ProductKeyBench& bench, const ProductKeyBenchResult& result) {
  if (result.layers.empty()) return {};
  Rows rows{"keys",   "slots",   "tokens", "ms",    "query", "floor",          "scores",   "floor",
            "select", "softmax", "read",   "floor", "other", "without scores", "of model", "tokens/s"};
  const double flops = result.machine.flops_per_second;
  int threads = 1;
  for (const ReadRun& read : result.reads) threads = std::max(threads, read.threads);
  const double row_rate = result.row_rate(bench, threads);
  for (const LayerRun& run : result.layers) {
    const auto milliseconds = [&run](LayerStage of) { return number(stage(run, of).median() * kMilliseconds, 2); };
    rows.add({keys_of(run), whole(run.slots), whole(run.tokens), number(run.whole.median() * kMilliseconds, 2),
              milliseconds(LayerStage::query), number(run.query_flops / flops * kMilliseconds, 2),
              milliseconds(LayerStage::scores), number(run.score_flops / flops * kMilliseconds, 2),
              milliseconds(LayerStage::select), milliseconds(LayerStage::softmax), milliseconds(LayerStage::read),
              number(run.read_bytes / row_rate * kMilliseconds, 2), milliseconds(LayerStage::other),
              number(run.without_scores() * kMilliseconds, 2),
              number(run.whole.median() / model_seconds(bench, result, run), 2),
              number(run.whole.rate(static_cast<double>(run.tokens)), 0)});
  }
  return fmt::format(
             "\nForward pass of the layer in evaluation: d={} H={} k={} dq={}, ms; floors by products at {:.0f} "
             "GFLOP/s\n"
             "and rows at {:.1f} GB/s; of model: time over the floors of query, scores and read together\n",
             bench.width, bench.heads, bench.selected, bench.query_width, flops / kGigabyte, row_rate / kGigabyte) +
         rows.text();
}

std::string training_text(const ProductKeyBench& bench, const ProductKeyBenchResult& result) {
  if (result.trainings.empty()) return {};
  Rows rows{"slots",  "rule",  "rows",  "ms",       "forward", "backward", "order",
            "update", "floor", "times", "catch up", "floor",   "times",    "others' update"};
  const double rate = result.machine.bytes_per_second;
  for (const ProductKeyTrainingRun& run : result.trainings) {
    const double update_floor = run.update_bytes / rate, catch_up_floor = run.catch_up_bytes / rate;
    rows.add({whole(run.slots), rule_of(run), number(run.touched, 0), number(run.step.median() * kMilliseconds),
              number(run.forward.median() * kMilliseconds), number(run.backward.median() * kMilliseconds),
              number(run.order.median() * kMilliseconds), number(run.update.median() * kMilliseconds),
              number(update_floor * kMilliseconds), number(ratio(run.update.median(), update_floor), 2),
              number(run.catch_up.median() * kMilliseconds), number(catch_up_floor * kMilliseconds),
              number(ratio(run.catch_up.median(), catch_up_floor), 2), number(run.rest.median() * kMilliseconds)});
  }
  return fmt::format(
             "\nTraining step of the layer alone: {} tokens, ms, medians of {} steps; order: sorting the uses, in the\n"
             "backward pass and the update; floors: bytes of the touched rows at the copy's {:.1f} GB/s\n",
             bench.tokens, bench.steps, rate / kGigabyte) +
         rows.text();
}

nlohmann::json times_json(const PassTimes& times) {
  return {{"median", times.median() * kMilliseconds},
          {"p10", times.quantile(0.1) * kMilliseconds},
          {"p90", times.quantile(0.9) * kMilliseconds}};
}

nlohmann::json read_json(const ProductKeyBench& bench, const ProductKeyBenchResult& result, const ReadRun& run) {
  const double bytes = bytes_per_token(bench);
  return {{"slots", run.slots},
          {"threads", run.threads},
          {"tokens", run.tokens},
          {"tokens_per_second", run.speed()},
          {"bytes_per_second", run.speed() * bytes},
          {"share_of_copy", ratio(run.speed() * bytes, copy_rate(result, run.threads))},
          {"plain_tokens_per_second", run.plain_speed()},
          {"times_plain", ratio(run.speed(), run.plain_speed())},
          {"flushed_tokens", run.flushed_tokens},
          {"flushed_tokens_per_second", run.flushed_speed()},
          {"flushed_share_of_reading_in_order", ratio(run.flushed_speed(), run.in_order_speed())},
          {"flushed_plain_tokens_per_second", run.flushed_plain_speed()},
          {"flushed_times_plain", ratio(run.flushed_speed(), run.flushed_plain_speed())},
          {"in_order_bytes_per_second", run.in_order_speed() * bytes}};
}

nlohmann::json layer_json(const ProductKeyBench& bench, const ProductKeyBenchResult& result, const LayerRun& run) {
  nlohmann::json stages = nlohmann::json::object();
  for (std::size_t i = 0; i < kLayerStages; ++i)
    stages[name_of(static_cast<LayerStage>(i))] = run.stages[i].median() * kMilliseconds;
  return {{"keys", keys_of(run)},
          {"slots", run.slots},
          {"tokens", run.tokens},
          {"milliseconds", times_json(run.whole)},
          {"stages", stages},
          {"milliseconds_without_scores", run.without_scores() * kMilliseconds},
          {"query_flops", run.query_flops},
          {"score_flops", run.score_flops},
          {"read_bytes", run.read_bytes},
          {"times_model", run.whole.median() / model_seconds(bench, result, run)},
          {"tokens_per_second", run.whole.rate(static_cast<double>(run.tokens))}};
}

nlohmann::json training_json(const ProductKeyBenchResult& result, const ProductKeyTrainingRun& run) {
  const double rate = result.machine.bytes_per_second;
  return {{"slots", run.slots},
          {"rule", rule_of(run)},
          {"tokens", run.tokens},
          {"rows_touched", run.touched},
          {"rows_behind", run.behind},
          {"milliseconds", times_json(run.step)},
          {"forward", run.forward.median() * kMilliseconds},
          {"backward", run.backward.median() * kMilliseconds},
          {"order", run.order.median() * kMilliseconds},
          {"update", run.update.median() * kMilliseconds},
          {"update_floor", run.update_bytes / rate * kMilliseconds},
          {"update_times_floor", ratio(run.update.median(), run.update_bytes / rate)},
          {"catch_up", run.catch_up.median() * kMilliseconds},
          {"catch_up_floor", run.catch_up_bytes / rate * kMilliseconds},
          {"update_of_others", run.rest.median() * kMilliseconds}};
}

}  // namespace

std::string table_of(const ProductKeyBench& bench, const ProductKeyBenchResult& result) {
  std::string text = read_text(bench, result) + layer_text(bench, result) + training_text(bench, result);
  for (const std::string& note : result.skipped) text += fmt::format("not measured: {}\n", note);
  const std::vector<ProductKeyVerdict> verdicts = product_key_verdicts(bench, result);
  if (!verdicts.empty()) text += "\nAims\n";
  for (const ProductKeyVerdict& verdict : verdicts)
    text += fmt::format("  {:<6} {:6.2f} (at {} {:.2f})  {}\n", verdict.met() ? "met" : "missed", verdict.figure,
                        verdict.at_least ? "least" : "most", verdict.aim, verdict.what);
  return text;
}

nlohmann::json json_of(const ProductKeyBench& bench, const ProductKeyBenchResult& result) {
  nlohmann::json object{{"width", bench.width},
                        {"heads", bench.heads},
                        {"selected", bench.selected},
                        {"query_width", bench.query_width},
                        {"values", bench.values == DType::bf16 ? "bf16" : "f32"},
                        {"steps", bench.steps},
                        {"one_thread_copy_bytes_per_second", result.one_thread_copy},
                        {"not_measured", result.skipped},
                        {"reads", nlohmann::json::array()},
                        {"layers", nlohmann::json::array()},
                        {"training", nlohmann::json::array()},
                        {"aims", nlohmann::json::array()}};
  for (const ReadRun& run : result.reads) object["reads"].push_back(read_json(bench, result, run));
  for (const LayerRun& run : result.layers) object["layers"].push_back(layer_json(bench, result, run));
  for (const ProductKeyTrainingRun& run : result.trainings) object["training"].push_back(training_json(result, run));
  for (const ProductKeyVerdict& verdict : product_key_verdicts(bench, result))
    object["aims"].push_back({{"what", verdict.what},
                              {"figure", verdict.figure},
                              {"aim", verdict.aim},
                              {"at_least", verdict.at_least},
                              {"met", verdict.met()}});
  return object;
}

}  // namespace engram
