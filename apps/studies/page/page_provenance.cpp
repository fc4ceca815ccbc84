/// Parts of a page (page_html.hpp) that need no script: configurations, and how runs were made.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/report/svg_canvas.hpp"
#include "apps/run/config/config_review.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/studies/page/page_config.hpp"
#include "apps/studies/page/page_html.hpp"
#include "apps/studies/page/page_text.hpp"

namespace engram {
namespace {

/// A word of a command as a shell takes it.
std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           std::string_view("._-+=/,:@%").find(byte) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char byte : word) quoted += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return quoted + "'";
}

/// The folder that a command was given in; empty: not known, or not writable as text.
std::string directory_of(const nlohmann::json& line) {
  const auto found = line.find("directory");
  if (found == line.end() || !found->is_string()) return "";
  const std::string directory = found->get<std::string>();
  // The log has this mark in the place of bytes that are no text.
  return directory.starts_with('/') && directory.find("\uFFFD") == std::string::npos ? directory : "";
}

/// What is typed to give a start's command again, with one more word or none; empty: not known.
std::string command_line_of(const nlohmann::json& line, std::string_view more = "") {
  std::string command;
  const auto words = line.find("command");
  if (words == line.end() || !words->is_array()) return command;
  std::vector<std::string> typed;
  std::size_t length = 0;
  for (const auto& word : *words)
    if (word.is_string()) length += typed.emplace_back(shell_word(word.get<std::string>())).size() + 1;
  if (typed.empty()) return command;
  if (!more.empty()) length += typed.emplace_back(more).size() + 1;
  constexpr std::size_t kLongestLine = 60;
  const std::string directory = directory_of(line);
  if (!directory.empty()) command = "cd " + shell_word(directory) + " &&\n";
  // Each option on a line of its own, where one line would be long.
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const bool is_option = typed[i].starts_with("--") && length > kLongestLine;
    command += (i == 0 ? "" : is_option ? " \\\n  " : " ") + typed[i];
  }
  return command;
}

/// The line of the newest start or resume that says its command; nullptr without.
const nlohmann::json* newest_command(const PageRun& run) {
  const nlohmann::json* newest = nullptr;
  for (const RunMark& mark : run.log.marks())
    if ((mark.event == "start" || mark.event == "resume") && !command_line_of(mark.line).empty()) newest = &mark.line;
  return newest;
}

/// The command that goes on with a run: its newest one, with --resume; empty: not known.
std::string resume_command(const PageRun& run) {
  const nlohmann::json* const line = newest_command(run);
  if (line == nullptr) return "";
  const auto& words = line->at("command");
  return command_line_of(*line, std::ranges::find(words, "--resume") == words.end() ? "--resume" : "");
}

bool is_sweep(const nlohmann::json& line) {
  const auto words = line.find("command");
  return words != line.end() && words->is_array() && words->size() > 1 && words->at(1) == "sweep";
}

std::string member_words(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Rows of what a start says of the program and the machine.
std::string fact_rows(const nlohmann::json& line) {
  constexpr std::pair<const char*, const char*> kFacts[] = {
      {"version", "version"}, {"commit", "commit"},       {"build", "build"},           {"compiler", "compiler"},
      {"host", "host"},       {"processor", "processor"}, {"processors", "processors"}, {"threads", "threads"},
      {"device", "device"},   {"dtype", "dtype"},         {"products", "products"},     {"activations", "activations"},
      {"seed", "seed"},       {"data", "data"},           {"config", "config"}};
  std::string rows;
  for (const auto& [member, name] : kFacts)
    if (const auto found = line.find(member); found != line.end())
      rows += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escaped_xml(member_words(*found)));
  const auto from = line.find("from");
  if (from != line.end() && from->is_object() && from->contains("checkpoint") && from->contains("step"))
    rows += fmt::format("<div><dt>began with</dt><dd>{}, step {}</dd></div>\n",
                        escaped_xml(member_words(from->at("checkpoint"))), escaped_xml(member_words(from->at("step"))));
  return rows;
}

/// When a run was started, gone on with and left.
std::string history_rows(const PageRun& run) {
  std::string rows;
  for (const RunMark& mark : run.log.marks()) {
    const auto time = mark.line.find("time");
    const std::string command = mark.event == "start" || mark.event == "resume" ? command_line_of(mark.line) : "";
    rows += fmt::format("<li><time>{}</time> <b>{}</b> at step {}{}</li>\n",
                        time != mark.line.end() && time->is_string() ? escaped_xml(time->get<std::string>()) : "",
                        escaped_xml(mark.event), grouped(mark.step),
                        mark.event == "resume" && !command.empty()
                            ? "<pre class=\"command\"><code>" + escaped_xml(command) + "</code></pre>"
                            : "");
  }
  return rows;
}

