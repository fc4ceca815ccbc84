/// The first part of a page (page_html.hpp): what there is to say of all runs, and their table.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/report/line_chart.hpp"
#include "apps/report/svg_canvas.hpp"
#include "apps/studies/page/packed_series.hpp"
#include "apps/studies/page/page_html.hpp"
#include "apps/studies/page/page_text.hpp"

namespace engram {
namespace {

std::string bold(std::string_view name) { return fmt::format("<b>{}</b>", escaped_xml(name)); }

/// "3", or "3 to 133" of numbers that differ when they are rounded.
std::string range_text(double least, double most) {
  const std::int64_t low = std::llround(least), high = std::llround(most);
  return low == high ? grouped(low) : fmt::format("{} to {}", grouped(low), grouped(high));
}

/// Where the heads of a run look, in one sentence; empty: not known.
std::string attention_sentence(const PageRun& run) {
  if (!run.study || !run.study->attention) return "";
  std::vector<double> distances, shares;
  for (const AttentionMap& head : run.study->attention->heads) {
    if (head.sees_context) distances.push_back(head.distance);
    if (head.sees_context && head.sees_slots) shares.push_back(100 * head.slot_share);
  }
  if (distances.empty()) return "";
  const auto range = [](const std::vector<double>& numbers) {
    return range_text(*std::ranges::min_element(numbers), *std::ranges::max_element(numbers));
  };
  return fmt::format(
      "{} look{} {} positions back on average{}. ",
      distances.size() == 1 ? "Its attention" : fmt::format("Its {} heads", distances.size()),
      distances.size() == 1 ? "s" : "", range(distances),
      shares.empty() ? "" : fmt::format(", with {}% of their weight on persistent slots", range(shares)));
}

/// "a is best: ...": a sentence or two for each data set, and where to read on.
std::string best_sentences(const Page& page, const std::vector<RunSummary>& runs) {
  std::string sentences;
  const std::vector<std::size_t> best = best_runs(runs);
  for (const std::size_t i : best) {
    const RunSummary& run = runs[i];
    sentences += fmt::format("<p class=\"lead\">{} {}: {} <b>{}</b> ({:.4f} nats) on validation text at step {}.</p>\n",
                             bold(page.runs[i].source.name),
                             best.size() > 1   ? "is best of its data"
                             : runs.size() > 1 ? "is best"
                                               : "is at its best with",
                             score_words(run.score), score_text(run.score, run.best->second), run.best->second,
                             grouped(run.best->first));
    const std::string heads = attention_sentence(page.runs[i]);
    sentences += fmt::format("<p class=\"note\">{}{}<a href=\"#provenance\">How to repeat it</a></p>\n", heads,
                             heads.empty() ? "" : "<a href=\"#attention\">Where each looks</a> · ");
  }
  std::set<std::string> data, scores;
  for (const RunSummary& run : runs)
    if (run.best) {
      data.insert(run.data);
      scores.insert(run.score);
    }
  if (data.size() > 1 || scores.size() > 1)
    sentences += "<p class=\"note\">The runs read different data, so not all of their losses are to be compared.</p>\n";
  return sentences;
}

/// Every run that is not done, with the reason; then how many are.
std::string state_sentences(const Page& page, const std::vector<RunSummary>& runs) {
  std::string sentences;
  std::size_t done = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& run = runs[i];
    const std::string_view state = name_of(run.state);
    if (run.state == PageState::done || run.state == PageState::checkpoint) {
      done += run.state == PageState::done ? 1 : 0;
      continue;
    }
    if (run.state == PageState::waiting) {
      sentences += fmt::format("<li class=\"bad\">{} has not begun</li>\n", bold(page.runs[i].source.name));
      continue;
    }
    sentences += fmt::format("<li class=\"{}\">{} {} step {}{}</li>\n",
                             run.state == PageState::training ? "plain" : "bad", bold(page.runs[i].source.name),
                             run.state == PageState::training  ? "is being trained, at"
                             : run.state == PageState::stopped ? "stopped at"
                             : run.state == PageState::out_of_memory
                                 ? "ran out of memory at"
                                 : fmt::format("{} at", state == "diverged" ? "diverged" : "was interrupted"),
                             grouped(run.step), run.reason.empty() ? "" : ": " + escaped_xml(run.reason));
  }
  if (done > 0)
    sentences +=
        fmt::format("<li class=\"plain\">{} done: all planned steps.</li>\n",
                    done == runs.size() && done > 1 ? "All runs are"
                    : runs.size() == 1              ? "The run is"
                                       : fmt::format("{} of {} {}", done, runs.size(), done == 1 ? "is" : "are"));
  return sentences.empty() ? "" : "<ul class=\"states\">\n" + sentences + "</ul>\n";
}

std::string problem_list(const Page& page) {
  std::string lines;
  for (const std::string& problem : page.problems) lines += "<li>" + escaped_xml(problem) + "</li>\n";
  for (const PageRun& run : page.runs)
    for (const std::string& problem : run.all_problems()) lines += "<li>" + escaped_xml(problem) + "</li>\n";
  return lines.empty() ? "" : "<div class=\"problems\"><h2>What could not be read</h2><ul>\n" + lines + "</ul></div>\n";
}

/// A cell; `order`: what it is sorted by.
std::string cell(const std::string& shown, double order, std::string_view kind = "number") {
  return fmt::format("<td class=\"{}\" data-order=\"{}\">{}</td>", kind,
                     std::isfinite(order) ? fmt::format("{}", order) : "", shown);
}

std::string loss_cell(const RunSummary& run, const std::optional<std::pair<std::int64_t, double>>& loss) {
  if (!loss) return cell("-", std::nan(""));
  return cell(fmt::format("{}<small>step {}</small>", score_text(run.score, loss->second), grouped(loss->first)),
              loss->second);
}

std::string run_row(const PageRun& page_run, const RunSummary& run, std::size_t index, bool best) {
  const double share =
      run.planned > 0 ? std::min(1.0, static_cast<double>(run.step) / static_cast<double>(run.planned)) : 0;
  std::string row = fmt::format(
      "<tr data-run=\"{}\"{}><th scope=\"row\" data-order=\"{}\"><i class=\"chip c{}\"></i><span "
      "class=\"name\">{}</span>{}<small>{}</small></th>",
      index, best ? " class=\"best\"" : "", index, index % 8, escaped_xml(page_run.source.name),
      best ? " <em>best</em>" : "", escaped_xml(run.family));
  row += fmt::format("<td class=\"state s-{}\"><span>{}</span></td>", static_cast<int>(run.state), name_of(run.state));
  // Only of what is not complete.
  const std::string bar =
      share < 1 ? fmt::format("<span class=\"bar\"><i style=\"width:{:.1f}%\"></i></span>", 100 * share) : "";
  row += cell(fmt::format("{}<small>of {}</small>{}", grouped(run.step), grouped(run.planned), bar),
              static_cast<double>(run.step));
  row += loss_cell(run, run.best) + loss_cell(run, run.last);
  row += run.test ? cell(score_number(*run.test), *run.test) : cell("-", std::nan(""));
  row += cell(shortened(static_cast<double>(run.parameters)), static_cast<double>(run.parameters));
  row += run.tokens ? cell(shortened(static_cast<double>(*run.tokens)), static_cast<double>(*run.tokens))
                    : cell("-", std::nan(""));
  row += run.seconds > 0 ? cell(duration_text(run.seconds), run.seconds) : cell("-", std::nan(""));
  row += run.tokens_per_second ? cell(grouped(std::llround(*run.tokens_per_second)), *run.tokens_per_second)
                               : cell("-", std::nan(""));
  return row + "</tr>\n";
}

}  // namespace

