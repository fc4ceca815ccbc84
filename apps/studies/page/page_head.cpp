/// The first part of a page (page_html.hpp): what there is to say of all runs, and their table.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
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

/// Names of runs: "a, b and 7 more".
std::string names_of_runs(const Page& page, const std::vector<std::size_t>& runs) {
  constexpr std::size_t kMostNames = 8;
  const std::size_t shown = runs.size() > kMostNames + 1 ? kMostNames : runs.size();
  std::string names;
  for (std::size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + escaped_xml(page.runs[runs[i]].source.name);
  return shown < runs.size() ? fmt::format("{} and {} more", names, runs.size() - shown) : names;
}

/// How much lower the loss of the best run is than that of the next, among `group`.
std::string margin_words(const Page& page, const std::vector<RunSummary>& runs, const std::vector<std::size_t>& group,
                         std::size_t best) {
  const RunSummary& run = runs[best];
  std::optional<std::size_t> next;
  for (const std::size_t i : group)
    if (i != best && runs[i].best && runs[i].state != PageState::diverged &&
        (!next || runs[i].best->second < runs[*next].best->second))
      next = i;
  if (!next)
    return group.size() > 1 ? "No other run on this data has a loss to compare it with. "
                            : "There is no other run on this data to compare it with. ";
  const double margin = score_value(run.score, runs[*next].best->second) - score_value(run.score, run.best->second);
  const std::string name = bold(page.runs[*next].source.name);
  return margin > 0 ? fmt::format("That is {} less than the next, {}. ", score_number(margin), name)
                    : fmt::format("That is as low as {}’s. ", name);
}

/// "a is best: ...": a sentence or two for each data set, and where to read on.
std::string best_sentences(const Page& page, const std::vector<RunSummary>& runs) {
  std::string sentences;
  for (const std::size_t i : best_runs(runs)) {
    const RunSummary& run = runs[i];
    std::vector<std::size_t> group, apart;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const bool same = runs[k].data == run.data;
      if (runs[k].best || (runs[k].state == PageState::diverged && !runs[k].score.empty()))
        (same && runs[k].score == run.score ? group : apart).push_back(k);
      else if (same && !run.data.empty() && runs[k].state != PageState::waiting)
        group.push_back(k);  // ended before its first validation
    }
    const std::string among = apart.empty() ? "" : fmt::format(" ({})", names_of_runs(page, group));
    sentences += fmt::format(
        "<p class=\"lead\">{} {}: {} <b>{}</b> ({:.4f} nats) on validation text at step {}.</p>\n",
        bold(page.runs[i].source.name),
        group.size() > 1 ? fmt::format("is best of the {} runs on the same data{}", group.size(), among)
                         : "is at its best with",
        score_words(run.score), score_text(run.score, run.best->second), run.best->second, grouped(run.best->first));
    const std::string heads = attention_sentence(page.runs[i]);
    sentences += fmt::format("<p class=\"note\">{}{}{}<a href=\"#repeat-{}\">How to repeat it</a></p>\n",
                             runs.size() > 1 ? margin_words(page, runs, group, i) : "", heads,
                             heads.empty() ? "" : "<a href=\"#attention\">Where each looks</a> · ", i);
    if (!apart.empty())
      sentences += fmt::format(
          "<p class=\"note\">{} {} apart: other data or another unit, so {} losses are not to be "
          "compared with those of {}.</p>\n",
          names_of_runs(page, apart), apart.size() == 1 ? "is" : "are", apart.size() == 1 ? "its" : "their",
          names_of_runs(page, group));
  }
  if (sentences.empty() && std::ranges::count_if(runs, [](const RunSummary& run) { return run.best.has_value(); }) > 1)
    sentences = "<p class=\"note\">The runs read different data, so their losses are not to be compared.</p>\n";
  return sentences;
}

/// Why a run diverged, in plain words; empty: only its log can say.
std::string diverged_words(const PageRun& page_run, const RunSummary& run) {
  const std::optional<double> guess = page_run.guess();
  if (run.reason.find("not finite") != std::string::npos) return "its loss is no longer a number";
  if (guess && run.last && run.last->second > *guess)
    return fmt::format("it became worse than a guess, which costs {:.2f} nats a token", *guess);
  if (run.reason.find("near its best") != std::string::npos) return "its loss rose and did not come down again";
  return "";
}

