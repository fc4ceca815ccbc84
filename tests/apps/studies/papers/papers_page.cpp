#include "tests/apps/studies/papers/papers_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/studies/papers/paper_list.hpp"
#include "apps/terminal/wrapped_text.hpp"

namespace engram::harness {
namespace {

constexpr std::size_t kPageColumns = 120;

/// A paragraph of prose in the page's lines.
std::string prose(const std::string& written) { return hanging(wrapped_text(written, kPageColumns), 0); }

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

/// A column: its heading, and what it has of a row.
struct PageColumn {
  std::string heading;
  std::vector<std::string> cells;
};

std::string config_cell(const PaperRow& row) {
  if (row.config.empty()) return "";
  std::string cell = "`" + row.config + "`";
  for (const std::string& setting : row.set) cell += " `" + setting + "`";
  return cell;
}

std::string remark_cell(const PaperTable& table, const PaperRow& row) {
  std::vector<std::string> parts;
  if (row.stand_in) parts.emplace_back("stand-in");
  if (!row.data.empty() && row.data != table.data) parts.push_back("data `" + row.data + "`");
  for (const std::string* part : {&row.deviates, &row.remark, &row.left_out})
    if (!part->empty()) parts.push_back(*part);
  std::string cell;
  for (const std::string& part : parts) cell += (cell.empty() ? "" : "; ") + part;
  return cell;
}

std::vector<PageColumn> page_columns(const PaperTable& table) {
  std::vector<PageColumn> columns{{"row", {}}, {"parameters", {}}};
  for (const std::string& column : table.columns) columns.push_back({column, {}});
  for (const char* heading : {"config", "counted", "`engram evaluate`", "ours", ""}) columns.push_back({heading, {}});
  for (const PaperRow& row : table.rows) {
    std::vector<std::string> cells{row.row, row.parameters};
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      cells.push_back(row.published.empty() ? "" : row.published[i]);
    cells.push_back(config_cell(row));
    cells.push_back(row.counted == 0 ? "" : grouped(row.counted));
    cells.push_back(row.options.empty() ? "" : "`" + row.options + "`");
    cells.push_back(row.ours);
    cells.push_back(remark_cell(table, row));
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  std::erase_if(columns, [](const PageColumn& column) {
    return std::ranges::all_of(column.cells, [](const std::string& cell) { return cell.empty(); });
  });
  return columns;
}

std::string table_rows(const PaperTable& table) {
  const std::vector<PageColumn> columns = page_columns(table);
  std::string lines;
  for (const PageColumn& column : columns) lines += "| " + column.heading + (column.heading.empty() ? "" : " ");
  lines += "|\n";
  for (std::size_t i = 0; i < columns.size(); ++i) lines += "|---";
  lines += "|\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (const PageColumn& column : columns) lines += "| " + column.cells[row] + (column.cells[row].empty() ? "" : " ");
    lines += "|\n";
  }
  return lines;
}

std::string table_part(const PaperTable& table) {
  std::string part = fmt::format("\n### {}{}: {}\n\n", static_cast<char>(std::toupper(table.table.front())),
                                 table.table.substr(1), table.title);
  if (!table.note.empty()) part += prose(table.note) + '\n';
  std::string made;
  if (table.data == "DATA")
    made = "DATA: your own.";
  else if (!table.data.empty())
    made = "DATA: `" + table.data + "`.";
  if (!table.data.empty() && table.split != "test") made += " Split: `" + table.split + "`.";
  if (!table.options.empty()) made += " Options of `engram evaluate`: `" + table.options + "`.";
  if (!table.script.empty()) made += " Scaled down: `bash apps/configs/" + table.script + "`.";
  if (!made.empty()) part += prose(made.substr(made.front() == ' ' ? 1 : 0));
  if (!table.measure.empty()) {
    part += made.empty() ? "```\n" : "\n```\n";
    for (const std::string& command : table.measure) part += command + '\n';
    part += "```\n";
  }
  if (!made.empty() || !table.measure.empty()) part += '\n';
  if (!table.ours.empty()) {
    part += prose("Ours: " + table.ours +
                  (table.where.empty() ? "" : " [All of it](../measurements/" + table.where + ")."));
    part += '\n';
  }
  return part + table_rows(table);
}

constexpr std::string_view kBeginning =
    "# The papers, row by row\n"
    "\n"
    "Every table and figure of the four papers: what of it has a configuration here, how it is made, what was "
    "measured\n"
    "with Engram, and what is left out. `engram papers` prints the same, `engram papers PAPER --table N` with the "
    "commands\nof every row.\n"
    "\n"
    "**No model of a paper's size has been trained with Engram**: there was no machine for it. Figures called ours "
    "are\n"
    "those of small models on the King James Bible, or on a dictionary where that is said, each with its size and the "
    "page\nthat has all of it. They say what a code of this kind does, not whether the papers' numbers can be had "
    "again.\n"
    "\n"
    "- Printed numbers are facts of the papers; no text of theirs is here. \"?\" is a number that our copy lacks.\n"
    "- *Counted* is what `engram count --config` says of the config, to the last parameter. Where that is not the "
    "printed\n  number, rounded as it is, the row says why. Of recurrent models it is without the table of the input's "
    "words.\n"
    "- A *stand-in* has the right size; its settings were never published, and the file says what is assumed.\n"
    "- *cited* are models of others, which their papers' authors did not train either.\n"
    "\n"
    "A row is made by these commands, with the config, the data and the options of its table. `fetch.sh` downloads,\n"
    "checks and prepares the data ([data.md](../guide/data.md)).\n"
    "\n"
    "```\n"
    "bash apps/fetch.sh DATA\n"
    "engram train    --config apps/configs/NAME.toml --data runs/data/DATA --out RUN\n"
    "engram evaluate RUN --data runs/data/DATA --split test OPTIONS\n"
    "```\n"
    "\n"
    "This page is written by the program: `engram_tests_apps \"write the page of papers\"` makes it anew from the "
    "lists "
    "in\n`apps/studies/papers`, and a test says when it is old.\n";

}  // namespace

std::string papers_page() {
  std::string page(kBeginning);
  for (const Paper& paper : all_papers()) {
    page += fmt::format("\n## {}\n\n", paper.name);
    page += prose(
        fmt::format("{}: *{}* ({}); [its family](../guide/{}).", paper.authors, paper.title, paper.year, paper.guide));
    if (!paper.note.empty()) page += '\n' + prose(paper.note);
    for (const PaperTable& table : paper.tables) page += table_part(table);
  }
  return page;
}

}  // namespace engram::harness
