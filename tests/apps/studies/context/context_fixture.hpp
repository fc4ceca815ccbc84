#pragma once
/// Small trained runs with and without memory over one text, for studies of context.

#include <string>
#include <vector>

#include "apps/studies/context/studied_run.hpp"
#include "tests/apps/run/run_fixture.hpp"

namespace engram::harness {

struct ContextBench : RunFolder {
  ContextBench() : RunFolder(20000) {
    train("xl", {"model.memory=12"});
    train("shaw", {"model.memory=12", "model.positions=shaw", "model.position_rows=22"});
    train("windows", {"training.extension=4"});
    train("vanilla", {"training.extension=4", "model.positions=absolute_sinusoidal"});
    train("learned", {"model.positions=absolute_learned", "model.position_rows=15"});
    TrainingRunOptions spans = run_options(*this, "spans");
    spans.overrides = {"schedule.steps=2", "schedule.warmup=0"};
    run_training(spans, never());
  }

  std::string run(const std::string& name) const { return (*this / name).string(); }
  data::DataSet set() const { return data::DataSet::open(data()); }
  std::vector<StudiedRun> open(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(run(name));
    return open_studied_runs(paths, CheckpointKind::newest, set(), "test");
  }

 private:
  void train(const std::string& name, const std::vector<std::string>& overrides) {
    TrainingRunOptions options = run_options(*this, name);
    options.config = put_file(*this / "xl.toml", R"([model]
family = "transformer_xl"
layers = 2
width = 16
heads = 2
inner = 24
init_deviation = 0.3
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 12
[training]
batch = 4
block = 10
validate_every = 12
validate_blocks = 1
checkpoint_every = 12
seed = 11
)");
    options.overrides = overrides;
    run_training(options, never());
  }
};

inline const ContextBench& context_bench() {
  static const ContextBench made;
  return made;
}

/// The command line of a study of these runs, on one thread.
inline std::vector<std::string> study(const std::string& command, const std::vector<std::string>& runs,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> arguments{command};
  for (const std::string& run : runs) arguments.push_back(context_bench().run(run));
  for (const std::string& one :
       {std::string("--data"), context_bench().data().string(), std::string("--threads"), std::string("1")})
    arguments.push_back(one);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace engram::harness