std::string head_html(const Page& page, const std::vector<RunSummary>& runs) {
  std::string html = best_sentences(page, runs) + state_sentences(page, runs) + problem_list(page);
  if (runs.empty()) return html;
  const std::vector<std::size_t> best = best_runs(runs);
  std::set<std::string_view> scores;
  for (const RunSummary& run : runs) scores.insert(score_words(run.score));
  const std::string unit = scores.size() == 1 ? std::string(*scores.begin()) : "each in its own unit";
  html +=
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of runs\"><table class=\"runs\" "
      "id=\"runs-table\">\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\">state</th>";
  html += fmt::format(
      "<th scope=\"col\">steps</th><th scope=\"col\">best<small>{0}</small></th><th "
      "scope=\"col\">last<small>{0}</small></th><th scope=\"col\">test</th>",
      unit);
  html +=
      "<th scope=\"col\">parameters</th><th scope=\"col\">tokens read</th><th scope=\"col\">time</th><th "
      "scope=\"col\">tokens/s</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < runs.size(); ++i)
    html += run_row(page.runs[i], runs[i], i, runs.size() > 1 && std::ranges::find(best, i) != best.end());
  return html + "</tbody></table></div>\n";
}

std::string loss_svg(const Page& page, const std::vector<RunSummary>& runs) {
  constexpr std::size_t kFewPoints = 300;
  LineChart chart;
  chart.title = "Loss of training and validation";
  chart.x_title = "step";
  chart.y_title = "nats a token";
  chart.from_zero = false;
  chart.width = 720;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto add = [&](const auto& reports, std::string_view what) {
      Points points;
      // Above a guess there is nothing to see: a run that diverged would hide all others.
      const std::optional<double> guess = page.runs[i].guess();
      for (const auto& report : reports)
        if (std::isfinite(report.loss) && (!guess || report.loss < 1.04 * *guess))
          points.add(static_cast<double>(report.step), report.loss);
      if (points.x.size() < 2) return;
      points = decimated(points, kFewPoints);
      LineChart::Line line{.name = fmt::format("{}, {}", page.runs[i].source.name, what), .points = {}};
      for (std::size_t at = 0; at < points.x.size(); ++at) line.points.emplace_back(points.x[at], points.y[at]);
      chart.lines.push_back(std::move(line));
    };
    add(page.runs[i].log.train(), "training");
    add(page.runs[i].log.valid(), "validation");
  }
  if (chart.lines.empty()) return "";
  SvgCanvas canvas(line_chart_size(chart), chart.title);
  draw_line_chart(canvas, 0, 0, chart);
  const std::string document = canvas.document();
  return document.substr(document.find("<svg"));  // without the declaration of XML, which HTML has none of
}

}  // namespace engram
