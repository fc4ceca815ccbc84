/// Which models `engram export` writes and which it refuses, option by option, and what it says then.

#include <map>
#include <set>

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/weights/transfo_xl_config.hpp"
#include "apps/run/weights/transfo_xl_export.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "core/files/json.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/weights/transfo_xl_file.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::transfo_xl_refusals_test {
namespace {

namespace fs = std::filesystem;

enum class Fate {
  kept,      ///< comes back from config.json
  left_out,  ///< said in another way, or without an effect on what the model computes
  refused,   ///< the layout has no place for it
  settable   ///< refused, unless --set says what the class does
};
struct Change {
  Fate fate;
  std::vector<std::string> overrides;  ///< of the key, and what it needs
};

std::string export_config() {
  return R"([model]
family = "transformer_xl"
vocabulary = 30
layers = 2
width = 16
heads = 2
inner = 24
memory = 8
memory_start = "zeros"
cutoffs = [10, 20]
divisor = 2
[optimizer]
kind = "adam"
clip = 0.25
[schedule]
rate = 0.1
steps = 1
[training]
batch = 2
block = 8
validate_blocks = 1
)";
}

const std::vector<std::string> kMemory{"product_key.count=1", "product_key.subkeys=8", "product_key.selected=2",
                                       "product_key.heads=1", "product_key.query_width=8"};

/// Another value than above for every key of [model] and for those of [product_key] that make memories.
std::map<std::string, Change> changes() {
  using enum Fate;
  return {{"model.vocabulary", {kept, {"model.vocabulary=40"}}},
          {"model.layers", {kept, {"model.layers=3"}}},
          {"model.width", {kept, {"model.width=20"}}},
          {"model.heads", {kept, {"model.heads=4"}}},
          {"model.depth", {kept, {"model.depth=5"}}},
          {"model.inner", {kept, {"model.inner=20"}}},
          {"model.positions", {refused, {"model.positions=shaw", "model.position_rows=64"}}},
          {"model.shaw_terms", {left_out, {"model.shaw_terms=abcd"}}},  // of positions shaw alone
          {"model.tie_position_biases", {kept, {"model.tie_position_biases=false"}}},
          {"model.pre_norm", {kept, {"model.pre_norm=true"}}},
          {"model.intermediate_losses", {refused, {"model.intermediate_losses=true", "model.cutoffs=[]"}}},
          {"model.second_target", {refused, {"model.second_target=0.5", "model.cutoffs=[]"}}},
          {"model.memory", {kept, {"model.memory=4"}}},
          {"model.visibility", {settable, {"model.visibility=last_memory_plus_1"}}},
          {"model.memory_start", {settable, {"model.memory_start=empty"}}},
          {"model.clamp", {kept, {"model.clamp=3"}}},
          {"model.embedding_width", {kept, {"model.embedding_width=8"}}},
          {"model.cutoffs", {kept, {"model.cutoffs=[5]"}}},
          {"model.divisor", {kept, {"model.divisor=1"}}},
          {"model.cluster_order", {left_out, {"model.cluster_order=reversed"}}},   // rows are turned
          {"model.tie_projections", {left_out, {"model.tie_projections=false"}}},  // as untied_projections
          {"model.tie_tables", {kept, {"model.tie_tables=false"}}},
          {"model.untied_projections", {kept, {"model.untied_projections=[0]"}}},
          {"model.project_same_width", {refused, {"model.project_same_width=false"}}},
          {"model.dropout", {kept, {"model.dropout=0.1"}}},
          {"model.attention_dropout", {kept, {"model.attention_dropout=0.1"}}},
          {"model.dropout_over_time", {left_out, {"model.dropout_over_time=true"}}},
          {"model.word_dropout", {left_out, {"model.word_dropout=0.1"}}},
          {"model.norm_epsilon", {kept, {"model.norm_epsilon=1e-4"}}},
          {"model.init", {left_out, {"model.init=uniform"}}},
          {"model.init_deviation", {left_out, {"model.init_deviation=0.1"}}},
          {"model.init_range", {left_out, {"model.init_range=0.2"}}},
          {"model.embedding_init", {left_out, {"model.embedding_init=uniform"}}},
          {"model.embedding_init_range", {left_out, {"model.embedding_init_range=0.2"}}},
          {"model.projection_init_deviation", {left_out, {"model.projection_init_deviation=0.1"}}},
          {"model.norm_init_deviation", {left_out, {"model.norm_init_deviation=0.1"}}},
          {"model.attention_memory", {left_out, {"model.attention_memory=1"}}},
          {"product_key.count", {refused, kMemory}},
          {"product_key.layers", {refused, {"product_key.layers=[1]"}}}};
}

TransformerXlOptions options_with(const std::vector<std::string>& overrides) {
  return parse_run_config(export_config(), "test", overrides).model.transformer_xl;
}

std::string refusal_of(const TransformerXlOptions& options) {
  return message_of<UsageError>([&] { require_transfo_xl_class(options); });
}

/// The options that config.json says.
RunConfig read_back(const TransformerXlOptions& options) {
  const std::string written = transfo_xl_config_json({.options = options}, -1).dump();
  RunConfig back;
  back.model.family = ModelFamily::transformer_xl;
  back.model.transformer_xl = read_transfo_xl_config(nlohmann::json::parse(written), {}, "test").options;
  return back;
}

