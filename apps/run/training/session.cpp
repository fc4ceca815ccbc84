#include "apps/run/training/session.hpp"

#include <algorithm>

#include "apps/data/blocks/segments.hpp"
#include "apps/data/blocks/shuffled_windows.hpp"
#include "apps/run/model/frozen_parameters.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

ParameterStore& filled(ParameterStore& store, LanguageModel& model, Runtime& runtime, DType dtype,
                       const TrainingOptions& training) {
  collect(model, store);
  freeze_parameters(store, training.freeze);
  store.place(runtime.backend(), dtype, training.seed, {}, &runtime.ranks());
  return store;
}

/// The short validation. Adds to the notes what is not as it was configured.
data::ShortValidation make_validation(const RunConfig& config, const data::DataSet& data,
                                      std::vector<std::string>& notes) {
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
    notes.push_back(text("the validation split of ", tokens.size(), " tokens is short: valid_short uses ", rows,
                         rows == 1 ? " stream" : " streams", " and blocks of ", block));
  if (config.model.reads_segments()) {
    // Every position is judged, whatever the loss of training leaves out.
    const data::SegmentRule rule{.segment = static_cast<int>(block),
                                 .extension = static_cast<int>(config.training.extension)};
    const std::int64_t targets = tokens.size() / rows - 1;  // of a row, whose first token is none
    const std::int64_t whole = (targets + block - 1) / block;
    return data::ShortValidation(std::make_unique<data::SegmentReader>(tokens, static_cast<int>(rows), rule, 0),
                                 std::min(config.training.validate_blocks, whole));
  }
  constexpr std::int64_t kStepsPerBlock = 10;  // ShortValidation counts in the steps between two passes
  return data::ShortValidation(tokens, static_cast<int>(block), static_cast<int>(rows),
                               config.training.validate_blocks * kStepsPerBlock, config.training.seed + 1);
}

/// The validation of so many rows in pieces of training.split, which its ranks share evenly; in one piece, which no
/// rank shares with others, where the rows are no multiple of that.
WorkShare share_of_validation(const RunConfig& config, std::int64_t rows, Communicator& ranks) {
  if (rows % config.training.split != 0) return {};
  return {.ranks = ranks.alone() ? nullptr : &ranks,
          .pieces = config.training.split,
          .block_tokens = rows * config.training.block};
}

std::vector<ModelPast> pasts_of_validation(const PlacedModel& placed, std::int64_t rows, const WorkShare& share) {
  std::vector<ModelPast> pasts;
  for (std::int64_t piece = share.own_begin(share.pieces); piece < share.own_end(share.pieces); ++piece)
    pasts.push_back(placed.training_past(rows / share.pieces));
  return pasts;
}

}  // namespace

std::unique_ptr<data::BlockReader> make_reader(const RunConfig& config, const data::ArticleSplit& split) {
  const TrainingOptions& training = config.training;
  const auto rows = static_cast<int>(training.batch), block = static_cast<int>(training.block);
  const data::TokenView tokens = split.tokens;
  if (config.model.reads_articles(split.articles()))
    return std::make_unique<data::ArticleReader>(split, rows, block, training.seed);
  if (!config.model.reads_segments()) return std::make_unique<data::StreamReader>(tokens, rows, block, training.seed);
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
      model(make_model(config.model)),
      trainer(config, *model, filled(store, *model, with, dtype, config.training), with),
      reader(make_reader(config, {data, "train"})),
      validation(make_validation(config, data, notes)),
      validation_share(share_of_validation(config, validation.state().rows, runtime.ranks())),
      validation_pasts(pasts_of_validation(placed(), validation.state().rows, validation_share)),
      watch(config, placed(), store, trainer) {
  if (const auto* const articles = dynamic_cast<const data::ArticleReader*>(reader.get());
      articles != nullptr && articles->idle_streams() > 0)
    notes.push_back(text(articles->idle_streams(), " of the ", config.training.batch,
                         " streams stay empty: the training split has fewer articles"));
  if (const FrozenCount frozen = frozen_count(store); frozen.tensors > 0)
    notes.push_back(text(frozen.numbers, " of ", store.count(), " parameters, ", frozen.tensors,
                         " tensors, are frozen (training.freeze)"));
  if (const std::int64_t row = data.split("train").size() / config.training.batch - 1;
      config.model.reads_segments() && row < config.training.block)
    notes.push_back(text("the training split of ", data.split("train").size(), " tokens is short: a step reads ", row,
                         " of each of ", config.training.batch, " streams, and counts as training.block, ",
                         config.training.block));
  if (reader->dropped() > 0)
    notes.push_back(
        text(reader->dropped() == 1
                 ? std::string("the last token of the training split is left out, because ")
                 : text("the last ", reader->dropped(), " tokens of the training split are left out, because "),
             config.training.shuffled_windows ? text("windows of ", config.training.block)
                                              : text(config.training.batch, " streams"),
             " do not divide it"));
}

StepLosses TrainingSession::step() {
  const data::ReaderState before = reader->state();
  reader->next(block_);
  StepLosses losses;
  try {
    losses = trainer.step(block_);
  } catch (const OutOfMemory&) {
    if (!runtime.ranks().alone()) throw;  // others may have gone on
    trainer.undo();
    reader->restore(before);
    if (!trainer.forget_replays()) throw;
    return step();  // what captured steps took may be what it lacked
  }
  watch.step(losses);
  return losses;
}

void TrainingSession::with_judged_weights(const std::function<void()>& use) {
  if (watch.average.updates() == 0) return use();
  const auto swap = [this] {
    watch.average.swap(runtime.step());
    model->refresh(runtime.backend());
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

void TrainingSession::with_judged_model(const std::function<void()>& use) {
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
  with_judged_weights([&] {
    const Precisions precisions(*this);
    use();
  });
}

Evaluation TrainingSession::validate(const EvaluationHooks& hooks) {
  trainer.optimizer().bring_up_to_date(runtime.step());
  Evaluation result;
  const std::int64_t first = validation_share.own_begin(validation_share.pieces);
  const auto past_of = [&](std::int64_t piece, std::int64_t) -> ModelPast& {
    return validation_pasts[static_cast<std::size_t>(piece - first)];
  };
  const auto measure = [&] { result = evaluate(placed(), validation, past_of, hooks, validation_share); };
  if (config.training.validate_as_trained)
    with_judged_weights(measure);
  else
    with_judged_model(measure);
  watch.validation(result);
  return result;
}

}  // namespace engram
