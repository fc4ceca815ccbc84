#include "apps/studies/papers/paper_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/terminal/terminal.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr std::size_t kColumns = 80;

std::string between(const std::vector<std::string>& parts, std::string_view separator) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : std::string(separator)) + part;
  return all;
}

/// A text behind `begin`, its lines below each other.
std::string paragraph(const std::string& begin, const std::string& written, std::size_t indent) {
  return begin + hanging(wrapped_text(written, kColumns - indent), indent);
}

/// A command that may go on in further lines, as a shell reads it: an option stays with its values where they fit.
std::string shell_lines(const std::string& command, std::size_t indent) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < command.size();) {
    const std::size_t end = std::min(command.find(" --", begin + 1), command.size());
    std::string part = command.substr(begin, end - begin);
    // " --option VALUE" may be longer than a line.
    for (std::size_t cut;
         indent + 1 + part.size() > kColumns - 2 && (cut = part.rfind(' ')) != 0 && cut != part.npos;) {
      parts.push_back(part.substr(0, cut));
      part.erase(0, cut);
    }
    parts.push_back(std::move(part));
    begin = end;
  }
  std::string lines(indent, ' ');
  std::size_t width = indent;
  for (const std::string& part : parts) {
    if (width > indent && width + part.size() > kColumns - 2) {
      lines += " \\\n" + std::string(indent + 1, ' ');
      width = indent + 1;
    }
    lines += part;
    width += part.size();
  }
  return lines + '\n';
}

/// What there is of a row: its config, or why there is none.
std::string what_there_is(const PaperRow& row) {
  if (row.left_out == "cited") return "cited";
  if (!row.left_out.empty()) return "no config: " + row.left_out;
  std::string state = row.config;
  for (const std::string& setting : row.set) state += " " + setting;
  return state + (row.stand_in ? " (stand-in)" : "");
}

struct RowNumbers {
  std::size_t rows = 0, configs = 0, cited = 0;
};

RowNumbers numbers_of(const PaperTable& table) {
  RowNumbers numbers;
  for (const PaperRow& row : table.rows) {
    ++numbers.rows;
    if (!row.config.empty()) ++numbers.configs;
    if (row.left_out == "cited") ++numbers.cited;
  }
  return numbers;
}

std::string heading_of(const Paper& paper) {
  return fmt::format("{}\n  {}\n  {} ({})\n  docs/guide/{}\n", paper.name, paper.title, paper.authors, paper.year,
                     paper.guide);
}

std::string overview() {
  std::string lines;
  for (const Paper& paper : all_papers()) {
    lines += heading_of(paper);
    for (const PaperTable& table : paper.tables) {
      const RowNumbers numbers = numbers_of(table);
      const std::string counts =
          numbers.configs == 0 ? "-" : fmt::format("{} of {}", numbers.configs, numbers.rows - numbers.cited);
      lines += fmt::format("    {:<21}{:>9}  {}\n", table.table, counts, table.title);
    }
    lines += '\n';
  }
  return lines +
         paragraph("",
                   "The numbers are rows with a configuration, of those that are not cited from others.\n"
                   "No model of a paper's size has been trained with Engram: figures called ours are of small ones.\n"
                   "engram papers PAPER lists its rows, and with --table N the commands of a table.",
                   0);
}

/// Blanks behind a text of UTF-8, so that it is so many columns wide.
std::string padded(const std::string& written, std::int64_t columns) {
  return written + std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, columns - columns_of(written))), ' ');
}

constexpr std::size_t kRowIndent = 4;

/// Lines of a row. `name`: columns of the table's names; `commands`: with how it is made.
std::string paper_lines(const PaperTable& table, const PaperRow& row, std::int64_t name, bool commands) {
  const bool sized = std::ranges::any_of(table.rows, [](const PaperRow& one) { return !one.parameters.empty(); });
  std::string lines = "  " + padded(row.row, name);
  if (sized) lines += fmt::format("  {:>5}", row.parameters);
  lines += (row.published.empty() ? "" : "  ") + between(row.published, " | ");
  lines.erase(lines.find_last_not_of(' ') + 1);
  lines += '\n';
  const std::string indent(kRowIndent, ' ');
  const auto add = [&](const std::string& what) {
    if (!what.empty()) lines += paragraph(indent, what, kRowIndent);
  };
  add(what_there_is(row));
  if (!row.ours.empty()) add("ours: " + row.ours);
  if (!commands) return lines;
  if (row.counted != 0)
    add(fmt::format("{} parameters{}", row.counted, row.deviates.empty() ? "" : ": " + row.deviates));
  add(row.remark);
  for (const std::string& command : commands_of(table, row))
    if (!row.data.empty() || !command.starts_with("bash ")) lines += shell_lines(command, kRowIndent);
  return lines;
}

