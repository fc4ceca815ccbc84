#pragma once
/// What `engram report` and `engram watch` take alike: what is shown, and what is asked of the models.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/studies/page/page_html.hpp"
#include "apps/terminal/work_progress.hpp"

namespace engram {

struct PageArguments {
  std::vector<std::string> runs;

  void add_to(Command& command);
  /// Everything read, and the checkpoints studied. What cannot be read is a warning and a problem on the page. Throws
  /// UsageError where nothing at all can be shown.
  Page read(std::string_view command) const;
  /// Studies the checkpoint of a run, if it has one and it is wanted: with --only-logs a log says all there is to say.
  void study(PageRun& run) const;

 private:
  StudyRequest request() const;
  void study(PageRun& run, WorkProgress& progress) const;

  std::string data_, text_, bench_, device_ = "cpu";
  std::int64_t length_ = StudyRequest().length;
  int threads_ = 0;
  bool only_logs_ = false;
};

}  // namespace engram
