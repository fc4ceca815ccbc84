/// Configurations: reading, writing, strictness, and what an error says.

#include "apps/run/config/run_config_file.hpp"

#include <map>

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_review.hpp"
#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"
#include "tests/apps/run/config/smallest_config.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::run_config_test {
namespace {

using harness::kSmallestConfig;
using harness::message_of;
using harness::parse;
using harness::refusal;

TEST_CASE("a configuration is read, with defaults for what is not said") {
  const RunConfig config = parse("[training]\nbatch = 8\nspan_loss = 1e-7\nseed = 18446744073709551615\n");
  CHECK(config.model.all_attention.layers == 2);
  CHECK(config.model.all_attention.vocabulary == 0);
  CHECK(config.model.all_attention.memory_mode == MemoryMode::all);
  CHECK(config.schedule.rate == 0.07);
  CHECK(config.training.batch == 8);
  CHECK(config.training.block == 512);
  CHECK(config.training.span_loss == 1e-7);
  CHECK(config.training.seed == 18446744073709551615u);
  CHECK(config.total_steps() == 10);
}

TEST_CASE("choices are read by name, quoted or not; overrides win") {
  const RunConfig config = parse_run_config(
      "[model]\nlayers = 1\nwidth = 8\nheads = 2\nmax_span = 64\nmemory_mode = \"none\"\npad = 'mask'\n"
      "span = \"fixed\"\nramp_gradient = \"open\"\n[schedule]\nrate = 1\nsteps = 5\ndecay = \"cosine\"\n",
      "test.toml", {"schedule.steps=99", "model.dropout = 0.25", "training.split=4", "optimizer.kind=\"sgd\""});
  CHECK(config.model.all_attention.memory_mode == MemoryMode::none);
  CHECK(config.model.all_attention.pad == Pad::mask);
  CHECK(config.model.all_attention.span == SpanKind::fixed);
  CHECK(config.model.all_attention.ramp_gradient == RampGradient::open);
  CHECK(config.schedule.decay == Schedule::Decay::cosine);
  CHECK(config.schedule.steps == 99);
  CHECK(config.model.all_attention.dropout == 0.25);
  CHECK(config.training.split == 4);
  CHECK(config.optimizer.kind == OptimizerKind::sgd);
}

TEST_CASE("schedules of Transformer-XL have names; a decay must end after its warm-up") {
  const RunConfig config = parse("", {"schedule.decay=cosine_from_start", "schedule.clock=full_first"});
  CHECK(config.schedule.decay == Schedule::Decay::cosine_from_start);
  CHECK(config.schedule.clock == Schedule::Clock::full_first);
  CHECK(parse("", {"schedule.clock=completed"}).schedule.clock == Schedule::Clock::completed);
  CHECK(parse("", {"schedule.decay=inverse_root"}).schedule.decay == Schedule::Decay::inverse_root);
  CHECK(parse("", {"schedule.decay=plateau"}).schedule.decay == Schedule::Decay::plateau);
  CHECK_THAT(refusal("", {"schedule.plateau_factor=1"}), ContainsSubstring("plateau_factor"));
  CHECK_THAT(refusal("", {"schedule.decay=cosine", "schedule.steps=9", "schedule.warmup=9"}),
             ContainsSubstring("steps 9 and warmup 9"));
}

TEST_CASE("how gradients are clipped follows the optimiser unless it is said") {
  CHECK(parse("").optimizer.clip_kind == ClipKind::per_tensor_step);
  CHECK(parse("[optimizer]\nkind = \"adam\"\n").optimizer.clip_kind == ClipKind::global);
  CHECK(parse("", {"optimizer.kind=adam"}).optimizer.clip_kind == ClipKind::global);
  CHECK(parse("[optimizer]\nclip_kind = \"gradient\"\n").optimizer.clip_kind == ClipKind::per_tensor_gradient);
  CHECK_THAT(refusal("[optimizer]\nkind = \"adam\"\nclip_kind = \"step\"\n"), ContainsSubstring("clip_kind"));
  // As over the configuration of an imported model, which has every key.
  CHECK(parse("[optimizer]\nclip_kind = \"step\"\n", {"optimizer.kind=adam"}).optimizer.clip_kind == ClipKind::global);
  CHECK(
      parse("[optimizer]\nkind = \"adam\"\nclip_kind = \"global\"\n", {"optimizer.kind=adagrad"}).optimizer.clip_kind ==
      ClipKind::per_tensor_step);
  CHECK(parse("[optimizer]\nclip_kind = \"gradient\"\n", {"optimizer.kind=adagrad"}).optimizer.clip_kind ==
        ClipKind::per_tensor_gradient);
  CHECK_THAT(refusal("", {"optimizer.kind=adam", "optimizer.clip_kind=step"}),
             ContainsSubstring("clip_kind must be global for adam") && ContainsSubstring("got step"));
}

/// Of the keys of [product_key] and of tables, values other than their defaults that are valid together; none: "1" is.
std::string other_memory_value(const std::string& name) {
  static const std::map<std::string, std::string> values{
      {"product_key.layers", "[1]"},         {"product_key.placement", "after"},   {"product_key.keys", "flat"},
      {"product_key.factors", "3"},          {"product_key.subkeys", "4"},         {"product_key.heads", "3"},
      {"product_key.selected", "5"},         {"product_key.query_width", "12"},    {"product_key.value_width", "10"},
      {"product_key.gate", "scalar"},        {"product_key.query_network", "mlp"}, {"product_key.query_hidden", "[5]"},
      {"product_key.query_norm", "rms"},     {"product_key.value_init", "zeros"},  {"product_key.value_dtype", "bf16"},
      {"product_key.projection", "true"},    {"product_key.unit_keys", "true"},    {"product_key.same_keys", "true"},
      {"product_key.shared_values", "true"}, {"optimizer.table_mode", "dense"},    {"optimizer.table_rate", "0.5"}};
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

/// Overrides that give every key of a family another value than its default, and are valid together.
std::vector<std::string> other_values(ModelFamily family) {
  RunConfig defaults;
  defaults.model.family = family;
  std::vector<std::string> overrides;
  for (const ConfigKey& key : config_keys(family)) {
    const std::string name = key.full_name();
    if (name == "model.memory_mode" || name == "optimizer.kind" || name == "optimizer.clip_kind") continue;
    const std::string now = key.write(defaults);
    std::string other = now == "true" ? "false" : now == "false" ? "true" : "1";
    if (name == "product_key.count") continue;     // not beside a list of layers
    if (name == "optimizer.table_kind") continue;  // row_adagrad has one mode
    if (const std::string memory = other_memory_value(name); !memory.empty()) other = memory;
    if (name == "model.family") other = std::string(name_of(family));
    if (family == ModelFamily::recurrent) {
      static const std::map<std::string, std::string> values{
          {"model.encoder", "hornn_gated"}, {"model.readout", "identity"}, {"model.missing", "zero"},
          {"model.carry", "none"},          {"model.layers", "2"},         {"training.loss_scale", "time_sum"}};
      if (const auto found = values.find(name); found != values.end()) other = found->second;
      if (name == "model.output_width" || name == "training.activations") continue;  // of n_gram; f32 alone
    }
    if (name == "model.inner" && family == ModelFamily::all_attention) other = "0";
    if (name == "model.vocabulary") other = "50";
    if (name == "model.cutoffs") other = "[3, 9]";
    if (name == "model.untied_projections") other = "[2]";
    if (name == "model.width") other = "30";
    // Tied tables of recurrent models are as wide as their states.
    if (name == "model.embedding_width") other = family == ModelFamily::recurrent ? "30" : "24";
    if (name == "model.heads") other = "3";
    if (name == "model.depth" || name == "model.memory" || name == "model.divisor") other = "2";
    if (name.ends_with("dropout")) other = "0.1234567890123";
    if (name == "model.pad") other = "mask";
    if (name == "model.span") other = "dynamic";
    if (name == "model.positions") other = "shaw";
    if (name == "model.shaw_terms") other = "abcd";
    if (name == "model.visibility") other = "last_memory";
    if (name == "model.memory_start") other = "zeros";
    if (name == "model.cluster_order") other = "reversed";
    if (name == "model.position_values") other = "own";
    if (name == "model.attention_init") other = "root";
    if (name == "model.activation") other = "relu";
    if (name == "model.init" || name == "model.embedding_init") other = "uniform";
    if (name == "model.table_init") other = "scaled";
    if (name == "model.ramp_gradient") other = "right";
    if (name == "model.intermediate_losses" || name == "model.second_target") continue;  // not with cutoffs
    if (name == "schedule.decay") continue;                                              // none goes with a plateau
    if (name == "schedule.clock") other = "completed";
    if (name == "schedule.finetune") other = "plateau";
    if (name == "schedule.plateau_factor") other = "0.25";
    if (name == "training.latest_half") continue;  // not with an extension
    if (name == "training.sample_prompt") other = R"("\"It\\\ncame\tto\u0000\u009b pass\"\u007f é")";
    if (name == "training.products" || name == "training.activations") other = "bf16";
    if (name == "schedule.rate") other = "3.0000000000000004e-05";
    if (name == "optimizer.epsilon_at") other = "uncorrected";
    if (name == "optimizer.table_epsilon_at") other = "corrected";
    if (name.ends_with("beta1") || name.ends_with("beta2") || name.ends_with("momentum")) other = "0.75";
    overrides.push_back(name + "=" + other);
  }
  return overrides;
}

TEST_CASE("what is written reads back to the same configuration, every key of it") {
  for (const ModelFamily family : kModelFamilies) {
    INFO(name_of(family));
    const std::string start = family == ModelFamily::all_attention ? kSmallestConfig : "[schedule]\nsteps = 10\n";
    const RunConfig config = parse_run_config(start, "test.toml", other_values(family));
    const RunConfig again = parse_run_config(to_toml(config), "again");
    CHECK(config_differences(config, again).empty());
    CHECK(to_toml(again) == to_toml(config));
    CHECK(again.model.family == family);
    CHECK(again.schedule.rate == 3.0000000000000004e-05);
    RunConfig plain;
    plain.model.family = family;
    CHECK(config_differences(plain, again).size() > 20);
  }
}

TEST_CASE("keys that do not go with the other values read back too") {
  const std::vector<std::string> overrides{"product_key.count=2", "optimizer.table_kind=row_adagrad",
                                           "product_key.subkeys=8", "product_key.gate=swish", "model.layers=5"};
  for (const ModelFamily family : {ModelFamily::transformer_xl, ModelFamily::product_key}) {
    std::vector<std::string> of_family = overrides;
    of_family.insert(of_family.begin(), {text("model.family=", name_of(family)), "model.width=16", "model.heads=2",
                                         "model.inner=8", "schedule.rate=0.1"});
    if (family == ModelFamily::transformer_xl)
      of_family.insert(of_family.end(), {"model.intermediate_losses=true", "model.second_target=0.25"});
    const RunConfig config = parse_run_config("[schedule]\nsteps = 10\n", "test.toml", of_family);
    CHECK(config.model.transformer_xl.second_target == (family == ModelFamily::transformer_xl ? 0.25 : 0));
    const RunConfig again = parse_run_config(to_toml(config), "again");
    CHECK(config_differences(config, again).empty());
    RunConfig others = again;
    others.model.memories().count = 1;
    others.optimizer.tables.kind = TableKind::adam;
    const std::vector<ConfigDifference> differences = config_differences(config, others);
    REQUIRE(differences.size() == 2);
    for (const ConfigDifference& difference : differences) CHECK(difference.refused);
  }
}

TEST_CASE("the width behind an n-gram readout reads back too") {
  const RunConfig config =
      parse_run_config("[schedule]\nsteps = 10\n", "test.toml",
                       {"model.family=recurrent", "model.width=30", "model.readout=n_gram", "model.parts=3",
                        "model.output_width=7", "model.window=2", "schedule.rate=0.1"});
  const RunConfig again = parse_run_config(to_toml(config), "again");
  CHECK(config_differences(config, again).empty());
  CHECK(again.model.recurrent.output_width == 7);
  CHECK(again.model.recurrent.hidden_width() == 7);
}

TEST_CASE("memories and tables: what has no effect is said") {
  const auto warnings = [](const std::vector<std::string>& overrides) {
    std::string all;
    for (const std::string& line : config_warnings(parse("", overrides))) all += line + "\n";
    return all;
  };
  CHECK_THAT(warnings({"product_key.subkeys=7", "optimizer.table_rate=0.1"}),
             ContainsSubstring("product_key.subkeys has no effect") &&
                 ContainsSubstring("optimizer.table_rate has no effect"));
  CHECK(warnings({"product_key.layers=1", "product_key.placement=after", "optimizer.table_rate=0.1"}).empty());
  CHECK_THAT(warnings({"product_key.layers=1", "product_key.placement=after", "product_key.selected=1"}),
             ContainsSubstring("product_key.selected 1"));
}

TEST_CASE("another family is one difference, and its keys are named") {
  const RunConfig plain = parse("");
  RunConfig other = plain;
  other.model.family = ModelFamily::transformer_xl;
  const std::vector<ConfigDifference> differences = config_differences(plain, other);
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].key == "model.family");
  CHECK(differences[0].refused);
  CHECK_THAT(refusal("", {"model.clamp=4"}), ContainsSubstring("model.clamp") && ContainsSubstring("transformer_xl"));
  CHECK_THAT(refusal("", {"model.family=transformer_xl"}),
             ContainsSubstring("model.slots") && ContainsSubstring("of all_attention"));
  CHECK_THAT(refusal("", {"model.family=lstm"}), ContainsSubstring("model.family") && ContainsSubstring("lstm"));
}

