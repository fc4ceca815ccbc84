#include "apps/run/training/run_checkpoint.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/run/folder/report_lines.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/training/late_rows.hpp"
#include "apps/run/training/resize_span.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"

namespace engram {
namespace {

using nlohmann::json;

/// Far above the weights of any model that learns, so what is beyond it has diverged, finite as it may be.
constexpr double kLargestWeight = 1e6;

/// What one layer remembers of one set of streams, named state/<owner>.<layer>.hidden.
struct NamedCache {
  std::string name;
  StatePast* cache;
  /// The rank that has it; none: all do. On the others `cache` is one like it, of a piece of their own.
  std::optional<int> rank = {};
};

void add_caches(std::vector<NamedCache>& caches, const std::string& owner, ModelPast& past,
                std::optional<int> rank = {}) {
  for (std::size_t layer = 0; layer < past.size(); ++layer)
    caches.push_back({text(kCachePrefix, owner, ".", layer, ".hidden"), &state_past(*past[layer]), rank});
}

std::string owner_of_piece(std::int64_t piece) { return text("train.", piece); }

/// Of the pieces that this rank computes.
std::vector<NamedCache> training_caches(TrainingSession& session) {
  std::vector<NamedCache> caches;
  std::int64_t piece = session.trainer.first_piece();
  for (ModelPast& past : session.trainer.pasts()) add_caches(caches, owner_of_piece(piece++), past);
  return caches;
}

/// Of all pieces.
std::vector<NamedCache> all_training_caches(TrainingSession& session) {
  if (session.runtime.ranks().alone()) return training_caches(session);
  std::vector<NamedCache> caches;
  std::vector<ModelPast>& pasts = session.trainer.pasts();
  const auto own = static_cast<std::int64_t>(pasts.size()), first = session.trainer.first_piece();
  for (std::int64_t piece = 0; piece < session.config.training.split; ++piece) {
    const bool is_own = piece >= first && piece < first + own;
    add_caches(caches, owner_of_piece(piece), pasts[static_cast<std::size_t>(is_own ? piece - first : 0)],
               static_cast<int>(piece / own));
  }
  return caches;
}

NamedTensor tensor_of(const NamedCache& cache, Communicator& ranks) {
  const Tensor& states = cache.cache->states();
  if (!cache.rank) return {cache.name, states};
  return {cache.name, *cache.rank == ranks.rank() ? states : Tensor(),
          all_on(*cache.rank, ranks.size(), states.shape(), states.dtype())};
}

bool empty(const StatePast& cache) { return cache.states().count() == 0; }

/// What one layer remembers of the validation: in the file as of all its rows together, whatever pieces they are in.
struct ValidationCache {
  std::string name;
  std::vector<StatePast*> own;  // of the pieces that this rank has, in their order: as long as each other

