/// What evaluation hands over of product-key memories: every scored position once, in every family and way.

#include "apps/run/evaluation/product_key_reads.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "core/error.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::product_key_reads_test {
namespace {

/// Memory usage by its definition, from the traces of blocks of 20 tokens of ten streams.
struct PlainUsage {
  std::vector<double> weights;
  std::vector<std::int64_t> reads, first;

  PlainUsage(TrainedModel& trained, data::TokenView tokens, std::size_t layer, Runtime& runtime)
      : weights(kMemorySlots), reads(kMemorySlots), first(kMemorySlots) {
    const std::int64_t row = tokens.size() / 10;
    ModelPast past = trained.model().frozen_past(runtime.backend(), runtime.memory(), 1, trained.dtype(), 20);
    for (std::int64_t stream = 0; stream < 10; ++stream)
      for (std::int64_t begin = 0; begin + 1 < row; begin += 20) {
        const std::int64_t length = std::min<std::int64_t>(20, row - 1 - begin);
        std::vector<std::int32_t> window(static_cast<std::size_t>(length));
        tokens.copy(stream * row + begin, length, window.data());
        runtime.step().begin({});
        BlockTensors block;
        block.write({.inputs = window, .targets = {}, .length = length}, 1, nullptr, runtime.backend(),
                    runtime.memory());
        Tape tape(runtime.step(), Tape::Mode::inference);
        ModelTrace trace(runtime.step().objects());
        trace.keep_memories = true;
        trained.model().hidden(tape, block.piece(0), past, &trace);
        add(trace.memories.at(layer), runtime.backend());
      }
  }
  void add(const MemoryTrace& trace, Backend& backend) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(trace.ids.count()));
    std::vector<double> values(ids.size());
    backend.copy(ids.data(), trace.ids.raw(), trace.ids.bytes(), CopyKind::device_to_host);
    backend.copy(values.data(), trace.weights.raw(), trace.weights.bytes(), CopyKind::device_to_host);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      weights.at(static_cast<std::size_t>(ids[i])) += values[i];
      ++reads.at(static_cast<std::size_t>(ids[i]));
      if (i % kMemorySelected == 0) ++first.at(static_cast<std::size_t>(ids[i]));
    }
  }
  static double used(const std::vector<std::int64_t>& counts) {
    double slots = 0;
    for (const std::int64_t count : counts) slots += count > 0 ? 1 : 0;
    return slots / kMemorySlots;
  }
  double total() const {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    return sum;
  }
  double kl() const {
    double sum = std::log(double(kMemorySlots));
    for (const double weight : weights)
      if (weight > 0) sum += weight / total() * std::log(weight / total());
    return sum;
  }
};

/// What a model's memories read of these tokens, and how many of them were scored.
struct Read {
  ModelProductKeyUsage usage;
  std::int64_t scored = 0;

  Read(TrainedModel& trained, data::TokenView tokens, const SplitEvaluationOptions& way)
      : usage(trained.config().model),
        scored(evaluate_split(trained, tokens, way, {.reads = usage.reads()}).result.scored) {}
};

}  // namespace

TEST_CASE("memory reads: figures are those of the model's traces", "[product-key]") {
  const RunFolder folder;
  const TrainingRunOptions options = memory_run(folder, "run");
  run_training(options, never());
  Runtime runtime({}, 1);
  TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
  const data::DataSet set = data::DataSet::open(folder.data());
  const Read read(trained, set.split("test"), {});
  REQUIRE(read.usage.memories().size() == 2);
  CHECK(read.usage.memories()[0].layer == 1);
  CHECK(read.usage.memories()[1].layer == 3);
  for (const ModelProductKeyUsage::Memory& memory : read.usage.memories()) {
    const PlainUsage plain(trained, set.split("test"), static_cast<std::size_t>(memory.layer - 1), runtime);
    const ProductKeyUsage::Metrics found = memory.usage.metrics();
    CHECK(found.slots == kMemorySlots);
    CHECK(found.positions == read.scored);
    CHECK(found.usage == PlainUsage::used(plain.reads));
    CHECK(found.usage > 0.05);
    CHECK(found.top_usage == PlainUsage::used(plain.first));
    CHECK(static_cast<double>(found.untouched) == Approx((1 - PlainUsage::used(plain.reads)) * kMemorySlots));
    CHECK(found.kl == Approx(plain.kl()).epsilon(1e-9));
    CHECK(found.total_weight == Approx(plain.total()).epsilon(1e-9));
    CHECK(found.total_weight == Approx(static_cast<double>(found.positions) * kMemoryHeads).epsilon(1e-9));
  }
}

