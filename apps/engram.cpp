/// The program `engram`: one subcommand for each thing that can be done with a model. Every command throws; here is
/// the only place that catches. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted after saving.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/commands.hpp"
#include "apps/run/config/config_keys.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/terminal/edit_distance.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"

namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kInterrupted = 130;

int fail(int code, const std::string& message) {
  const std::string line = "engram: error: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

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
  if (setenv("GOMP_SPINCOUNT", "3000", 1) == 0) execv("/proc/self/exe", argv);
  // No such file on this system: then it runs as it is.
}

}  // namespace

int main(int argc, char** argv) {
  open_missing_streams();
  wait_briefly(argv);
  try {
    engram::take_signals_on_own_thread();
    const std::vector<std::string> arguments = with_help_as_option({argv + (argc > 0 ? 1 : 0), argv + argc});
    engram::CommandLine line("engram", "Engram: language models with memory", engram::version_text());
    engram::add_all_commands(line.commands());
    check_command(line, arguments);
    line.run(arguments);
    return kDone;
  } catch (const engram::UsageError& error) {
    return fail(kWrongUsage, error.what());
  } catch (const engram::Interrupted& stopped) {
    std::fprintf(stderr, "engram: %s\n", stopped.what());
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    return fail(kFailed, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}
