#include "apps/run/training/training_loop.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "apps/data/files/hash.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/loss_report.hpp"
#include "apps/run/evaluation/span_summary.hpp"
#include "apps/run/folder/metrics_log.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/provenance.hpp"
#include "apps/run/folder/resident_memory.hpp"
#include "apps/run/training/first_step_memory.hpp"
#include "apps/run/training/gradient_report.hpp"
#include "apps/run/training/product_key_metrics.hpp"
#include "apps/run/training/progress.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/training/sample.hpp"
#include "apps/terminal/bytes_text.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/terminal.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/communicator.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"
#include "core/log.hpp"
#include "core/stopwatch.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

using nlohmann::json;

std::int64_t sum_over(Communicator& ranks, std::int64_t own) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks.size()));
  ranks.gather_host(&own, sizeof(own), all.data());
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

class Loop {
 public:
  Loop(TrainingSession& session, const std::filesystem::path& run_dir, const std::string& run)
      : session_(session),
        ranks_(session.runtime.ranks()),
        run_dir_(run_dir),
        progress_(run),
        first_(session.trainer.steps()) {
    together(ranks_, [this] {
      if (ranks_.leads()) metrics_.emplace(run_dir_ / "metrics.jsonl");
    });
  }

  void run(bool resumed, const std::function<bool()>& stop);

 private:
  std::int64_t step() const { return session_.trainer.steps(); }
  std::int64_t last() const { return session_.last_step(); }
  data::TokenKind kind() const { return session_.data.kind(); }
  bool due(std::int64_t every) const { return step() % every == 0 || step() == last(); }
  /// Of seconds of this process, what a step takes on average.
  double per_step(double all) const { return all / static_cast<double>(std::max<std::int64_t>(1, step() - first_)); }
  /// Validation and saving left out.
  double tokens_per_second() const {
    return static_cast<double>(session_.config.training.batch * session_.config.training.block) /
           per_step(seconds_here_);
  }
  std::optional<double> mean_span() const {
    const std::optional<SpanSummary> spans = summarize_spans(*session_.model);
    return spans ? std::optional(spans->mean) : std::nullopt;
  }
  double seconds() const { return seconds_before_ + seconds_here_; }
  /// What is done between two steps, where it takes long.
  std::string now(std::string_view what) const { return text("step ", step(), "/", last(), ", ", what); }

  /// Adds the time to a line of the metrics and appends it.
  void write(json line);
  void say(std::string_view message);
  void begin(bool resumed);
  void train_one();
  void report(double rate);
  void report_gradients();
  void validate();
  /// Says what a validation has changed: the step that the run ends with, or whether weights are averaged.
  void announce(std::int64_t planned, bool averages);
  /// Lets the model write, into the metrics and, as much as a line shows, for people.
  void sample();
  void save(SaveReason reason = SaveReason::due);
  void interrupt();
  void end();
  [[noreturn]] void fail(const Diverged& error);
  [[noreturn]] void fail(const OutOfMemory& error);

  TrainingSession& session_;
  Communicator& ranks_;
  std::filesystem::path run_dir_;
  std::optional<MetricsLog> metrics_;  // of rank 0
  Progress progress_;
  std::optional<double> valid_loss_;  // of the last validation
  GradientReport gradients_{session_.config, session_.store};
  const std::int64_t first_;
  std::int64_t saved_ = -1;  // step of the newest checkpoint of this process
  std::int64_t best_ = -1;   // of the best weights that it kept
  bool resumed_ = false;     // there was one before
  bool suspicious_ = false;
  const Stopwatch since_begin_;
  double seconds_before_ = 0, seconds_here_ = 0;  // of the steps of earlier processes, and of this one
};

void Loop::write(json line) {
  if (!metrics_) return;
  line["time"] = utc_now();
  metrics_->append(line);
}

void Loop::say(std::string_view message) {
  if (ranks_.leads()) progress_.note(message);
}

