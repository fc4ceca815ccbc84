/// The order of the clusters' slots in files of other programs: what it changes, what tells it, and which is written.

#include <algorithm>

#include "apps/data/prepare/prepare.hpp"
#include "apps/run/weights/transfo_xl_cluster_order.hpp"
#include "apps/run/weights/transfo_xl_export.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "tests/apps/run/weights/transfo_xl_file.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::transfo_xl_cluster_order_test {
namespace {

namespace fs = std::filesystem;

constexpr ClusterOrder kNatural = ClusterOrder::natural, kReversed = ClusterOrder::reversed;

/// A file of a model with these options, as Hugging Face's class stores it.
LayoutFile file_of(const TransformerXlOptions& options) {
  LayoutFile file;
  int number = 0;
  for (const TransfoXlTensor& tensor : transfo_xl_tensors(options)) {
    if (!tensor.copy_of.empty())
      file.copy(tensor.name, tensor.copy_of);
    else
      file.tensors.push_back({tensor.name, tensor.shape,
                              fill_g(number++, tensor.shape.count(), tensor.name.ends_with("norm.weight") ? 1 : 0)});
  }
  return file;
}

TransformerXlOptions four_clusters() {
  TransformerXlOptions options = gold_options();
  options.cutoffs = {4, 6, 8};
  return options;
}

LayoutFile slots_reversed(LayoutFile file) {
  for (const char* const name : {"crit.cluster_weight", "crit.cluster_bias"}) {
    LayoutTensor& tensor = file.at(name);
    const std::int64_t rows = tensor.shape[0], row = tensor.shape.count() / rows;
    std::vector<double> turned;
    for (std::int64_t r = rows - 1; r >= 0; --r)
      turned.insert(turned.end(), tensor.values.begin() + r * row, tensor.values.begin() + (r + 1) * row);
    tensor.values = turned;
  }
  return file;
}

/// Of the gold model, with position biases that all layers share.
LayoutFile shared_gold() {
  LayoutFile file = gold_file();
  for (const std::string name : {"r_w_bias", "r_r_bias"}) {
    file.copy("transformer." + name, "transformer.layers.0.dec_attn." + name);
    for (int n = 0; n < 2; ++n) file.drop(text("transformer.layers.", n, ".dec_attn.", name));
  }
  return file;
}

LayoutFile in_original_names(LayoutFile file) {
  for (LayoutTensor& tensor : file.tensors)
    if (tensor.name.starts_with("transformer.")) tensor.name.erase(0, std::string("transformer.").size());
  return file;
}

std::vector<double> log_probabilities(PlacedXl& placed) {
  ModelPast past = placed.memory();
  std::vector<double> all = placed.run({0, 7, 9}, past).data;
  const std::vector<double> more = placed.run({3, 10, 5}, past).data;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("cluster order: files in both orders become the same checkpoint, with the losses of the model") {
  const TemporaryFolder folder;
  const auto import_as = [&](const LayoutFile& file, ClusterOrder order, const std::string& name) {
    const fs::path out = folder / name;
    const TransfoXlImported imported = import_transfo_xl({.weights = file.write(folder / (name + ".safetensors")),
                                                          .out = out,
                                                          .settings = gold_settings(),
                                                          .cluster_order = order});
    CHECK(imported.cluster_order.order == order);
    CHECK(imported.cluster_order.note.empty());
    CHECK(imported.options.cluster_order == kNatural);
    return out;
  };
  for (const bool four : {false, true}) {
    CAPTURE(four);
    const LayoutFile file = four ? file_of(four_clusters()) : gold_file(), turned = slots_reversed(file);
    const fs::path natural = import_as(file, kNatural, "natural"), reversed = import_as(turned, kReversed, "reversed");
    CHECK(get_file(natural) == get_file(reversed));
    const fs::path wrong = import_as(turned, kNatural, "wrong");
    CHECK_FALSE(get_file(wrong) == get_file(natural));
    // The model's own rule of the reversed order reads the rows as they lie in the other file.
    const auto placed = placed_from(reversed, DType::f64), misread = placed_from(wrong, DType::f64),
               read = placed_from(wrong, DType::f64, [](auto&options) { options.cluster_order = kReversed; });
    CHECK(farthest_apart(log_probabilities(*placed), log_probabilities(*read)) < 1e-12);
    CHECK(farthest_apart(log_probabilities(*placed), log_probabilities(*misread)) > 1e-3);
  }
}

TEST_CASE("cluster order: the gold model's losses under both rules are those of the worked tables") {
  const TemporaryFolder folder;
  const std::vector<double> natural{3.22652992, 2.70151234, 1.84679623, 2.66283826, 3.46188225, 2.96458408},
      reversed{2.75873135, 3.04252006, 1.84679623, 3.04816754, 3.00610861, 2.96458408};
  for (const ClusterOrder order : {kNatural, kReversed}) {
    const fs::path out = folder / "gold.engram";
    import_transfo_xl({.weights = gold_file().write(folder / "gold.safetensors"),
                       .out = out,
                       .settings = {"mem_len=5", "clamp_len=0", "same_length=false", "pre_lnorm=false"},
                       .cluster_order = order});
    const auto placed = placed_from(out, DType::f64, [](auto& options) { options.memory_start = MemoryStart::empty; });
    CHECK(farthest_apart(gold_losses(*placed, {3, 3}, placed->memory()), order == kNatural ? natural : reversed) <
          1e-8);
  }
}

TEST_CASE("cluster order: what weights tell of their origin") {
  const auto found = [](const TransfoXlOrigin& origin, ClusterOrder order, bool decided, const std::string& why) {
    const ClusterOrderFound told = cluster_order_by_origin(origin);
    CHECK(told.order == order);
    CHECK(told.decided == decided);
    CHECK_THAT(told.note, ContainsSubstring(std::string(name_of(order))) && ContainsSubstring(why));
  };
  found({.original_names = true, .tied_position_biases = true}, kReversed, true, "named as in the original");
  // That class has both names; what it computes is the natural order.
  found({.tied_position_biases = true, .architectures = {"TransfoXLLMHeadModel"}}, kNatural, true,
        "TransfoXLLMHeadModel");
  found({.tied_position_biases = true, .model_type = "transfo-xl"}, kNatural, true, "config.json");
  found({.tied_position_biases = true, .architectures = {"MemTransformerLM"}, .model_type = "transfo-xl"}, kReversed,
        true, "MemTransformerLM");
  found({.tied_position_biases = false, .architectures = {"MemTransformerLM"}}, kNatural, true, "biases of its own");
  found({.tied_position_biases = true}, kNatural, false, "--cluster-order");
  found({.tied_position_biases = true, .architectures = {"GPT2LMHeadModel"}}, kNatural, false, "not known");
  found({.original_names = true, .tied_position_biases = false}, kNatural, false, "--data");
}

TEST_CASE("cluster order: a file of the original program's names is read as that program reads it") {
  const TemporaryFolder folder;
  LayoutFile original = in_original_names(shared_gold());
  original.tensors.push_back({"pos_emb.inv_freq", {4}, {9, 9, 9, 9}});
  const fs::path out = folder / "original", same = folder / "same";
  const TransfoXlImport from{
      .weights = original.write(folder / "original.safetensors"), .out = out, .settings = gold_settings()};
  const TransfoXlImported imported = import_transfo_xl(from);
  CHECK(imported.cluster_order.order == kReversed);
  CHECK_THAT(imported.cluster_order.note, ContainsSubstring("cluster order reversed: the tensors are named"));
  CHECK(imported.options.memory_start == MemoryStart::empty);
  CHECK(imported.options.tie_position_biases);
  CHECK(imported.options.heads == 2);
  CHECK(imported.options.depth == 3);

  const TransfoXlImported renamed =
      import_transfo_xl({.weights = slots_reversed(shared_gold()).write(folder / "renamed.safetensors"),
                         .out = same,
                         .settings = gold_settings()});
  CHECK(renamed.cluster_order.order == kNatural);
  CHECK_FALSE(renamed.cluster_order.decided);
  CHECK_THAT(renamed.cluster_order.note, ContainsSubstring("not known"));
  CHECK(renamed.options.memory_start == MemoryStart::zeros);
  const CheckpointFile a(out), b(same);
  REQUIRE(a.names() == b.names());
  for (const std::string& name : a.names()) {
    CAPTURE(name);
    CHECK(std::ranges::equal(a.bytes(a.at(name)), b.bytes(b.at(name))));
  }

  original.drop("crit.cluster_bias");
  original.drop("layers.0.pos_ff.CoreNet.3.bias");
  original.tensors.push_back({"transfer", {1}, {1}});
  original.write(from.weights);
  CHECK_THAT(message_of<FileError>([&] { import_transfo_xl(from); }),
             ContainsSubstring("missing: crit.cluster_bias [2]") &&
                 ContainsSubstring("missing: layers.0.pos_ff.CoreNet.3.bias [8]") &&
                 ContainsSubstring("extra: transfer [1]") && ContainsSubstring("3 differences"));
}

/// Words w00 to w28 and line ends, the first twenty twice as frequent: 30 tokens, cut into clusters at 10 and 20.
fs::path words_data(const TemporaryFolder& folder) {
  std::string lines;
  int written = 0;
  const auto put = [&](int word) { lines += text("w", word / 10, word % 10, ++written % 7 == 0 ? "\n" : " "); };
  for (int period = 0; period < 40; ++period) {
    for (int word = 0; word < 29; ++word) put(word);
    for (int word = 0; word < 20; ++word) put(word);
  }
  data::PrepareOptions options;
  options.kind = data::TokenKind::word;
  options.text = put_file(folder / "text", lines);
  options.out = folder / "data";
  data::prepare(options);
  return options.out;
}

TEST_CASE("cluster order: the first tokens of a text decide") {
  const TemporaryFolder folder;
  const fs::path data = words_data(folder);
  TransformerXlOptions options = gold_options();
  options.vocabulary = 30;
  options.cutoffs = {10, 20};
  LayoutFile file = file_of(options);
  file.at("crit.cluster_bias").values = {20, -20};  // the text has more words of cluster 1 than of cluster 2
  const auto measure = [&](const LayoutFile& weights, const std::string& name) {
    return import_transfo_xl({.weights = weights.write(folder / "weights.safetensors"),
                              .out = folder / "new" / name,
                              .settings = gold_settings(),
                              .data = data});
  };
  const ClusterOrderFound natural = measure(file, "natural").cluster_order;
  CHECK(natural.order == kNatural);
  CHECK_THAT(natural.note, ContainsSubstring("cluster order natural: ") &&
                               ContainsSubstring("tokens of split valid of '" + data.string() + "'"));
  const ClusterOrderFound reversed = measure(slots_reversed(file), "reversed").cluster_order;
  CHECK(reversed.order == kReversed);
  CHECK(reversed.decided);
  CHECK_THAT(reversed.note, ContainsSubstring("cluster order reversed: ") &&
                                ContainsSubstring("against cluster order natural: every layer has position biases"));
  CHECK(get_file(folder / "new" / "natural") == get_file(folder / "new" / "reversed"));
  CHECK(read_facts(CheckpointFile(folder / "new" / "natural")).vocabulary.end_token() == 0);  // that of the data

  // Both slots alike: no token tells, and what the names tell stays.
  LayoutFile alike = file;
  alike.at("crit.cluster_bias").values = {1, 1};
  alike.at("crit.cluster_weight").values.assign(16, 0);
  const ClusterOrderFound untold = measure(alike, "alike").cluster_order;
  CHECK(untold.order == kNatural);
  CHECK_THAT(untold.note, ContainsSubstring("every layer") && ContainsSubstring("which tells nothing"));

  const TransfoXlImport other{.weights = gold_file().write(folder / "gold.safetensors"),
                              .out = folder / "never",
                              .settings = gold_settings(),
                              .data = data};
  CHECK_THAT(message_of<UsageError>([&] { import_transfo_xl(other); }),
             ContainsSubstring("11 tokens of the model, got 30"));
  TransfoXlImport both = other;
  both.cluster_order = kNatural;
  CHECK_THAT(message_of<UsageError>([&] { import_transfo_xl(both); }), ContainsSubstring("got the order natural too"));
  std::string list;
  for (int word = 0; word < 30; ++word) list += text("v", word, "\n");
  const TransfoXlImport listed{.weights = file.write(folder / "weights.safetensors"),
                               .out = folder / "never",
                               .settings = gold_settings(),
                               .vocabulary = put_file(folder / "list", list),
                               .data = data};
  CHECK_THAT(message_of<FileError>([&] { import_transfo_xl(listed); }), ContainsSubstring("must have the vocabulary"));
  CHECK_FALSE(fs::exists(folder / "never"));
}

TEST_CASE("cluster order: with one cut-off there is nothing to decide") {
  const TemporaryFolder folder;
  TransformerXlOptions options = gold_options();
  options.cutoffs = {5};
  const LayoutFile file = file_of(options);
  const auto import_as = [&](std::optional<ClusterOrder> order) {
    const TransfoXlImport from{.weights = file.write(folder / "one.safetensors"),
                               .out = folder / "one",
                               .settings = gold_settings(),
                               .cluster_order = order};
    CHECK(import_transfo_xl(from).cluster_order.note.empty());
    return get_file(from.out);
  };
  CHECK(import_as({}) == import_as(kReversed));
}

TEST_CASE("cluster order: a model of the reversed order is exported in that of the class that reads it") {
  const TemporaryFolder folder;
  const fs::path natural = folder / "natural", reversed = folder / "reversed";
  import_transfo_xl({.weights = file_of(four_clusters()).write(folder / "in.safetensors"),
                     .out = natural,
                     .settings = gold_settings()});
  {
    const SafetensorsFile file(natural);
    Metadata metadata = file.metadata();
    std::string& config = metadata.find(metadata_keys::kConfig)->second;
    const std::string before = "cluster_order = \"natural\"";
    config.replace(config.find(before), before.size(), "cluster_order = \"reversed\"");
    std::vector<TensorSource> sources;
    for (const auto& [name, stored] : file.tensors())
      sources.push_back(host_tensor(name, stored.dtype, stored.shape, file.bytes(stored).data()));
    write_safetensors(reversed, sources, metadata);
  }
  const fs::path out = folder / "out" / "model.safetensors";
  export_transfo_xl({.run = reversed, .out = out});
  const SafetensorsFile before(folder / "in.safetensors"), after(out);
  const auto row = [](const SafetensorsFile& file, std::size_t r) {
    const StoredTensor& stored = file.tensors().find("crit.cluster_weight")->second;
    return file.bytes(stored).subspan(r * 8 * sizeof(double), 8 * sizeof(double));
  };
  for (std::size_t r = 0; r < 3; ++r) CHECK(std::ranges::equal(row(after, r), row(before, 2 - r)));

  const fs::path again = folder / "again";
  CHECK(import_transfo_xl({.weights = out, .out = again}).cluster_order.order == kNatural);
  const auto placed = placed_from(reversed, DType::f64), read = placed_from(again, DType::f64),
             other = placed_from(natural, DType::f64);
  CHECK(placed->model.options().cluster_order == kReversed);
  CHECK(farthest_apart(log_probabilities(*placed), log_probabilities(*read)) < 1e-12);
  CHECK(farthest_apart(log_probabilities(*placed), log_probabilities(*other)) > 1e-3);
}

}  // namespace
}  // namespace engram::harness::transfo_xl_cluster_order_test
