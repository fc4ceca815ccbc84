#include "apps/run/training/training_run.hpp"

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/files/open_stream.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/run/config/config_review.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/folder/run_lock.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/training/late_rows.hpp"
#include "apps/run/training/machine_memory.hpp"
#include "apps/run/training/nan_trace.hpp"
#include "apps/run/training/rank_split.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/training/same_start.hpp"
#include "apps/run/training/sample.hpp"
#include "apps/run/training/start_config.hpp"
#include "apps/run/training/training_loop.hpp"
#include "apps/run/transfer/transfer_report.hpp"
#include "apps/run/transfer/weight_transfer.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/terminal.hpp"
#include "apps/terminal/work_progress.hpp"
#include "autograd/tape_listing.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"
#include "core/terminal_line.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

std::optional<CheckpointFile> open_checkpoint(const TrainingRunOptions& options) {
  const fs::path path = checkpoint_path(options.out, CheckpointKind::newest);
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  if (exists && !options.resume)
    throw UsageError(text("training: '", options.out.string(), "' must be a new folder, got one with a run in it",
                          "\n  --resume continues that run; another --out starts a new one"));
  if (!exists && options.resume)
    throw UsageError(text("training: --resume needs the checkpoint '", path.string(), "', got none",
                          "\n  without --resume the run starts at step 0"));
  if (!exists) return std::nullopt;
  return CheckpointFile(path);
}

/// Weights that a new run begins with. One that goes on has them: the command that began it, with --resume, goes on.
std::optional<WeightSource> open_source(const TrainingRunOptions& options,
                                        const std::optional<CheckpointFile>& checkpoint) {
  if (options.from.empty()) return std::nullopt;
  if (!checkpoint) return WeightSource(options.from);
  if (!checkpoint->metadata().contains(metadata_keys::kFrom))
    throw UsageError(text("training: --from begins a new run, got --resume of '", options.out.string(),
                          "', which began without other weights\n  leave one of them away"));
  return std::nullopt;
}

/// Says, where it `speaks`, what differs from the run so far; refuses what would be another model.
void compare(const CheckpointFacts& before, const RunConfig& config, DType dtype, bool resize_span, bool speaks) {
  if (dtype != before.dtype)
    throw UsageError(text("training: --dtype must be that of the run, ", before.dtype, ", got ", dtype));
  std::string refused;
  for (const ConfigDifference& difference : config_differences(before.config, config)) {
    const std::string change = text(difference.key, ": ", difference.before, " -> ", difference.after);
    const bool is_span = difference.key == "model.max_span";
    if (difference.refused && !(is_span && resize_span))
      refused += "\n  " + change + (is_span ? " (--resize-span allows this one)" : "");
    else if (speaks)
      log(LogLevel::warning, "resume: changed " + change);
  }
  if (!refused.empty())
    throw UsageError(text("training: a run must be continued with its own model and optimiser, got other values",
                          refused, "\n  give the run's own config (or none), or start a new run in another --out"));
}

/// The file of the shorter or longer span stays beside the one that replaces it.
void keep_before_resize(const CheckpointFile& checkpoint, const CheckpointFacts& facts) {
  const std::int64_t max_span = facts.config.model.all_attention.max_span;
  const fs::path kept =
      checkpoint.path().parent_path() / text("before-resize-", max_span, "-step-", facts.step, ".safetensors");
  std::ifstream original = data::open_stream(checkpoint.path());
  std::string piece(std::size_t{1} << 20, '\0');
  write_durably(kept, [&](DurableFile& copy) {
    while (original.read(piece.data(), static_cast<std::streamsize>(piece.size())) || original.gcount() > 0)
      copy.append(std::string_view(piece).substr(0, static_cast<std::size_t>(original.gcount())));
    if (!original.eof())
      throw FileError(text("training: '", checkpoint.path().string(), "' must be readable to its end"));
  });
  log(LogLevel::info,
      text("resume: the checkpoint with model.max_span = ", max_span, " is kept as '", kept.string(), "'"));
}

