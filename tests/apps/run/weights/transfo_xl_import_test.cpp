/// Options, vocabularies and refusals of `engram import` and `engram export`, and the program itself.

#include <bit>
#include <cstring>

#include "apps/run/weights/stored_floats.hpp"
#include "apps/run/weights/transfo_xl_export.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/weights/transfo_xl_file.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::transfo_xl_import_test {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

/// What an import of the gold file, or of a fixture, says when it is refused.
template <class Expected>
std::string refusal(const TransfoXlImport& from) {
  try {
    import_transfo_xl(from);
  } catch (const Expected& error) {
    return error.what();
  }
  return "no such error";
}

TEST_CASE("import: options are told from shapes, and what they do not tell must be given") {
  const TemporaryFolder folder;
  const fs::path told = folder / "told", read = folder / "read";
  for (const std::string name : {"clusters", "plain", "one-table"}) {
    CAPTURE(name);
    const nlohmann::json config = nlohmann::json::parse(get_file(fixture_path(name + ".json")));
    Settings settings{"dropout=0.1"};
    for (const std::string key : {"mem_len", "clamp_len", "same_length", "pre_lnorm"})
      settings.push_back(key + "=" + config.at(key).dump());
    const fs::path weights = fixture_path(name + ".safetensors");
    if (name == "one-table") {
      CHECK_THAT(refusal<UsageError>({.weights = weights, .out = told, .settings = settings}),
                 ContainsSubstring(": cutoffs must be given"));
      settings.push_back("cutoffs=[10,20]");
    }
    import_transfo_xl({.weights = weights, .out = told, .settings = settings});
    import_transfo_xl({.weights = weights, .out = read, .config = fixture_path(name + ".json")});
    CHECK(get_file(told) == get_file(read));
  }
  CHECK_THAT(refusal<UsageError>({.weights = fixture_path("clusters.safetensors"), .out = told}),
             ContainsSubstring("mem_len, clamp_len, same_length, pre_lnorm must be given") &&
                 ContainsSubstring("--config-json") && ContainsSubstring("config.json' (there is none)"));
  CHECK_THAT(refusal<UsageError>({.weights = fixture_path("one-table.safetensors"),
                                  .out = told,
                                  .settings = {"mem_len=4", "clamp_len=0", "pre_lnorm=false"}}),
             ContainsSubstring(": cutoffs, same_length must be given"));
}

TEST_CASE("import: a config.json stands beside the weights, and single keys over it") {
  const TemporaryFolder folder;
  fs::copy_file(fixture_path("clusters.safetensors"), folder / "model.safetensors");
  nlohmann::json config = nlohmann::json::parse(get_file(fixture_path("clusters.json")));
  config["tgt_len"] = 9;
  config.erase("tie_projs");
  config["proj_share_all_but_first"] = true;
  put_file(folder / "config.json", config.dump());
  const TransfoXlImport from{
      .weights = folder / "model.safetensors", .out = folder / "out", .settings = {"mem_len=20", "clamp_len=-1"}};
  const TransfoXlImported imported = import_transfo_xl(from);
  CHECK(imported.options.memory == 20);
  CHECK(imported.options.clamp == 0);
  CHECK(imported.options.dropout == 0.1);
  CHECK(imported.options.untied_projections == std::vector<std::int64_t>{0});
  CHECK(imported.tensors == 44);
  CHECK(read_facts(CheckpointFile(from.out)).config.training.block == 9);
}

