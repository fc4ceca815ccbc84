/// Every command of the program with runs of the recurrent family: what works, and one clear message of each that is
/// for other families.

#include "apps/run/training/training_run.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::recurrent_commands_test {
namespace {

/// Runs of nine steps over articles, with two seeds, and one over flat text.
struct Runs {
  ArticleFolder folder;
  std::string run, other, flat, data = folder.data().string(), flat_data = folder.flat().string();

  Runs() {
    const std::vector<std::string> keys{"schedule.steps=9", "training.gradient_report=true"};
    TrainingRunOptions options = recurrent_run(folder, "run", keys);
    run_training(options, never());
    run = options.out.string();
    options.out = folder / "other";
    options.overrides.emplace_back("training.seed=3");
    run_training(options, never());
    other = options.out.string();
    options.out = folder / "flat-run";
    options.data = folder.flat();
    run_training(options, never());
    flat = options.out.string();
  }
};
const Runs& runs() {
  static const Runs made;
  return made;
}

std::string output(const Arguments& arguments) {
  CAPTURE(arguments);
  const ProcessResult result = run_engram(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}
nlohmann::json object(Arguments arguments) {
  arguments.emplace_back("--json");
  return nlohmann::json::parse(output(arguments));
}
void check_refused(const Arguments& arguments, const std::string& what, const std::string& got = "recurrent") {
  CAPTURE(arguments);
  const ProcessResult result = run_engram(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring(what) && ContainsSubstring(got));
}

TEST_CASE("command line: runs of the recurrent family are evaluated in every way", "[recurrent]") {
  const Runs& with = runs();
  const nlohmann::json usual = object({"evaluate", with.run, "--data", with.data, "--split", "test"});
  CHECK(usual.at("way") == "articles");
  CHECK(usual.at("tokens") == usual.at("tokens_in_split"));
  for (const Arguments& more :
       {Arguments{"--exact"}, {"--batch", "2", "--block", "5"}, {"--block", "7", "--carry", "detached"}}) {
    Arguments arguments{"evaluate", with.run, "--data", with.data, "--split", "test"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CHECK(object(arguments).at("nll").get<double>() == Approx(usual.at("nll").get<double>()).epsilon(1e-6));
  }
  const auto nll_without = [&](const char* block) {
    return object({"evaluate", with.run, "--data", with.data, "--split", "test", "--carry", "none", "--block", block})
        .at("nll")
        .get<double>();
  };
  CHECK(nll_without("1000") == Approx(usual.at("nll").get<double>()).epsilon(1e-6));
  CHECK(nll_without("2") != Approx(usual.at("nll").get<double>()).epsilon(1e-6));
  CHECK(object({"evaluate", with.run, "--data", with.data, "--dtype", "f64"}).at("nll").get<double>() > 0);
  CHECK(object({"evaluate", with.run, "--data", with.data, "--window", "8"}).at("way") == "sliding");
  CHECK(object({"evaluate", with.run, "--data", with.data, "--window", "8", "--apart"}).at("way") == "windows");
  const nlohmann::json exact = object({"evaluate", with.flat, "--data", with.flat_data, "--exact"});
  CHECK(exact.at("way") == "exact");
  CHECK(exact.at("batch") == 1);
  CHECK(object({"evaluate", with.flat, "--data", with.flat_data}).at("way") == "paper");
  check_refused({"evaluate", with.flat, "--data", with.flat_data, "--exact", "--batch", "3"},
                "--exact must have one stream", "got --batch 3");
  check_refused({"evaluate", with.flat, "--data", with.flat_data, "--exact", "--batch", "3", "--carry", "none"},
                "--exact must have one stream", "--carry detached");
  check_refused({"evaluate", with.run, "--data", with.data, "--carry", "some"}, "--carry: must be detached or none",
                "'some'");
}

TEST_CASE("command line: runs of the recurrent family generate, and show their gradients and context", "[recurrent]") {
  const Runs& with = runs();
  for (const std::string& run : {with.run, with.flat}) {
    const Arguments generate{"generate", run, "--length", "30"};
    CHECK(output(generate) == output(generate));
    CHECK(output(generate).size() >= 30);
  }
  CHECK_THAT(output({"gradients", with.run}),
             ContainsSubstring("encoder.recurrent") && ContainsSubstring("readout.score"));
  CHECK_THAT(output({"keys", "recurrent"}),
             ContainsSubstring("readout = \"key_value_predict\"") && ContainsSubstring("loss_scale"));
  const nlohmann::json recl = object({"recl", with.run, with.other, "--data", with.data, "--split", "test", "--first",
                                      "4", "--step", "8", "--longest", "30", "--positions", "20"});
  for (const nlohmann::json& of : recl.at("runs")) {
    CHECK(of.at("reads_at_most").is_null());
    CHECK(of.at("mean_losses").size() == 4);
    for (const nlohmann::json& loss : of.at("mean_losses")) CHECK(loss.get<double>() > 0);
  }
  const std::string config = (with.folder / "recurrent.toml").string();
  CHECK_THAT(output({"count", "--config", config, "--vocab", "13"}),
             ContainsSubstring("encoder") && ContainsSubstring("readout"));
}

TEST_CASE("command line: recl compares a Transformer-XL, a QRNN and LSTMs over clusters of one vocabulary",
          "[recurrent][night]") {
  const ArticleFolder folder(7);
  const auto train = [&](const std::string& name, const std::string& model) {
    TrainingRunOptions options = recurrent_run(folder, name, {"schedule.steps=9"});
    const std::string rest = recurrent_config();
    options.config = put_file(folder / (name + ".toml"),
                              "[model]\ncutoffs = [3, 6]\n" + model + rest.substr(rest.find("[optimizer]")));
    options.data = folder.flat();
    run_training(options, never());
    return options.out.string();
  };
  // The first group of Transformer-XL's table 8, and the LSTM of its table 1.
  const std::string shared = "family = \"recurrent\"\nembedding_width = 8\nwidth = 8\nreadout = \"identity\"\n",
                    dropped =
                        "divisor = 1\ntie_tables = true\ninput_dropout = 0.1\nlayer_dropout = 0.1\n"
                        "output_dropout = 0.1\ndropout_over_time = true\ninner_width = 12\n",
                    lstm = train("lstm", shared + dropped + "layers = 3\n"),
                    qrnn = train("qrnn", shared + dropped + "layers = 4\nencoder = \"qrnn\"\ninner_taps = 1\n"),
                    adaptive = train("adaptive", shared + "divisor = 2\n"),
                    xl = train("xl",
                               "family = \"transformer_xl\"\nlayers = 2\nwidth = 8\nheads = 2\ninner = 12\n"
                               "memory = 12\n");
  const std::string data = folder.flat().string();
  const nlohmann::json group = object({"recl", xl, qrnn, lstm, "--data", data, "--split", "test", "--first", "4",
                                       "--step", "8", "--longest", "28", "--positions", "20"});
  REQUIRE(group.at("runs").size() == 3);
  for (const nlohmann::json& of : group.at("runs")) {
    CHECK(of.at("reads_at_most").is_null());
    CHECK(of.at("mean_losses").size() == 4);
    for (const nlohmann::json& loss : of.at("mean_losses")) CHECK(loss.get<double>() > 0);
  }
  for (const std::string& run : {lstm, adaptive}) {
    const auto nll = [&](const Arguments& more) {
      Arguments arguments{"evaluate", run, "--data", data, "--split", "test", "--exact"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return object(arguments).at("nll").get<double>();
    };
    CHECK(nll({"--block", "7"}) == Approx(nll({})).epsilon(1e-5));
    CHECK(nll({"--cache", "20"}) != Approx(nll({})).epsilon(1e-5));
    CHECK(nll({"--cache", "20", "--cache-lambda", "0"}) == nll({}));
    CHECK(output({"generate", run, "--length", "20", "--seed", "3"}) ==
          output({"generate", run, "--length", "20", "--seed", "3"}));
  }
  CHECK_THAT(output({"count", "--config", (folder / "adaptive.toml").string(), "--data", data}),
             ContainsSubstring("words of the clusters") && ContainsSubstring("cluster_head"));
}

TEST_CASE("command line: what is for other families refuses runs of the recurrent one", "[recurrent]") {
  const Runs& with = runs();
  const std::string out = (with.folder / "out").string();
  check_refused({"spans", with.run}, "spans: the model must be of family all_attention");
  check_refused({"attention", with.run, "--text", "g o", "--layer", "0"},
                "attention: --layer is for models of the family all_attention");
  check_refused({"memory", with.run, "--data", with.data}, "memory: the model must have product-key memories");
  check_refused({"map", with.run, "--out", out}, "map: the model must have tables");
  check_refused({"lengths", with.run, "--data", with.data, "--lengths", "4"},
                "lengths: runs must be of family transformer_xl");
  check_refused({"export", with.run, "--to", "transfo-xl", "--out", out}, "export: the model must be of family");
  check_refused({"evaluate", with.run, "--data", with.data, "--mem-len", "4"}, "for models of family transformer_xl");
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("recurrent run: what cannot be trained is refused by name before anything is made", "[recurrent]") {
  const ArticleFolder folder;
  const auto refused = [&](const std::vector<std::string>& overrides, Device device = {}) {
    TrainingRunOptions options = recurrent_run(folder, "refused", overrides);
    options.device = device;
    try {
      run_training(options, never());
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  CHECK_THAT(refused({"training.activations=bf16"}),
             ContainsSubstring("training: activations must be f32") && ContainsSubstring("bf16"));
  for (const Device device : other_devices())
    CHECK_THAT(refused({"training.activations=bf16"}, device), ContainsSubstring("training: activations must be f32"));
  CHECK_THAT(refused({"model.width=23"}), ContainsSubstring("multiple of 3") && ContainsSubstring("21 and 24"));
  CHECK_THAT(refused({"model.window=0"}), ContainsSubstring("window must be from 1"));
  CHECK_THAT(refused({"model.decay=0"}), ContainsSubstring("decay must be above 0"));
  CHECK_THAT(refused({"model.readout=keys"}),
             ContainsSubstring("model.readout") && ContainsSubstring("\"key_value_predict\""));
  CHECK_THAT(refused({"model.encoder=gru"}),
             ContainsSubstring("model.encoder") && ContainsSubstring("\"hornn_gated\""));
  CHECK_THAT(refused({"model.heads=2"}),
             ContainsSubstring("model.heads") && ContainsSubstring("no key of family recurrent"));
  CHECK_THAT(refused({"model.layers=0"}), ContainsSubstring("layers must be from 1 to 4096, got 0"));
  CHECK_THAT(refused({"model.layer_dropout=1"}), ContainsSubstring("layer_dropout must be in [0, 1 - 2^-17), got 1"));
  CHECK_THAT(refused({"model.tie_tables=true", "model.readout=identity"}),
             ContainsSubstring("embedding_width must be 24 with tie_tables") && ContainsSubstring("got 8"));
  CHECK_THAT(refused({"model.readout=n_gram", "model.parts=0", "model.cutoffs=[3]"}),
             ContainsSubstring("parts must be from 1 to 16777216, got 0"));
  CHECK_THAT(refused({"model.cutoffs=[5, 3]"}), ContainsSubstring("cutoffs must increase, got 3 after 5"));
  CHECK_THAT(refused({"training.extension=2"}),
             ContainsSubstring("training.extension") && ContainsSubstring("of transformer_xl"));
  CHECK_THAT(refused({"training.shuffled_windows=true"}), ContainsSubstring("training.shuffled_windows"));
  CHECK_FALSE(std::filesystem::exists(folder / "refused"));
}

TEST_CASE("recurrent run: more streams than articles leaves some empty, and says so", "[recurrent]") {
  const ArticleFolder folder(3);
  TrainingRunOptions options = recurrent_run(folder, "run", {"training.batch=6", "schedule.steps=60"});
  run_training(options, never());
  const ProcessResult told =
      run_engram({"train", "--config", options.config.string(), "--data", folder.data().string(), "--out",
                  (folder / "other").string(), "--set", "training.batch=6", "--steps", "2"});
  CHECK(told.exit_code == 0);
  CHECK_THAT(told.err + told.out, ContainsSubstring("3 of the 6 streams stay empty"));
}

}  // namespace
}  // namespace engram::harness::recurrent_commands_test