/// What the checkpoint says, if there is one. Refuses one that cannot be continued, or not with these data.
std::optional<CheckpointFacts> facts_before(const TrainingRunOptions& options,
                                            const std::optional<CheckpointFile>& checkpoint,
                                            const data::DataSet& data) {
  if (!checkpoint) return std::nullopt;
  CheckpointFacts before = read_facts(*checkpoint);
  if (!before.mapped_tables.empty())
    throw UsageError(text("training: a run must have its tables in its checkpoint, got '", options.out.string(),
                          "', whose ", before.mapped_tables.size(), " are in mapped files that are only read",
                          "\n  continue the run that it was made from"));
  data.require_vocabulary(before.vocabulary, text("the run in '", options.out.string(), "'"));
  return before;
}

/// Compares the configuration with the run so far, if there is one. Returns whether the longest span is another.
bool compared(const TrainingRunOptions& options, const std::optional<CheckpointFacts>& before, const RunConfig& config,
              DType dtype) {
  if (options.resize_span && !options.resume)
    throw UsageError("training: --resize-span continues a run with another model.max_span, so it needs --resume");
  if (options.resize_span) require_all_attention(config.model, "training: --resize-span");
  if (!before) return false;
  compare(*before, config, dtype, options.resize_span, options.ranks == nullptr || options.ranks->leads());
  const bool resized = before->config.model.all_attention.max_span != config.model.all_attention.max_span;
  if (resized && config.model.all_attention.span == SpanKind::dynamic)
    throw UsageError(
        "training: --resize-span keeps spans in positions; those that are computed for every query are shares of "
        "model.max_span and would change with it");
  return resized;
}

void check_dtype(const RunConfig& config, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw UsageError(text("training: --dtype must be f32, bf16 or f64, got ", dtype));
  if (dtype == DType::f64 && config.training.products != ProductPrecision::f32)
    throw UsageError("training: products of f64 matrices are f64, got training.products = bf16 with --dtype f64");
  config.model.check_dtype(dtype, "training");
  if (dtype == DType::f64 && config.training.activations == ActivationPrecision::bf16)
    throw UsageError(
        "training: bf16 activations go with f32 parameters, got training.activations = bf16 with --dtype f64");
}

void check_device(const RunConfig& config, Backend& backend) {
  if (config.training.activations == ActivationPrecision::bf16 && !backend.stores_bf16())
    throw UsageError(text("training: training.activations = bf16 needs a device with kernels for it, got ",
                          backend.device(), "\n  --dtype bf16 rounds the operands of products, on every device"));
  if (config.training.products == ProductPrecision::bf16 && !backend.multiplies_bf16())
    log(LogLevel::warning,
        text("training.products = bf16: ", backend.device(),
             " has no instructions that make bf16 products faster; the numbers are the same, f32 is no slower"));
}

void list_tape(const Tape& tape) {
  const std::string table = tape_table(tape);
  beside_terminal_line([&table] {
    std::fwrite(table.data(), 1, table.size(), stdout);
    std::fflush(stdout);
  });
}

/// Not before it is known that the run may begin: a refused one leaves no folder.
void lock_old_run(const TrainingRunOptions& options, std::optional<RunLock>& lock) {
  std::error_code ignored;
  if (!fs::exists(checkpoint_path(options.out, CheckpointKind::newest), ignored)) {
    if (options.resume) open_checkpoint(options);  // says that there is none
    require_run_folder("training", options.out);
  }
  if (fs::is_directory(options.out)) lock.emplace(options.out);
}

/// The file of the configuration, which rank 0 reads once, as it may be a pipe; empty: none was given.
std::string config_text(const TrainingRunOptions& options, Communicator& ranks) {
  if (options.config.empty()) return {};
  std::string toml;
  together(ranks, [&] {
    if (ranks.leads()) toml = data::read_bytes(find_config(options.config));
  });
  return ranks.alone() ? toml : ranks.gather_texts(toml).front();
}