  const StatePast& any() const { return *own.front(); }
};

std::vector<ValidationCache> validation_caches(TrainingSession& session) {
  std::vector<ValidationCache> caches(session.validation_pasts.front().size());
  for (std::size_t layer = 0; layer < caches.size(); ++layer) {
    caches[layer].name = text(kCachePrefix, "valid.", layer, ".hidden");
    for (ModelPast& past : session.validation_pasts) caches[layer].own.push_back(&state_past(*past[layer]));
  }
  return caches;
}

/// Memory for all that this rank has of a layer's states, and which part of those of all ranks it is. One piece that no
/// rank shares has that memory itself.
NamedTensor gathered(const ValidationCache& cache, TrainingSession& session) {
  const Tensor& states = cache.any().states();
  const WorkShare& share = session.validation_share;
  if (share.pieces == 1) return {cache.name, states};
  const Shape own = states.shape().with(0, states.shape()[0] * std::ssize(cache.own));
  const Tensor memory(own, states.dtype(), states.device(), session.runtime.memory());
  if (share.ranks == nullptr) return {cache.name, memory};
  Division division{.shape = own.with(0, own[0] * share.size()), .dtype = states.dtype(), .ends = {}};
  for (int q = 1; q <= share.size(); ++q) division.ends.push_back(own.count() * q);
  return {cache.name, memory, division};
}

/// Copies between gathered() and the pieces, which lie in it one after the other.
void copy_pieces(const ValidationCache& cache, const Tensor& memory, Backend& backend, bool to_pieces) {
  for (std::size_t i = 0; i < cache.own.size(); ++i) {
    const Tensor& states = cache.own[i]->states();
    if (memory.raw() == states.raw()) return;
    const auto begin = static_cast<std::int64_t>(i) * states.shape()[0];
    const Tensor rows = memory.rows(begin, begin + states.shape()[0]);
    const Tensor &to = to_pieces ? states : rows, &from = to_pieces ? rows : states;
    backend.copy(to.raw(), from.raw(), from.bytes(), CopyKind::device_to_device);
  }
}

/// Everything that a continuation fills: parameters, state of the optimiser, means of the weights.
std::vector<NamedTensor> lasting_tensors(const TrainingSession& session) {
  std::vector<NamedTensor> tensors = named_tensors(session.store, session.trainer.optimizer());
  append_average(tensors, session.watch.average);
  return tensors;
}

Metadata run_metadata(const TrainingSession& session) {
  Metadata metadata = model_metadata(session.config, session.data, session.trainer.steps());
  if (!session.origin.empty()) metadata.emplace(metadata_keys::kFrom, session.origin);
  return metadata;
}

json run_state(TrainingSession& session) {
  json state{{"reader", session.reader->state()}, {"validation_reader", session.validation.state()}};
  session.watch.save(state);
  json& seen = state["positions_seen"];  // by cache: how many of its states are of the text, not padding
  for (const NamedCache& cache : all_training_caches(session)) seen[cache.name] = cache.cache->valid();
  for (const ValidationCache& cache : validation_caches(session)) seen[cache.name] = cache.any().valid();
  return state;
}

void make_checkpoint_folder(const std::filesystem::path& path, Communicator& ranks) {
  together(ranks, [&] {
    if (ranks.leads()) make_folder("checkpoint", path.parent_path());
  });
}

void save(const std::filesystem::path& path, TrainingSession& session, const std::vector<NamedTensor>& tensors,
          const Metadata& metadata) {
  session.trainer.optimizer().bring_up_to_date(session.runtime.step());
  Communicator& ranks = session.runtime.ranks();
  make_checkpoint_folder(path, ranks);
  save_checkpoint(path, session.runtime.backend(), tensors, metadata,
                  {.only_finite = true, .largest_parameter = kLargestWeight}, ranks);
}

/// How much of its text a cache has read; nothing: the state does not say. Throws FileError for what is no count.
std::optional<std::int64_t> positions_seen(const json& state, const std::string& name) {
  const json& all = state.at("positions_seen");
  const auto found = all.find(name);
  if (found == all.end()) return std::nullopt;
  const std::optional<std::int64_t> seen = count_in(all, name.c_str());
  if (!seen)
    throw FileError(text("checkpoint: the positions that '", name, "' has seen must be a count, got ", found->dump()));
  return seen;
}

constexpr std::string_view kNoRun = "it holds a model, but no run that could be continued";

/// A checkpoint on its way into a session.
class SessionLoad {
 public:
  SessionLoad(const CheckpointFile& file, TrainingSession& session)
      : file_(file), session_(session), before_(read_facts(file)) {}

  /// What load_session() does.
  std::vector<std::string> run();

 private:
  void compare_run();
  void restore_state(const json& state);
  /// Whether a reader can go on where it was, as it does then.
  template <class Reader>
  bool goes_on(Reader& reader, const json& saved) const;
  // Readers and caches go on together or start afresh together.
  /// Makes room for the file's caches, to be loaded.
  void load_caches(const json& state, const std::vector<NamedCache>& caches);
  void load_validation_caches(const json& state);
  /// Makes room for so many positions of the file's tensor of this name.
  void make_room(StatePast& cache, const std::string& name, const json& state) const;
  /// The file has no states of it: how much it has read is known all the same.
  void remember_nothing(StatePast& cache, const std::string& name, const json& state) const;
  /// Other ranks load theirs.
  void ignore_other_pieces();
  /// Leaves the file's caches out.
  void leave_caches(std::string_view owner, std::string_view what);
  void load_tensors();

