#include "apps/run/training/run_checkpoint.hpp"

#include <optional>
#include <system_error>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/late_rows.hpp"
#include "apps/run/training/resize_span.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

/// Far above the weights of any model that learns, so what is beyond it has diverged, finite as it may be.
constexpr double kLargestWeight = 1e6;

/// The caches of one set of streams, named state/<owner>.<layer>.hidden.
struct NamedCache {
  std::string name;
  StatePast* cache;
};

void add_caches(std::vector<NamedCache>& caches, const std::string& owner, ModelPast& past) {
  for (std::size_t layer = 0; layer < past.size(); ++layer)
    caches.push_back({text("state/", owner, ".", layer, ".hidden"), &state_past(*past[layer])});
}

std::vector<NamedCache> caches_of(TrainingSession& session) {
  std::vector<NamedCache> caches;
  auto& pasts = session.trainer.pasts();
  for (std::size_t piece = 0; piece < pasts.size(); ++piece) add_caches(caches, text("train.", piece), pasts[piece]);
  add_caches(caches, "valid", session.validation_past);
  return caches;
}

bool empty(const StatePast& cache) { return cache.states().count() == 0; }

std::vector<NamedTensor> optimizer_tensors(const TrainingSession& session) {
  std::vector<NamedTensor> tensors;
  session.trainer.optimizer().visit_state([&tensors](const std::string& name, const Tensor& tensor) {
    tensors.push_back({"optimizer/" + name, tensor});
  });
  return tensors;
}

std::vector<NamedTensor> average_tensors(const TrainingSession& session) {
  std::vector<NamedTensor> tensors;
  session.average.visit_state([&tensors](const std::string& name, const Tensor& tensor) {
    tensors.push_back({text(kAveragePrefix, name), tensor});
  });
  return tensors;
}

Metadata model_metadata(const TrainingSession& session) {
  Metadata metadata;
  const auto set = [&metadata](std::string_view key, std::string value) {
    metadata.emplace(std::string(key), std::move(value));
  };
  set(metadata_keys::kFormat, std::string(kCheckpointFormat));
  set(metadata_keys::kConfig, to_toml(session.config));
  set(metadata_keys::kVocabulary, session.data.vocabulary().json_text());
  if (session.data.kind() == data::TokenKind::word) set(metadata_keys::kText, session.data.text_rules().json_text());
  set(metadata_keys::kStep, text(session.trainer.steps()));
  set(metadata_keys::kSeed, text(session.config.training.seed));
  set(metadata_keys::kThreads, text(session.runtime.backend().threads()));
  set(metadata_keys::kData, data::hash_text(session.data.hash()));
  return metadata;
}

json run_state(TrainingSession& session) {
  json state{{"reader", session.reader.state()},
             {"validation_reader", session.validation.state()},
             {"divergence", session.divergence.state()},
             {"interval", {{"nll_sum", session.interval.nll_sum}, {"steps", session.interval.steps}}}};
  if (session.config.schedule.finetune == Schedule::Finetune::plateau) state["plateau"] = session.plateau.state();
  if (session.trainer.finetune_after() != session.config.schedule.steps)
    state["finetune_after"] = session.trainer.finetune_after();
  if (const AllAttentionModel* const model = all_attention_of(std::as_const(session.model)))
    for (std::int64_t layer = 0; layer < model->options().layers && model->options().span == SpanKind::dynamic; ++layer)
      state["span_means"].push_back(model->span(layer).zeta());
  if (session.config.schedule.decay == Schedule::Decay::plateau)
    state["plateau_decay"] = session.trainer.plateau_decay().state();
  if (session.config.training.weight_average)
    state[kAverageKey] = {{"begun", session.average.started()},
                          {"updates", session.average.updates()},
                          {"validations", session.averaging.state()}};
  if (session.best) state["best"] = {{"nll", session.best->nll}, {"step", session.best->step}};
  json& seen = state["positions_seen"];  // by cache: how many of its states are of the text, not padding
  for (const auto& [name, cache] : caches_of(session)) seen[name] = cache->valid();
  return state;
}