/// With the training.split that so many ranks need.
RunConfig split_over(const Communicator& ranks, RunConfig config) {
  const std::int64_t asked = config.training.split;
  config.training.split = split_for_ranks(config, ranks.size());
  if (config.training.split != asked && ranks.leads())
    log(LogLevel::info, text("training.split is ", config.training.split, " in place of ", asked, " for ", ranks.size(),
                             " ranks; one rank with --split ", config.training.split, " has the same numbers"));
  return config;
}

RunConfig configured(const TrainingRunOptions& options, const std::optional<CheckpointFacts>& before,
                     const std::optional<WeightSource>& weights, const std::string& toml) {
  return start_config({.config = options.config,
                       .out = options.out,
                       .overrides = options.overrides,
                       .steps = options.steps,
                       .device = options.device.kind,
                       .dtype = options.dtype.value_or(DType::f32)},
                      before, weights, toml);
}

/// What a run begins from, all of it checked.
struct TrainingStart {
  std::optional<CheckpointFile> checkpoint;
  std::optional<WeightSource> source;  // of a new run
  data::DataSet data;
  std::optional<CheckpointFacts> before;
  RunConfig config;
  DType dtype;
  bool resized;
  std::string late_rows = "none";  // beside the checkpoint

  TrainingStart(const TrainingRunOptions& options, const Communicator& ranks, const std::string& toml)
      : checkpoint(open_checkpoint(options)),
        source(open_source(options, checkpoint)),
        data(data::DataSet::open(options.data)),
        before(facts_before(options, checkpoint, data)),
        config(split_over(ranks, resolved_config(configured(options, before, source, toml), data))),
        dtype(options.dtype.value_or(before ? before->dtype : DType::f32)),
        resized(compared(options, before, config, dtype)) {
    if (ranks.leads())
      for (const std::string& warning : config_warnings(config)) log(LogLevel::warning, warning);
    check_dtype(config, dtype);
    if (resized && !ranks.alone())
      throw UsageError(text("training: --resize-span must be done by one rank, got ", ranks.size(),
                            "\n  a run of one rank can be continued by several"));
    if (before && !ranks.alone()) late_rows = late_rows_beside(checkpoint->path(), before->step);
    if (options.device.kind == DeviceKind::cpu) require_machine_memory(config, ranks.size(), options.ranks_here);
  }

  /// Ranks that would train something else name what differs.
  void require_same(Communicator& ranks, DeviceKind device) const {
    if (ranks.alone()) return;
    std::string state = "none";
    if (before) {
      // Where the run was, in every detail: copies of one checkpoint are alike in it, and others are not.
      const auto run = checkpoint->metadata().find(metadata_keys::kRun);
      const std::string details = run != checkpoint->metadata().end() ? run->second : "";
      state =
          text("step ", before->step, ", state ", data::hash_text(data::hash_of(details)), ", late rows ", late_rows);
    }
    if (source) state = text("weights ", source->identity());
    require_same_start(ranks, {.program = build_text(),
                               .config = to_toml(config),
                               .data = data::hash_text(data.hash()),
                               .device = text(device),
                               .dtype = text(dtype),
                               .checkpoint = state});
  }
};

/// Rank 0 alone has the run's folder.
void begin_folder(const TrainingRunOptions& options, const TrainingStart& start, const TrainingSession& session,
                  std::optional<RunLock>& lock) {
  if (start.resized && session.trainer.steps() >= session.last_step())
    throw UsageError(text("training: --resize-span goes on training, but the run is complete at step ",
                          session.trainer.steps(), "\n  more schedule.steps or training.finetune_steps let it"));
  if (start.resized) keep_before_resize(*start.checkpoint, *start.before);
  make_folder("training", options.out);
  if (!lock) {
    lock.emplace(options.out);
    // Another process may have made the folder, and a run in it, since it was looked at first.
    if (!start.checkpoint) open_checkpoint(options);
  }
  const fs::path config_file = options.out / "config.toml";
  if (!start.checkpoint)
    if (const std::string warning = other_split_before(config_file, start.config); !warning.empty())
      log(LogLevel::warning, warning);
  write_durably(config_file, to_toml(start.config));
}