TEST_CASE("lists are written as arrays, and read from arrays and numbers with commas") {
  using Cutoffs = std::vector<std::int64_t>;
  CHECK(parse("").model.all_attention.cutoffs.empty());
  CHECK(parse("[model]\ncutoffs = [20000, 40000]  # words\n").model.all_attention.cutoffs == Cutoffs{20000, 40000});
  CHECK(parse("[model]\ncutoffs = []\n").model.all_attention.cutoffs.empty());
  CHECK(parse("", {"model.cutoffs=5,7"}).model.all_attention.cutoffs == Cutoffs{5, 7});
  CHECK(parse("", {"model.cutoffs=[5, 7]"}).model.all_attention.cutoffs == Cutoffs{5, 7});
  CHECK(parse("", {"model.cutoffs=6"}).model.all_attention.cutoffs == Cutoffs{6});
  CHECK(parse("[model]\ncutoffs = [5, 7]\n", {"model.cutoffs="}).model.all_attention.cutoffs.empty());
  CHECK(to_toml(parse("", {"model.cutoffs=5,7"})).find("\ncutoffs = [5, 7]\n") != std::string::npos);
  CHECK(to_toml(parse("")).find("\ncutoffs = []\n") != std::string::npos);
  for (const char* wrong : {"model.cutoffs=5,x", "model.cutoffs=5,", "model.cutoffs=,5", "model.cutoffs=[5",
                            "model.cutoffs=5 7", "model.cutoffs=1.5"})
    CHECK_THAT(refusal("", {wrong}), ContainsSubstring("model.cutoffs must be a list of integers"));
  // A list for a scalar, by file and by --set.
  for (const std::string& said : {refusal("[training]\nbatch = [3, 4]\n"), refusal("", {"training.batch=[3, 4]"})})
    CHECK_THAT(said, ContainsSubstring("training.batch must be an integer, got '[3, 4]'"));
  CHECK_THAT(refusal("[training]\nbatch = [3]\n"), ContainsSubstring("must be an integer, got '[3]'"));
  // What does not depend on the data is checked without them.
  CHECK_THAT(refusal("", {"model.cutoffs=7,5"}), ContainsSubstring("increase, got 5 after 7"));
  CHECK_THAT(refusal("", {"model.cutoffs=1,2,3"}), ContainsSubstring("16 / 4^3"));
  CHECK_THAT(refusal("", {"model.cutoffs=5,7", "model.vocabulary=6"}), ContainsSubstring("vocabulary of 6"));
}

