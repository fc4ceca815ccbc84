/// Weights in the layout of Hugging Face's Transformer-XL: what that class computes, and T19 of [transformer-xl 12].

#include <cstring>
#include <map>
#include <set>

#include "apps/run/weights/transfo_xl_export.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "tests/apps/run/weights/transfo_xl_file.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::transfo_xl_interop_test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFixtures{"clusters", "plain", "one-table"};

fs::path import_fixture(const TemporaryFolder& folder, const std::string& name) {
  const fs::path out = folder / (name + ".engram");
  import_transfo_xl(
      {.weights = fixture_path(name + ".safetensors"), .out = out, .config = fixture_path(name + ".json")});
  return out;
}

template <class T>
std::vector<T> elements(const SafetensorsFile& file, const std::string& name) {
  const std::span<const std::byte> bytes = file.bytes(file.tensors().at(name));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Log-probabilities of the fixture's segments, one after the other, with a memory of states or in rings.
std::vector<double> log_probabilities(PlacedXl& placed, const SafetensorsFile& expected, ModelPast past) {
  const Shape shape = expected.tensors().at("tokens").shape;  // [segments, streams, tokens]
  const std::vector<std::int32_t> tokens = elements<std::int32_t>(expected, "tokens");
  std::vector<double> all;
  for (std::int64_t segment = 0; segment < shape[0]; ++segment) {
    const auto first = tokens.begin() + segment * shape[1] * shape[2];
    const std::vector<double> part = placed.run(Ids(first, first + shape[1] * shape[2]), past, shape[1]).data;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST_CASE("interop: log-probabilities are those of Hugging Face's Transformer-XL, over segments with memory") {
  const TemporaryFolder folder;
  for (const std::string& name : kFixtures) {
    const fs::path checkpoint = import_fixture(folder, name);
    const SafetensorsFile expected(fixture_path(name + ".expected.safetensors"));
    const std::vector<float> narrow = elements<float>(expected, "log_probabilities");
    const std::vector<double> found(narrow.begin(), narrow.end()), exact = elements<double>(expected, "exact");
    REQUIRE(found.size() == 2 * 2 * 6 * 30);
    for (const bool ring : {false, true}) {
      const auto f32 = placed_from(checkpoint, DType::f32), f64 = placed_from(checkpoint, DType::f64);
      const double narrow_distance =
          farthest_apart(log_probabilities(*f32, expected, ring ? f32->ring(2) : f32->memory(2)), found);
      const double exact_distance =
          farthest_apart(log_probabilities(*f64, expected, ring ? f64->ring(2) : f64->memory(2)), exact);
      CAPTURE(name, ring, narrow_distance, exact_distance);
      CHECK(narrow_distance < 1e-4);
      CHECK(exact_distance < 1e-12);
    }
  }
}

TEST_CASE("interop: a config.json becomes options that remember and see what that class does") {
  const TemporaryFolder folder;
  const TransformerXlOptions clusters =
      read_facts(CheckpointFile(import_fixture(folder, "clusters"))).config.model.transformer_xl;
  CHECK(clusters.memory == 8);
  CHECK(clusters.memory_start == MemoryStart::zeros);
  CHECK(clusters.visibility == Visibility::last_memory);
  CHECK(clusters.clamp == 5);
  CHECK(clusters.cluster_order == ClusterOrder::natural);
  CHECK(clusters.cutoffs == std::vector<std::int64_t>{10, 20});
  CHECK(clusters.divisor == 2);
  CHECK(clusters.untied_projections == std::vector<std::int64_t>{0});
  CHECK_FALSE(clusters.tie_position_biases);
  CHECK(clusters.depth == 6);
  CHECK(clusters.norm_epsilon == 1e-5);
  const TransformerXlOptions plain =
      read_facts(CheckpointFile(import_fixture(folder, "plain"))).config.model.transformer_xl;
  CHECK(plain.visibility == Visibility::all);
  CHECK(plain.clamp == 0);
  CHECK(plain.pre_norm);
  CHECK(plain.tie_position_biases);
  CHECK(plain.embedding_width == 12);
  CHECK_FALSE(read_facts(CheckpointFile(import_fixture(folder, "one-table"))).config.model.transformer_xl.tie_tables);
}

TEST_CASE("interop: import and export give back the same tensors, byte for byte, and the same checkpoint") {
  const TemporaryFolder folder;
  for (const std::string& name : kFixtures) {
    CAPTURE(name);
    const fs::path checkpoint = import_fixture(folder, name), out = folder / (name + ".safetensors");
    const TransfoXlExported exported = export_transfo_xl({.run = checkpoint, .out = out});
    const SafetensorsFile before(fixture_path(name + ".safetensors")), after(out);
    CHECK(exported.tensors == before.tensors().size());
    CHECK(after.tensors().size() == before.tensors().size());
    CHECK(after.metadata().at("format") == "pt");
    for (const auto& [tensor, stored] : before.tensors()) {
      CAPTURE(tensor);
      REQUIRE(after.tensors().contains(tensor));
      CHECK(after.tensors().at(tensor).shape == stored.shape);
      if (tensor == kTransfoXlFrequencies) {  // computed, not kept
        const std::vector<float> a = elements<float>(before, tensor), b = elements<float>(after, tensor);
        for (std::size_t i = 0; i < a.size(); ++i) CHECK(b[i] == Approx(a[i]).epsilon(1e-6));
        continue;
      }
      CHECK(std::ranges::equal(after.bytes(after.tensors().at(tensor)), before.bytes(stored)));
    }
    // config.json says all that there is to say.
    const fs::path again = folder / (name + ".again");
    import_transfo_xl({.weights = out, .out = again});
    CHECK(get_file(again) == get_file(checkpoint));
  }
}

TEST_CASE("T19: the gold model in the layout of Hugging Face has the losses of case E") {
  const TemporaryFolder folder;
  const std::vector<double> losses{3.46691247, 2.64087237, 1.85782059, 2.66499453, 3.43549961, 3.02123512};
  const auto import_file = [&](const LayoutFile& file) {
    const fs::path out = folder / "gold.engram";
    import_transfo_xl({.weights = file.write(folder / "gold.safetensors"), .out = out, .settings = gold_settings()});
    return out;
  };
  const auto check_losses = [&](const LayoutFile& file) {
    const auto placed = placed_from(import_file(file), DType::f64);
    CHECK(placed->store.count() == 1187);
    CHECK(farthest_apart(gold_losses(*placed, {3, 3}, placed->memory()), losses) < 1e-8);
    CHECK(farthest_apart(gold_losses(*placed, {3, 3}, placed->ring()), losses) < 1e-8);
  };
  check_losses(gold_file());

  LayoutFile without_copies = gold_file();
  for (int b = 0; b < 3; ++b) without_copies.drop(text("crit.out_layers.", b, ".weight"));
  for (int b = 1; b < 3; ++b) without_copies.drop(text("crit.out_projs.", b));
  check_losses(without_copies);

  LayoutFile with_frequencies = gold_file();
  with_frequencies.tensors.push_back({std::string(kTransfoXlFrequencies), {4}, {9, 9, 9, 9}});
  check_losses(with_frequencies);

  fs::remove(folder / "gold.engram");
  const auto refusal = [&](LayoutFile file, const std::vector<std::string>& more = {}) -> std::string {
    std::vector<std::string> settings = gold_settings();
    settings.insert(settings.end(), more.begin(), more.end());
    try {
      import_transfo_xl(
          {.weights = file.write(folder / "gold.safetensors"), .out = folder / "gold.engram", .settings = settings});
    } catch (const FileError& error) {
      CHECK_FALSE(fs::exists(folder / "gold.engram"));
      return error.what();
    }
    return "no error";
  };
  const std::vector<std::string> tied{"tie_word_embeddings=true", "tie_projs=[false,true,true]"};

  LayoutFile file = gold_file();
  file.drop("crit.out_projs.0");
  CHECK_THAT(refusal(file), ContainsSubstring("missing: crit.out_projs.0 [8, 8]") && ContainsSubstring("1 difference"));
  CHECK_THAT(refusal(file, tied), ContainsSubstring("missing: crit.out_projs.0 [8, 8]"));

  file = gold_file();
  file.at("crit.out_projs.2").values[5] = std::nextafter(file.at("crit.out_projs.2").values[5], 2.0);
  CHECK_THAT(refusal(file, tied), ContainsSubstring("crit.out_projs.2 must repeat transformer.word_emb.emb_projs.2") &&
                                      ContainsSubstring("element 5") && ContainsSubstring("1 difference"));
  file = gold_file();
  file.at("crit.out_layers.1.weight").values[11] = 7;
  CHECK_THAT(refusal(file, tied),
             ContainsSubstring("crit.out_layers.1.weight must repeat transformer.word_emb.emb_layers.1.weight") &&
                 ContainsSubstring("element 11"));

  file = gold_file();
  file.tensors.push_back({"transformer.layers.0.dec_attn.qkv_net.bias", {18}, std::vector<double>(18)});
  CHECK_THAT(refusal(file), ContainsSubstring("extra: transformer.layers.0.dec_attn.qkv_net.bias [18]"));

  file = gold_file();
  file.tensors.push_back({"transformer.layers.1000000000000.dec_attn.o_net.weight", {1}, {1}});
  CHECK_THAT(refusal(file), ContainsSubstring("extra: transformer.layers.1000000000000.dec_attn.o_net.weight [1]") &&
                                ContainsSubstring("1 difference"));

  file = gold_file();
  file.at("transformer.layers.1.dec_attn.r_net.weight").shape = {8, 6};
  CHECK_THAT(refusal(file), ContainsSubstring("transformer.layers.1.dec_attn.r_net.weight must be [6, 8], got [8, 6]"));

  // All of it in one message.
  file.drop("crit.cluster_bias");
  file.drop("transformer.layers.0.pos_ff.CoreNet.3.bias");
  file.tensors.push_back({"lm_head.weight", {1}, {1}});
  file.at("crit.out_projs.1").values[0] += 1;
  CHECK_THAT(refusal(file, tied),
             ContainsSubstring("5 differences") && ContainsSubstring("missing: crit.cluster_bias [2]") &&
                 ContainsSubstring("missing: transformer.layers.0.pos_ff.CoreNet.3.bias [8]") &&
                 ContainsSubstring("extra: lm_head.weight [1]") && ContainsSubstring("r_net.weight must be [6, 8]") &&
                 ContainsSubstring("crit.out_projs.1 must repeat"));
}

TEST_CASE("interop: without a config.json a copy that differs is a tensor of its own, as is the first projection") {
  const TemporaryFolder folder;
  LayoutFile file = gold_file();
  file.at("crit.out_projs.1").values[0] += 1;
  const auto options = import_transfo_xl({.weights = file.write(folder / "gold.safetensors"),
                                          .out = folder / "gold.engram",
                                          .settings = gold_settings()})
                           .options;
  CHECK(options.untied_projections == std::vector<std::int64_t>{0, 1});
  CHECK(options.tie_tables);
}

TEST_CASE("interop: every parameter of a model has its place in the layout, and each place one parameter") {
  std::vector<TransformerXlOptions> variants;
  for (const std::int64_t divisor : {1, 2})
    for (const std::int64_t embedding : {8, 6})
      for (const bool cutoffs : {false, true})
        for (const bool tied : {false, true}) {
          TransformerXlOptions options = gold_options();
          options.divisor = divisor;
          options.embedding_width = embedding;
          options.tie_tables = options.tie_projections = options.tie_position_biases = tied;
          if (!cutoffs) options.cutoffs.clear();
          variants.push_back(options);
        }
  for (const TransformerXlOptions& options : variants) {
    CAPTURE(options.divisor, options.embedding_width, options.cutoffs.size(), options.tie_tables);
    TransformerXlModel model(options);
    ParameterStore store;
    collect(model, store);
    std::set<std::string> parameters, names;
    for (const TransfoXlTensor& tensor : transfo_xl_tensors(options)) {
      CAPTURE(tensor.name);
      CHECK(names.insert(tensor.name).second);
      CHECK(tensor.parameters.empty() != tensor.copy_of.empty());
      if (!tensor.copy_of.empty()) CHECK(names.contains(tensor.copy_of));
      std::int64_t count = 0;
      for (const std::string& name : tensor.parameters) {
        CAPTURE(name);
        CHECK(parameters.insert(name).second);
        REQUIRE(store.find(name) != nullptr);
        count += store.find(name)->shape().count();
      }
      if (tensor.copy_of.empty()) CHECK(count == tensor.shape.count());
    }
    CHECK(parameters.size() == store.parameters().size());
  }
}

TEST_CASE("interop: the layout of the published checkpoint of WikiText-103") {
  TransformerXlOptions options;
  options.vocabulary = 267'735;
  options.layers = 18;
  options.width = 1024;
  options.heads = 16;
  options.inner = 4096;
  options.cutoffs = {20'000, 40'000, 200'000};
  options.divisor = 4;
  options.untied_projections = {0};
  options.tie_position_biases = false;
  std::map<std::string, Shape> shapes;
  std::int64_t trained = 0;
  for (const TransfoXlTensor& tensor : transfo_xl_tensors(options)) {
    shapes[tensor.name] = tensor.shape;
    if (tensor.copy_of.empty()) trained += tensor.shape.count();
  }
  CHECK(trained == 285'205'322);
  CHECK(shapes.size() == 2 * 4 + 18 * 13 + 2 + 3 * 4);
  CHECK(shapes.at("transformer.word_emb.emb_layers.2.weight") == Shape{160'000, 64});
  CHECK(shapes.at("transformer.word_emb.emb_projs.3") == Shape{1024, 16});
  CHECK(shapes.at("transformer.layers.17.dec_attn.qkv_net.weight") == Shape{3072, 1024});
  CHECK(shapes.at("transformer.layers.0.dec_attn.r_w_bias") == Shape{16, 64});
  CHECK(shapes.at("crit.cluster_weight") == Shape{3, 1024});
  CHECK(shapes.at("crit.out_layers.3.weight") == Shape{67'735, 16});
  CHECK(shapes.at("crit.out_layers.3.bias") == Shape{67'735});
  CHECK(shapes.at("crit.out_projs.1") == Shape{1024, 256});
}

}  // namespace
}  // namespace engram::harness::transfo_xl_interop_test
