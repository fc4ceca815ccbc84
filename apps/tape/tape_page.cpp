#include "apps/tape/tape_page.hpp"

#include <fmt/format.h>

#include "apps/report/json_for_html.hpp"
#include "apps/report/svg_canvas.hpp"
#include "apps/tape/tape_json.hpp"
#include "apps/tape/tape_page_assets.hpp"
#include "autograd/tape_listing.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string fact(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, escaped_xml(value));
}

std::string whole_time(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.2g} ms", seconds * 1e3) : fmt::format("{:.0f} ms", seconds * 1e3);
}

std::string facts_of(const TapeRecording& recording) {
  std::string facts =
      fact("operations", fmt::format("{}", recording.ops.size())) + fact("kept", listed_bytes(recording.turn.kept)) +
      fact("with gradients, most between steps", listed_bytes(recording.peak_bytes())) +
      fact("forward", whole_time(recording.forward_seconds())) +
      fact("backward", whole_time(recording.backward_seconds())) + fact("loss", fmt::format("{:.6g}", recording.loss));
  if (recording.worst_value >= 0)
    facts += fact("gradients that differences confirm", fmt::format("{} of {}", recording.agreed, recording.checked));
  return "<dl class=\"facts\">" + facts + "</dl>";
}

/// What the page lacks, and why.
std::string notes_of(const TapeRecording& recording) {
  std::size_t large = 0;
  for (const RecordedValue& value : recording.values) large += value.numbers.empty() ? 1 : 0;
  std::string note;
  if (large > 0)
    note =
        fmt::format("{} of {} tensors have more than {} numbers: their shapes and bytes are here, their numbers not.",
                    large, recording.values.size(), recording.most_numbers);
  if (recording.unchecked > 0)
    note += fmt::format("{}{} numbers of small tensors were not compared with differences, as there were too many.",
                        note.empty() ? "" : " ", recording.unchecked);
  return note.empty() ? note : "<p class=\"note\">" + note + "</p>\n";
}

std::string names_of_inputs(const TapeRecording& recording, const RecordedOp& op) {
  std::string names;
  for (const RecordedInput& input : op.inputs)
    names += (names.empty() ? "" : ", ") +
             (input.value < 0 ? std::string("-") : recording.values[static_cast<std::size_t>(input.value)].name);
  return names;
}

std::string table_html(const TapeRecording& recording) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>#</th><th>operation</th><th>scope</th><th>inputs</th><th>output</th>"
      "<th class=\"number\">keeps</th><th class=\"number\">forward, ms</th><th class=\"number\">backward, ms</th></tr>"
      "</thead><tbody>\n";
  for (std::size_t i = 0; i < recording.ops.size(); ++i) {
    const RecordedOp& op = recording.ops[i];
    std::string outputs;
    for (const int output : op.outputs)
      outputs += (outputs.empty() ? "" : ", ") + recording.values[static_cast<std::size_t>(output)].name + " " +
                 text(recording.values[static_cast<std::size_t>(output)].shape);
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{:.3g}</td><td class=\"number\">{:.3g}</td></tr>\n",
        i, escaped_xml(op.name), escaped_xml(op.scope), escaped_xml(names_of_inputs(recording, op)),
        escaped_xml(outputs), listed_bytes(op.kept_bytes), op.forward.seconds * 1e3, op.backward.seconds * 1e3);
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string tape_page(const TapeRecording& recording, std::string_view made) {
  const std::string title = escaped_xml(recording.title);
  std::string html(kTapePageBeginning);
  html += fmt::format(
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri "
      "'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
      "name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<link "
      "rel=\"icon\" href=\"data:,\">\n<title>{} - Engram</title>\n<style>\n",
      title);
  html += tape_page_style();
  html += fmt::format(
      "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#deck\">To the steps</a>\n<div class=\"screen\">\n<header>"
      "<div><p class=\"made\">{}: {}</p><h1>{}</h1></div>{}<div id=\"tools\"></div></header>\n{}"
      "<main id=\"stage\"><section id=\"tape\" aria-label=\"The tape\"></section><section id=\"now\" "
      "aria-label=\"What happens now\" tabindex=\"0\"><noscript><p>The steps are drawn by a script, which is switched "
      "off. The table below has the operations.</p></noscript></section></main>\n<section id=\"deck\" "
      "aria-label=\"Steps\"></section>\n</div>\n",
      escaped_xml(made), escaped_xml(recording.about), title, facts_of(recording), notes_of(recording));
  html += "<details class=\"all\" open><summary>All operations as a table</summary>" + table_html(recording) +
          "</details>\n<script type=\"application/json\" id=\"tape-data\">" + json_for_html(json_of(recording)) +
          "</script>\n<script>\n";
  html += tape_page_script();
  return html + "</script>\n</body>\n</html>\n";
}

}  // namespace engram