void save(const std::filesystem::path& path, TrainingSession& session, const std::vector<NamedTensor>& tensors,
          const Metadata& metadata) {
  session.trainer.optimizer().bring_up_to_date(session.runtime.step());
  make_folder("checkpoint", path.parent_path());
  save_checkpoint(path, session.runtime.backend(), tensors, metadata,
                  {.only_finite = true, .largest_parameter = kLargestWeight});
}

const std::string& required(const CheckpointFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw FileError(text("checkpoint: '", file.path().string(), "' must have '", key, "' in its metadata, got none",
                         "\n  it holds a model, but no run that could be continued"));
  return found->second;
}

/// Readers and caches go on together or start afresh together.
bool restore_training_reader(const json& state, TrainingSession& session, bool same_data) {
  const auto reader = state.at("reader").get<data::ReaderState>();
  if (!same_data || !session.reader.accepts(reader)) return false;
  session.reader.restore(reader);
  return true;
}
bool restore_validation_reader(const json& state, TrainingSession& session, bool same_data) {
  const auto reader = state.at("validation_reader").get<data::ReaderState>();
  if (!same_data || !session.validation.accepts(reader)) return false;
  session.validation.restore(reader);
  return true;
}

/// Makes room for the file's caches and lists them for loading.
void expect_caches(const CheckpointFile& file, const json& state, const std::vector<NamedCache>& caches,
                   std::vector<NamedTensor>& wanted) {
  for (const auto& [name, cache] : caches) {
    if (!file.has(name)) continue;
    const Shape& shape = file.at(name).shape;
    if (shape.rank() != 3)
      throw FileError(text("checkpoint: '", name, "' must be [streams, positions, width], got ", shape));
    cache->restore(shape[1], state.at("positions_seen").at(name).get<std::int64_t>());
    wanted.push_back({name, cache->states()});
  }
}

}  // namespace

void save_session(const std::filesystem::path& path, TrainingSession& session, SaveReason reason) {
  if (reason == SaveReason::interrupted) {
    make_folder("checkpoint", path.parent_path());
    save_late_rows(path, session);
  }
  std::vector<NamedTensor> tensors = parameter_tensors(session.store);
  for (NamedTensor& tensor : optimizer_tensors(session)) tensors.push_back(std::move(tensor));
  for (NamedTensor& tensor : average_tensors(session)) tensors.push_back(std::move(tensor));
  for (const auto& [name, cache] : caches_of(session))
    if (!empty(*cache)) tensors.push_back({name, cache->states()});
  Metadata metadata = model_metadata(session);
  metadata.emplace(std::string(metadata_keys::kRun), run_state(session).dump());
  save(path, session, tensors, metadata);
  if (reason == SaveReason::due) remove_late_rows(path);
}

void save_model(const std::filesystem::path& path, TrainingSession& session) {
  Metadata metadata = model_metadata(session);
  if (const std::int64_t updates = session.average.updates(); updates > 0)
    metadata.emplace(std::string(metadata_keys::kAveraged), text(updates));
  save(path, session, parameter_tensors(session.store), metadata);
}

std::int64_t last_step_of(const CheckpointFile& file, const RunConfig& config) {
  const json state = json::parse(required(file, metadata_keys::kRun), nullptr, /*allow_exceptions=*/false);
  const auto found = state.is_object() ? state.find("finetune_after") : state.end();
  const bool began =
      config.schedule.finetune == Schedule::Finetune::plateau && found != state.end() && found->is_number_integer();
  return began ? found->get<std::int64_t>() + config.training.finetune_steps : config.total_steps();
}