TEST_CASE("export: every key of the family is written, left out on purpose, or refused by name") {
  const std::map<std::string, Change> all = changes();
  std::set<std::string> seen;
  for (const ConfigKey& key : config_keys(ModelFamily::transformer_xl)) {
    const std::string name = key.full_name();
    // The family is another message; position_rows is of positions that are refused, and the rest of a memory of count
    // and layers.
    if (key.section != "model" && key.section != "product_key") continue;
    if (name == "model.family" || name == "model.position_rows") continue;
    if (key.section == "product_key" && name != "product_key.count" && name != "product_key.layers") continue;
    CAPTURE(name);
    REQUIRE(all.contains(name));  // a new key: say here what becomes of it
    seen.insert(name);
    const auto& [fate, overrides] = all.at(name);
    const RunConfig changed = parse_run_config(export_config(), "test", overrides);
    CHECK(key.write(changed) != key.write(parse_run_config(export_config(), "test")));
    const TransformerXlOptions& options = changed.model.transformer_xl;
    const std::string said = refusal_of(options);
    if (fate == Fate::refused || fate == Fate::settable) {
      CHECK_THAT(said, ContainsSubstring("got 1 option ") && ContainsSubstring("\n  " + name + " must be ") &&
                           ContainsSubstring(fate == Fate::settable ? "this one can with --set " + name + "="
                                                                    : "only a model that is trained so"));
      continue;
    }
    CHECK(said.empty());
    if (fate == Fate::kept) CHECK(key.write(read_back(options)) == key.write(changed));
    TransformerXlModel model(options);
    ParameterStore store;
    collect(model, store);
    std::size_t parameters = 0;
    for (const TransfoXlTensor& tensor : transfo_xl_tensors(options)) {
      for (const std::string& parameter : tensor.parameters) CHECK(store.find(parameter) != nullptr);
      parameters += tensor.parameters.size();
    }
    CHECK(parameters == store.parameters().size());
  }
  CHECK(seen.size() == all.size());
}

TEST_CASE("export: all reasons stand in one message, with the settings that help where settings do") {
  std::vector<std::string> overrides = kMemory;
  for (const char* const more : {"model.positions=shaw", "model.position_rows=64", "model.memory_start=empty",
                                 "model.visibility=last_memory_plus_1", "model.project_same_width=false"})
    overrides.emplace_back(more);
  CHECK_THAT(refusal_of(options_with(overrides)),
             ContainsSubstring("got 5 options") && ContainsSubstring("model.positions must be relative, got shaw") &&
                 ContainsSubstring("model.project_same_width must be true") &&
                 ContainsSubstring("product_key.count must be 0, got 1") &&
                 ContainsSubstring("model.memory_start must be zeros, got empty") &&
                 ContainsSubstring("model.visibility must be all or last_memory") &&
                 ContainsSubstring("only a model that is trained so can be exported"));
  CHECK_THAT(
      refusal_of(options_with({"model.memory_start=empty", "model.visibility=last_memory_plus_1"})),
      ContainsSubstring("got 2 options") &&
          ContainsSubstring("this one can with --set model.memory_start=zeros --set model.visibility=last_memory, "));
  CHECK(refusal_of(options_with({"model.memory_start=empty", "model.memory=0"})).empty());
}

TEST_CASE("export: runs are refused with all reasons, and one that is trained with defaults goes with a setting") {
  const RunFolder folder(2000);
  const auto train = [&](const std::string& out, const std::vector<std::string>& overrides) {
    TrainingRunOptions options = run_options(folder, out);
    options.config = put_file(folder / "xl.toml", export_config());
    options.overrides = {"model.vocabulary=0", "model.cutoffs=[]", "model.divisor=1", "model.memory_start=empty"};
    options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
    run_training(options, never());
    return options.out;
  };
  const fs::path out = folder / "not" / "yet" / "model.safetensors";
  const auto refusal = [&](const TransfoXlExport& from) {
    const std::string said = message_of<UsageError>([&] { export_transfo_xl(from); });
    CHECK_FALSE(fs::exists(folder / "not"));
    return said;
  };
  const fs::path with_memory = train("memory", kMemory);
  CHECK_THAT(refusal({.run = with_memory, .out = out, .settings = {"model.memory_start=zeros"}}),
             ContainsSubstring("got 1 option ") && ContainsSubstring("product_key.count must be 0, got 1"));
  CHECK_THAT(refusal({.run = with_memory, .out = out}), ContainsSubstring("got 2 options"));

  const fs::path plain = train("plain", {});
  CHECK_THAT(refusal({.run = plain, .out = out}),
             ContainsSubstring("model.memory_start must be zeros, got empty") &&
                 ContainsSubstring("this one can with --set model.memory_start=zeros"));
  const fs::path own = checkpoint_path(plain, CheckpointKind::newest);
  CHECK_THAT(refusal({.run = plain, .out = own, .settings = {"model.memory_start=zeros"}}),
             ContainsSubstring("--out must be another file"));
  // As docs/guide/interop.md shows it; the folder is made.
  const TransfoXlExported exported = export_transfo_xl(
      {.run = plain, .kind = CheckpointKind::best, .out = out, .settings = {"model.memory_start=zeros"}});
  CHECK(fs::exists(out));
  CHECK(exported.config == folder / "not" / "yet" / "config.json");
  CHECK(nlohmann::json::parse(get_file(exported.config)).at("mem_len") == 8);

  // What Engram has written for itself is no file of another program, the run's folder included.
  for (const fs::path& path : {plain, own})
    CHECK_THAT(message_of<UsageError>([&] { import_transfo_xl({.weights = path, .out = folder / "never"}); }),
               ContainsSubstring("'" + path.string() + "' must be weights of another program, got Engram's own") &&
                   ContainsSubstring("they need no import"));
}

}  // namespace
}  // namespace engram::harness::transfo_xl_refusals_test
