#include "apps/commands/commands.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "apps/commands/report_output.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/studies/sweeps/ordering.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct OrderingsArguments {
  std::string sweep;
  std::vector<std::string> claims;
  ReportOutput output;
  bool strict = false;
};

void run_orderings(const OrderingsArguments& arguments) {
  std::vector<Claim> claims;
  for (const std::string& written : arguments.claims) claims.push_back(parse_claim(written));
  const std::filesystem::path table = std::filesystem::path(arguments.sweep) / "sweep.csv";
  std::error_code ignored;
  if (!std::filesystem::exists(table, ignored))
    throw FileError(
        text("orderings: '", arguments.sweep, "' must be the folder of a sweep, got ",
             std::filesystem::exists(arguments.sweep, ignored) ? "one without sweep.csv" : "nothing of this name",
             "\n  engram sweep --out makes one"));
  const CsvTable sweep = parse_csv(data::read_bytes(table), text("'", table.string(), "'"));
  std::vector<JudgedClaim> judged;
  for (const Claim& claim : claims) judged.push_back(judge(claim, sweep));
  arguments.output.show(judged);
  const auto held = std::ranges::count(judged, Verdict::holds, &JudgedClaim::verdict);
  if (arguments.strict && static_cast<std::size_t>(held) < judged.size())
    throw Error(text("orderings: with --strict all ", judged.size(), " claims must hold, got ", held));
}

}  // namespace

Command* add_orderings_command(Command& program) {
  Command* command = program.add_subcommand("orderings", "say whether a sweep's variants are in the order expected");
  const auto arguments = std::make_shared<OrderingsArguments>();
  command->add_option("sweep", arguments->sweep, "folder of a sweep, with its sweep.csv")->required();
  command
      ->add_option("--claim", arguments->claims,
                   "'WHAT: COLUMN: a > b > c' (or <, <=, >=): variants by name, COLUMN of sweep.csv, WHAT in words; "
                   "'WHAT: COLUMN: a ~5% b ~5% c': the largest at most 5% above the smallest")
      ->required()
      ->allow_extra_args(false);  // the sweep may come after it
  command->add_flag("--strict", arguments->strict, "exit with 1 unless all claims hold");
  arguments->output.add_json(*command);
  command->footer(
      "Means over seeds are compared; where there are several it says whether a claim holds whichever seeds are put "
      "side by side.");
  command->callback([arguments] { run_orderings(*arguments); });
  return command;
}

}  // namespace engram
