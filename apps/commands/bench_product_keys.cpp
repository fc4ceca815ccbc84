#include "apps/commands/bench_ways.hpp"

#include <algorithm>

#include "apps/commands/output.hpp"
#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/product_key_bench_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

ProductKeyBench bench_of(const BenchProductKeysArguments& arguments, const BenchOptions& shared) {
  ProductKeyBench bench;
  if (!arguments.slots.empty()) bench.slots = arguments.slots;
  bench.width = arguments.width;
  bench.heads = arguments.heads;
  bench.selected = arguments.selected;
  bench.query_width = arguments.query_width;
  bench.values = arguments.values == "bf16" ? DType::bf16 : DType::f32;
  bench.layer_tokens = arguments.layer_tokens;
  bench.flat_tokens = arguments.flat_tokens;
  if (shared.tokens > 0) bench.tokens = shared.tokens;
  bench.steps = shared.steps;
  bench.check();
  return bench;
}

}  // namespace

Option* BenchProductKeysArguments::add_to(Command& command) {
  Option* flag = command.add_flag(
      "--memory", wanted,
      "a product-key memory alone, by the number of slots: reading values beside a plain loop, the whole layer beside "
      "its cost model and flat keys, and its training step beside the bytes of its table [no config]");
  command.add_option("--slots", slots, "squares [16384,65536,262144,1048576,4194304]")->delimiter(',')->needs(flag);
  command.add_option("--parts", parts, "what is measured: read, layer, flat and training")
      ->delimiter(',')
      ->value_name("WORD,...")
      ->one_of({"read", "layer", "flat", "training"})
      ->needs(flag)
      ->capture_default_str();
  command.add_option("--values", values, "numbers of the table: f32 or bf16")
      ->one_of({"f32", "bf16"})
      ->needs(flag)
      ->capture_default_str();
  const auto size = [&](const char* name, std::int64_t& value, const char* help) {
    command.add_option(name, value, help)->positive()->needs(flag)->capture_default_str();
  };
  size("--width", width, "of the memory's values and input");
  size("--heads", heads, "of the memory");
  size("--selected", selected, "slots that a head reads");
  size("--query-width", query_width, "numbers of a head's query");
  size("--layer-tokens", layer_tokens, "of a forward pass of the layer, parts layer and training");
  size("--flat-tokens", flat_tokens, "of a forward pass of part flat");
  return flag;
}

void bench_product_keys(const BenchProductKeysArguments& arguments, const BenchOptions& shared) {
  const ProductKeyBench bench = bench_of(arguments, shared);
  const Device device = parse_device(shared.device);
  if (device.kind != DeviceKind::cpu)
    throw UsageError(text("bench: --memory measures the CPU, got --device ", shared.device));
  WorkProgress progress("measuring the machine");
  ProductKeyBenchResult result;
  {
    Runtime runtime(device, shared.threads);
    result.machine = measure_limits(runtime.backend(), shared.product_size);
  }
  if (!shared.json) print_report(table_of(result.machine));
  Runtime runtime(device, shared.threads);
  const int threads = runtime.backend().threads();
  runtime.backend().set_threads(1);
  result.one_thread_copy = copy_rate(runtime.backend(), shared.product_size);
  runtime.backend().set_threads(threads);
  const auto wants = [&](const char* part) {
    progress.begin(text("timing a product-key memory, part ", part));
    return std::ranges::find(arguments.parts, part) != arguments.parts.end();
  };
  if (wants("read")) bench_product_key_reads(bench, runtime, result);
  if (wants("layer")) bench_product_key_layer(bench, KeyKind::product, runtime, result);
  if (wants("flat")) bench_product_key_layer(bench, KeyKind::flat, runtime, result);
  if (wants("training")) bench_product_key_training(bench, runtime, result);
  progress.end();
  if (shared.json)
    print_json({{"machine", json_of(result.machine)}, {"memory", json_of(bench, result)}});
  else
    print_report(table_of(bench, result));
}

}  // namespace engram