TEST_CASE("a key that does not exist is named with the nearest one and where it is") {
  CHECK_THAT(refusal("[model]\nhedas = 3\n"),
             ContainsSubstring("model.hedas") && ContainsSubstring("'model.heads'") && ContainsSubstring("test.toml"));
  CHECK_THAT(refusal("[training]\nwidth = 3\n"), ContainsSubstring("'model.width'"));
  CHECK_THAT(refusal("[modle]\nx = 1\n"), ContainsSubstring("[modle]") && ContainsSubstring("[model]"));
  CHECK_THAT(refusal("", {"optimiser.clip=1"}), ContainsSubstring("'optimizer.clip'") && ContainsSubstring("--set"));
  CHECK_THAT(message_of<UsageError>([] { parse_run_config("widht = 3\n", "x"); }), ContainsSubstring("'model.width'"));
  CHECK(edit_distance("heads", "hedas") == 1);
  CHECK(edit_distance("heads", "hade") == 2);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("span", "span") == 0);
}

TEST_CASE("values of another type or range are refused with key, rule and value") {
  CHECK_THAT(refusal("[training]\nbatch = \"abc\"\n"),
             ContainsSubstring("training.batch") && ContainsSubstring("an integer") && ContainsSubstring("'\"abc\"'"));
  CHECK_THAT(refusal("[training]\nbatch = 1.5\n"), ContainsSubstring("'1.5'"));
  CHECK_THAT(refusal("", {"training.batch=64x"}), ContainsSubstring("'64x'"));
  CHECK_THAT(refusal("[training]\nbatch = 99999999999999999999\n"), ContainsSubstring("training.batch"));
  CHECK_THAT(refusal("[training]\nbatch = -4\n"), ContainsSubstring("batch") && ContainsSubstring("-4"));
  CHECK_THAT(refusal("[training]\nseed = -1\n"), ContainsSubstring("training.seed") && ContainsSubstring("-1"));
  CHECK_THAT(refusal("", {"schedule.rate=fast"}), ContainsSubstring("a number"));
  CHECK_THAT(refusal("", {"schedule.rate=nan"}), ContainsSubstring("a number"));
  CHECK_THAT(refusal("", {"schedule.rate=1e999"}), ContainsSubstring("a number"));
  CHECK_THAT(refusal("[model]\nspan = \"yes\"\n"), ContainsSubstring("\"adaptive\", \"fixed\", \"dynamic\""));
  CHECK_THAT(refusal("[model]\npad = \"zero\"\n"), ContainsSubstring("attend_zero") && ContainsSubstring("'zero'"));
}