  const CheckpointFile& file_;
  TrainingSession& session_;
  const CheckpointFacts before_;
  bool same_data_ = true;
  std::optional<SpanResize> resize_;
  std::vector<NamedTensor> caches_;                           // that are loaded
  std::vector<std::pair<ValidationCache, Tensor>> gathered_;  // of them those that pieces are taken from
  LoadRules rules_;
  std::vector<std::string> notes_;
};

std::vector<std::string> SessionLoad::run() {
  compare_run();
  try {
    restore_state(parse_json(required_entry(file_, metadata_keys::kRun, kNoRun)));
  } catch (const json::exception& error) {
    throw FileError(text("checkpoint: the state of the run in '", file_.path().string(),
                         "' must be complete, got this: ", error.what()));
  }
  load_tensors();
  if (const auto origin = file_.metadata().find(metadata_keys::kFrom); origin != file_.metadata().end())
    session_.origin = origin->second;
  session_.store.refresh_rounded(session_.runtime.step());
  session_.trainer.set_steps(before_.step);
  load_late_rows(file_.path(), session_);
  session_.model->refresh(session_.runtime.backend());
  return notes_;
}

void SessionLoad::compare_run() {
  const std::string& data = required_entry(file_, metadata_keys::kData, kNoRun);
  const std::string data_now = data::hash_text(session_.data.hash());
  same_data_ = data == data_now;
  if (!same_data_)
    notes_.push_back(
        text("the data are others than before (", data, ", now ", data_now, "): reading starts at the beginning"));
  if (const std::int64_t from = before_.config.model.all_attention.max_span,
      to = session_.config.model.all_attention.max_span;
      from != to)
    resize_.emplace(from, to, session_.runtime.backend(), session_.runtime.memory());
}

void SessionLoad::restore_state(const json& state) {
  const TrainingOptions &before = before_.config.training, &now = session_.config.training;
  const bool same_caches = before.split == now.split && before.activations == now.activations;
  if (goes_on(*session_.reader, state.at("reader")) && same_caches) {
    load_caches(state, training_caches(session_));
    ignore_other_pieces();
  } else {
    leave_caches("train.", "training");
  }
  if (goes_on(session_.validation, state.at("validation_reader")))
    load_validation_caches(state);
  else
    leave_caches("valid.", "validation");
  session_.watch.restore(state, {.same_data = same_data_, .resized = resize_.has_value(), .notes = notes_});
}

template <class Reader>
bool SessionLoad::goes_on(Reader& reader, const json& saved) const {
  const auto place = saved.get<data::ReaderState>();
  if (!same_data_ || !reader.accepts(place)) return false;
  reader.restore(place);
  return true;
}

void SessionLoad::load_caches(const json& state, const std::vector<NamedCache>& caches) {
  for (const auto& [name, cache, rank] : caches) {
    if (!file_.has(name)) {
      remember_nothing(*cache, name, state);
      continue;
    }
    make_room(*cache, name, state);
    caches_.push_back({name, cache->states()});
  }
}

void SessionLoad::load_validation_caches(const json& state) {
  for (const ValidationCache& cache : validation_caches(session_)) {
    if (!file_.has(cache.name)) {
      for (StatePast* const piece : cache.own) remember_nothing(*piece, cache.name, state);
      continue;
    }
    for (StatePast* const piece : cache.own) make_room(*piece, cache.name, state);
    caches_.push_back(gathered(cache, session_));
    gathered_.emplace_back(cache, caches_.back().tensor);
  }
}

void SessionLoad::make_room(StatePast& cache, const std::string& name, const json& state) const {
  const Shape& shape = file_.at(name).shape;
  if (shape.rank() != 3)
    throw FileError(text("checkpoint: '", name, "' must be [streams, positions, width], got ", shape));
  const std::optional<std::int64_t> seen = positions_seen(state, name);
  if (!seen) throw FileError(text("checkpoint: it must say how many positions '", name, "' has seen, got no number"));
  cache.restore(shape[1], *seen);
}

void SessionLoad::remember_nothing(StatePast& cache, const std::string& name, const json& state) const {
  const std::int64_t seen = positions_seen(state, name).value_or(0);
  if (seen > 0 && empty(cache)) cache.restore(0, seen);
}

void SessionLoad::ignore_other_pieces() {
  const std::int64_t first = session_.trainer.first_piece();
  const std::int64_t end = first + static_cast<std::int64_t>(session_.trainer.pasts().size());
  for (std::int64_t piece = 0; piece < session_.config.training.split; ++piece)
    if (piece < first || piece >= end) rules_.may_be_ignored.push_back(text(kCachePrefix, owner_of_piece(piece), "."));
}

void SessionLoad::leave_caches(std::string_view owner, std::string_view what) {
  rules_.may_be_ignored.push_back(text(kCachePrefix, owner));
  notes_.push_back(text("the caches of ", what, " start empty"));
}

void SessionLoad::load_tensors() {
  std::vector<NamedTensor> wanted = lasting_tensors(session_);
  if (resize_) resize_->prepare(wanted);
  wanted.insert(wanted.end(), caches_.begin(), caches_.end());
  if (!session_.watch.average.started()) rules_.may_be_ignored.emplace_back(kAveragePrefix);
  file_.load(session_.runtime.backend(), wanted, rules_, session_.runtime.ranks().rank());
  for (const auto& [cache, memory] : gathered_) copy_pieces(cache, memory, session_.runtime.backend(), true);
  if (resize_) resize_->finish();
}

}  // namespace

void save_session(const std::filesystem::path& path, TrainingSession& session, SaveReason reason) {
  if (reason == SaveReason::interrupted) {
    make_checkpoint_folder(path, session.runtime.ranks());
    save_late_rows(path, session);
  }
  std::vector<NamedTensor> tensors = lasting_tensors(session);
  for (const NamedCache& cache : all_training_caches(session))
    if (!empty(*cache.cache)) tensors.push_back(tensor_of(cache, session.runtime.ranks()));
  for (const ValidationCache& cache : validation_caches(session)) {
    if (empty(cache.any())) continue;
    tensors.push_back(gathered(cache, session));
    copy_pieces(cache, tensors.back().tensor, session.runtime.backend(), false);
  }
  Metadata metadata = run_metadata(session);
  metadata.emplace(metadata_keys::kRun, run_state(session).dump());
  save(path, session, tensors, metadata);
  if (reason == SaveReason::due && session.runtime.ranks().leads()) remove_late_rows(path);
}

void save_model(const std::filesystem::path& path, TrainingSession& session) {
  Metadata metadata = run_metadata(session);
  if (const std::int64_t updates = session.watch.average.updates(); updates > 0)
    metadata.emplace(metadata_keys::kAveraged, text(updates));
  save(path, session, named_tensors(session.store), metadata);
}

std::int64_t last_step_of(const CheckpointFile& file, const RunConfig& config) {
  const json state = parse_json_or_discard(required_entry(file, metadata_keys::kRun, kNoRun));
  const std::optional<std::int64_t> began = state.is_object() && config.schedule.finetune == Schedule::Finetune::plateau
                                                ? count_in(state, std::string(kFinetuneKey).c_str())
                                                : std::nullopt;
  return began ? *began + config.training.finetune_steps : config.total_steps();
}

std::vector<std::string> load_session(const CheckpointFile& file, TrainingSession& session) {
  return SessionLoad(file, session).run();
}

}  // namespace engram