TEST_CASE("import: what Engram does not have, and what is no config, is refused by name") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& setting) {
    return refusal<UsageError>({.weights = fixture_path("clusters.safetensors"),
                                .out = folder / "never",
                                .config = fixture_path("clusters.json"),
                                .settings = {setting}});
  };
  CHECK_THAT(said("attn_type=1"), ContainsSubstring("attn_type must be 0") && ContainsSubstring("got 1"));
  CHECK_THAT(said("sample_softmax=3"),
             ContainsSubstring("sample_softmax must be at most 0") && ContainsSubstring("got 3"));
  CHECK_THAT(said("model_type=\"gpt2\""),
             ContainsSubstring("model_type must be \"transfo-xl\"") && ContainsSubstring("gpt2"));
  CHECK_THAT(said("tie_projs=[true]"), ContainsSubstring("tie_projs must be as long as there are clusters, 3"));
  CHECK_THAT(said("mem_len=0"), ContainsSubstring("memory must be at least 1 for visibility last_memory"));
  CHECK_THAT(said("n_layer=1000000000000"), ContainsSubstring("n_layer must be at most 10000, got 1000000000000"));
  CHECK_THAT(said("mem_len=many"), ContainsSubstring("must be JSON") && ContainsSubstring("'many'"));
  CHECK_THAT(said("mem_len=true"), ContainsSubstring("mem_len must be an integer, got true"));
  CHECK_THAT(said("memory=5"), ContainsSubstring("mem_len") && ContainsSubstring("'memory=5'"));
  CHECK_THAT(said("tie_weight=false"),
             ContainsSubstring("no such error"));  // old name, and the file has not the new one
  fs::remove(folder / "never");
  CHECK_THAT(refusal<FileError>({.weights = fixture_path("clusters.safetensors"),
                                 .out = folder / "never",
                                 .config = fixture_path("clusters.json"),
                                 .settings = {"n_layer=3", "d_inner=20"}}),
             ContainsSubstring("missing: transformer.layers.2.dec_attn.qkv_net.weight [36, 16]") &&
                 ContainsSubstring("CoreNet.0.weight must be [20, 16], got [24, 16]"));
  CHECK_THAT(refusal<FileError>({.weights = fixture_path("clusters.safetensors"),
                                 .out = folder / "never",
                                 .config = fixture_path("none.json")}),
             ContainsSubstring("none.json"));
  CHECK_FALSE(fs::exists(folder / "never"));
}

