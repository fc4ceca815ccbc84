#include "apps/commands/report_output.hpp"

#include "apps/commands/output_file.hpp"
#include "core/error.hpp"

namespace engram {

void ReportOutput::add_json(Command& command) { command.add_flag("--json", json, "print one JSON object"); }

void ReportOutput::check(std::string_view command, std::initializer_list<std::string_view> csv_beginnings) const {
  check_output_file(text(command, ": --csv"), csv, csv_beginnings);
  check_output_file(text(command, ": --svg"), svg, {kSvgBeginning});
}

}  // namespace engram