TEST_CASE("lines that are no assignments, and keys given twice, are refused") {
  // Runs of older versions have the key by another name.
  CHECK(parse("[model]\nadaptive_span = true\n").model.all_attention.span == SpanKind::adaptive);
  CHECK(parse("[model]\nadaptive_span = false\n").model.all_attention.span == SpanKind::fixed);
  CHECK_THAT(refusal("[model]\nadaptive_span = true\nspan = \"fixed\"\n"), ContainsSubstring("given once"));
  CHECK_THAT(refusal("[training]\nbatch 8\n"), ContainsSubstring("batch 8") && ContainsSubstring("line "));
  CHECK_THAT(refusal("[training]\nx\n"), ContainsSubstring("'x'"));
  CHECK_THAT(refusal("[training\nbatch = 8\n"), ContainsSubstring("[training"));
  CHECK_THAT(refusal("[training]\nbatch =\n"), ContainsSubstring("batch ="));
  CHECK_THAT(refusal("[training]\nbatch = 8\nbatch = 9\n"),
             ContainsSubstring("training.batch") && ContainsSubstring("once"));
  CHECK_THAT(refusal("[model]\ncutoffs = [2, 3]\ncutoffs = [4]\n"),
             ContainsSubstring("model.cutoffs") && ContainsSubstring("once"));
  CHECK_THAT(refusal("[training]\nbatch = 8 9\n"), ContainsSubstring("batch = 8 9"));
  CHECK_THAT(refusal("", {"batch=8"}), ContainsSubstring("section.key=value"));
  CHECK_THAT(refusal("", {"training.batch"}), ContainsSubstring("section.key=value"));
}

