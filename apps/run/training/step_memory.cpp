#include "apps/run/training/step_memory.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/frozen_parameters.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "apps/run/training/session.hpp"
#include "apps/run/training/trainer.hpp"
#include "core/counting_backend.hpp"
#include "core/counting_ranks.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

// Of each family.
std::int64_t longest_past_of(const AllAttentionOptions& options) { return options.max_span; }
std::int64_t longest_past_of(const TransformerXlOptions& options) { return options.memory; }
std::int64_t longest_past_of(const ProductKeyTransformerOptions&) { return 0; }
std::int64_t longest_past_of(const RecurrentOptions& options) { return options.readout_reach(); }

/// A drawn segment is at most so much longer than training.block (apps/data/blocks/segments.hpp).
constexpr std::int64_t kDrawnLonger = 15;

/// Watches the arena between the kernels: what its peak is made of.
class PeakWatch final : public KernelObserver {
 public:
  PeakWatch(Arena& arena, StepMemory& memory) : arena_(&arena), memory_(&memory) {}

  void before(const char* kernel) override {
    in_use_ = arena_->bytes_in_use();
    memory_->first_arena = std::max(memory_->first_arena, static_cast<std::int64_t>(arena_->slab_bytes()));
    if (arena_->peak_bytes() > peak_) take(kernel, 0);  // by tensors, before this kernel
    before_ = arena_->peak_bytes();
  }
  void after(const char* kernel) override {
    if (arena_->peak_bytes() > before_) take(kernel, arena_->peak_bytes() - in_use_);
  }
  /// After a step: what its last tensors took.
  void finish() {
    if (arena_->peak_bytes() > peak_) take("", 0);
  }

 private:
  void take(const char* kernel, std::size_t workspace) {
    peak_ = arena_->peak_bytes();
    memory_->kernel = kernel;
    memory_->workspace = static_cast<std::int64_t>(workspace);
  }

  Arena* arena_;
  StepMemory* memory_;
  std::size_t peak_ = 0, in_use_ = 0, before_ = 0;
};

/// As make_reader() wants it, with every block as long as the longest.
RunConfig with_longest_blocks(RunConfig config) {
  if (!config.training.drawn_lengths) return config;
  config.training.drawn_lengths = false;
  config.training.block += kDrawnLonger;
  return config;
}

/// Blocks until caches are full, and some more, in which the arena settles.
std::int64_t counted_steps(const RunConfig& config) {
  constexpr std::int64_t kSettling = 3;
  const std::int64_t block = config.training.block;
  return (longest_past(config.model) + block - 1) / block + kSettling;
}

/// Tokens for so many steps.
std::vector<std::int32_t> drawn_tokens(const RunConfig& config, std::int64_t steps) {
  const std::int64_t row = config.training.block * (steps + 1) + config.training.extension + 1;
  const std::int64_t count = config.training.batch * row;
  if (config.model.cutoffs().empty()) return std::vector<std::int32_t>(static_cast<std::size_t>(count));
  return ranked_tokens(count, config.model.vocabulary(), 1);
}

/// A run that begins, without numbers.
class CountedRun {
 public:
  CountedRun(const RunConfig& config, const data::ArticleSplit& split, const MemorySetting& setting)
      : config_(config),
        ranks_(setting.rank, setting.ranks),
        runtime_(std::make_unique<CountingBackend>(open_backend(setting.device)), setting.threads, config.training.seed,
                 &ranks_),
        model_(make_model(config.model)) {
    collect(*model_, store_);
    freeze_parameters(store_, config_.training.freeze);
    store_.place(runtime_.backend(), setting.dtype, config_.training.seed, {}, &ranks_);
    model_->refresh(runtime_.backend());
    trainer_ = std::make_unique<Trainer>(config_, *model_, store_, runtime_);
    reader_ = make_reader(config_, split);
  }

  /// Whether so many steps, the first among them, get by with one block of this size: they may need more than their
  /// peak, as memory in use lies between what is free.
  bool fits_in(std::int64_t bytes, std::int64_t steps) {
    take_room(runtime_.arena(), bytes);
    for (std::int64_t step = 0; step < steps; ++step) {
      reader_->next(block_);
      trainer_->step(block_);
      if (static_cast<std::int64_t>(runtime_.arena().slab_bytes()) != bytes) return false;
    }
    return true;
  }