/// What a run computes with: all memory of which parts may be on their way to other ranks.
struct Training {
  Runtime runtime;
  std::optional<TrainingSession> session;
  NanTrace trace;

  Training(const TrainingRunOptions& options, std::uint64_t seed, Communicator& ranks)
      : runtime(options.device, options.threads, seed, &ranks), trace(runtime.backend()) {}
};

/// Fills a session at step 0 with weights of another run, which is said.
void begin_with(const WeightSource& source, TrainingSession& session) {
  const WeightTransfer transfer =
      transfer_weights(source, session.config, session.data.vocabulary(), session.store, session.runtime);
  session.origin = json_of(transfer).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  session.store.refresh_rounded(session.runtime.step());
  session.model->refresh(session.runtime.backend());
  if (session.runtime.ranks().leads()) tell(transfer, static_cast<std::size_t>(terminal_columns()));
}

/// Step 0, or the step of the checkpoint.
TrainingSession& begin_session(Training& training, const TrainingRunOptions& options, const TrainingStart& start,
                               std::optional<RunLock>& lock) {
  Communicator& ranks = training.runtime.ranks();
  together(ranks, [&] {
    check_device(start.config, training.runtime.backend());
    TrainingSession& made = training.session.emplace(start.config, start.data, training.runtime, start.dtype);
    std::vector<std::string> changes;
    if (start.checkpoint) changes = load_session(*start.checkpoint, made);
    if (start.source) begin_with(*start.source, made);
    if (start.config.training.sample_every > 0) check_sample_prompt(made);
    if (!ranks.leads()) return;
    for (const std::string& note : made.notes) log(LogLevel::info, note);
    for (const std::string& change : changes) log(LogLevel::warning, "resume: " + change);
    begin_folder(options, start, made, lock);
  });
  return *training.session;
}

}  // namespace

TrainingRunResult run_training(const TrainingRunOptions& options, const std::function<bool()>& stop) {
  if (options.out.empty()) throw UsageError("training: --out must name the run's folder, got nothing");
  WorkProgress progress("reading the data and making the model");
  OneRank one;
  Communicator& ranks = options.ranks != nullptr ? *options.ranks : one;
  ranks.require_same("--out", options.out.string());
  ranks.require_same("--config", options.config.string());
  std::optional<RunLock> lock;
  together(ranks, [&] {
    if (ranks.leads()) lock_old_run(options, lock);
  });
  const std::string toml = config_text(options, ranks);
  std::optional<TrainingStart> start;
  together(ranks, [&] { start.emplace(options, ranks, toml); });
  start->require_same(ranks, options.device.kind);
  auto training = std::make_unique<Training>(options, start->config.training.seed, ranks);
  TrainingRunResult result;
  outlive_transfers(training, training->runtime.ranks(), [&] {
    require_same_instructions(ranks, training->runtime.backend());
    TrainingSession& session = begin_session(*training, options, *start, lock);
    if (options.trace_nan) {
      session.trainer.keep_scopes();
      training->runtime.step().observe(&training->trace);
    }
    if (options.list_tape && ranks.leads()) session.trainer.view_tape(list_tape);
    progress.end();
    train_to_the_end(session, options.out, start->checkpoint.has_value(), stop, options.run);
    const auto& best = session.watch.best;
    result = {session.trainer.steps(), best ? std::optional(best->nll) : std::nullopt};
  });
  return result;
}

}  // namespace engram