void Loop::begin(bool resumed) {
  const RunConfig& config = session_.config;
  if (resumed && ranks_.leads()) seconds_before_ = training_seconds(run_dir_ / "metrics.jsonl", step());
  json line = provenance();
  line.update({{"event", resumed ? "resume" : "start"},
               {"step", step()},
               {"steps", last()},
               {"parameters", session_.store.count()},
               {"threads", session_.runtime.backend().threads()},
               {"ranks", ranks_.size()},
               {"seed", config.training.seed},
               {"device", text(session_.runtime.backend().device())},
               {"dtype", text(session_.store.dtype())},
               {"products", name_of(config.training.products)},
               {"activations", name_of(config.training.activations)},
               {"data", data::hash_text(session_.data.hash())},
               {"config", data::hash_text(data::hash_of(to_toml(config)))}});
  if (!resumed && !session_.origin.empty()) line["from"] = parse_json(session_.origin);
  write(std::move(line));
  say(fmt::format("{} parameters, {} steps of {} x {} tokens{}", session_.store.count(), last(), config.training.batch,
                  config.training.block, resumed ? fmt::format(", from step {}", step()) : std::string()));
  if (ranks_.leads() && progress_.wants(false)) progress_.show({.step = step(), .steps = last()});
}

void Loop::train_one() {
  const double rate = session_.trainer.next_rate();
  const Stopwatch watch;
  session_.step();
  if (session_.config.training.gradient_report)
    gradients_.add(session_.trainer.optimizer(), session_.runtime.backend());
  seconds_here_ += watch.seconds();
  if (const Step& of = session_.runtime.step(); step() == first_ + 1 && of.plain_attention_calls() > 0)
    log(LogLevel::warning,
        text("attention takes its slower form, in whole matrices of scores: ", of.plain_attention_reason()));
  const bool is_report = due(session_.config.training.report_every);
  if (ranks_.leads() && progress_.wants(is_report))
    progress_.show({.step = step(),
                    .steps = last(),
                    .loss = session_.watch.interval.mean(),
                    .rate = rate,
                    .tokens_per_second = tokens_per_second(),
                    .mean_span = mean_span(),
                    .seconds_left = per_step(since_begin_.seconds()) * static_cast<double>(last() - step()),
                    .kind = kind(),
                    .valid_loss = valid_loss_});
  if (is_report) report(rate);
}

void Loop::report(double rate) {
  double squares = 0, clip = session_.config.optimizer.clip;
  std::int64_t long_ones = 0, tensors = 0, shortfalls = 0;
  for (const double norm : session_.trainer.optimizer().gradient_norms(session_.runtime.backend())) {
    squares += norm * norm;
    long_ones += clip > 0 && norm > clip ? 1 : 0;
    ++tensors;
  }
  for (const ModelPast& past : session_.trainer.pasts()) shortfalls += cache_shortfalls(past);
  shortfalls = sum_over(ranks_, shortfalls);
  json line = loss_json(kind(), {.all = session_.watch.interval.mean(), .no_eol = {}});
  line.update({{"event", "train"},
               {"step", step()},
               {"seconds", seconds()},
               {"interval_steps", session_.watch.interval.steps},
               {"learning_rate", rate},
               {"tokens_per_second", tokens_per_second()},
               {"gradient_norm", std::sqrt(squares)},
               {"tensors_above_clip", static_cast<double>(long_ones) / static_cast<double>(tensors)},
               {"cache_shortfalls", shortfalls}});
  if (const std::optional<SpanSummary> spans = summarize_spans(*session_.model))
    line.update({{"span_mean", spans->mean},
                 {"span_longest", spans->longest},
                 {"span_layer_mean", spans->layer_mean},
                 {"spans", spans->heads}});
  write(line);
  session_.watch.interval = {};
  if (session_.config.training.gradient_report) report_gradients();
}

void Loop::report_gradients() {
  session_.trainer.optimizer().gather_gradients(session_.runtime.step());
  json line = gradients_.take(session_.runtime.backend());
  line["event"] = "gradients";
  line["step"] = step();
  write(line);
}