TEST_CASE("combinations that cannot work are refused by name") {
  CHECK_THAT(refusal("", {"training.batch=6", "training.split=4"}),
             ContainsSubstring("split") && ContainsSubstring("6"));
  CHECK_THAT(refusal("", {"training.block=0"}), ContainsSubstring("block") && ContainsSubstring("0"));
  CHECK_THAT(refusal("", {"training.span_loss=-1e-7"}), ContainsSubstring("span_loss"));
  CHECK_THAT(refusal("", {"training.report_every=0"}), ContainsSubstring("report_every"));
  CHECK_THAT(refusal("", {"training.finetune_steps=-1"}), ContainsSubstring("finetune_steps"));
  CHECK_THAT(refusal("", {"schedule.steps=0"}), ContainsSubstring("steps"));
  CHECK_THAT(refusal("", {"schedule.steps=4294967295", "training.finetune_steps=1"}), ContainsSubstring("together"));
  CHECK_THAT(refusal("", {"schedule.warmup=-1"}), ContainsSubstring("warmup"));
  CHECK_THAT(refusal("", {"model.heads=3"}), ContainsSubstring("heads") && ContainsSubstring("16"));
  CHECK_THAT(refusal("", {"model.slots=-2"}), ContainsSubstring("slots") && ContainsSubstring("-2"));
  CHECK_THAT(refusal("", {"model.max_span=0"}), ContainsSubstring("max_span"));
  CHECK_THAT(refusal("", {"model.ramp=0"}), ContainsSubstring("ramp"));
  CHECK_THAT(refusal("", {"model.dropout=1"}), ContainsSubstring("dropout"));
  CHECK_THAT(refusal("", {"model.span_init=1.5"}), ContainsSubstring("span_init"));
  CHECK_THAT(message_of<UsageError>([] { parse_run_config("", "empty.toml"); }), ContainsSubstring("empty.toml"));
}

