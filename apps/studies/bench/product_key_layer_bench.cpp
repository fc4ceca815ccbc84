#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "apps/studies/bench/product_key_bench.hpp"
#include "apps/studies/bench/random_rows.hpp"
#include "autograd/functions/product_key_top_k.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/functions/softmax.hpp"
#include "autograd/functions/weighted_rows.hpp"
#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "nn/layers/product_key_memory.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

constexpr std::uint64_t kSeed = 1;

std::size_t place(LayerStage stage) { return static_cast<std::size_t>(stage); }

/// Sorts the time of a pass's kernels into stages. The first product of a pass is the query network's; all after it
/// are with keys.
class StageClock final : public KernelObserver {
 public:
  void begin_pass() {
    products_ = 0;
    std::ranges::fill(seconds_, 0.0);
  }
  void before(const char*) override { start_ = Clock::now(); }
  void after(const char* kernel) override {
    seconds_[place(stage_of(kernel))] += std::chrono::duration<double>(Clock::now() - start_).count();
  }
  double seconds(std::size_t stage) const { return seconds_[stage]; }

 private:
  using Clock = std::chrono::steady_clock;
  LayerStage stage_of(std::string_view kernel) {
    if (kernel == "matmul") return products_++ == 0 ? LayerStage::query : LayerStage::scores;
    if (kernel == "product_key_select") return LayerStage::select;
    if (kernel == "softmax_forward") return LayerStage::softmax;
    if (kernel == "weighted_rows_forward") return LayerStage::read;
    if (kernel.starts_with("bias") || kernel.starts_with("batch_norm")) return LayerStage::query;
    return LayerStage::other;
  }
  Clock::time_point start_;
  int products_ = 0;
  double seconds_[kLayerStages] = {};
};

/// Numbers in ±bound from a fixed seed, by several threads: drawing keys of gigabytes as a layer does takes minutes.
void fill_uniform(Tensor& tensor, double bound, int threads) {
  auto* const numbers = tensor.data<float>();
  on_threads(threads, tensor.count(), [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t state = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(begin + 1);
    for (std::int64_t i = begin; i < end; ++i) {
      // Marsaglia: "Xorshift RNGs" (2003).
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      numbers[i] = static_cast<float>(bound * (static_cast<double>(state >> 11) * 0x1p-52 - 1));
    }
  });
}

/// The layer as the library has it; or, with flat keys, its operations on keys that are constants, because parameters
/// would have gradients of their size.
class TimedProductKeys final : public Module {
 public:
  TimedProductKeys(const ProductKeyBench& bench, std::int64_t slots, KeyKind keys, Runtime& runtime) : bench_(bench) {
    const ProductKeyOptions options = bench.layer(slots, keys);
    if (keys == KeyKind::product) {
      memory_.emplace(options, bench.width);
    } else {
      query_.emplace(options.query_options(bench.width));
      const Device device = runtime.backend().device();
      keys_ = Tensor({bench.heads, 1, slots, bench.query_width}, DType::f32, device, runtime.memory());
      fill_uniform(keys_, 1 / std::sqrt(static_cast<double>(bench.query_width)), runtime.backend().threads());
      values_ = Tensor({slots, bench.width}, bench.values, device, runtime.memory());
      kernels::fill(runtime.step(), values_, 0);
    }
    collect(*this, store_);
    store_.place(runtime.backend(), DType::f32, kSeed);
  }
  void visit(Visitor& visit) override {
    if (memory_) visit("memory", *memory_);
    if (query_) visit("query", *query_);
  }
  Variable forward(const Variable& x) {
    if (memory_) return memory_->forward(x);
    Tape& tape = x.tape();
    const std::int64_t rows = x.shape()[0];
    const ProductKeySelection found = product_key_top_k(query_->forward(x, {}), tape.constant(keys_), bench_.selected);
    const Shape reads{rows, bench_.reads()};
    return weighted_rows(tape.constant(values_), found.ids.view(reads), reshape(softmax(found.scores), reads));
  }

 private:
  const ProductKeyBench& bench_;
  std::optional<ProductKeyMemory> memory_;
  std::optional<QueryNetwork> query_;
  Tensor keys_, values_;
  ParameterStore store_;
};