void Loop::validate() {
  const std::int64_t planned = last(), averaged = session_.watch.average.updates();
  const bool averages = session_.watch.average.started();
  PartialLoss without_ends = PartialLoss::without_ends(session_.data.split("valid"), session_.data.vocabulary());
  ProductKeyMetrics memories(session_.config.model);
  const Evaluation result = [&] {
    WorkProgress progress(now("validating"), "tokens");
    const auto found = [&, scored = std::int64_t{0}](std::int64_t token, double nll) mutable {
      without_ends.add(token, nll);
      progress.at(++scored, session_.validation.scored_count());
    };
    return session_.validate({.found = found, .reads = memories.reads()});
  }();
  valid_loss_ = result.nll();
  const MeanLoss loss{.all = result.nll(), .no_eol = without_ends.mean()};
  const bool is_best = session_.watch.best && session_.watch.best->step == step();
  json line = loss_json(kind(), loss);
  line.update({{"event", "valid_short"},
               {"step", step()},
               {"seconds", seconds()},
               {"tokens", result.scored},
               {"tokens_per_second", result.tokens_per_second()},
               {"best", is_best}});
  if (averaged > 0) line["averaged_updates"] = averaged;
  memories.add_to(line);
  write(line);
  say(fmt::format("step {} valid_short loss {:.4f} {} ({} tokens{}){}", step(), loss.all, loss_text(kind(), loss),
                  result.scored, averaged > 0 ? fmt::format(", weights averaged over {} updates", averaged) : "",
                  is_best ? ", the best so far" : ""));
  if (session_.watch.divergence.is_hopeless(result.nll()))
    throw Diverged(text("training: the validation loss of step ", step(), " must be that of a model, got ",
                        result.nll(), " nats a token, where a guess costs ", session_.watch.divergence.guess()));
  if (const std::string note = memories.note(); !note.empty()) say(fmt::format("step {} valid_short {}", step(), note));
  announce(planned, averages);
  if (!is_best) return;
  const WorkProgress progress(now("saving"));
  session_.with_judged_weights([this] { save_model(checkpoint_path(run_dir_, CheckpointKind::best), session_); });
  best_ = step();
}

void Loop::announce(std::int64_t planned, bool averages) {
  if (session_.watch.average.started() && !averages) {
    write({{"event", "averaging"}, {"step", step()}});
    say(fmt::format("step {}: from now on the mean of the weights is what is validated and kept as the best", step()));
  }
  if (last() != planned) {
    write({{"event", "finetune"}, {"step", step()}, {"steps", last()}});
    const std::string what =
        last() > step() ? fmt::format("fine-tuning for {} steps", last() - step()) : "the run ends";
    say(fmt::format("step {}: {} validations without an improvement by {} bits, {}", step(),
                    session_.config.schedule.plateau_validations, session_.config.schedule.plateau_margin, what));
  }
}

void Loop::sample() {
  const Sample sample = [this] {
    const WorkProgress progress(now("writing a sample"));
    return write_sample(session_);
  }();
  write({{"event", "sample"},
         {"step", step()},
         {"seconds", seconds()},
         {"prompt", sample.prompt},
         {"text", sample.text},
         {"seed", sample.seed}});
  say(sample_line(step(), sample, terminal_columns() - 1));
}

void Loop::save(SaveReason reason) {
  if (saved_ == step()) return;
  const WorkProgress progress(now("saving"));
  // What a checkpoint is said to have learned must not be lost by a power cut that the checkpoint survives.
  together(ranks_, [this] {
    if (metrics_) metrics_->flush();
  });
  save_session(checkpoint_path(run_dir_, CheckpointKind::newest), session_, reason);
  saved_ = step();
}

void Loop::fail(const Diverged& error) {
  write({{"event", "diverged"}, {"step", step()}, {"reason", error.what()}});
  // Nothing is asked of the other ranks, which may not know of it.
  const std::string folder = "'" + run_dir_.string() + "'";
  const std::string kept =
      resumed_ || saved_ >= 0 ? "the last good checkpoint is kept in " + folder
      : best_ >= 0 ? text("there was no checkpoint yet, but --best reads the weights of step ", best_, " in ", folder)
                   : std::string("there was no checkpoint yet");
  throw Diverged(text(error.what(), "\n  ", kept,
                      "; a smaller schedule.rate, a longer warm-up or a smaller optimizer.clip trains more stably"));
}

void Loop::fail(const OutOfMemory& error) {
  if (!ranks_.alone()) {
    write({{"event", "out_of_memory"}, {"step", step()}, {"reason", error.what()}});
    throw error;  // the others do not know of it
  }
  // A run that never began leaves its folder free for the next attempt.
  if (step() > first_ && !suspicious_) save();
  write({{"event", "out_of_memory"}, {"step", step()}, {"reason", error.what()}});
  const std::string kept = saved_ < 0 ? std::string("nothing was trained since the start")
                                      : text("saved at step ", saved_, "; --resume goes on from there");
  throw OutOfMemory(text(error.what(), "\n  ", kept));
}

