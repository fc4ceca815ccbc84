#include "apps/run/training/session.hpp"

#include <algorithm>

#include "apps/data/blocks/segments.hpp"
#include "apps/data/blocks/shuffled_windows.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

ParameterStore& placed(ParameterStore& store, LanguageModel& model, Backend& backend, DType dtype, std::uint64_t seed) {
  collect(model, store);
  store.place(backend, dtype, seed);
  return store;
}

}  // namespace

std::unique_ptr<data::BlockReader> make_reader(const RunConfig& config, const data::ArticleSplit& split) {
  const TrainingOptions& training = config.training;
  const auto rows = static_cast<int>(training.batch), block = static_cast<int>(training.block);
  const data::TokenView tokens = split.tokens;
  if (config.model.reads_articles(split.articles()))
    return std::make_unique<data::ArticleReader>(split, rows, block, training.seed);
  if (config.model.family == ModelFamily::all_attention)
    return std::make_unique<data::StreamReader>(tokens, rows, block, training.seed);
  if (training.shuffled_windows) return std::make_unique<data::ShuffledWindows>(tokens, rows, block, training.seed);
  return std::make_unique<data::SegmentReader>(tokens, rows,
                                               data::SegmentRule{.segment = block,
                                                                 .extension = static_cast<int>(training.extension),
                                                                 .drawn_lengths = training.drawn_lengths,
                                                                 .latest_half = training.latest_half},
                                               training.seed);
}

RunConfig resolved_config(RunConfig config, const data::DataSet& data) {
  const std::int64_t size = data.vocabulary().size();
  if (config.model.vocabulary() == 0) config.model.set_vocabulary(size);
  if (config.model.vocabulary() != size)
    throw UsageError(text("training: model.vocabulary must be 0 or that of the data in '", data.folder().string(),
                          "', ", size, ", got ", config.model.vocabulary(),
                          "\n  --set model.vocabulary=0 takes it from the data"));
  if (!config.model.cutoffs().empty())
    data.require_kind(data::TokenKind::word,
                      "the configuration cuts its vocabulary into clusters of words (model.cutoffs)");
  config.check();
  return config;
}

TrainingSession::TrainingSession(RunConfig resolved, const data::DataSet& data_set, Runtime& with, DType dtype)
    : config(std::move(resolved)),
      data(data_set),
      runtime(with),
      owned_model_(make_model(config.model)),
      model(*owned_model_),
      trainer(config, model, placed(store, model, with.backend(), dtype, config.training.seed), with),
      owned_reader_(make_reader(config, {data, "train"})),
      reader(*owned_reader_),
      validation(make_validation()),
      validation_past(model.training_past(with.backend(), with.memory(), validation.state().rows, dtype)),
      plateau(config.schedule.plateau_validations, config.schedule.plateau_margin) {
  if (const auto* const articles = dynamic_cast<const data::ArticleReader*>(owned_reader_.get());
      articles != nullptr && articles->idle_streams() > 0)
    notes_.push_back(text(articles->idle_streams(), " of the ", config.training.batch,
                          " streams stay empty: the training split has fewer articles"));
  if (reader.dropped() > 0)
    notes_.push_back(text("the last ", reader.dropped(), " tokens of the training split are left out, because ",
                          config.training.shuffled_windows ? text("windows of ", config.training.block)
                                                           : text(config.training.batch, " streams"),
                          " do not divide it"));
}

data::ShortValidation TrainingSession::make_validation() {
  if (const data::ArticleSplit articles(data, "valid"); config.model.reads_articles(articles.articles())) {
    // As they are in the split: passes of all blocks are then of the same tokens.
    const std::int64_t rows = std::min(config.training.batch, articles.articles());
    auto in_order = std::make_unique<data::ArticleReader>(articles, static_cast<int>(rows),
                                                          static_cast<int>(config.training.block), 0, false);
    const std::int64_t blocks = std::min(config.training.validate_blocks, in_order->epoch_blocks());
    return data::ShortValidation(std::move(in_order), blocks);
  }
  // A short text is validated with fewer streams, or a shorter block, rather than not at all.
  const data::TokenView tokens = data.split("valid");
  std::int64_t rows = config.training.batch, block = config.training.block;
  const std::int64_t most = data::largest_rows(tokens.size(), block);
  if (most < 1) {
    rows = 1;
    block = tokens.size() - 1;
  } else {
    rows = std::min(rows, most);
  }
  if (rows != config.training.batch || block != config.training.block)
    notes_.push_back(text("the validation split of ", tokens.size(), " tokens is short: valid_short uses ", rows,
                          " streams and blocks of ", block));
  if (config.model.family != ModelFamily::all_attention) {
    // Every position is judged, whatever the loss of training leaves out.
    const data::SegmentRule rule{.segment = static_cast<int>(block),
                                 .extension = static_cast<int>(config.training.extension)};
    const std::int64_t whole = (tokens.size() / rows + block - 1) / block;
    return data::ShortValidation(std::make_unique<data::SegmentReader>(tokens, static_cast<int>(rows), rule, 0),
                                 std::min(config.training.validate_blocks, whole));
  }
  constexpr std::int64_t kStepsPerBlock = 10;  // ShortValidation counts in the steps between two passes
  return data::ShortValidation(tokens, static_cast<int>(block), static_cast<int>(rows),
                               config.training.validate_blocks * kStepsPerBlock, config.training.seed + 1);
}

StepLosses TrainingSession::step() {
  const data::ReaderState before = reader.state();
  reader.next(block_);
  StepLosses losses;
  try {
    losses = trainer.step(block_);
  } catch (const OutOfMemory&) {
    trainer.undo();
    reader.restore(before);
    throw;
  }
  if (average.started()) average.add(runtime.step());
  divergence.add(losses.nll);
  interval.nll_sum += losses.nll;
  ++interval.steps;
  return losses;
}

void TrainingSession::with_judged_weights(const std::function<void()>& use) {
  if (average.updates() == 0) return use();
  const auto swap = [this] {
    average.swap(runtime.step());
    model.refresh(runtime.backend());
  };
  swap();
  // Lack of memory must not leave the mean in the place of what is trained.
  try {
    use();
  } catch (...) {
    swap();
    throw;
  }
  swap();
}

Evaluation TrainingSession::validate(const TokenLoss& found, const MemoryReads& reads) {
  // As `engram evaluate` does it.
  struct Precisions {
    TrainingSession& session;
    explicit Precisions(TrainingSession& of) : session(of) {
      session.runtime.step().set_products(ProductPrecision::f32);
      session.runtime.step().set_activations(ActivationPrecision::f32);
    }
    ~Precisions() {
      session.runtime.step().set_products(session.config.training.products);
      session.runtime.step().set_activations(session.config.training.activations);
    }
  };
  trainer.optimizer().bring_up_to_date(runtime.step());
  Evaluation result;
  with_judged_weights([&] {
    const Precisions precisions(*this);
    result = evaluate(model, validation, validation_past, store.dtype(), runtime, found, reads);
  });
  if (config.schedule.finetune == Schedule::Finetune::plateau && trainer.steps() < trainer.finetune_after()) {
    plateau.add(result.bits());
    if (plateau.reached()) trainer.finetune_after(trainer.steps());
  }
  if (config.schedule.decay == Schedule::Decay::plateau && trainer.steps() >= config.schedule.warmup)
    trainer.plateau_decay().add(result.nll());
  if (config.training.weight_average) {
    averaging.add(result.nll());
    if (averaging.reached() && !average.started()) average.start(runtime.step());
  }
  return result;
}

}  // namespace engram