  StepMemory count(std::int64_t steps) {
    StepMemory memory;
    memory.steps = steps;
    PeakWatch watch(runtime_.arena(), memory);
    runtime_.step().observe(&watch);
    for (std::int64_t step = 0; step < steps; ++step) {
      reader_->next(block_);
      trainer_->view_tape([&](const Tape&) {
        memory.activations = std::max(memory.activations, static_cast<std::int64_t>(runtime_.arena().bytes_in_use()));
      });
      trainer_->step(block_);
      watch.finish();
    }
    runtime_.step().observe(nullptr);
    memory.peak = static_cast<std::int64_t>(runtime_.arena().peak_bytes());
    memory.arena = static_cast<std::int64_t>(runtime_.arena().slab_bytes());
    memory.kept = rank_memory(rank_setting(config_), store_, ranks_.size())[static_cast<std::size_t>(ranks_.rank())];
    memory.blocks = block_bytes();
    const std::int64_t others = memory.kept.kept_buffers + memory.kept.sums + memory.blocks;
    memory.caches = static_cast<std::int64_t>(runtime_.bytes_in_use()) - others;
    // As long as those of training, and f32 whatever training has.
    const DType dtype = activation_dtype(config_.training.activations, store_.dtype());
    memory.validation_caches =
        memory.caches / static_cast<std::int64_t>(size_of(dtype)) * static_cast<std::int64_t>(size_of(store_.dtype()));
    return memory;
  }

 private:
  /// Of what Trainer keeps of a block.
  std::int64_t block_bytes() {
    const std::size_t before = runtime_.bytes_in_use();
    const Tensor losses({config_.training.split, model_->tokens().most_losses() + 1 + model_->auxiliary_count(0)},
                        store_.dtype(), runtime_.backend().device(), runtime_.memory());
    BlockTensors tokens;
    tokens.write(tokens_of(block_), config_.training.split, model_->tokens().clusters(), runtime_.backend(),
                 runtime_.memory(), store_.dtype());
    return static_cast<std::int64_t>(runtime_.bytes_in_use() - before);
  }

  RunConfig config_;
  CountingRanks ranks_;
  Runtime runtime_;
  ParameterStore store_;  // before the model, whose parameters have their memory here
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<data::BlockReader> reader_;
  data::Block block_;
};

/// The least block, in parts of the peak, that all steps fit into; that of `memory`, which later steps take, where none
/// up to twice the peak is large enough.
std::int64_t room_for(const StepMemory& memory, const std::function<std::unique_ptr<CountedRun>()>& begin) {
  constexpr std::int64_t kParts = 32, kPage = 4096;
  for (std::int64_t more = 0; more <= kParts; ++more) {
    const std::int64_t bytes = (memory.peak + memory.peak / kParts * more + kPage - 1) / kPage * kPage;
    const std::int64_t room = std::max(bytes, std::int64_t{1} << 20);  // as the arena's first block is
    if (begin()->fits_in(room, memory.steps)) return room;
  }
  return memory.arena;
}

}  // namespace

void take_room(Arena& arena, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  arena.free(arena.allocate(size), size);
}

std::int64_t longest_past(const ModelOptions& model) {
  return with_own_options(model, [](const auto& own) { return longest_past_of(own); });
}

StepMemory count_step_memory(const RunConfig& config, const data::ArticleSplit& training,
                             const MemorySetting& setting) {
  const RunConfig longest = with_longest_blocks(config);
  const std::int64_t steps = counted_steps(longest);
  std::vector<std::int32_t> drawn;
  if (training.tokens.size() == 0) drawn = drawn_tokens(longest, steps);
  const data::ArticleSplit blocks = drawn.empty() ? training : data::ArticleSplit(data::TokenView(drawn));
  const auto begin = [&] { return std::make_unique<CountedRun>(longest, blocks, setting); };
  StepMemory memory = begin()->count(steps);
  if (takes_room(setting.device)) memory.arena = room_for(memory, begin);
  return memory;
}

}  // namespace engram