TEST_CASE("a file that cannot be read is an error that names it") {
  const harness::TemporaryFolder folder;
  CHECK_THAT(message_of<FileError>([&] { load_run_config(folder / "none.toml"); }), ContainsSubstring("none.toml"));
  const auto file = harness::put_file(folder / "run.toml", kSmallestConfig);
  CHECK(load_run_config(file, {"model.layers=5"}).model.all_attention.layers == 5);
}

TEST_CASE("doubtful settings are said, usual ones are not") {
  CHECK(config_warnings(parse("", {"model.ramp=32"})).empty());
  CHECK(config_warnings(parse("", {"model.max_span=16"})).size() == 1);
  CHECK(config_warnings(parse("", {"model.memory_mode=none", "model.slots=0"})).size() == 1);
  CHECK(config_warnings(parse("", {"model.span=fixed", "training.span_loss=1"})).size() == 1);
  CHECK(config_warnings(parse("", {"model.tie_tables=false"})).size() == 1);
  CHECK(config_warnings(parse("", {"model.tie_tables=false", "model.cutoffs=5"})).empty());
  const auto xl = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"model.family=transformer_xl", "model.layers=1", "model.width=4",
                                         "model.heads=2", "model.inner=4"});
    return config_warnings(parse_run_config("[schedule]\nrate = 1\nsteps = 10\n", "test.toml", overrides)).size();
  };
  CHECK(xl({}) == 0);
  CHECK(xl({"model.init_range=0.2"}) == 1);
  CHECK(xl({"model.embedding_init_range=0.2"}) == 1);
  CHECK(xl({"model.init=uniform", "model.init_deviation=0.1"}) == 1);
  CHECK(xl({"model.init=uniform", "model.embedding_init=normal", "model.init_deviation=0.1"}) == 0);
  CHECK(xl({"model.init=uniform", "model.init_range=0.2", "model.embedding_init=uniform",
            "model.embedding_init_range=0.3"}) == 0);
}

TEST_CASE("differences are listed key by key, and what would be another model is marked") {
  const auto differences = config_differences(parse(""), parse("", {"model.slots=9", "training.report_every=7"}));
  REQUIRE(differences.size() == 2);
  CHECK(differences[0].key == "model.slots");
  CHECK(differences[0].before == "8");
  CHECK(differences[0].after == "9");
  CHECK(differences[0].refused);
  CHECK(differences[1].key == "training.report_every");
  CHECK_FALSE(differences[1].refused);
  const auto epsilon = config_differences(parse(""), parse("", {"optimizer.epsilon_at=uncorrected"}));
  REQUIRE(epsilon.size() == 1);
  CHECK(epsilon[0].key == "optimizer.epsilon_at");
  CHECK(epsilon[0].after == "\"uncorrected\"");
  CHECK_FALSE(epsilon[0].refused);
}

TEST_CASE("the help lists every key with its default, marks those without one, and is a configuration itself") {
  for (const ModelFamily family : kModelFamilies) {
    RunConfig defaults;
    defaults.model.family = family;
    const std::string help = config_help(family);
    const RunConfig copied = parse_run_config(help, "the help");
    for (const ConfigKey& key : config_keys(family)) {
      CAPTURE(name_of(family), key.full_name());
      CHECK_FALSE(key.meaning.empty());
      if (!is_required(key, defaults)) {
        CHECK_THAT(help, ContainsSubstring(std::string(key.name) + " = " + key.write(defaults)));
        CHECK(key.write(copied) == key.write(defaults));
        continue;
      }
      CHECK_THAT(help, ContainsSubstring("# required: " + std::string(key.meaning)));
      // It is one: the default is refused.
      CHECK_THROWS_AS(parse_run_config(help, "the help", {key.full_name() + "=" + key.write(defaults)}), UsageError);
    }
    // How gradients are clipped follows the optimiser, which the copy may change.
    for (const char* kind : {"adam", "sgd"})
      CHECK(parse_run_config(help, "the help", {text("optimizer.kind=", kind)}).optimizer.clip_kind ==
            ClipKind::global);
  }
}

}  // namespace
}  // namespace engram::run_config_test