LayerRun time_layer(const ProductKeyBench& bench, std::int64_t slots, KeyKind keys, Runtime& runtime) {
  LayerRun run{.keys = keys,
               .slots = slots,
               .tokens = keys == KeyKind::flat ? bench.flat_tokens : bench.layer_tokens,
               .whole = {},
               .stages = {}};
  const auto tokens = static_cast<double>(run.tokens), width = static_cast<double>(bench.width);
  const double queries = static_cast<double>(bench.heads * bench.query_width);
  const auto scored = static_cast<double>(keys == KeyKind::flat ? slots : bench.subkeys(slots));
  run.query_flops = 2 * tokens * width * queries;
  run.score_flops = 2 * tokens * queries * scored;
  run.exponentials = tokens * static_cast<double>(bench.reads());
  run.read_bytes = tokens * static_cast<double>(bench.reads() * bench.row_bytes());

  TimedProductKeys layer(bench, slots, keys, runtime);
  StageClock clock;
  Tensor all({run.tokens * (bench.steps + 1), bench.width}, DType::f32, runtime.backend().device(), runtime.memory());
  fill_uniform(all, std::sqrt(3.0), 1);  // of variance 1, as behind a layer norm
  runtime.step().observe(&clock);
  for (std::int64_t pass = 0; pass <= bench.steps; ++pass) {
    clock.begin_pass();
    const double seconds = runtime.in_step([&](Step& step) {
      return seconds_of([&] {
        Tape tape(step, Tape::Mode::inference);
        layer.forward(tape.constant(all.rows(pass * run.tokens, (pass + 1) * run.tokens)));
      });
    });
    if (pass == 0) continue;  // memory is mapped, code of products is made
    run.whole.seconds.push_back(seconds);
    for (std::size_t stage = 0; stage < kLayerStages; ++stage)
      run.stages[stage].seconds.push_back(clock.seconds(stage));
  }
  runtime.step().observe(nullptr);
  run.whole.sorted();
  for (PassTimes& stage : run.stages) stage.sorted();
  return run;
}

}  // namespace

const char* name_of(LayerStage stage) {
  constexpr const char* kNames[kLayerStages] = {"query", "scores", "select", "softmax", "read", "other"};
  return kNames[place(stage)];
}

double LayerRun::without_scores() const { return whole.median() - stages[place(LayerStage::scores)].median(); }

std::int64_t ProductKeyBench::subkeys(std::int64_t of_slots) const {
  const auto n = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(of_slots))));
  if (of_slots < 1 || n * n != of_slots)
    throw UsageError(text("bench: --slots must be squares, as 65536 = 256^2, got ", of_slots));
  return n;
}

ProductKeyOptions ProductKeyBench::layer(std::int64_t of_slots, KeyKind keys) const {
  ProductKeyOptions options;
  options.count = 1;
  options.keys = keys;
  options.subkeys = subkeys(of_slots);
  options.heads = heads;
  options.selected = selected;
  options.query_width = query_width;
  options.value_dtype = values;
  options.value_init = ValueStart::zeros;  // drawing gigabytes takes minutes, and no time depends on them
  return options;
}

void ProductKeyBench::check() const {
  if (slots.empty()) throw UsageError("bench: --slots must name at least one size");
  if (width < 1) throw UsageError(text("bench: --width must be at least 1, got ", width));
  constexpr std::int64_t kMostSlots = std::int64_t{1} << 33, kMostOfOther = std::int64_t{1} << 24;
  for (const auto& [option, number] : {std::pair{"--tokens", tokens}, std::pair{"--layer-tokens", layer_tokens},
                                       std::pair{"--flat-tokens", flat_tokens}, std::pair{"--width", width}})
    if (number > kMostOfOther) throw UsageError(text("bench: ", option, " must be at most 2^24, got ", number));
  for (const std::int64_t size : slots) {
    if (size > kMostSlots) throw UsageError(text("bench: --slots must be at most 2^33, got ", size));
    layer(size, KeyKind::product).check(width, 2);
  }
}

void bench_product_key_layer(const ProductKeyBench& bench, KeyKind keys, Runtime& runtime,
                             ProductKeyBenchResult& result) {
  for (const std::int64_t slots : bench.slots) {
    double bytes = static_cast<double>(slots) * static_cast<double>(bench.row_bytes());
    if (keys == KeyKind::flat)
      bytes += 4.0 * static_cast<double>(slots) * static_cast<double>(bench.heads * bench.query_width);
    const std::string what =
        text(keys == KeyKind::flat ? "a layer of flat keys with " : "a layer with ", slots, " slots");
    if (const std::string note = too_large(what, bytes); !note.empty()) {
      result.skipped.push_back(note);
      continue;
    }
    result.layers.push_back(time_layer(bench, slots, keys, runtime));
  }
}

}  // namespace engram
