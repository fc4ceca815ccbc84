/// `autograd_tour --draw STEP`.

#include "apps/tour/drawn_step.hpp"

#include <sstream>
#include <string>
#include <vector>

#include "apps/tour/tour.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::drawn_step_test {
namespace {

TEST_CASE("autograd tour: steps with a real tape are recorded, and their gradients are right", "[tour]") {
  std::size_t drawn = 0;
  for (std::size_t step = 1; step <= tour::tour_steps().size(); ++step) {
    if (tour::tour_steps()[step - 1].observed == nullptr) continue;
    INFO("step " << step);
    ++drawn;
    const TapeRecording recording = tour::recorded_step(step);
    CHECK(recording.ops.size() >= 2);
    CHECK(recording.checked > 0);
    CHECK(recording.worst < 1e-6);
    CHECK(recording.agreed == recording.checked);
    for (const RecordedValue& value : recording.values) {
      INFO(value.name);
      CHECK_FALSE(value.name.empty());
      const bool named = value.kind == ValueKind::leaf || value.kind == ValueKind::constant;
      if (named) CHECK(value.name.find(' ') == std::string::npos);  // not "leaf 0"
    }
  }
  CHECK(drawn == 7);
}

TEST_CASE("autograd tour: a step is drawn into a file of its own kind", "[tour]") {
  const TemporaryFolder folder;
  const std::string page = folder / "a.html", graph = folder / "a.dot", notes = put_file(folder / "notes", "mine");
  std::ostringstream out, errors;
  CHECK(tour::draw_step(std::vector<std::string>{"8", page}, out, errors) == 0);
  CHECK(tour::draw_step(std::vector<std::string>{"8", page}, out, errors) == 0);
  CHECK(tour::draw_step(std::vector<std::string>{"13", graph}, out, errors) == 0);
  CHECK(out.str() == page + ": 4 operations\n" + page + ": 4 operations\n" + graph + ": 6 operations\n");
  CHECK_THAT(get_file(page), ContainsSubstring("<h1>Step 8 of the tour: The real tape</h1>"));
  CHECK_THAT(get_file(graph), ContainsSubstring("feed_forward"));
  const TapeRecording eighth = tour::recorded_step(8);
  CHECK(eighth.values[0].name == "x");
  CHECK(eighth.values[1].name == "w");
  CHECK_THAT(message_of<FileError>([&] {
               tour::draw_step(std::vector<std::string>{"8", notes}, out, errors);
             }),
             ContainsSubstring("which begins otherwise"));
  CHECK(get_file(notes) == "mine");
  CHECK(errors.str().empty());
}

TEST_CASE("autograd tour: a step without such a tape is refused", "[tour]") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"3"}, {"16"}, {"8", "a.html", "b.html"}}) {
    std::ostringstream out, errors;
    CHECK(tour::draw_step(arguments, out, errors) == 2);
    CHECK(out.str().empty());
    CHECK_THAT(errors.str(), ContainsSubstring("8, 9, 10, 11, 13, 14, 15"));
  }
}

}  // namespace
}  // namespace engram::harness::drawn_step_test
