/// The program `engram`: one subcommand for each thing that can be done with a model. Every command throws; here is
/// the only place that catches. As one of several processes its end is that of all. Exit codes: 0 done, 1 failed, 2
/// wrong usage, 130 interrupted after saving.

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/commands.hpp"
#include "apps/run/config/config_keys.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/terminal/edit_distance.hpp"
#include "apps/terminal/one_voice.hpp"
#include "apps/terminal/signals.hpp"
#include "core/communicator.hpp"
#include "core/error.hpp"
#include "core/launcher.hpp"
#include "core/open_communicator.hpp"

namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kInterrupted = 130;

/// `engram help` and `engram help train` are engram --help and engram train --help.
std::vector<std::string> with_help_as_option(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  if (arguments.size() > 2)
    throw engram::UsageError(
        engram::text("help: there must be one command at most, got '", arguments[1], "' and '", arguments[2], "'"));
  return arguments.size() == 1 ? std::vector<std::string>{"--help"} : std::vector<std::string>{arguments[1], "--help"};
}

/// CLI11 would call it an unexpected argument.
void check_command(const engram::CommandLine& line, const std::vector<std::string>& arguments) {
  const std::string given = arguments.empty() ? "" : arguments.front();
  std::string names, nearest;
  for (const std::string& name : line.names()) {
    if (name == given) return;
    names += (names.empty() ? "" : ", ") + name;
    if (engram::is_near(given, name) &&
        (nearest.empty() || engram::edit_distance(given, name) < engram::edit_distance(given, nearest)))
      nearest = name;
  }
  if (given.empty())
    throw engram::UsageError("which command? They are " + names + "\n  engram --help says what they do");
  if (given[0] != '-')
    throw engram::UsageError(engram::text("there is no command '", given, "'",
                                          nearest.empty() ? "" : "; the nearest is " + nearest,
                                          "\n  engram --help lists them, with what they do"));
}

/// A file would else get the number of a stream that the caller has closed, and what is printed would go into it.
void open_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1) ::open("/dev/null", O_RDWR);  // the lowest number that is free
}

/// OpenMP's threads wait for work by spinning, by default so long that with anything else running on the cores it costs
/// many times what it saves; a short spin was as good on idle cores. The library reads the setting when it is loaded,
/// so the program starts itself once more with it. What the user has set is kept.
void wait_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // NOLINTNEXTLINE(clang-analyzer-optin.taint.GenericTaint): what this very program was started with
  if (setenv("GOMP_SPINCOUNT", "3000", 1) == 0) execv("/proc/self/exe", argv);
  // No such file on this system: then it runs as it is.
}

/// After it has started itself its name in lists of processes is "exe", and neither `ps -C` nor `killall` would find
/// it.
void keep_name() { prctl(PR_SET_NAME, program_invocation_short_name); }

/// How long ranks wait for each other, in seconds. Those of a sweep have work of their own, which takes as long as it
/// does, and so has the first one of a bench.
double rank_timeout(const std::string& command) {
  const char* const asked = std::getenv("ENGRAM_RANK_TIMEOUT");
  if (asked == nullptr) return command == "sweep" || command == "bench" ? std::numeric_limits<double>::infinity() : 600;
  char* end = nullptr;
  const double seconds = std::strtod(asked, &end);
  if (end == asked || *end != '\0' || !(seconds > 0))
    throw engram::UsageError(
        engram::text("ranks: ENGRAM_RANK_TIMEOUT must be a number of seconds above 0, got '", asked, "'"));
  return seconds;
}

engram::Ending ending_of(const std::function<void()>& work) {
  try {
    work();
    return {.code = kDone};
  } catch (const engram::UsageError& error) {
    return {.code = kWrongUsage, .kind = "error: ", .message = error.what()};
  } catch (const engram::Interrupted& stopped) {
    return {.code = kInterrupted, .message = stopped.what()};
  } catch (const std::bad_alloc&) {
    return {.code = kFailed, .kind = "error: ", .message = "out of memory"};
  } catch (const std::exception& error) {
    return {.code = kFailed, .kind = "error: ", .message = error.what()};
  }
}

void run(const std::vector<std::string>& arguments, engram::Communicator& ranks) {
  engram::CommandLine line("engram", "Engram: language models with memory", engram::version_text());
  engram::add_all_commands(line.commands(), &ranks);
  check_command(line, arguments);
  const std::string& command = arguments.front();
  const bool is_option = command[0] == '-', asks_for_help = arguments.back() == "--help" || arguments.back() == "-h";
  if (!ranks.alone() && !is_option && !asks_for_help && !engram::runs_over_ranks(command))
    throw engram::UsageError(engram::text("ranks: engram ", command, " must be started as one process, got ",
                                          ranks.size(),
                                          "\n  docs/guide/several-processes.md says which commands run as several"));
  line.run(arguments);
}

/// The process is one of several, but they have not found each other. The first one speaks for all at once: what is
/// wrong with how they were started is the same everywhere. Of others that fail otherwise it may know nothing.
int fail_alone(const engram::LaunchedRank& launched, engram::Ending ending) {
  engram::OneRank alone;
  if (launched.rank > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    if (ending.code == kWrongUsage) return kWrongUsage;
    ending.message = engram::text("rank ", launched.rank, " (", alone.place(0), "): ", ending.message);
  }
  return engram::end_with_one_voice(alone, ending, 0);
}

/// For others to come to the same end.
constexpr double kEndSeconds = 10;

}  // namespace

int main(int argc, char** argv) {
  open_missing_streams();
  wait_briefly(argv);
  keep_name();
  std::unique_ptr<engram::Communicator> ranks;
  const engram::Ending opened = ending_of([&] {
    engram::take_signals_on_own_thread();
    const std::string command = argc > 1 ? argv[1] : "";
    ranks = engram::open_communicator(rank_timeout(command));
    engram::leave_speaking_to_rank_0(*ranks);
  });
  if (!ranks) return fail_alone(engram::launched_rank().value_or(engram::LaunchedRank{}), opened);
  if (opened.code != kDone) return engram::end_with_one_voice(*ranks, opened, kEndSeconds);
  const engram::Ending ending = ending_of([&] {
    run(with_help_as_option({argv + (argc > 0 ? 1 : 0), argv + argc}), *ranks);
  });
  return engram::end_with_one_voice(*ranks, ending, kEndSeconds);
}
