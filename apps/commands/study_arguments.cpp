#include "apps/commands/study_arguments.hpp"

#include "apps/commands/dtype_option.hpp"

namespace engram {

void StudyArguments::add_reading(Command& command, const std::string& runs_help) {
  command_ = &command;
  command.add_option("runs", runs, runs_help)->required();
  command.add_option("--data", data, "data folder that engram prepare wrote")->required();
  command.add_option("--split", split, "train, valid or test")->capture_default_str();
  command.add_option("--tokens", tokens_, "only so many tokens from the start of the split [all]")->positive();
  command.add_option("--clamp-len", clamp_, "transformer_xl: distances above it count as it; 0: none [the run's]")
      ->non_negative();
}

void StudyArguments::add_running(Command& command, const std::string& csv_help) {
  command.add_option("--csv", csv, csv_help);
  command.add_flag("--best", best_, "the runs' best checkpoints instead of the newest");
  command.add_option("--device", device_, "cpu, cuda, cuda:1 or simulated")->capture_default_str();
  command.add_option("--dtype", dtype_, "f32 or f64")->capture_default_str();
  command.add_option("--threads", threads_, "threads of the host; 0: all")->non_negative()->capture_default_str();
  command.add_flag("--json", json, "print one JSON object");
}

std::optional<std::int64_t> StudyArguments::clamp() const {
  return command_->count("--clamp-len") > 0 ? std::optional(clamp_) : std::nullopt;
}

Study::Study(const StudyArguments& arguments, std::string_view command)
    : dtype(dtype_option(command, arguments.dtype_)),
      runtime(parse_device(arguments.device_), arguments.threads_),
      data(data::DataSet::open(arguments.data)),
      tokens(first_tokens(data.split(arguments.split), arguments.tokens_)),
      runs(open_studied_runs(arguments.runs, arguments.best_ ? CheckpointKind::best : CheckpointKind::newest, data,
                             command)) {}

}  // namespace engram