std::string paper_lines(const PaperTable& table, bool commands) {
  std::string lines = fmt::format("\n{}: {}\n", table.table, table.title);
  if (!table.columns.empty()) lines += "  published: " + between(table.columns, " | ") + '\n';
  if (commands) {
    if (!table.note.empty()) lines += paragraph("  ", table.note, 2);
    if (!table.data.empty() && table.data != "DATA") lines += "  data: bash apps/fetch.sh " + table.data + '\n';
    for (const std::string& command : table.measure) lines += shell_lines(command, 2);
    if (!table.script.empty()) lines += "  scaled down: bash apps/configs/" + table.script + '\n';
    if (!table.ours.empty()) lines += paragraph("  ours: ", table.ours, 8);
    if (!table.where.empty()) lines += "  docs/measurements/" + table.where.substr(0, table.where.find('#')) + '\n';
  }
  std::int64_t name = 0;
  for (const PaperRow& row : table.rows) name = std::max(name, columns_of(row.row));
  for (const PaperRow& row : table.rows) lines += paper_lines(table, row, name, commands);
  return lines;
}

nlohmann::json row_json(const PaperTable& table, const PaperRow& row) {
  nlohmann::json object{{"row", row.row}, {"published", row.published}, {"commands", commands_of(table, row)}};
  const auto add = [&object](const char* name, const auto& value) {
    if (!value.empty()) object[name] = value;
  };
  add("parameters", row.parameters);
  add("config", row.config);
  add("set", row.set);
  add("data", row.data.empty() ? table.data : row.data);
  add("ours", row.ours);
  add("deviates", row.deviates);
  add("remark", row.remark);
  add("left_out", row.left_out);
  if (row.counted != 0) object["counted"] = row.counted;
  if (!row.config.empty()) object["stand_in"] = row.stand_in;
  return object;
}

nlohmann::json paper_json(const Paper& paper, const std::vector<const PaperTable*>& tables) {
  nlohmann::json object{{"name", paper.name},
                        {"title", paper.title},
                        {"authors", paper.authors},
                        {"year", paper.year},
                        {"note", paper.note},
                        {"guide", "docs/guide/" + paper.guide},
                        {"tables", nlohmann::json::array()}};
  for (const PaperTable& table : paper.tables) {
    if (!tables.empty() && std::ranges::find(tables, &table) == tables.end()) continue;
    nlohmann::json one{{"table", table.table},           {"title", table.title}, {"columns", table.columns},
                       {"measure", table.measure},       {"note", table.note},   {"ours", table.ours},
                       {"rows", nlohmann::json::array()}};
    if (!table.script.empty()) one["script"] = "apps/configs/" + table.script;
    if (!table.where.empty()) one["measurements"] = "docs/measurements/" + table.where;
    for (const PaperRow& row : table.rows) one["rows"].push_back(row_json(table, row));
    object["tables"].push_back(std::move(one));
  }
  return object;
}

}  // namespace

std::string table_of(const PaperReport& report) {
  if (report.paper == nullptr) return overview();
  std::string lines = heading_of(*report.paper);
  if (!report.paper->note.empty()) lines += paragraph("  ", report.paper->note, 2);
  for (const PaperTable& table : report.paper->tables) {
    const bool wanted = std::ranges::find(report.tables, &table) != report.tables.end();
    if (report.tables.empty() || wanted) lines += paper_lines(table, wanted);
  }
  return lines;
}

nlohmann::json json_of(const PaperReport& report) {
  nlohmann::json papers = nlohmann::json::array();
  for (const Paper& paper : all_papers())
    if (report.paper == nullptr || report.paper == &paper) papers.push_back(paper_json(paper, report.tables));
  return {{"papers", std::move(papers)}};
}

}  // namespace engram
