/// What is said of configurations that are wrong or doubtful: which part, where it comes from, and in which words.

#include <set>

#include "apps/run/config/config_review.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "tests/apps/run/config/smallest_config.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::config_messages_test {
namespace {

using harness::message_of;
using harness::parse;
using harness::refusal;

TEST_CASE("strings are no numbers, and bytes that are no text are escaped") {
  CHECK_THAT(
      refusal("[training]\nbatch = \"8\"\n"),
      ContainsSubstring("training.batch must be an integer, got '\"8\"'") && ContainsSubstring("test.toml, line "));
  CHECK_THAT(refusal("", {"training.batch=\"8\""}), ContainsSubstring("got '\"8\"'"));
  CHECK_THAT(refusal("[training]\nspan_loss = '1e-7'\n"), ContainsSubstring("a number"));
  CHECK_THAT(refusal("[model]\ncutoffs = [\"3\", \"9\"]\n"), ContainsSubstring("a list of integers"));
  CHECK_THAT(refusal("[model]\ntie_tables = \"true\"\n"), ContainsSubstring("true or false"));
  CHECK(parse("[model]\npad = \"mask\"  # the '#' of a comment\n").model.all_attention.pad == Pad::mask);

  const std::string rubbish = refusal(
      "\x7f"
      "ELF\x01\x1b[2J\xff\xfe\xc2\x9b\n");
  CHECK_THAT(rubbish, ContainsSubstring("got '\\x7fELF\\x01\\x1b[2J\\xff\\xfe\\xc2\\x9b'"));
  CHECK_THAT(refusal("[model]\n\"\\u0001\" = 3\n"), ContainsSubstring("'model.\"\\x01\"'"));
  CHECK_THAT(refusal("[model]\npad = \"\\u0002\"\n"), ContainsSubstring("got '\\x02'"));
  CHECK_THAT(refusal("[model]\npad = \x02\n"), ContainsSubstring("got 'pad = \\x02'"));
  CHECK_THAT(refusal("gr\xc3\xbc\xc3\x9f\n"), ContainsSubstring("gr\xc3\xbc\xc3\x9f"));
  CHECK(refusal(std::string(100000, 'x')).size() < 1000);
}

TEST_CASE("what a rule refuses is blamed on what gave it") {
  CHECK_THAT(refusal("", {"schedule.steps=0"}), EndsWith("\n  in --set schedule.steps=0 (or --steps), over test.toml"));
  CHECK_THAT(refusal("", {"model.heads=3", "training.seed=7"}), EndsWith("\n  in --set model.heads=3, over test.toml"));
  CHECK_THAT(refusal("", {"model.width=15", "model.heads=4"}), EndsWith("\n  in --set model.width=15, over test.toml"));
  CHECK_THAT(refusal("", {"model.slots=0", "model.slots=0"}),
             EndsWith("\n  in --set model.slots=0, --set model.slots=0, over test.toml"));
  // The file's own fault, whatever else is given.
  CHECK_THAT(refusal("[training]\nbatch = 0\n", {"model.dropout=0.1"}),
             ContainsSubstring("got 0") && EndsWith("\n  in test.toml"));
  CHECK_THAT(refusal("", {"training.seed=-1"}), EndsWith("\n  in --set training.seed=-1 (or --seed)"));
  CHECK_THAT(refusal("", {"schedule.decay=cosine", "schedule.warmup=4", "schedule.steps=4"}),
             ContainsSubstring("--set schedule.warmup=0;"));
}

TEST_CASE("all keys that must be given are named in one error") {
  CHECK_THAT(
      message_of<UsageError>([] { parse_run_config("", "empty.toml"); }),
      StartsWith("config: model.layers, model.width, model.heads, model.slots, model.max_span, schedule.rate and "
                 "schedule.steps must be given") &&
          ContainsSubstring("in empty.toml") && ContainsSubstring("engram keys all_attention"));
  CHECK_THAT(
      message_of<UsageError>([] { parse_run_config("[schedule]\nrate = 1\n", "x", {"model.family=recurrent"}); }),
      StartsWith("config: model.width and schedule.steps must be given"));
  // Which ones depends on the memory mode.
  CHECK_THAT(message_of<UsageError>([] {
               parse_run_config("[model]\nmemory_mode = \"transformer\"\nlayers = 1\nwidth = 4\nheads = 1\n", "x",
                                {"schedule.rate=1", "schedule.steps=1", "model.max_span=8"});
             }),
             StartsWith("config: model.inner must be given"));
  CHECK_THAT(refusal("", {"model.layers=0"}), ContainsSubstring("model: layers must be from 1 to 4096, got 0"));
}

TEST_CASE("the keys that a text and overrides give are known, however they are written") {
  using Keys = std::set<std::string>;
  CHECK(given_keys("[training]\nproducts = \"bf16\"\n", "x", {"training.activations = bf16", " model.width =3"}) ==
        Keys{"training.products", "training.activations", "model.width"});
  CHECK(given_keys("", "x").empty());
}

TEST_CASE("keys that their optimiser, schedule or readout does not look at are said") {
  const auto warned = [](std::vector<std::string> overrides) {
    std::string all;
    for (const std::string& line : config_warnings(parse("", overrides))) all += line + "\n";
    return all;
  };
  for (const char* kind : {"adagrad", "sgd"})
    for (const char* key : {"weight_decay", "beta1", "beta2", "epsilon"})
      CHECK(warned({text("optimizer.kind=", kind), text("optimizer.", key, "=0.5")}) ==
            text("optimizer.", key, " has no effect with optimizer.kind ", kind, "\n"));
  CHECK(warned({"optimizer.momentum=0.9"}) == "optimizer.momentum has no effect with optimizer.kind adagrad\n");
  CHECK(warned({"optimizer.kind=adam", "optimizer.momentum=0.9"}) ==
        "optimizer.momentum has no effect with optimizer.kind adam\n");
  CHECK(warned({"optimizer.kind=sgd", "optimizer.momentum=0.9"}).empty());
  CHECK(warned({"optimizer.kind=adam", "optimizer.nesterov=true"}) ==
        "optimizer.nesterov has no effect with optimizer.kind adam\n");
  CHECK(warned({"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true"}).empty());
  CHECK(warned({"optimizer.kind=adam", "optimizer.weight_decay=0.5", "optimizer.beta1=0.5", "optimizer.epsilon=1e-6"})
            .empty());
  CHECK_THAT(warned({"schedule.plateau_factor=0.3", "schedule.plateau_patience=2"}),
             ContainsSubstring("schedule.plateau_factor has no effect unless schedule.decay is plateau") &&
                 ContainsSubstring("schedule.plateau_patience"));
  CHECK(warned({"schedule.decay=plateau", "schedule.plateau_factor=0.3", "schedule.plateau_patience=2"}).empty());
  CHECK_THAT(warned({"schedule.plateau_validations=3", "schedule.plateau_margin=0.1"}),
             ContainsSubstring("schedule.plateau_validations has no effect unless schedule.finetune is plateau") &&
                 ContainsSubstring("schedule.plateau_margin"));
  CHECK(warned({"schedule.finetune=plateau", "schedule.plateau_validations=3"}).empty());
  CHECK_THAT(warned({"schedule.final_share=0.1"}),
             ContainsSubstring("schedule.final_share has no effect with schedule.decay none"));
  CHECK(warned({"schedule.final_share=0.1", "schedule.decay=linear"}).empty());
  CHECK_THAT(warned({"optimizer.span_rate_share=0.1", "model.span=fixed"}),
             ContainsSubstring("optimizer.span_rate_share has no effect unless model.span is adaptive"));
  CHECK(warned({"optimizer.span_rate_share=0.1", "model.span=adaptive"}).empty());
  const auto recurrent = [](const std::string& readout) {
    return config_warnings(parse_run_config("[schedule]\nrate = 1\nsteps = 10\n", "test.toml",
                                            {"model.family=recurrent", "model.width=12", "model.parts=2", readout}));
  };
  CHECK(recurrent("model.readout=attention") ==
        std::vector<std::string>{"model.parts has no effect unless model.readout is n_gram"});
  CHECK(recurrent("model.readout=n_gram").empty());
  const auto said = [](std::vector<std::string> overrides, const std::string& key, const std::string& reason) {
    overrides.insert(overrides.end(), {"model.family=recurrent", "model.width=12", "model.readout=identity"});
    const std::vector<std::string> got =
        config_warnings(parse_run_config("[schedule]\nrate = 1\nsteps = 10\n", "test.toml", overrides));
    CHECK(got == std::vector<std::string>{"model." + key + " has no effect " + reason});
  };
  said({"model.inner_width=5"}, "inner_width", "with one layer");
  said({"model.layer_dropout=0.5"}, "layer_dropout", "with one layer");
  said({"model.taps=3"}, "taps", "unless model.encoder is qrnn");
  said({"model.inner_taps=3", "model.encoder=qrnn"}, "inner_taps", "with one layer");
  said({"model.divisor=2"}, "divisor", "without model.cutoffs");
  said({"model.dropout_over_time=true", "model.word_dropout=0.1"}, "dropout_over_time",
       "without model.input_dropout, model.layer_dropout or model.output_dropout");
}

}  // namespace
}  // namespace engram::config_messages_test
