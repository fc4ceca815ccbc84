/// `engram tape`: the small models of every family, the command, and the drawing on the page of the tour.

#include "apps/studies/tape/model_tape.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "apps/run/config/run_config_file.hpp"
#include "apps/studies/tape/small_models.hpp"
#include "apps/tape/tape_graph.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::model_tape_test {
namespace {

const std::filesystem::path kPictures = std::filesystem::path(ENGRAM_SOURCE_DIR) / "docs/pictures";

TapeRecording recorded(ModelFamily family, const ModelTapeOptions& options = {},
                       const std::vector<std::string>& overrides = {}) {
  Runtime runtime({}, 1);
  return record_model(parse_run_config(small_model(family), "small", overrides), options, runtime);
}
std::string two_layers() {
  ModelTapeOptions options;
  options.differences = 0;
  return tape_graph(recorded(ModelFamily::all_attention, options), /*times=*/false);
}

TEST_CASE("model tape: gradients of every family's small model are its differences", "[tape][night]") {
  for (const ModelFamily family : kModelFamilies) {
    INFO(name_of(family));
    const TapeRecording recording = recorded(family);
    CHECK(recording.ops.size() > 10);
    CHECK(recording.checked > 400);
    CHECK(recording.unchecked == 0);
    CHECK(recording.worst < 1e-6);
    CHECK(recording.agreed == recording.checked);
    for (const RecordedOp& op : recording.ops) CHECK(op.reached);
    // Of parameters a table alone has a gradient that is not shown.
    for (const RecordedValue& value : recording.values) {
      if (value.kind != ValueKind::parameter || value.name.ends_with("values.rows")) continue;
      INFO(value.name);
      CHECK(value.numeric.size() == static_cast<std::size_t>(value.shape.count()));
    }
    CHECK(recording.ops.front().backward.memory.kept == 0);
    CHECK(recording.ops.front().backward.memory.gradients == 0);
  }
}

TEST_CASE("model tape: in the model that is drawn a size says what it counts", "[tape][night]") {
  const ModelOptions model = parse_run_config(small_model(ModelFamily::all_attention), "small").model;
  const AllAttentionOptions& options = model.all_attention;
  const std::set<std::int64_t> sizes{options.heads,
                                     options.width / options.heads,
                                     options.slots,
                                     options.width,
                                     options.max_span,
                                     model.vocabulary(),
                                     5};
  CHECK(sizes.size() == 7);
  const TapeRecording recording = recorded(ModelFamily::all_attention);
  const auto made = [&](std::size_t op) {
    return recording.values[static_cast<std::size_t>(recording.ops[op].outputs[0])].shape;
  };
  CHECK(made(1) == Shape{1, 5, options.width});  // queries of 5 tokens
  CHECK(made(recording.ops.size() - 2) == Shape{1, 5, model.vocabulary()});
}

TEST_CASE("model tape: in f32 nothing is compared, and large tensors have no numbers", "[tape]") {
  ModelTapeOptions options;
  options.dtype = DType::f32;
  options.most_numbers = 40;
  const TapeRecording recording =
      recorded(ModelFamily::all_attention, options, {"training.batch=4", "training.split=2"});
  CHECK(recording.checked == 0);
  CHECK(recording.about.find("2 x 5 tokens") != std::string::npos);
  for (const RecordedValue& value : recording.values) CHECK(value.numbers.empty() == (value.shape.count() > 40));
}

TEST_CASE("model tape: a span's loss is a second one", "[tape][night]") {
  const TapeRecording recording = recorded(ModelFamily::all_attention, {}, {"training.span_loss=0.01"});
  CHECK(recording.losses.size() == 2);
  CHECK(recording.worst < 1e-6);
}

TEST_CASE("model tape: the drawing in the tour of autograd is of today's model", "[tape]") {
  INFO("docs/pictures/tape.dot and tape.svg are made anew by: engram_tests_apps \"write the drawing of the tape\"");
  const std::string graph = two_layers();
  CHECK(get_file(kPictures / "tape.dot") == graph);
  const XmlElement drawing = XmlReader(get_file(kPictures / "tape.svg")).document();
  std::size_t operations = 0;
  for (const XmlElement* title : drawing.all("title"))
    operations += title->text.starts_with("op") && title->text.find('-') == std::string::npos;
  std::size_t wanted = 0;
  for (std::size_t at = graph.find(" [fillcolor"); at != std::string::npos; at = graph.find(" [fillcolor", at + 1))
    ++wanted;
  CHECK(operations == wanted);
  CHECK(wanted > 15);
  // Points, of which a screen of 1600 x 900 pixels has 1200 x 675.
  CHECK(drawing.number("width") <= 1200);
  CHECK(drawing.number("height") <= 600);
}

// Hidden because it makes what the case before it compares with; it writes only where it is named (put_into_tree).
TEST_CASE("write the drawing of the tape", "[.]") {
  const std::string graph = two_layers();
  source_tree::put_into_tree(kPictures / "tape.dot", graph);
  source_tree::put_into_tree(kPictures / "tape.svg", drawn_by_graphviz(graph));
}

TEST_CASE("tape: as a user calls it", "[tape][night]") {
  const ProcessResult table = run_engram({"tape"});
  INFO(table.err);
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("17 operations keep ") && ContainsSubstring("layers.1/attention"));

  const TemporaryFolder folder;
  const std::string page = folder / "tape.html", dot = folder / "tape.dot";
  const ProcessResult written = run_engram({"tape", "--family", "recurrent", "--out", page, "--dot", dot});
  CHECK(written.exit_code == 0);
  CHECK_THAT(written.out,
             ContainsSubstring(page + ": 15 operations, ") && ContainsSubstring(dot + ": 15 operations, "));
  CHECK_THAT(get_file(page), ContainsSubstring("One step of recurrent"));
  CHECK(get_file(dot).starts_with("digraph tape {"));

  const nlohmann::json json = json_of(
      {"tape", "--set", "model.layers=1", "--block", "3", "--batch", "2", "--vocab", "9", "--numbers", "54", "--json"});
  CHECK(json["about"].get<std::string>().find("2 x 3 tokens") != std::string::npos);
  CHECK(json["values"].back()["name"] == json["values"][json["losses"][0].get<std::size_t>()]["name"]);
  CHECK(json["worst"].get<double>() < 1e-6);
}

TEST_CASE("tape: what cannot be done is said", "[tape]") {
  const TemporaryFolder folder;
  const std::string kept = put_file(folder / "notes.html", "my own notes");
  CHECK_THAT(error_of({"tape", "--out", kept}, 2), ContainsSubstring("tape: --out must name a new file"));
  CHECK(get_file(kept) == "my own notes");
  CHECK_THAT(error_of({"tape", "--family", "lstm"}, 2), ContainsSubstring("got 'lstm'"));
  CHECK_THAT(error_of({"tape", "--dtype", "bf16"}, 2), ContainsSubstring("tape: --dtype must be f32 or f64"));
  const std::string config = put_file(folder / "a.toml",
                                      "[model]\nlayers = 1\nwidth = 8\nheads = 2\nslots = 2\nmax_span = 4\nramp = 2\n"
                                      "[schedule]\nrate = 1\nsteps = 1\n");
  CHECK_THAT(error_of({"tape", "--config", config}, 2), ContainsSubstring("--vocab N gives one"));
  CHECK_THAT(error_of({"tape", "--config", config, "--family", "recurrent"}, 2), ContainsSubstring("--family"));
}

}  // namespace
}  // namespace engram::harness::model_tape_test