TEST_CASE("memory reads: two halves of a text joined are the text (test 12)", "[product-key]") {
  const RunFolder folder;
  const TrainingRunOptions options = memory_run(folder, "run", {"product_key.shared_values=true"});
  run_training(options, never());
  Runtime runtime({}, 1);
  TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
  const data::DataSet set = data::DataSet::open(folder.data());
  std::vector<std::int32_t> tokens(201);
  set.split("test").copy(0, 201, tokens.data());
  const std::span<const std::int32_t> all = tokens;
  const SplitEvaluationOptions one_stream{.exact = true, .block = 20};
  const auto read = [&](std::span<const std::int32_t> part) {
    return Read(trained, data::TokenView(part), one_stream);
  };
  // Windows of 20 tokens begin at the same ones.
  const Read whole = read(all), front = read(all.first(101)), back = read(all.subspan(100));
  CHECK(whole.scored == 200);
  for (std::size_t i = 0; i < 2; ++i) {
    ProductKeyUsage joined = front.usage.memories()[i].usage;
    joined.merge(back.usage.memories()[i].usage);
    const ProductKeyUsage::Metrics a = whole.usage.memories()[i].usage.metrics(), b = joined.metrics();
    CHECK(a.positions == b.positions);
    CHECK(a.usage == b.usage);
    CHECK(a.top_usage == b.top_usage);
    CHECK(a.head_overlap == b.head_overlap);
    CHECK(a.repeated_reads == b.repeated_reads);
    CHECK(a.kl == Approx(b.kl).epsilon(1e-12));
    CHECK(a.kl_by_count == Approx(b.kl_by_count).epsilon(1e-12));
    CHECK(a.score_entropy == Approx(b.score_entropy).epsilon(1e-12));
  }
  // The table that memories share.
  REQUIRE(whole.usage.shared_table());
  ProductKeyUsage both = whole.usage.memories()[0].usage;
  both.merge(whole.usage.memories()[1].usage);
  CHECK(whole.usage.shared_table()->metrics().kl == both.metrics().kl);
  CHECK(whole.usage.shared_table()->metrics().positions == 400);
}

TEST_CASE("memory reads: every scored position counts once, in every family and way", "[product-key]") {
  const RunFolder folder(8000);
  TrainingRunOptions spans = run_options(folder, "spans");
  spans.overrides = {"product_key.placement=after", "product_key.layers=2",     "product_key.subkeys=5",
                     "product_key.heads=3",         "schedule.steps=2",         "product_key.selected=4",
                     "schedule.warmup=0",           "product_key.query_width=8"};
  TrainingRunOptions segments = run_options(folder, "segments");
  segments.config = put_file(folder / "xl.toml", R"([model]
family = "transformer_xl"
layers = 2
width = 16
heads = 2
inner = 24
memory = 12
[product_key]
layers = [1]
subkeys = 5
heads = 3
selected = 4
query_width = 8
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 2
[training]
batch = 4
block = 10
extension = 4
)");
  const std::vector<std::pair<TrainingRunOptions, std::vector<SplitEvaluationOptions>>> cases{
      {memory_run(folder, "run"), {{}, {.exact = true}, {.window = 20, .stride = 7}, {.window = 12, .apart = true}}},
      {spans, {{}, {.exact = true, .batch = 3, .block = 30}}},
      {segments, {{}, {.exact = true}}}};
  const data::DataSet set = data::DataSet::open(folder.data());
  for (const auto& [options, ways] : cases) {
    run_training(options, never());
    Runtime runtime({}, 1);
    TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f32);
    for (const SplitEvaluationOptions& way : ways) {
      CAPTURE(options.out.string(), way.exact, way.window, way.apart);
      const Read read(trained, set.split("test"), way);
      const ProductKeyUsage::Metrics found = read.usage.memories().back().usage.metrics();
      const std::int64_t heads = trained.config().model.memories().heads;
      CHECK(found.positions == read.scored);
      CHECK(found.total_weight == Approx(static_cast<double>(read.scored * heads)).epsilon(1e-6));
      CHECK_FALSE(read.usage.shared_table());
    }
  }
}

