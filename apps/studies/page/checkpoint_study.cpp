#include "apps/studies/page/checkpoint_study.hpp"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/page/page_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// Tokens that heads read, of which the last ones are shown.
constexpr std::int64_t kReadByHeads = 384;

class CheckpointStudent {
 public:
  CheckpointStudent(const fs::path& checkpoint, const StudyRequest& request, const fs::path& data,
                    WorkProgress& progress)
      : request_(request), progress_(progress) {
    study_.path = checkpoint;
    study_.data = request.data.empty() ? data : fs::path(request.data);
  }
  CheckpointStudy study();

 private:
  /// Runs a part; what goes wrong is a problem, which `what` begins.
  template <class Part>
  void attempt(std::string_view what, const Part& part);
  void read_file();
  void open_data(const TrainedModel& trained);
  void use_model();
  void show_attention(TrainedModel& trained);
  void show_memories(TrainedModel& trained, Runtime& runtime);
  std::string no_data_;  // why the run's own data are not read
  bool is_own_data() const { return request_.data.empty(); }

  const StudyRequest& request_;
  WorkProgress& progress_;
  CheckpointStudy study_;
  std::optional<data::DataSet> data_;
};

template <class Part>
void CheckpointStudent::attempt(std::string_view what, const Part& part) {
  try {
    part();
  } catch (const Error& error) {
    study_.problems.push_back(text("'", study_.path.string(), "', ", what, ": ", one_line(error.what())));
  }
}

void CheckpointStudent::read_file() {
  const CheckpointFile file(study_.path);
  study_.facts = read_facts(file);
  for (const std::string& name : file.names()) {
    const StoredTensor& tensor = file.at(name);
    const auto bytes = static_cast<std::int64_t>(tensor.end - tensor.begin);
    if (is_parameter_name(name)) study_.parameter_bytes += bytes;
    if (name.starts_with(kOptimizerPrefix)) study_.optimizer_bytes += bytes;
  }
  progress_.begin(text("measuring the tensors of '", study_.path.string(), "'"));
  study_.tensors = tensor_statistics(file);
  const RunConfig& config = study_.facts->config;
  const AllAttentionOptions& model = config.model.all_attention;
  if (config.model.family == ModelFamily::all_attention && model.span == SpanKind::adaptive)
    study_.spans = span_statistics(model, read_spans(file, model), config.training.block);
}

void CheckpointStudent::open_data(const TrainedModel& trained) {
  if (study_.data.empty()) return;
  try {
    data::DataSet data = data::DataSet::open(study_.data);
    data.require_vocabulary(trained.vocabulary(), text("the checkpoint '", study_.path.string(), "'"));
    data_.emplace(std::move(data));
  } catch (const Error& error) {
    study_.data.clear();
    // Data that nobody named may have been made anew since.
    if (!is_own_data()) throw;
    no_data_ = error.what();
  }
}

void CheckpointStudent::show_attention(TrainedModel& trained) {
  std::vector<std::int32_t> tokens;
  std::string from = "the given text";
  if (!request_.text.empty()) {
    tokens = data::text_tokens(request_.text, trained.reading(unseen_words(trained)), "report", "the text");
    if (std::ssize(tokens) > kReadByHeads) tokens.resize(static_cast<std::size_t>(kReadByHeads));
  } else if (data_) {
    const data::TokenView split = data_->split("valid").beginning(kReadByHeads);
    tokens.resize(static_cast<std::size_t>(split.size()));
    split.copy(0, split.size(), tokens.data());
    from = "the beginning of the valid split";
  }
  if (tokens.empty()) {
    study_.no_attention = "there is no text to read: --data or --text gives one";
    if (!no_data_.empty()) study_.no_attention += "\n" + no_data_;
    return;
  }
  progress_.begin(text("'", study_.path.string(), "' reads"), "tokens");
  study_.attention = read_maps(trained, tokens, from, progress_.watch());
}

void CheckpointStudent::show_memories(TrainedModel& trained, Runtime& runtime) {
  const ModelOptions& model = trained.config().model;
  if (!model.memories().any() || !data_) return;
  ModelProductKeyUsage usage(model);
  progress_.begin("memories read", "tokens");
  SplitEvaluationOptions way;
  way.batch = 1;
  way.watch = progress_.watch();
  evaluate_split(trained, data_->split("valid").beginning(request_.read), way, {.reads = usage.reads()});
  ProductKeyReport report{.checkpoint = study_.path.string(),
                          .data = study_.data.string(),
                          .split = "valid",
                          .step = trained.step(),
                          .heads = model.memories().heads,
                          .selected = model.memories().selected,
                          .rows = {}};
  report.add(usage, trained, runtime.backend());
  study_.memories = std::move(report);
}

void CheckpointStudent::use_model() {
  progress_.begin(text("reading '", study_.path.string(), "'"));
  Runtime runtime(request_.device, request_.threads);
  TrainedModel trained(study_.path, CheckpointKind::newest, runtime);
  attempt("its data", [&] { open_data(trained); });
  if (has_maps(trained.config().model, study_.no_attention))
    attempt("where heads look", [&] { show_attention(trained); });
  attempt("its memories", [&] { show_memories(trained, runtime); });
  attempt("what it writes", [&] {
    progress_.begin(text("'", study_.path.string(), "' writes"), "tokens");
    const std::vector<std::string> prompts = data_ ? prompts_of(*data_, "valid") : std::vector<std::string>{"", "The"};
    study_.samples = write_samples(trained, prompts, request_.length, progress_.watch());
  });
}

CheckpointStudy CheckpointStudent::study() {
  progress_.begin(text("reading '", study_.path.string(), "'"));
  attempt("the checkpoint", [&] { read_file(); });
  if (study_.facts && request_.runs_model) attempt("the model", [&] { use_model(); });
  if (study_.facts && !request_.runs_model) study_.no_attention = "the report was made without running the model";
  return std::move(study_);
}

}  // namespace

fs::path find_run_data(const std::vector<std::string>& command, const fs::path& directory, const fs::path& run_folder) {
  fs::path named;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--data" && i + 1 < command.size()) named = command[i + 1];
    if (command[i].starts_with("--data=")) named = command[i].substr(std::string_view("--data=").size());
  }
  if (named.empty()) return {};
  std::error_code ignored;
  const auto is_data = [&ignored](const fs::path& folder) { return fs::exists(folder / data::kDataFile, ignored); };
  if (!directory.empty() && is_data(directory / named)) return directory / named;
  if (is_data(named)) return named;
  // Where the run was started mostly is a folder that the run lies in.
  fs::path from = fs::absolute(run_folder, ignored).lexically_normal();
  while (!from.empty() && from != from.root_path()) {
    if (is_data(from / named)) return from / named;
    // Or both were moved elsewhere together.
    if (is_data(from / named.filename())) return from / named.filename();
    from = from.parent_path();
  }
  return {};
}

CheckpointStudy study_checkpoint(const fs::path& checkpoint, const StudyRequest& request, const fs::path& data,
                                 WorkProgress& progress) {
  return CheckpointStudent(checkpoint, request, data, progress).study();
}

}  // namespace engram
