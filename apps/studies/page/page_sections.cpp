/// Parts of a page (page_html.hpp) that need no script: what models write, time, memory.

#include <fmt/format.h>

#include <algorithm>

#include "apps/report/svg_canvas.hpp"
#include "apps/studies/page/page_html.hpp"
#include "apps/studies/page/page_text.hpp"
#include "apps/terminal/bytes_text.hpp"

namespace engram {
namespace {

using nlohmann::json;

/// A text after its beginning.
std::string written(std::string_view prompt, std::string_view text) {
  // A line end at the beginning would look as if there were nothing.
  const bool ends = prompt.empty() && text.starts_with('\n');
  return fmt::format("<p class=\"sample\"><span class=\"prompt\">{}</span>{}{}</p>", escaped_xml(prompt),
                     ends ? "⏎ " : "", escaped_xml(text.substr(ends ? 1 : 0)));
}

/// The samples of the newest weights: for each beginning all runs, one after the other.
std::string newest_samples(const Page& page) {
  std::vector<std::string> prompts;
  for (const PageRun& run : page.runs)
    if (run.study)
      for (const TextSample& sample : run.study->samples)
        if (std::ranges::find(prompts, sample.prompt) == prompts.end()) prompts.push_back(sample.prompt);
  std::string html;
  for (const std::string& prompt : prompts) {
    html += fmt::format(
        "<details class=\"prompt\"{}><summary>After <q>{}</q></summary><div class=\"scroll\"><table "
        "class=\"samples\">\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\">always the likeliest token</th><th "
        "scope=\"col\">drawn, temperature {}</th></tr></thead><tbody>\n",
        html.empty() ? " open" : "", prompt.empty() ? "a line’s beginning" : escaped_xml(prompt), kSampleTemperature);
    for (std::size_t i = 0; i < page.runs.size(); ++i) {
      if (!page.runs[i].study) continue;
      for (const TextSample& sample : page.runs[i].study->samples)
        if (sample.prompt == prompt)
          html += fmt::format(
              "<tr data-run=\"{}\"><th scope=\"row\">{}</th><td data-label=\"the likeliest\">{}</td><td "
              "data-label=\"drawn\">{}</td></tr>\n",
              i, named_chip(page, i), written("", sample.likely), written("", sample.sampled));
    }
    html += "</tbody></table></div></details>\n";
  }
  return html;
}

/// What runs wrote while they were trained, the newest first.
std::string samples_by_step(const Page& page) {
  constexpr std::size_t kMostSamples = 40;
  std::string html;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const std::vector<WrittenSample>& samples = page.runs[i].log.samples();
    if (samples.empty()) continue;
    html += fmt::format("<details data-run=\"{}\"{}><summary>{}: {} while it was trained</summary>\n", i,
                        page.runs.size() <= 2 ? " open" : "", named_chip(page, i),
                        samples.size() == 1 ? "a sample" : fmt::format("{} samples", samples.size()));
    const std::size_t shown = std::min(kMostSamples, samples.size());
    if (shown < samples.size()) html += fmt::format("<p class=\"note\">Shown are the last {}.</p>", shown);
    for (std::size_t at = 0; at < shown; ++at) {
      const WrittenSample& sample = samples[samples.size() - 1 - at];
      html += fmt::format("<div class=\"step\"><b>step {}</b>{}</div>\n", grouped(sample.step),
                          written(sample.prompt, sample.text));
    }
    html += "</details>\n";
  }
  return html;
}

struct MemoryPart {
  std::string_view name, kind;  ///< for people, of the style
  double bytes;
};

double last_number(const PageRun& run, const char* member) {
  double found = 0;
  for (const RunMark& mark : run.log.marks())
    if (const auto at = mark.line.find(member); at != mark.line.end() && at->is_number()) found = at->get<double>();
  return found;
}

/// What is known of a run's memory; empty: nothing.
std::vector<MemoryPart> memory_parts(const PageRun& run) {
  std::vector<MemoryPart> parts;
  const auto add = [&parts](std::string_view name, std::string_view kind, double bytes) {
    if (bytes > 0) parts.push_back({name, kind, bytes});
  };
  if (run.study) {
    const auto parameters = static_cast<double>(run.study->parameter_bytes);
    add("parameters", "m0", parameters);
    // A table of a memory has its gradient row by row, which is part of the step.
    if (!(run.config && run.config->model.memories().any()) && !run.source.folder.empty())
      add("gradients", "m1", parameters);
    add("optimiser", "m2", static_cast<double>(run.study->optimizer_bytes));
  }
  add("step, at most", "m3", last_number(run, "peak_bytes"));
  return parts;
}

std::string memory_bar(const Page& page, std::size_t run, double most) {
  const std::vector<MemoryPart> parts = memory_parts(page.runs[run]);
  const double resident = last_number(page.runs[run], "resident_bytes");
  std::string row = fmt::format("<tr data-run=\"{}\"><th scope=\"row\">{}</th><td class=\"wide\"><div class=\"stack\">",
                                run, named_chip(page, run));
  std::string words;
  for (const MemoryPart& part : parts) {
    row += fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\" title=\"{} {}\"></i>", part.kind,
                       100 * part.bytes / most, part.name, bytes_text(part.bytes));
    words += fmt::format("<span><i class=\"key {}\"></i>{} {}</span> ", part.kind, part.name, bytes_text(part.bytes));
  }
  row += "</div><div class=\"keys\">" + words + "</div></td>";
  return row + fmt::format("<td class=\"number\">{}</td></tr>\n", resident > 0 ? bytes_text(resident) : "-");
}

}  // namespace