TEST_CASE("memory reads: context and padding are left out, and weights of every dtype are taken", "[product-key]") {
  Runtime runtime({}, 1);
  Backend& backend = runtime.backend();
  // Two rows of two columns of context and two more, of which one is padding; one head, two slots.
  data::Block block;
  block.rows = 2, block.length = 4, block.context = 2;
  block.inputs.assign(8, 0);
  block.targets.assign(4, 0);
  block.scored = {1, 0, 1, 1};
  const auto filled = [&]<class T>(const std::array<T, 16>& values, DType dtype) {
    Tensor tensor({8, 1, 2}, dtype, backend.device(), runtime.memory());
    backend.copy(tensor.raw(), values.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  };
  std::array<std::int64_t, 16> ids{};
  std::array<float, 16> narrow{};
  std::array<double, 16> wide{};
  std::array<bf16, 16> stored{};
  for (std::size_t i = 0; i < 16; ++i) {
    ids[i] = static_cast<std::int64_t>(i);
    wide[i] = 0.25 * static_cast<double>(i);
    narrow[i] = static_cast<float>(wide[i]);
    stored[i] = bf16(narrow[i]);
  }
  for (const Tensor& weights : {filled(narrow, DType::f32), filled(wide, DType::f64), filled(stored, DType::bf16)}) {
    ModelTrace trace(std::pmr::get_default_resource());
    trace.keep_memories = true;
    trace.begin(3);
    trace.memories[1] = {.ids = filled(ids, DType::i64), .weights = weights, .scores = {}};
    int calls = 0;
    hand_over(trace, block, backend,
              [&](std::size_t layer, std::span<const std::int64_t> slots, std::span<const double> found) {
                ++calls;
                CHECK(layer == 1);
                CHECK(std::vector(slots.begin(), slots.end()) == std::vector<std::int64_t>{4, 5, 12, 13, 14, 15});
                CHECK(std::vector(found.begin(), found.end()) == std::vector<double>{1, 1.25, 3, 3.25, 3.5, 3.75});
              });
    CHECK(calls == 1);
  }
}

TEST_CASE("memory reads: every device hands over the same", "[product-key][gpu]") {
  const RunFolder folder;
  const TrainingRunOptions options = memory_run(folder, "run");
  run_training(options, never());
  const data::DataSet set = data::DataSet::open(folder.data());
  const auto read_on = [&](Device device) {
    Runtime runtime(device, 1);
    TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
    return Read(trained, set.split("test"), {}).usage.memories().back().usage.metrics();
  };
  const ProductKeyUsage::Metrics host = read_on({});
  for (const Device device : other_devices()) {
    const ProductKeyUsage::Metrics found = read_on(device);
    CHECK(found.positions == host.positions);
    CHECK(found.usage == host.usage);
    CHECK(found.top_usage == host.top_usage);
    CHECK(found.kl == Approx(host.kl).epsilon(1e-9));
    CHECK(found.total_weight == Approx(host.total_weight).epsilon(1e-12));
  }
}

TEST_CASE("memory reads: nothing is asked for without memories", "[product-key]") {
  const ModelOptions model;
  ModelProductKeyUsage usage(model);
  CHECK(usage.memories().empty());
  CHECK_FALSE(usage.reads());
  CHECK_FALSE(usage.shared_table());
}

}  // namespace engram::harness::product_key_reads_test
