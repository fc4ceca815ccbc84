#pragma once
/// The commands of the program. Each function adds a subcommand with its options, and returns it; parsing it runs it.

#include <string_view>

#include "apps/command_line/command.hpp"
#include "core/communicator.hpp"

namespace engram {

/// All of them, in the groups that the program's help shows, and the end of that help. `ranks`, which those that run
/// over several use, outlives the program's command line; nullptr: there is one.
void add_all_commands(Command& program, Communicator* ranks = nullptr);
/// Whether several ranks may run the command of this name together.
bool runs_over_ranks(std::string_view name);

/// `engram prepare`: from text files to a data folder. The work is that of apps/data/prepare/prepare.hpp. Throws what
/// data::prepare throws.
Command* add_prepare_command(Command& program);
/// `engram configs`: the configurations that come with the program. Throws UsageError and FileError as find_config()
/// does, and FileError where there are none.
Command* add_configs_command(Command& program);
/// `engram keys`: every key of a configuration, with its default and its meaning. Throws UsageError for a family that
/// does not exist.
Command* add_keys_command(Command& program);
/// `engram count`: parameters, memory and arithmetic of a config's model, without allocating it. Throws UsageError for
/// a config that is not valid or has no vocabulary, FileError for one that cannot be read.
Command* add_count_command(Command& program);
/// `engram papers`: what of the papers' tables and figures there are configurations for, and the commands. Throws
/// UsageError for a paper or a table that does not exist.
Command* add_papers_command(Command& program);
/// `engram train`: trains a model and keeps the run in a folder, from which it can go on. Throws as run_training
/// (apps/run/training/training_run.hpp).
Command* add_train_command(Command& program, Communicator* ranks = nullptr);
/// `engram sweep`: trains variants of a configuration for the same number of tokens and compares them. Throws what
/// prepare_runs() and run_sweep() throw.
Command* add_sweep_command(Command& program, Communicator* ranks = nullptr);
/// `engram orderings`: whether the variants of a sweep came out in the order that claims say. Throws UsageError as
/// parse_claim() and judge() do, FileError for a folder without sweep.csv, and with --strict Error unless all claims
/// hold.
Command* add_orderings_command(Command& program);
/// `engram study`: variants at their best rates, compared with intervals of confidence. Throws UsageError for a study
/// that is none or whose variants are not equal in what it says, FileError for files that cannot be read or written,
/// and what prepare_runs() throws.
Command* add_study_command(Command& program);
/// `engram evaluate`: how well a trained model predicts a split it has not seen. Throws FileError for a checkpoint or
/// data that cannot be read or do not belong together, UsageError for options that exclude each other.
Command* add_evaluate_command(Command& program, Communicator* ranks = nullptr);
/// `engram generate`: lets a trained model write on. Throws UsageError for options out of range and a prompt with a
/// character that the model does not know, FileError for a checkpoint that cannot be used.
Command* add_generate_command(Command& program);
/// `engram cbt`: answers the questions of the Children's Book Test with a trained recurrent model. Throws UsageError
/// for a model of another family and data that know no articles, FileError for a checkpoint, data or questions that
/// cannot be read or do not belong together.
Command* add_cbt_command(Command& program);
/// `engram map`: a run folder whose tables evaluation reads from mapped files. Throws UsageError for options that
/// exclude each other, a model without tables and a folder with a run in it, FileError for what cannot be read or
/// written.
Command* add_map_command(Command& program);
/// `engram import`: weights of other programs as a checkpoint. Throws as import_transfo_xl() does.
Command* add_import_command(Command& program);
/// `engram export`: a trained model as weights of other programs. Throws as export_transfo_xl() does.
Command* add_export_command(Command& program);
/// `engram spans`: how far each head of a trained model looks back. Throws FileError for a checkpoint or metrics that
/// cannot be read, and for a CSV file that cannot be written.
Command* add_spans_command(Command& program);
/// `engram attention`: where a trained model looks while it reads a text. Throws UsageError for a layer or head that
/// the model does not have and a text that it cannot read, FileError for files that cannot be read or written.
Command* add_attention_command(Command& program);
/// `engram memory`: how the product-key memories of a trained model use their slots. Throws UsageError for a model
/// without memories and for a split that is too short, FileError for a checkpoint or data that cannot be read or do not
/// belong together, and for a file that cannot be written.
Command* add_memory_command(Command& program);
/// `engram gradients`: norms and clipping of every tensor's gradient, and what moves the spans. Throws FileError for
/// metrics that cannot be read, and for a CSV file that cannot be written; UsageError for a run without gradient
/// reports.
Command* add_gradients_command(Command& program);
/// `engram lengths`: how well runs predict with other attention lengths than in training. Throws FileError for
/// checkpoints or data that cannot be read or do not belong together, and for a file that cannot be written.
Command* add_lengths_command(Command& program);
/// `engram recl`: relative effective context length of the runs of a group. Throws FileError for checkpoints or data
/// that cannot be read or do not belong together, and for a file that cannot be written.
Command* add_recl_command(Command& program);
/// `engram figure`: runs drawn for a paper. Throws UsageError for options and names that do not fit, FileError for
/// logs, tables, checkpoints and data that cannot be read, and for a file that cannot be written.
Command* add_figure_command(Command& program);
/// `engram report`: runs, sweeps and checkpoints in one HTML file, or event files for TensorBoard. Throws UsageError
/// where nothing of what is named can be shown, FileError for a file that cannot be written, and as
/// write_tensorboard().
Command* add_report_command(Command& program);
/// `engram watch`: the same page for a browser of this machine, kept up to date. Throws as report, and NotAvailable
/// where the program was built without a server.
Command* add_watch_command(Command& program);
/// `engram tape`: what autograd records of one step of a model, as a table, a drawing or a page. Throws UsageError for
/// a config that is not valid or has no vocabulary, NotAvailable for a drawing without Graphviz, FileError for files
/// that cannot be read or written.
Command* add_tape_command(Command& program);
/// `engram bench`: training steps of some configs against the limits of this machine. Throws UsageError for options and
/// spans that do not fit the configs, FileError for a config that cannot be read.
Command* add_bench_command(Command& program, Communicator* ranks = nullptr);
/// `engram completion`: scripts for bash, zsh and fish, of all commands that `program` has when it runs.
Command* add_completion_command(Command& program);
/// `engram manual`: pages for man, of all commands that `program` has when it runs. Throws UsageError for a command
/// that there is not, FileError for a folder that cannot be written.
Command* add_manual_command(Command& program);

}  // namespace engram