void Loop::interrupt() {
  const bool lost = session_.watch.divergence.lost();
  if (!lost) save(SaveReason::interrupted);
  write({{"event", "interrupted"}, {"step", step()}, {"seconds", seconds()}});
  throw Interrupted(text("interrupted at step ", step(),
                         lost ? ", not saved, because the loss is far above its best: the checkpoint before it stays"
                              : ", saved; --resume goes on from there"));
}

void Loop::end() {
  write({{"event", "end"},
         {"step", step()},
         {"seconds", seconds()},
         {"peak_bytes", session_.runtime.arena().peak_bytes()},
         {"resident_bytes", peak_resident_bytes()},
         {"replayed_steps", session_.trainer.replayed()},
         {"plain_attention_calls", session_.runtime.step().plain_attention_calls()}});
  if (metrics_) metrics_->flush();
  double frozen = 0, dense = 0, tables = 0;  // whose gradients are memory of a step
  for (const auto& [name, parameter] : session_.store.parameters()) {
    const auto bytes = static_cast<double>(parameter->value().bytes());
    if (parameter->frozen() && parameter->gradient_kind() != Gradient::none) frozen += bytes;
    if (parameter->frozen()) continue;
    if (parameter->gradient_kind() == Gradient::dense) dense += bytes;
    if (parameter->gradient_kind() == Gradient::rows) tables += bytes;
  }
  say(text("done after ", step(), step() == 1 ? " step" : " steps", "; a step needed ",
           bytes_text(static_cast<double>(session_.runtime.arena().peak_bytes())), " of memory beside ",
           bytes_text(dense), " of parameters and as much for their gradients",
           tables > 0 ? text(", and ", bytes_text(tables), " of tables") : "",
           frozen > 0 ? text(", and ", bytes_text(frozen), " that are frozen") : ""));
}

void Loop::run(bool resumed, const std::function<bool()>& stop) {
  const TrainingOptions& options = session_.config.training;
  const DivergenceWatch& divergence = session_.watch.divergence;
  if (step() >= last()) {
    say(text("complete already: ", step(), step() == 1 ? " step is" : " steps are", " done, and ", last(),
             " asked for; --resume --steps N, N above ", std::max(step(), last()), ", trains on"));
    return;
  }
  resumed_ = resumed;
  begin(resumed);
  while (step() < last()) {
    try {
      train_one();
      if (divergence.diverged())
        throw Diverged(fmt::format("training: the loss must stay near its best, got {:.4f} after {:.4f}, {} steps long",
                                   divergence.mean(), divergence.best(), DivergenceWatch::kPatience));
      const double rate = session_.trainer.next_rate();
      if (due(options.validate_every)) validate();
      // A plateau may have ended the run at a step that had no report.
      if (step() == last() && session_.watch.interval.steps > 0) report(rate);
      if (step() == last() && divergence.lost())
        throw Diverged(fmt::format("training: the loss must end near its best, got {:.4f} after {:.4f}",
                                   divergence.mean(), divergence.best()));
      if (options.sample_every > 0 && due(options.sample_every)) sample();
      // Weights that may have gone wrong must not replace good ones.
      if (divergence.suspicious() != suspicious_) {
        suspicious_ = divergence.suspicious();
        if (suspicious_)
          log(LogLevel::warning, text("the loss at step ", step(), " is far above its best; checkpoints wait"));
      }
      if (due(options.checkpoint_every) && (!suspicious_ || step() == last())) save();
      if (ranks_.any(stop()) && step() < last()) interrupt();
    } catch (const Diverged& error) {
      fail(error);
    } catch (const NotFiniteError& error) {
      fail(Diverged(text("training: after step ", step(), ": ", error.what())));
    } catch (const OutOfMemory& error) {
      fail(error);
    }
  }
  end();
}

}  // namespace

void train_to_the_end(TrainingSession& session, const std::filesystem::path& run_dir, bool resumed,
                      const std::function<bool()>& stop, const std::string& run) {
  together(session.runtime.ranks(), [&] { take_memory_of_steps(session); });
  Loop(session, run_dir, run).run(resumed, stop);
}

}  // namespace engram