std::string named_chip(const Page& page, std::size_t run) {
  return fmt::format("<i class=\"chip c{}\"></i>{}", run % 8, escaped_xml(page.runs[run].source.name));
}

std::string missing_html(const Page& page) {
  std::string lines;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    if (page.runs[i].study || !checkpoint_of(page.runs[i].source).empty()) continue;
    const PageState state = summary_of(page.runs[i]).state;
    lines +=
        fmt::format("{}{} is not here ({}: no checkpoint {})", lines.empty() ? "" : "; ", named_chip(page, i),
                    name_of(state), state == PageState::waiting || state == PageState::training ? "yet" : "was kept");
  }
  return lines.empty() ? "" : "<p class=\"note missing\">" + lines + ".</p>\n";
}

std::string samples_html(const Page& page) {
  const std::string html = newest_samples(page) + samples_by_step(page);
  if (!html.empty()) return html + missing_html(page);
  return "<p class=\"note\">There are none: no run has a checkpoint that was used, and none wrote samples while it was "
         "trained (training.sample_every).</p>\n";
}

std::string memory_html(const Page& page) {
  double most = 0;
  for (const PageRun& run : page.runs) {
    double sum = 0;
    for (const MemoryPart& part : memory_parts(run)) sum += part.bytes;
    most = std::max(most, sum);
  }
  if (most == 0) return "<p class=\"note\">No run has ended or has a checkpoint yet.</p>\n";
  std::string html =
      "<div class=\"scroll\"><table class=\"memory\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">what is "
      "held "
      "at once</th><th scope=\"col\">process, at most</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < page.runs.size(); ++i)
    if (!memory_parts(page.runs[i]).empty()) html += memory_bar(page, i, most);
  return html +
         "</tbody></table></div>\n<p class=\"note\">Parameters and optimiser as they lie in the checkpoint; the step "
         "and "
         "the process as their processes counted them.</p>\n" +
         missing_html(page);
}

std::string time_html(const Page& page) {
  if (page.bench.is_null())
    return "<p class=\"note\">Where the time of a step goes is measured by <code>engram bench --json</code>; "
           "<code>--bench FILE</code> shows here what it printed.</p>\n";
  const auto number = [](const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  std::string html;
  const json& configs = page.bench.contains("configs") ? page.bench.at("configs") : json::array({page.bench});
  for (const json& config : configs) {
    if (!config.is_object() || !config.contains("kernels") || !config.at("kernels").is_array()) continue;
    html += fmt::format(
        "<h3>{}</h3><p>{:.1f} ms a step, {} tokens/s, {:.0f}% of the machine’s product rate.</p>\n<div "
        "class=\"scroll\"><table class=\"time\"><thead><tr><th scope=\"col\">kernel</th><th "
        "scope=\"col\">calls</th><th "
        "scope=\"col\">ms a step</th><th scope=\"col\">share</th><th scope=\"col\">times the "
        "floor</th></tr></thead><tbody>\n",
        escaped_xml(config.contains("name") && config.at("name").is_string() ? config.at("name").get<std::string>()
                                                                             : "bench"),
        number(config, "milliseconds_median"), shortened(number(config, "tokens_per_second")),
        100 * number(config, "share_of_product_rate"));
    for (const json& kernel : config.at("kernels")) {
      if (!kernel.is_object() || !kernel.contains("kernel") || !kernel.at("kernel").is_string()) continue;
      const double share = 100 * number(kernel, "share"), floor = number(kernel, "milliseconds_floor");
      html += fmt::format(
          "<tr><th scope=\"row\">{}</th><td class=\"number\">{:.0f}</td><td class=\"number\">{:.2f}</td><td "
          "class=\"number\">{:.1f}%<span class=\"bar\"><i style=\"width:{:.1f}%\"></i></span></td><td "
          "class=\"number\">{}</td></tr>\n",
          escaped_xml(kernel.at("kernel").get<std::string>()), number(kernel, "calls_per_step"),
          number(kernel, "milliseconds_per_step"), share, std::clamp(share, 0.0, 100.0),
          floor > 0 ? fmt::format("{:.2f}", number(kernel, "milliseconds_per_step") / floor) : "-");
    }
    html += "</tbody></table></div>\n";
  }
  return html.empty() ? "<p class=\"note\">The file that was given has no times of kernels.</p>\n" : html;
}

}  // namespace engram
