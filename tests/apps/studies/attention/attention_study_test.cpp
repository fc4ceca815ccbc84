/// The weights that `engram attention` shows against the executable definition of the model, and its tables and files.

#include "apps/studies/attention/attention_study.hpp"
#include "core/files/json.hpp"

#include <map>
#include <sstream>

#include "apps/run/model/runtime.hpp"
#include "apps/studies/attention/attention_report.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/model_options.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::attention_study_test {
namespace {

AllAttentionOptions study_options(MemoryMode mode) {
  AllAttentionOptions options = model_options(
      mode, {.vocabulary = 7, .layers = 2, .width = 8, .inner = 6, .slots = 5, .max_span = 20, .ramp = 4});
  options.span_init = 0.3;
  options.dropout = 0.2;  // must not matter
  return options;
}

/// The same values as a PlacedModel of the same options has.
struct StudyModel {
  Runtime runtime{{}, 1};
  ParameterStore store;
  AllAttentionModel model;
  explicit StudyModel(const AllAttentionOptions& options) : model(options) {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 3);
    model.refresh(runtime.backend());
  }
};

TEST_CASE("the weights of a study are those of the definition, in blocks of any length") {
  const Tokens tokens = random_tokens(30, 7, 5);
  const std::vector<std::int32_t> ids(tokens.begin(), tokens.end());
  for (const MemoryMode mode : {MemoryMode::all, MemoryMode::none, MemoryMode::attn_split}) {
    CAPTURE(name_of(mode));
    const AllAttentionOptions options = study_options(mode);
    PlacedModel placed(options);
    reference::ModelState state;
    const auto layers = reference::character_model(placed.definition(), tokens, tokens, 1, state).layers;
    for (const std::int64_t block : {30, 7}) {
      StudyModel made(options);
      AttentionStudy study({made.model, made.runtime, DType::f64}, {.layer = 1, .head = 1, .rows = 30});
      std::int64_t heard = 0;
      study.read(ids, block, [&heard](std::int64_t read, std::int64_t) { heard = read; });
      CHECK(heard == std::ssize(ids));
      REQUIRE(study.rows().size() == 30);
      double slot_share = 0, padding = 0, entropy = 0;
      for (const AttentionRow& row : study.rows()) {
        double sum = 0;
        for (std::int64_t distance = 1; distance <= 20; ++distance) {
          const double expected = layers[1].weights.at(0, 1, row.position, distance - 1);
          const double got = distance <= std::ssize(row.context) ? row.context[std::size_t(distance - 1)] : 0;
          CHECK(got == Approx(expected).margin(1e-12));
          sum += got;
          if (distance > row.position) padding += got;
          if (got > 0) entropy -= got * std::log2(got);
        }
        for (std::size_t n = 0; n < row.slots.size(); ++n) {
          CHECK(row.slots[n] == Approx(layers[1].weights.at(0, 1, row.position, 20 + std::int64_t(n))).margin(1e-12));
          slot_share += row.slots[n];
          sum += row.slots[n];
          entropy -= row.slots[n] * std::log2(row.slots[n]);
        }
        CHECK(sum == Approx(1).epsilon(1e-12));
      }
      CHECK((study.rows().front().slots.size() == (mode == MemoryMode::all ? 5 : 0)));
      for (const HeadAttention& head : study.heads()) {
        if (head.layer != 1 || head.head != 1 || !head.sees_context) continue;
        CHECK(head.slot_share == Approx(slot_share / 30).margin(1e-12));
        CHECK(head.padding_share == Approx(padding / 30).margin(1e-12));
        CHECK(head.entropy == Approx(entropy / 30).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("slots with a softmax of their own are heads of their own, whose weights sum to 1") {
  struct Row {
    MemoryMode mode;
    std::int64_t context, slots;
  };
  const std::vector<std::int32_t> tokens{1, 4, 2, 0, 6, 3, 3, 5};
  for (const auto& [mode, context, slots] :
       {Row{MemoryMode::all, 2, 0}, Row{MemoryMode::attn_split, 2, 2}, Row{MemoryMode::head_split, 1, 1},
        Row{MemoryMode::single_head, 2, 1}, Row{MemoryMode::ff_attn, 2, 1}, Row{MemoryMode::transformer, 2, 0}}) {
    CAPTURE(name_of(mode));
    StudyModel made(study_options(mode));
    AttentionStudy study({made.model, made.runtime, DType::f64},
                         {.layer = 0, .head = slots > 0 ? slots - 1 : 0, .of_slots = slots > 0, .rows = 3});
    study.read(tokens, 5);
    std::int64_t found[2] = {0, 0};
    for (const HeadAttention& head : study.heads()) {
      ++found[head.sees_context ? 0 : 1];
      if (!head.sees_context) CHECK(head.slot_share == Approx(1).epsilon(1e-12));
    }
    CHECK(found[0] == 2 * context);
    CHECK(found[1] == 2 * slots);
    REQUIRE(study.rows().size() == 3);
    CHECK(study.rows().front().position == 5);
    if (slots == 0) continue;
    const std::vector<SlotUse> uses = study.slots(2);
    REQUIRE(uses.size() == 2);
    CHECK(uses[0].share >= uses[1].share);
    REQUIRE(uses[0].hits.size() == 5);
    for (std::size_t i = 1; i < 5; ++i) CHECK(uses[0].hits[i - 1].weight >= uses[0].hits[i].weight);
    const AttentionRow& last = study.rows().back();
    CHECK(last.slots[std::size_t(uses[0].slot)] <= uses[0].hits[0].weight);
  }
}

TEST_CASE("a head that the model does not have is refused") {
  StudyModel made(study_options(MemoryMode::all));
  const auto study = [&](StudiedHead head) { AttentionStudy({made.model, made.runtime, DType::f64}, head); };
  CHECK_THROWS_WITH(study({.layer = 2}), ContainsSubstring("layer must be from 0 to 1, got 2"));
  CHECK_THROWS_WITH(study({.head = -1}), ContainsSubstring("head must be from 0 to 1, got -1"));
  CHECK_THROWS_WITH(study({.of_slots = true}), ContainsSubstring("no such head that sees slots only"));
}

TEST_CASE("command line: engram attention prints shares, names tokens, and writes CSV and SVG", "[night]") {
  const RunFolder folder;
  const TrainingRunOptions options = run_options(folder, "run");
  run_training(options, never());
  const std::string run = options.out.string(), csv = (folder / "a.csv").string(), svg = (folder / "a.svg").string();
  const ProcessResult shown = run_engram({"attention", run, "--text", "bread go\nbee an age", "--layer", "1", "--head",
                                          "1", "--rows", "4", "--slots", "2", "--csv", csv, "--svg", svg});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("on slots") && ContainsSubstring("19 tokens") && ContainsSubstring("slot ") &&
                            ContainsSubstring("["));
  // Four queries, each of whose weights sum to 1.
  std::istringstream lines(get_file(csv));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "position,token,kind,index,weight");
  std::map<std::string, double> sums;
  while (std::getline(lines, line)) sums[line.substr(0, line.find(','))] += std::stod(line.substr(line.rfind(',') + 1));
  REQUIRE(sums.size() == 4);
  for (const auto& [position, sum] : sums) CHECK(sum == Approx(1).epsilon(1e-4));
  CHECK_THAT(get_file(svg), StartsWith("<") && ContainsSubstring("5 persistent slots") && EndsWith("</svg>\n"));

  const auto object = nlohmann::json::parse(run_engram({"attention", run, "--text", "go", "--json"}).out);
  CHECK(object["heads"].size() == 4);
  CHECK(object["tokens"] == 2);
  CHECK(run_engram({"attention", run}).exit_code == 2);

  const auto in_f64 = [&](const std::string& device) {
    const ProcessResult result =
        run_engram({"attention", run, "--text", "bread go", "--layer", "1", "--head", "1", "--csv", csv, "--json",
                    "--dtype", "f64", "--threads", "1", "--device", device});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json expected = in_f64("cpu");
  for (const Device& device : other_devices()) {
    CAPTURE(text(device));
    const nlohmann::json found = in_f64(text(device));
    for (std::size_t head = 0; head < 4; ++head)
      for (const char* mean : {"slot_share", "padding_share", "entropy_bits", "distance_positions"})
        CHECK(found["heads"][head][mean].get<double>() ==
              Approx(expected["heads"][head][mean].get<double>()).epsilon(1e-9).margin(1e-12));
  }
  // The same text from a split.
  const data::DataSet data = data::DataSet::open(folder.data());
  std::vector<std::int32_t> ids(60);
  data.split("test").beginning(60).copy(0, 60, ids.data());
  const ProcessResult of_text = run_engram({"attention", run, "--text", data.vocabulary().decode(ids), "--json"}),
                      of_split = run_engram({"attention", run, "--data", folder.data().string(), "--split", "test",
                                             "--tokens", "60", "--json"});
  CHECK((of_split.exit_code == 0 && of_split.out == of_text.out));
  CHECK_THAT(run_engram({"attention", run, "--text", "go", "--split", "test"}).err, ContainsSubstring("--data"));
  CHECK_THAT(run_engram({"attention", run, "--text", "go?"}).err, ContainsSubstring("'?'"));
  CHECK_THAT(run_engram({"attention", run, "--text", "go", "--head", "2"}).err, ContainsSubstring("from 0 to 1"));
}

}  // namespace
}  // namespace engram::harness::attention_study_test
