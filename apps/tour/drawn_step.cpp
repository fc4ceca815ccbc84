#include "apps/tour/drawn_step.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "apps/report/svg_canvas.hpp"
#include "apps/tape/tape_differences.hpp"
#include "apps/tape/tape_graph.hpp"
#include "apps/tape/tape_page.hpp"
#include "apps/tape/tape_recorder.hpp"
#include "apps/tour/tour.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"

namespace engram::tour {
namespace {

constexpr std::int64_t kMostNumbers = 128;

/// "8, 9, 10": the steps that can be drawn.
std::string drawable_steps() {
  std::string list;
  for (std::size_t i = 0; i < tour_steps().size(); ++i)
    if (tour_steps()[i].observed != nullptr) list += text(list.empty() ? "" : ", ", i + 1);
  return list;
}

/// What files of the same kind begin with, and the contents of this one.
std::pair<std::string_view, std::string> drawn(const TapeRecording& recording, const std::string& file) {
  if (file.ends_with(".dot")) return {kTapeGraphBeginning, tape_graph(recording)};
  if (file.ends_with(".svg")) return {"<?xml ", drawn_by_graphviz(tape_graph(recording))};
  return {kTapePageBeginning, tape_page(recording, "A tour of autograd")};
}

void refuse_other_file(const std::string& file, std::string_view beginning) {
  std::ifstream in(file, std::ios::binary);
  std::string start(beginning.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (in.gcount() > 0 && start != beginning)
    throw FileError(text("autograd_tour: --draw must write a new file or one of its own, got '", file,
                         "', which begins otherwise"));
}

/// Of the values of this kind, in the order in which they entered the tape.
void name_values(TapeRecording& recording, ValueKind kind, std::string_view names) {
  for (RecordedValue& value : recording.values) {
    if (value.kind != kind || names.empty()) continue;
    const std::size_t end = std::min(names.find(' '), names.size());
    value.name = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

}  // namespace

TapeRecording recorded_step(std::size_t step) {
  const TourStep& taken = tour_steps()[step - 1];
  if (taken.observed == nullptr)
    throw UsageError(
        text("autograd_tour: --draw must have a step with a tape of Engram's own, ", drawable_steps(), ", got ", step));
  const TapeStep again = [&taken](TapeObserver& observer) {
    std::ostringstream ignored;
    taken.observed(ignored, &observer);
  };
  TapeRecording recording = record_tape(again, kMostNumbers);
  recording.title = text("Step ", step, " of the tour: ", taken.title);
  recording.about = "in f64";
  add_differences(recording, again);  // which asks for values by the names that the recorder gave
  name_values(recording, ValueKind::leaf, taken.leaves);
  name_values(recording, ValueKind::constant, taken.constants);
  return recording;
}

int draw_step(std::span<const std::string> arguments, std::ostream& out, std::ostream& errors) {
  std::size_t step = 0;
  for (std::size_t i = 1; i <= tour_steps().size(); ++i)
    if (!arguments.empty() && arguments[0] == std::to_string(i)) step = i;
  if (step == 0 || arguments.size() > 2 || tour_steps()[step - 1].observed == nullptr) {
    std::string given;
    for (const std::string& argument : arguments) given += " " + argument;
    errors << text("autograd_tour: --draw must have a step with a tape of Engram's own, ", drawable_steps(),
                   ", and may have a file, got '--draw", given, "'\n");
    return 2;
  }
  const std::string file = arguments.size() == 2 ? arguments[1] : text("tape-", step, ".html");
  const TapeRecording recording = recorded_step(step);
  const auto [beginning, contents] = drawn(recording, file);
  refuse_other_file(file, beginning);
  write_durably(file, contents);
  out << text(file, ": ", recording.ops.size(), " operations\n");
  return 0;
}

}  // namespace engram::tour
