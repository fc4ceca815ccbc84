#include "apps/commands/study_arguments.hpp"

#include "apps/commands/shared_options.hpp"

namespace engram {

void StudyArguments::add_reading(Command& command, const std::string& runs_help) {
  command_ = &command;
  command.add_option("runs", runs, runs_help)->required()->value_name("RUN");
  command.add_option("--data", data, "data folder that engram prepare wrote")->required();
  command.add_option("--split", split, "train, valid or test")
      ->suggest({"train", "valid", "test"})
      ->capture_default_str();
  command.add_option("--tokens", tokens_, "only so many tokens from the start of the split [all]")->positive();
  command.add_option("--clamp-len", clamp_, "transformer_xl: distances above it count as it; 0: none [the run's]")
      ->non_negative();
}

void StudyArguments::add_running(Command& command, const std::string& csv_help) {
  command.add_option("--csv", output.csv, csv_help);
  command.add_flag("--best", best_, "the runs' best checkpoints instead of the newest");
  add_device_option(command, device_);
  command.add_option("--dtype", dtype_, "f32 or f64")->suggest({"f32", "f64"})->capture_default_str();
  add_threads_option(command, threads_);
  output.add_json(command);
}

std::optional<std::int64_t> StudyArguments::clamp() const {
  return command_->count("--clamp-len") > 0 ? std::optional(clamp_) : std::nullopt;
}

Study::Study(const StudyArguments& arguments, std::string_view command)
    : dtype(dtype_option(command, arguments.dtype_)),
      runtime(parse_device(arguments.device_), arguments.threads_),
      data(data::DataSet::open(arguments.data)),
      tokens(data.split(arguments.split).beginning(arguments.tokens_)),
      runs(open_studied_runs(arguments.runs, arguments.best_ ? CheckpointKind::best : CheckpointKind::newest, data,
                             command)) {}

}  // namespace engram
