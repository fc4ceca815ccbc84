#pragma once
/// What commands take alike that use one trained model, and the model that they name.

#include <string>
#include <string_view>

#include "apps/command_line/command.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/model/trained_model.hpp"
#include "core/communicator.hpp"

namespace engram {

/// A run, and which of its checkpoints.
struct RunArguments {
  std::string run;  ///< folder of a run, or a checkpoint file

  /// Adds the run itself, required.
  void add_run(Command& command, const std::string& help = "folder of a run, or a checkpoint file");
  /// Adds --best.
  void add_best(Command& command);
  CheckpointKind kind() const { return best_ ? CheckpointKind::best : CheckpointKind::newest; }

 private:
  bool best_ = false;
};

struct ModelArguments : RunArguments {
  /// Adds --best, --device, --dtype and --threads. Without `any_dtype` there is no --dtype: f32 is all that there is.
  void add_options(Command& command, bool any_dtype = true);
  /// For one of several ranks that share a command: its part of the machine, which is said. Collective. Throws
  /// UsageError for a device that is none.
  void divide_machine(Communicator& ranks);
  const std::string& device() const { return device_; }
  /// Empty: not given.
  const std::string& dtype() const { return dtype_; }

 private:
  friend struct OpenedModel;
  std::string device_ = "cpu", dtype_;
  bool any_dtype_ = false;
  int threads_ = 0;
};

struct OpenedModel {
  /// `adapt` as TrainedModel takes it. Throws UsageError, naming the command, for a dtype or device that is none, and
  /// as TrainedModel does.
  OpenedModel(const ModelArguments& arguments, std::string_view command, const TrainedModel::Adapt& adapt = {});

  /// Data of the model's own vocabulary. Throws as data::DataSet::open() and require_vocabulary() do.
  data::DataSet open_data(const std::string& folder) const;

  Runtime runtime;
  TrainedModel trained;
};

}  // namespace engram
