#include "apps/studies/context/studied_run.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

std::string last_part(const fs::path& path) {
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

}  // namespace

bool StudiedRun::remembers() const { return config.model.remembers(); }

std::int64_t StudiedRun::training_length() const {
  const std::int64_t memory = config.model.transformer_xl.memory;
  return memory > 0 ? memory : config.training.block + config.training.extension;
}

std::vector<StudiedRun> open_studied_runs(const std::vector<std::string>& runs, CheckpointKind kind,
                                          const data::DataSet& data, std::string_view command) {
  std::vector<StudiedRun> opened;
  for (const std::string& source : runs) {
    const auto alike = std::ranges::count_if(
        runs, [&source](const std::string& other) { return last_part(other) == last_part(source); });
    const CheckpointFile file(find_checkpoint(source, kind));
    const CheckpointFacts facts = read_facts(file);
    data.require_vocabulary(facts.vocabulary, text("the checkpoint '", file.path().string(), "'"));
    for (const StudiedRun& other : opened)
      if (fs::equivalent(other.checkpoint, file.path()))
        throw UsageError(text(command, ": every run must be given once, got '", file.path().string(), "' twice"));
    opened.push_back({.name = alike > 1 ? source : last_part(source),
                      .checkpoint = file.path(),
                      .step = facts.step,
                      .config = facts.config});
  }
  return opened;
}

TransformerXlModel& transformer_xl_of(TrainedModel& trained) {
  auto* const model = dynamic_cast<TransformerXlModel*>(&trained.model());
  if (model == nullptr) throw Error(text("context: '", trained.path().string(), "' must be of family transformer_xl"));
  return *model;
}

}  // namespace engram
