#include "apps/commands/commands.hpp"

namespace engram {

void add_all_commands(Command& program, Communicator* ranks) {
  const auto add = [&program](const char* title, auto... commands) { (commands(program)->group(title), ...); };
  add("Before training", add_prepare_command, add_configs_command, add_keys_command, add_count_command,
      add_papers_command);
  const auto add_train = [ranks](Command& to) { return add_train_command(to, ranks); };
  const auto add_sweep = [ranks](Command& to) { return add_sweep_command(to, ranks); };
  const auto add_evaluate = [ranks](Command& to) { return add_evaluate_command(to, ranks); };
  const auto add_bench = [ranks](Command& to) { return add_bench_command(to, ranks); };
  add("Training", add_train, add_sweep, add_orderings_command, add_study_command);
  add("Using a model", add_evaluate, add_generate_command, add_cbt_command, add_map_command, add_import_command,
      add_export_command);
  add("Studying a model", add_spans_command, add_attention_command, add_memory_command, add_gradients_command,
      add_lengths_command, add_recl_command, add_tape_command);
  add("Runs beside each other", add_figure_command, add_report_command, add_watch_command);
  add("Measuring speed", add_bench);
  add("The program itself", add_completion_command, add_manual_command);
  program.footer("engram help COMMAND lists the options of a command.");
}

bool runs_over_ranks(std::string_view name) {
  return name == "train" || name == "sweep" || name == "evaluate" || name == "bench";
}

}  // namespace engram
