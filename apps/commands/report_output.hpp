#pragma once
/// Where the report of a command goes. Every report has table_of() and json_of(), some have csv_of() and svg_of().

#include <initializer_list>
#include <string>
#include <string_view>

#include "apps/command_line/command.hpp"
#include "apps/commands/output.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {

struct ReportOutput {
  std::string csv, svg;  ///< files; empty: none
  bool json = false;     ///< one object in the place of the table

  /// Adds --json.
  void add_json(Command& command);
  /// check_output_file() of the files, for --csv and --svg of a command. Before the work.
  void check(std::string_view command, std::initializer_list<std::string_view> csv_beginnings) const;

  /// Writes the files and prints. Throws FileError where that cannot be done, and as the report's words do.
  template <class Report>
  void show(const Report& report) const {
    write(report);
    say(report);
  }
  /// Writes the files.
  template <class Report>
  void write(const Report& report) const {
    if constexpr (requires { csv_of(report); }) {
      if (!csv.empty()) write_durably(csv, csv_of(report));
    } else if (!csv.empty()) {
      throw Error("report: there must be a csv_of() of what is to be written as CSV, found none");
    }
    if constexpr (requires { svg_of(report); }) {
      if (!svg.empty()) write_durably(svg, svg_of(report));
    } else if (!svg.empty()) {
      throw Error("report: there must be an svg_of() of what is to be drawn, found none");
    }
  }
  /// Prints the table or the object.
  template <class Report>
  void say(const Report& report) const {
    if (json) return print_json(json_of(report));
    print_report(table_of(report));
  }
};

}  // namespace engram