std::vector<std::string> load_session(const CheckpointFile& file, TrainingSession& session) {
  std::vector<std::string> notes;
  const std::string& data_hash = required(file, metadata_keys::kData);
  const bool same_data = data_hash == data::hash_text(session.data.hash());
  if (!same_data)
    notes.push_back(text("the data are others than before (", data_hash, ", now ", data::hash_text(session.data.hash()),
                         "): reading starts at the beginning"));
  const std::string& threads = required(file, metadata_keys::kThreads);
  if (const int now = session.runtime.backend().threads(); threads != text(now))
    notes.push_back(
        text("the run had ", threads, " threads, now it has ", now, ": results may differ in the last bits"));

  std::vector<NamedTensor> wanted = parameter_tensors(session.store);
  for (NamedTensor& tensor : optimizer_tensors(session)) wanted.push_back(std::move(tensor));
  LoadRules rules;
  std::optional<std::int64_t> averaged;  // updates in the mean of the weights, if it has begun
  const RunConfig before = read_facts(file).config;
  std::optional<SpanResize> resize;
  if (const std::int64_t from = before.model.all_attention.max_span, to = session.config.model.all_attention.max_span;
      from != to) {
    resize.emplace(from, to, session.runtime.backend(), session.runtime.memory());
    resize->prepare(wanted);
  }
  try {
    const json state = json::parse(required(file, metadata_keys::kRun));
    std::vector<NamedCache> caches;
    const TrainingOptions& now = session.config.training;
    const bool same_caches = before.training.split == now.split && before.training.activations == now.activations;
    if (restore_training_reader(state, session, same_data) && same_caches) {
      auto& pasts = session.trainer.pasts();
      for (std::size_t piece = 0; piece < pasts.size(); ++piece)
        add_caches(caches, text("train.", piece), pasts[piece]);
    } else {
      rules.may_be_ignored.push_back("state/train.");
      notes.push_back("the caches of training start empty");
    }
    if (restore_validation_reader(state, session, same_data)) {
      add_caches(caches, "valid", session.validation_past);
    } else {
      rules.may_be_ignored.push_back("state/valid.");
      notes.push_back("the caches of validation start empty");
    }
    expect_caches(file, state, caches, wanted);
    // Losses of other data do not compare.
    if (same_data) session.divergence.restore(state.at("divergence"));
    state.at("interval").at("nll_sum").get_to(session.interval.nll_sum);
    state.at("interval").at("steps").get_to(session.interval.steps);
    if (AllAttentionModel* const model = all_attention_of(session.model); model && state.contains("span_means"))
      for (std::int64_t layer = 0; layer < model->options().layers; ++layer)
        model->span(layer).take_means(
            state.at("span_means").at(static_cast<std::size_t>(layer)).get<std::vector<double>>());
    if (state.contains("plateau_decay")) {
      const auto saved = state.at("plateau_decay").get<std::vector<double>>();
      // The rate stays where it was.
      session.trainer.plateau_decay().restore(same_data ? saved : std::vector<double>{saved.at(0), 0});
    }
    if (same_data && state.contains(kAverageKey)) {
      const json& average = state.at(kAverageKey);
      session.averaging.restore(average.at("validations").get<std::vector<double>>());
      if (average.at("begun").get<bool>()) averaged = average.at("updates").get<std::int64_t>();
    }
    if (same_data && state.contains("plateau")) session.plateau.restore(state.at("plateau"));
    if (session.config.schedule.finetune == Schedule::Finetune::plateau && state.contains("finetune_after"))
      session.trainer.finetune_after(state.at("finetune_after").get<std::int64_t>());
    if (same_data && state.contains("best"))
      session.best = TrainingSession::Best{state.at("best").at("nll"), state.at("best").at("step")};
  } catch (const json::exception& error) {
    throw FileError(text("checkpoint: the state of the run in '", file.path().string(),
                         "' must be complete, got this: ", error.what()));
  }
  if (averaged && resize) notes.push_back("the mean of the weights begins anew, because of another max_span");
  if (averaged && !resize && session.config.training.weight_average) {
    session.average.start(session.runtime.step());
    for (NamedTensor& tensor : average_tensors(session)) wanted.push_back(std::move(tensor));
  } else {
    rules.may_be_ignored.push_back(std::string(kAveragePrefix));
  }
  file.load(session.runtime.backend(), wanted, rules);
  if (session.average.started()) session.average.restore(*averaged);
  if (resize) resize->finish();
  session.store.refresh_rounded(session.runtime.step());
  session.trainer.set_steps(read_facts(file).step);
  load_late_rows(file.path(), session);
  session.model.refresh(session.runtime.backend());
  return notes;
}

}  // namespace engram
