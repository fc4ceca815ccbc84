/// Words of a command line, and values of options that have a form of their own. Nothing is executed.

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/command_line/number_list.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/figure_arguments.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/word_rules.hpp"
#include "apps/run/folder/provenance.hpp"
#include "apps/studies/cost/memory_report.hpp"
#include "apps/studies/figures/head_figure.hpp"
#include "apps/studies/figures/run_settings.hpp"
#include "apps/studies/sweeps/ordering.hpp"
#include "apps/studies/sweeps/sweep_plan.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

/// The program's command line, whose commands do nothing.
std::unique_ptr<CommandLine> idle_command_line() {
  auto line = std::make_unique<CommandLine>("engram", "Engram: language models with memory", "1");
  add_all_commands(line->commands());
  for (const std::string& name : line->names()) line->commands().subcommand(name)->idle();
  return line;
}

/// While it lives, what is printed goes nowhere: help was asked for.
class Silence {
 public:
  Silence() : stdout_(::dup(STDOUT_FILENO)), nowhere_(::open("/dev/null", O_WRONLY | O_CLOEXEC)) {
    std::fflush(stdout);
    ::dup2(nowhere_, STDOUT_FILENO);
  }
  ~Silence() {
    std::fflush(stdout);
    ::dup2(stdout_, STDOUT_FILENO);
    ::close(stdout_);
    ::close(nowhere_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int stdout_, nowhere_;
};

std::vector<std::string> lines_of(std::string_view bytes) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < bytes.size() && lines.size() < 64;) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    lines.emplace_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

// A word a line. The first one names a command: others are told by the program before.
void read_arguments(std::string_view bytes) {
  static const std::unique_ptr<CommandLine> line = idle_command_line();
  const std::vector<std::string> words = lines_of(bytes);
  if (words.empty() || line->commands().subcommand(words.front()) == nullptr) return;
  // Arguments of a process have no byte zero.
  if (bytes.find('\0') != bytes.npos) return;
  const Silence silence;
  refuses([&] { line->run(words); });
}

void read_argument_values(std::string_view bytes) {
  const std::string value(bytes);
  const std::vector<std::string> values = lines_of(bytes);
  refuses([&] { parse_claim(value); });
  refuses([&] { parse_seeds(value); });
  refuses([&] { parse_lengths(value, "--lengths"); });
  refuses([&] { parse_shares(value, "--shares"); });
  refuses([&] { parse_heads(value); });
  refuses([&] { parse_paper_length(value, "--width"); });
  refuses([&] { parse_device(value); });
  refuses([&] { parse_dtype(value); });
  refuses([&] { parse_bytes(value); });
  refuses([&] { data::parse_percentages(value); });
  refuses([&] { data::parse_text_rule(value); });
  refuses([&] { data::parse_end_of_line(value); });
  refuses([&] { data::parse_end_id(value); });
  refuses([&] { data::parse_count_from(value); });
  refuses([&] { plan_variants(values, {}, {}); });
  refuses([&] { plan_variants({}, values, {}); });
  number_in(value);
  if (!values.empty()) same_value(values.front(), values.back());
  utc_seconds(value);
}

}  // namespace engram::fuzz