TEST_CASE("import: half floats are widened exactly") {
  CHECK(from_binary16(0x3c00) == 1.0f);
  CHECK(from_binary16(0xc000) == -2.0f);
  CHECK(from_binary16(0x3555) == 0.333251953125f);
  CHECK(from_binary16(0x7bff) == 65504.0f);
  CHECK(from_binary16(0x0400) == 0x1p-14f);
  CHECK(from_binary16(0x0001) == 0x1p-24f);
  CHECK(from_binary16(0x83ff) == -0x3ffp-24f);
  CHECK(std::signbit(from_binary16(0x8000)));
  CHECK(from_binary16(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(from_binary16(0x7e00)));

  const TemporaryFolder folder;
  const LayoutFile gold = gold_file();
  // The upper sixteen bits of f32, which are a bf16; read as binary16 they are other numbers, all of them finite.
  std::vector<std::vector<std::uint16_t>> bits;
  std::vector<TensorSource> sources;
  for (const LayoutTensor& tensor : gold.tensors) {
    bits.emplace_back();
    for (const double value : tensor.values) bits.back().push_back(bf16(static_cast<float>(value)).bits);
    sources.push_back(host_tensor(tensor.name, DType::bf16, tensor.shape, bits.back().data()));
  }
  const fs::path bf16_file = folder / "bf16.safetensors", f16_file = folder / "f16.safetensors";
  write_safetensors(bf16_file, sources, {});
  std::string bytes = get_file(bf16_file);
  for (std::size_t at = bytes.find("\"BF16\""); at != std::string::npos; at = bytes.find("\"BF16\"", at))
    bytes.replace(at, 6, " \"F16\"");
  bytes.replace(bytes.find("engram.checksum"), 15, "other.checksums");  // it was right for the other file
  put_file(f16_file, bytes);
  CHECK_THROWS_AS(SafetensorsFile(f16_file), FileError);  // nothing else reads them

  for (const bool half : {false, true}) {
    const fs::path out = folder / "out";
    const TransfoXlImported imported =
        import_transfo_xl({.weights = half ? f16_file : bf16_file, .out = out, .settings = gold_settings()});
    CHECK(imported.dtype == DType::f32);
    const auto placed = placed_from(out, DType::f32);
    const auto check = [&](const std::string& name, const std::string& parameter, std::size_t first) {
      CAPTURE(half, parameter);
      const std::vector<double> found = placed->value(parameter).data;
      for (std::size_t t = 0; t < gold.tensors.size(); ++t)
        if (gold.tensors[t].name == name)
          for (std::size_t i = 0; i < found.size(); ++i) {
            const std::uint16_t stored = bits[t][first + i];
            CHECK(found[i] == (half ? from_binary16(stored) : std::bit_cast<float>(std::uint32_t{stored} << 16)));
          }
      CHECK(found.size() > 1);
    };
    check("transformer.layers.1.dec_attn.qkv_net.weight", "layers.1.attention.value", 2 * 6 * 8);
    check("crit.out_projs.0", "output.clusters.0.projection", 0);
    check("transformer.layers.0.dec_attn.r_r_bias", "layers.0.attention.position_bias", 0);
  }
}

TEST_CASE("import: the vocabulary is a data folder's, a list's, or numbers") {
  const TemporaryFolder folder;
  const TransfoXlImport numbered{
      .weights = fixture_path("clusters.safetensors"), .out = folder / "out", .config = fixture_path("clusters.json")};
  import_transfo_xl(numbered);
  const data::Vocabulary numbers = read_facts(CheckpointFile(numbered.out)).vocabulary;
  CHECK(numbers.decode(std::vector<std::int32_t>{0, 29}) == "<0> <29>");
  CHECK(numbers.end_token() == -1);

  std::string list = "<eos>\n";
  for (int i = 1; i < 30; ++i) list += text("w", i, "\n");
  TransfoXlImport listed = numbered;
  listed.vocabulary = put_file(folder / "list", list);
  import_transfo_xl(listed);
  const data::Vocabulary words = read_facts(CheckpointFile(listed.out)).vocabulary;
  CHECK(words.end_token() == 0);
  CHECK(words.decode(std::vector<std::int32_t>{1, 0, 29}) == "w1\nw29");

  // A data folder says how its text became words.
  data::PrepareOptions lowered;
  lowered.kind = data::TokenKind::word;
  lowered.words.lower = true;
  lowered.train = lowered.valid = lowered.test = put_file(folder / "text", list.substr(list.find('\n')));
  lowered.out = folder / "lowered";
  data::prepare(lowered);
  listed.vocabulary = lowered.out;
  import_transfo_xl(listed);
  CHECK(read_facts(CheckpointFile(listed.out)).text.lower);

  listed.vocabulary = put_file(folder / "longer", list + "w30\n");
  CHECK_THAT(refusal<UsageError>(listed),
             ContainsSubstring("30 tokens of the model, got 31") && ContainsSubstring("longer"));
  const RunFolder data(600);
  listed.vocabulary = data.data();
  CHECK_THAT(refusal<UsageError>(listed),
             ContainsSubstring("30 tokens of the model") && ContainsSubstring(data.data().string()));
  listed.vocabulary = folder / "nowhere";
  CHECK_THAT(refusal<FileError>(listed), ContainsSubstring("nowhere"));
}

TEST_CASE("export: what the layout cannot express is refused by name") {
  const auto said = [](const std::function<void(TransformerXlOptions&)>& change) {
    TransformerXlOptions options = gold_options();
    options.memory_start = MemoryStart::zeros;
    change(options);
    try {
      require_transfo_xl_class(options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(said([](auto&) {}) == "nothing");
  CHECK_THAT(said([](auto& o) {
               o.positions = PositionKind::shaw;
               o.position_rows = 4;
             }),
             ContainsSubstring("model.positions must be relative, got shaw"));
  CHECK(said([](auto& o) { o.cluster_order = ClusterOrder::reversed; }) == "nothing");  // its rows are turned
  CHECK_THAT(said([](auto& o) { o.project_same_width = false; }),
             ContainsSubstring("model.project_same_width must be true"));
  CHECK_THAT(
      said([](auto& o) { o.memory_start = MemoryStart::empty; }),
      ContainsSubstring("model.memory_start must be zeros") && ContainsSubstring("--set model.memory_start=zeros"));
  CHECK_THAT(
      said([](auto& o) { o.visibility = Visibility::last_memory_plus_1; }),
      ContainsSubstring("model.visibility must be all or last_memory") && ContainsSubstring("got last_memory_plus_1"));
}

TEST_CASE("export: the context may be another one, the weights may not") {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder / "in";
  import_transfo_xl(
      {.weights = fixture_path("plain.safetensors"), .out = checkpoint, .config = fixture_path("plain.json")});
  const auto write = [&](const Settings& settings) {
    return export_transfo_xl({.run = checkpoint, .out = folder / "out.safetensors", .settings = settings}).config;
  };
  const nlohmann::json config =
      nlohmann::json::parse(get_file(write({"model.memory=3", "model.visibility=last_memory", "model.clamp=2"})));
  CHECK(config.at("mem_len") == 3);
  CHECK(config.at("same_length") == true);
  CHECK(config.at("clamp_len") == 2);
  CHECK(config.at("untie_r") == false);
  CHECK(config.at("d_embed") == 12);
  CHECK_FALSE(config.contains("eos_token_id"));
  CHECK_THROWS_AS(write({"model.memory_start=empty"}), UsageError);
  CHECK_THROWS_AS(write({"model.pre_norm=false"}), UsageError);
}

TEST_CASE("command line: import and export go through evaluate and generate") {
  // 29 words and the line end.
  const TemporaryFolder folder;
  std::string text_of_words;
  for (int i = 0; i < 600; ++i) text_of_words += text("w", (i * 7 + i / 29) % 29, i % 9 == 8 ? "\n" : " ");
  put_file(folder / "text", text_of_words + "\n");
  const std::string data = folder / "data", out = folder / "model.engram", back = folder / "model.safetensors";
  const std::string weights = fixture_path("clusters.safetensors"), config = fixture_path("clusters.json");
  const ProcessResult prepared = run_engram({"prepare", "--kind", "word", "--text", folder / "text", "--out", data});
  INFO(prepared.err);
  REQUIRE(prepared.exit_code == 0);
  const ProcessResult imported = run_engram(
      {"import", "--from", "transfo-xl", weights, "--config-json", config, "--out", out, "--vocab", data, "--json"});
  INFO(imported.err);
  REQUIRE(imported.exit_code == 0);
  CHECK(nlohmann::json::parse(imported.out).at("vocabulary") == 30);
  CHECK(nlohmann::json::parse(imported.out).at("cluster_order") == "natural");
  CHECK_THAT(imported.err, ContainsSubstring("engram: cluster order natural: every layer has position biases"));
  const ProcessResult evaluated = run_engram({"evaluate", out, "--data", data, "--split", "test", "--exact", "--json"});
  INFO(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  const nlohmann::json before = nlohmann::json::parse(evaluated.out);
  CHECK(before.at("step") == 0);
  CHECK(before.at("nll").get<double>() > 1);
  CHECK(run_engram({"generate", out, "--prompt", "w3 w4", "--length", "5"}).out.starts_with("w3 w4"));

  REQUIRE(run_engram({"export", "--to", "transfo-xl", out, "--out", back}).exit_code == 0);
  CHECK(nlohmann::json::parse(get_file(folder / "config.json")).at("model_type") == "transfo-xl");
  const std::string again = folder / "again.engram";
  REQUIRE(run_engram({"import", "--from", "transfo-xl", back, "--out", again, "--vocab", data}).exit_code == 0);
  CHECK(get_file(again) == get_file(out));

  // Each --set takes one key, so that the model's path may follow it.
  const ProcessResult changed = run_engram({"export", "--to", "transfo-xl", "--set", "model.clamp=3", "--set",
                                            "model.memory=6", out, "--out", back, "--json"});
  INFO(changed.err);
  REQUIRE(changed.exit_code == 0);
  CHECK(nlohmann::json::parse(changed.out).at("tensors") == 44);
  const nlohmann::json context = nlohmann::json::parse(get_file(folder / "config.json"));
  CHECK(context.at("clamp_len") == 3);
  CHECK(context.at("mem_len") == 6);

  const ProcessResult unknown = run_engram({"import", "--from", "gpt", weights, "--out", out});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("--from"));
  const ProcessResult own = run_engram({"import", "--from", "transfo-xl", out, "--out", back});
  CHECK(own.exit_code == 2);
  CHECK_THAT(own.err, ContainsSubstring("got Engram's own\n  they need no import"));
  const ProcessResult untold = run_engram({"import", "--from", "transfo-xl", weights, "--out", out});
  CHECK(untold.exit_code == 2);
  CHECK_THAT(untold.err, ContainsSubstring("mem_len"));
  const RunFolder run;
  put_file(run / "config.toml", small_config());
  REQUIRE(
      run_engram({"train", "--config", run / "config.toml", "--data", run.data(), "--out", run / "run", "--steps", "1"})
          .exit_code == 0);
  const ProcessResult other = run_engram({"export", "--to", "transfo-xl", run / "run", "--out", back});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("family transformer_xl, got all_attention"));
}

}  // namespace
}  // namespace engram::harness::transfo_xl_import_test
