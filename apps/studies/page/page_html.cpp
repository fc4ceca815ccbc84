#include "apps/studies/page/page_html.hpp"

#include <fmt/format.h>

#include "apps/report/json_for_html.hpp"
#include "apps/report/svg_canvas.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/run/folder/provenance.hpp"
#include "apps/studies/page/page_assets.hpp"
#include "apps/studies/page/page_config.hpp"
#include "apps/studies/page/page_data.hpp"
#include "apps/studies/page/page_text.hpp"

namespace engram {
namespace {

using nlohmann::json;

std::vector<RunSummary> summaries_of(const Page& page) {
  std::vector<RunSummary> runs;
  for (const PageRun& run : page.runs) runs.push_back(summary_of(run));
  return runs;
}

std::string title_of(const Page& page) {
  constexpr std::size_t kMostNames = 3;
  if (page.runs.size() > kMostNames) return fmt::format("{} runs", page.runs.size());
  std::string names;
  for (const PageRun& run : page.runs) names += (names.empty() ? "" : ", ") + run.source.name;
  return names;
}

/// A part of the page. `script`: what is there is drawn by the script.
std::string section(std::string_view id, std::string_view title, std::string_view about, const std::string& content) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n<p "
      "class=\"about\">{2}</p>\n{3}</section>\n",
      id, title, about, content);
}

constexpr std::string_view kNeedsScript =
    "<noscript><p class=\"note\">Drawn by a script, which is switched off.</p></noscript>";

std::string drawn(std::string_view id) { return fmt::format("<div id=\"{}\"></div>{}\n", id, kNeedsScript); }

std::string loss_section(const Page& page, const std::vector<RunSummary>& runs) {
  const std::string svg = loss_svg(page, runs);
  if (chart_library().empty()) return "<div class=\"figure\">" + svg + "</div>\n";
  return "<div id=\"loss-chart\"></div><noscript><div class=\"figure\">" + svg + "</div></noscript>\n";
}

std::string sections(const Page& page, const std::vector<RunSummary>& runs) {
  return section("loss", "Loss", "Training as a line, validation as dots. The lower, the better.",
                 loss_notes(page, runs) + loss_section(page, runs)) +
         section("progress", "Training", "Rate, gradients and speed over the same steps as above.",
                 drawn("progress-charts")) +
         section("comparison", "Comparison",
                 "A figure of the runs against a key in which they differ: the mean of runs that differ in their seeds "
                 "alone, with the range of these runs.",
                 drawn("comparison-chart")) +
         section("spans", "Spans", "How many positions back each head sees, and how that changed.",
                 drawn("span-maps")) +
         section(
             "attention", "Attention",
             "Every head while it reads a text: a row for each token that looks, columns for how far back it looks. "
             "A click shows one of them closely.",
             drawn("attention-maps") + missing_html(page)) +
         section("memories", "Memories", "How product-key memories use their slots.", drawn("memory-charts")) +
         section("samples", "Samples", "What the models write.", samples_html(page)) +
         section("tensors", "Tensors",
                 "The numbers of the newest weights, and of their gradients where they were reported.",
                 drawn("tensor-tables") + missing_html(page)) +
         section("time", "Time", "Where the time of a training step goes.", time_html(page)) +
         section("memory", "Memory", "What training holds at once.", memory_html(page)) +
         section("config", "Configuration", "What was asked for.", config_html(page)) +
         section("provenance", "How to repeat it", "The commands, programs, machines and data.", provenance_html(page));
}

/// The keys in which the runs differ, and their values; without quotes, as people write them.
json settings_json(const Page& page) {
  const ConfigTable table = differing_keys(page.runs);
  json runs = json::array();
  for (const auto& values : table.values) {
    json own = json::object();
    for (const std::string& key : table.keys)
      if (const auto found = values.find(key); found != values.end()) {
        const std::string& value = found->second;
        own[key] = value.size() >= 2 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
      }
    runs.push_back(std::move(own));
  }
  return {{"keys", table.keys}, {"runs", std::move(runs)}};
}

/// `changed`: those that are wanted; empty: all.
json logs_of(const Page& page, const std::vector<RunSummary>& runs, const std::vector<bool>& changed = {}) {
  json list = json::array();
  for (std::size_t i = 0; i < page.runs.size(); ++i)
    list.push_back(changed.empty() || changed[i] ? log_json(page.runs[i], runs[i]) : json());
  return list;
}

}  // namespace

std::string html_of(const Page& page) {
  const std::vector<RunSummary> runs = summaries_of(page);
  json data{{"live", page.live}, {"studied", page.studied}, {"runs", logs_of(page, runs)}, {"studies", json::array()}};
  for (const PageRun& run : page.runs) data["studies"].push_back(study_json(run));
  data["best"] = best_runs(runs);
  data["settings"] = settings_json(page);
  if (page.live) data["version"] = page.version;
  const std::string title = escaped_xml(title_of(page));
  std::string html(kPageBeginning);
  html += fmt::format(
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:{}; base-uri "
      "'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
      "name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<link "
      "rel=\"icon\" "
      "href=\"data:,\">\n<title>{} - Engram</title>\n<style>\n",
      page.live ? "; connect-src 'self'" : "", title);
  html += page_style();
  html += fmt::format(
      "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#runs\">To the runs</a>\n<header "
      "class=\"top\"><div><p class=\"made\">Engram {}, {}{}</p><h1>{}</h1></div><div id=\"tools\"></div></header>\n"
      "<nav id=\"contents\" aria-label=\"Parts of the page\"></nav>\n<div id=\"legend\"></div>\n<main>\n",
      escaped_xml(build_facts().version), utc_minute(utc_now()), page.live ? ", live" : "", title);
  html += "<section id=\"runs\" aria-label=\"Runs\"><div id=\"head\">" + head_html(page, runs) + "</div></section>\n";
  html += sections(page, runs);
  html += "</main>\n<script type=\"application/json\" id=\"page-data\">" + json_for_html(data) + "</script>\n";
  html += "<script>\n";
  html += chart_library();
  html += "</script>\n<script>\n";
  html += page_script();
  return html + "</script>\n</body>\n</html>\n";
}

std::string live_json_of(const Page& page, const std::vector<bool>& changed) {
  const std::vector<RunSummary> runs = summaries_of(page);
  return json_for_html({{"version", page.version},
                        {"studied", page.studied},
                        {"runs", logs_of(page, runs, changed)},
                        {"best", best_runs(runs)},
                        {"head", head_html(page, runs)},
                        {"samples", samples_html(page)},
                        {"memory", memory_html(page)},
                        {"provenance", provenance_html(page)}});
}

}  // namespace engram
