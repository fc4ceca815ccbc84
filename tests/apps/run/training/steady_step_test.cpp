/// A training step like the ones before calls no operator new: tensors come from the arena, small host objects from
/// what the arena recycles. What oneDNN 3 takes for its own copies does not count: 3.6 takes some for products of some
/// sizes where there is AVX-512. (Libraries may use malloc, too.) This file replaces operator new for the whole
/// program, to count.

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

#include "apps/run/training/trainer.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/row_uses_on_host.hpp"
#include "tests/reference/central_differences.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> taken{0};

/// Whether the code at this address is that of oneDNN 3. Version 2 takes nothing, and that is counted.
bool is_of_products(const void* code) {
  Dl_info found{};
  return ::dladdr(code, &found) != 0 &&
         std::string_view(found.dli_fname).find("libdnnl.so.3") != std::string_view::npos;
}

/// `caller`: who asks for the memory.
void* counted(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (counting.load(std::memory_order_relaxed) && !is_of_products(caller)) ++taken;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
}

void* needed(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Out of sight of the compiler, which otherwise takes the pair for a mistake.
[[gnu::noinline]] void give_back(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t bytes) {
  return needed(counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__, __builtin_return_address(0)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return needed(counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

namespace engram::harness::steady_step_test {
namespace {

RunConfig config_of(MemoryMode mode, OptimizerKind optimizer, Pad pad) {
  RunConfig config;
  config.model.all_attention.vocabulary = 50;
  config.model.all_attention.memory_mode = mode;
  config.model.all_attention.layers = 2;
  config.model.all_attention.width = 64;
  config.model.all_attention.heads = 2;
  config.model.all_attention.slots = mode == MemoryMode::all ? 40 : 0;
  config.model.all_attention.inner = mode == MemoryMode::transformer ? 96 : 0;
  config.model.all_attention.max_span = 80;
  config.model.all_attention.ramp = 16;
  config.model.all_attention.span_init = 0.3;
  config.model.all_attention.dropout = 0.1;
  config.model.all_attention.pad = pad;
  config.optimizer.kind = optimizer;
  config.optimizer.clip = 0.1;
  config.optimizer.clip_kind = optimizer == OptimizerKind::adam ? ClipKind::global : ClipKind::per_tensor_gradient;
  // So small that no span outgrows its window, which would make new windows.
  config.schedule.rate = 1e-6;
  config.schedule.steps = 100;
  config.training.batch = 4;
  config.training.block = 48;
  config.training.split = 2;
  config.training.span_loss = 0.001;
  return config;
}

data::Block random_block(const RunConfig& config) {
  reference::RandomArrays random(1);
  data::Block block;
  block.rows = static_cast<int>(config.training.batch);
  block.length = static_cast<int>(config.training.block);
  block.scored_count = config.training.batch * config.training.block;
  for (std::int64_t i = 0; i < block.scored_count; ++i) {
    block.inputs.push_back(static_cast<std::int32_t>(random.below(config.model.vocabulary())));
    block.targets.push_back(static_cast<std::int32_t>(random.below(config.model.vocabulary())));
    block.scored.push_back(1);
  }
  return block;
}

/// Calls of operator new while `work` is done.
template <class Work>
std::int64_t taken_by(Work&& work) {
  const std::int64_t before = taken.load();
  counting = true;
  work();
  counting = false;
  return taken.load() - before;
}
std::int64_t taken_by_steps(Trainer& trainer, const data::Block& block, int steps) {
  return taken_by([&] {
    for (int step = 0; step < steps; ++step) trainer.step(block);
  });
}

TEST_CASE("a steady training step calls no operator new") {
  const auto [mode, optimizer, pad] = GENERATE(table<MemoryMode, OptimizerKind, Pad>({
      {MemoryMode::all, OptimizerKind::adagrad, Pad::attend_zero},
      {MemoryMode::transformer, OptimizerKind::adam, Pad::mask},
  }));
  RunConfig config = config_of(mode, optimizer, pad);
  if (GENERATE(false, true)) config.model.all_attention.cutoffs = {17, 34};
  Runtime runtime({}, 2, 5);
  ParameterStore store;
  AllAttentionModel model(config.model.all_attention);
  collect(model, store);
  store.place(runtime.backend(), DType::f32, 3);
  Trainer trainer(config, model, store, runtime);
  const data::Block block = random_block(config);
  // Caches fill, threads start, products are compiled, the arena finds its size.
  CHECK(taken_by_steps(trainer, block, 6) > 0);  // the counter counts
  CHECK(taken_by_steps(trainer, block, 5) == 0);
}

/// Calls of operator new in five steps after those in which caches fill and the arena finds its size.
std::int64_t taken_by_steady_steps(const RunConfig& config, const data::Block& block) {
  Runtime runtime({}, 2, 5);
  ParameterStore store;
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  collect(*model, store);
  store.place(runtime.backend(), DType::f32, 3);
  Trainer trainer(config, *model, store, runtime);
  taken_by_steps(trainer, block, 6);
  return taken_by_steps(trainer, block, 5);
}

TEST_CASE("a steady training step of windows, with a memory, calls no operator new") {
  RunConfig config = config_of(MemoryMode::none, OptimizerKind::adam, Pad::mask);
  config.model.family = ModelFamily::product_key;
  config.model.product_key = {
      .vocabulary = 50, .layers = 2, .width = 64, .heads = 2, .dropout = 0.1, .attention_dropout = 0.1};
  config.model.product_key.memories = {.count = 1, .subkeys = 8, .heads = 2, .selected = 4, .query_width = 16};
  config.training.span_loss = 0;
  CHECK(taken_by_steady_steps(config, random_block(config)) == 0);
}

TEST_CASE("a steady training step of a recurrent model calls no operator new") {
  RunConfig config = config_of(MemoryMode::none, OptimizerKind::adam, Pad::mask);
  const auto [encoder, readout] = GENERATE(table<RecurrentCell, ReadoutKind>({
      {RecurrentCell::lstm, ReadoutKind::key_value_predict},
      {RecurrentCell::lstm, ReadoutKind::recurrent_memory},
      {RecurrentCell::hornn_gated, ReadoutKind::n_gram},
      {RecurrentCell::qrnn, ReadoutKind::identity},
  }));
  const bool deep = GENERATE(false, true);
  config.model.family = ModelFamily::recurrent;
  // So many words that their logits are never there all at once.
  config.model.recurrent = {.vocabulary = 4000,
                            .embedding_width = 16,
                            .width = 24,
                            .encoder = encoder,
                            .readout = readout,
                            .logits_memory = 1};
  if (deep) {
    RecurrentOptions& model = config.model.recurrent;
    model.layers = 2;
    model.word_dropout = model.input_dropout = model.layer_dropout = model.output_dropout = model.weight_dropout = 0.1;
    model.dropout_over_time = encoder == RecurrentCell::lstm;
  }
  config.training.span_loss = 0;
  data::Block block = random_block(config);
  // Texts that begin anywhere, as they do among articles.
  for (std::int64_t i = 0; i < block.scored_count; ++i) block.preceding.push_back(static_cast<std::int32_t>(i % 13));
  CHECK(taken_by_steady_steps(config, block) == 0);
}

TEST_CASE("a steady update of tables calls no operator new") {
  const TableMode mode = GENERATE(TableMode::dense, TableMode::lazy, TableMode::row_step, TableMode::deferred);
  Runtime runtime({}, 2, 5);
  ParameterStore store;
  Parameter table({40, 16}, Initializer{Initializer::Kind::normal, 1}, Gradient::rows);
  store.add("table", table);
  store.place(runtime.backend(), DType::f32, 3);
  OptimizerOptions options;
  options.tables = {.mode = mode, .epsilon = 0, .clip = 1};
  const auto optimizer = make_optimizer(options, store, runtime.step());
  HeapAllocator heap(runtime.backend());
  const RowUsesOnHost uses{{3, 5, 3, 9}, {1, 0.5, 0.25, -1}, reference::constant(0.5, {2, 16})};
  const RowGradients gradients = row_gradients(runtime.backend(), heap, uses, 40, DType::f32);
  const auto update = [&](std::uint64_t number) {
    runtime.step().begin({.step = number, .piece = 0, .learning_rate = 0.1f});
    table.row_gradient().parts.push_back({gradients.uses, gradients.order});
    optimizer->update(runtime.step());
    store.clear_row_gradients();
    runtime.arena().end_step();
  };
  for (std::uint64_t number = 0; number < 4; ++number) update(number);
  const std::int64_t steady = taken_by([&] {
    for (std::uint64_t number = 4; number < 9; ++number) update(number);
  });
  CHECK(steady == 0);
}

}  // namespace
}  // namespace engram::harness::steady_step_test