std::string provenance_of(const Page& page, std::size_t index) {
  const PageRun& run = page.runs[index];
  std::string html =
      fmt::format("<article data-run=\"{0}\" id=\"repeat-{0}\"><h3>{1}</h3>\n", index, named_chip(page, index));
  const std::vector<RunMark>& marks = run.log.marks();
  const auto start = std::ranges::find(marks, "start", &RunMark::event);
  const std::string command = start == marks.end() ? "" : command_line_of(start->line);
  if (!command.empty())
    html += fmt::format("<p>{}</p>", is_sweep(start->line) ? "The sweep that it is of:" : "The same again:") +
            "<pre class=\"command\"><code>" + escaped_xml(command) + "</code></pre>\n";
  else if (!run.source.folder.empty())
    html += "<p class=\"note\">Its log does not say which command began it.</p>\n";
  if (const RunSummary summary = summary_of(run);
      !command.empty() && !is_sweep(start->line) && !checkpoint_of(run.source).empty() &&
      (summary.state == PageState::interrupted || summary.state == PageState::stopped))
    html += "<p>To go on from its newest checkpoint:</p><pre class=\"command\"><code>" +
            escaped_xml(resume_command(run)) + "</code></pre>\n";
  if (!command.empty() && directory_of(start->line).empty())
    html +=
        "<p class=\"note\"><small>Paths are relative to the folder that it was started in, which its log does not "
        "name.</small></p>\n";
  std::error_code ignored;
  const std::filesystem::path given = run.source.folder.empty() ? run.source.checkpoint : run.source.folder,
                              place = std::filesystem::absolute(given, ignored).lexically_normal();
  html += fmt::format("<details{}><summary>Program, machine and data</summary>", page.runs.size() == 1 ? " open" : "");
  html += fmt::format("<dl class=\"facts\"><div><dt>{}</dt><dd>{}</dd></div>\n",
                      run.source.folder.empty() ? "checkpoint" : "folder", escaped_xml(place.string()));
  if (start != marks.end()) html += fact_rows(start->line);
  html += "</dl></details>\n";
  if (run.config)
    for (const std::string& warning : config_warnings(*run.config))
      html += "<p class=\"warning\">" + escaped_xml(warning) + "</p>\n";
  if (const std::string rows = history_rows(run); !rows.empty())
    html += "<details><summary>History</summary><ol class=\"history\">" + rows + "</ol></details>\n";
  return html + "</article>\n";
}

}  // namespace

std::string config_html(const Page& page) {
  std::string html;
  const ConfigTable table = differing_keys(page.runs);
  if (page.runs.size() > 1 && table.keys.empty()) html += "<p>All runs have the same configuration.</p>\n";
  if (!table.keys.empty()) {
    html +=
        "<div class=\"scroll tall-scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Keys that differ\"><table "
        "class=\"config\"><caption>Keys that differ</caption><thead><tr><th scope=\"col\">key</th>";
    for (std::size_t i = 0; i < page.runs.size(); ++i)
      html += fmt::format("<th scope=\"col\" data-run=\"{}\">{}</th>", i, named_chip(page, i));
    html += "</tr></thead><tbody>\n";
    for (const std::string& key : table.keys) {
      html += "<tr><th scope=\"row\"><code>" + escaped_xml(key) + "</code></th>";
      for (const auto& values : table.values) {
        const auto found = values.find(key);
        html += "<td>" +
                (found == values.end() ? std::string("<span class=\"none\">-</span>")
                                       : "<code>" + escaped_xml(found->second) + "</code>") +
                "</td>";
      }
      html += "</tr>\n";
    }
    html += "</tbody></table></div>\n";
  }
  for (std::size_t i = 0; i < page.runs.size(); ++i)
    if (const std::string toml = toml_of(page.runs[i]); !toml.empty())
      html +=
          fmt::format("<details data-run=\"{}\"><summary>{}: all keys</summary><pre><code>{}</code></pre></details>\n",
                      i, named_chip(page, i), escaped_xml(toml));
  return html;
}

std::string provenance_html(const Page& page) {
  std::string html = "<div class=\"cards\">\n";
  for (std::size_t i = 0; i < page.runs.size(); ++i) html += provenance_of(page, i);
  return html + "</div>\n";
}

}  // namespace engram
