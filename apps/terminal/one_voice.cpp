#include "apps/terminal/one_voice.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/wrapped_message.hpp"

namespace engram {
namespace {

/// Where the name of a rank that a message begins with ends; 0: it begins with none.
std::size_t end_of_rank_name(const Communicator& ranks, std::string_view message) {
  for (int q = 0; q < ranks.size(); ++q)
    if (const std::string name = ranks.name(q) + ": "; message.starts_with(name)) return name.size();
  return 0;
}

void say(const Ending& ending, std::string_view who) {
  const std::string line =
      wrapped_message(text("engram: ", ending.kind, who, ending.message), message_columns()) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void leave_speaking_to_rank_0(const Communicator& ranks) {
  if (ranks.leads()) return;
  leave_log_to_others();
  std::fflush(stdout);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere < 0) throw FileError("ranks: /dev/null must be there, and could not be opened");
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
}

int end_with_one_voice(Communicator& ranks, const Ending& ending, double seconds) {
  if (ending.message.empty()) return ending.code;
  const std::size_t named = ranks.alone() ? 0 : end_of_rank_name(ranks, ending.message);
  if (ranks.all_end_with(std::string_view(ending.message).substr(named), seconds)) {
    if (!ranks.leads()) return ending.code;
    say(ending, "");
    if (!ranks.can_end()) ranks.abort(ending.code);
    return ending.code;
  }
  say(ending, named > 0 ? "" : ranks.name(ranks.rank()) + ": ");
  ranks.abort(ending.code);
  return ending.code;  // which GCC 12 wants, though nothing returns from there
}

}  // namespace engram