/// Why a run is not done, from a colon on; empty: not known. `index`: of the run.
std::string reason_words(const PageRun& page_run, const RunSummary& run, std::size_t index) {
  const std::string plain = run.state == PageState::diverged ? diverged_words(page_run, run) : "";
  std::string words = run.reason.empty() ? "" : ": " + escaped_xml(run.reason);
  constexpr std::string_view kResume = "--resume";
  if (const std::size_t at = words.find(kResume); at != std::string::npos)
    words.replace(at, kResume.size(), fmt::format("<code>{}</code>", kResume));
  if (!plain.empty())
    words = fmt::format(": {}.{}", plain,
                        run.reason.empty() ? "" : fmt::format(" Its log: <q>{}</q>", escaped_xml(run.reason)));
  return run.state == PageState::interrupted ? words + fmt::format(" (<a href=\"#repeat-{}\">the command</a>)", index)
                                             : words;
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
    const bool is_unmeasured = !run.best && run.state != PageState::training && run.state != PageState::diverged;
    sentences += fmt::format("<li class=\"{}\">{} {} step {}{}{}</li>\n",
                             run.state == PageState::training ? "plain" : "bad", bold(page.runs[i].source.name),
                             run.state == PageState::training  ? "is being trained, at"
                             : run.state == PageState::stopped ? "stopped at"
                             : run.state == PageState::out_of_memory
                                 ? "ran out of memory at"
                                 : fmt::format("{} at", state == "diverged" ? "diverged" : "was interrupted"),
                             grouped(run.step), is_unmeasured ? ", before its first validation" : "",
                             reason_words(page.runs[i], run, i));
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

/// `unit`: beneath the number; empty: the heading has it.
std::string loss_cell(const PageRun& page_run, const RunSummary& run,
                      const std::optional<std::pair<std::int64_t, double>>& loss, const std::string& unit) {
  const bool diverged = run.state == PageState::diverged;
  if (!loss) return cell(diverged ? "<small>diverged</small>" : "-", std::nan(""));
  const std::optional<double> guess = page_run.guess();
  // Worse than a guess: its perplexity would only be a number of forty digits.
  if (diverged && guess && loss->second > *guess)
    return cell(fmt::format("<small>diverged</small><small>step {}</small>", grouped(loss->first)), loss->second);
  return cell(
      fmt::format("{}{}<small>step {}</small>", score_text(run.score, loss->second), unit, grouped(loss->first)),
      loss->second);
}

std::string run_row(const PageRun& page_run, const RunSummary& run, std::size_t index, bool best,
                    const std::string& unit) {
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
  row += loss_cell(page_run, run, run.best, unit) + loss_cell(page_run, run, run.last, unit);
  row += run.test ? cell(score_number(*run.test) + unit, *run.test) : cell("-", std::nan(""));
  row += cell(shortened(static_cast<double>(run.parameters)), static_cast<double>(run.parameters));
  row += run.tokens ? cell(shortened(static_cast<double>(*run.tokens)), static_cast<double>(*run.tokens))
                    : cell("-", std::nan(""));
  row += run.seconds > 0 ? cell(duration_text(run.seconds), run.seconds) : cell("-", std::nan(""));
  row += run.tokens_per_second ? cell(grouped(std::llround(*run.tokens_per_second)), *run.tokens_per_second)
                               : cell("-", std::nan(""));
  return row + "</tr>\n";
}

/// Whether anything of a run is within the chart of losses, which ends a little above a guess.
bool is_seen(const PageRun& run) {
  const std::optional<double> guess = run.guess();
  const auto within = [&guess](const auto& report) {
    return std::isfinite(report.loss) && (!guess || report.loss < 1.04 * *guess);
  };
  return std::ranges::any_of(run.log.train(), within) || std::ranges::any_of(run.log.valid(), within);
}

}  // namespace

std::string loss_notes(const Page& page, const std::vector<RunSummary>& runs) {
  std::map<std::string, std::vector<std::size_t>> groups;
  std::string notes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].last) groups[runs[i].data + runs[i].score].push_back(i);
    if (runs[i].state == PageState::diverged && !is_seen(page.runs[i]))
      notes += fmt::format("<p class=\"note\">{} diverged: no loss of it is low enough to be seen here.</p>\n",
                           bold(page.runs[i].source.name));
  }
  if (groups.size() < 2) return notes;
  notes += "<p class=\"note\">Curves of different data or units are not to be compared. Together belong ";
  std::size_t at = 0;
  for (const auto& [data, members] : groups)
    notes += fmt::format("{}{} ({})", at++ == 0 ? "" : "; ", names_of_runs(page, members),
                         score_words(runs[members.front()].score));
  return notes + ".</p>\n";
}

std::string head_html(const Page& page, const std::vector<RunSummary>& runs) {
  std::string html = best_sentences(page, runs) + state_sentences(page, runs) + problem_list(page);
  if (runs.empty()) return html;
  const std::vector<std::size_t> best = best_runs(runs);
  std::set<std::string_view> scores;
  for (const RunSummary& run : runs)
    if (run.last) scores.insert(score_words(run.score));
  const std::string unit = scores.size() == 1 ? fmt::format("<small>{}</small>", *scores.begin()) : "";
  html +=
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of runs\"><table class=\"runs\" "
      "id=\"runs-table\">\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\">state</th>";
  html += fmt::format(
      "<th scope=\"col\">steps</th><th scope=\"col\">best{0}</th><th "
      "scope=\"col\">last{0}</th><th scope=\"col\">test</th>",
      unit);
  html +=
      "<th scope=\"col\">parameters</th><th scope=\"col\">tokens read</th><th scope=\"col\">time</th><th "
      "scope=\"col\">tokens/s</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < runs.size(); ++i)
    html += run_row(page.runs[i], runs[i], i, runs.size() > 1 && std::ranges::find(best, i) != best.end(),
                    scores.size() > 1 ? fmt::format("<small>{}</small>", score_words(runs[i].score)) : "");
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
