/// Recurrent models of several layers, quasi-recurrent ones, and both ends of them in clusters, against their plain
/// definition; names and shapes of their tensors.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/nn/placed_recurrent.hpp"
#include "tests/nn/recurrent_variants.hpp"
#include "tests/reference/recurrent_model.hpp"

namespace engram::harness::recurrent_layers_test {
namespace {

using Ids = PlacedRecurrent::Ids;

/// The same model in the words of the executable definition.
reference::RecurrentLanguageModel definition(PlacedRecurrent& placed) {
  const RecurrentOptions& options = placed.model.options();
  const auto given = [&](const std::string& name) {
    return placed.store.find(name) == nullptr ? reference::Array64() : placed.value(name);
  };
  const auto first_of = [&](std::initializer_list<std::string> names) {
    for (const std::string& name : names)
      if (placed.store.find(name) != nullptr) return placed.value(name);
    return reference::Array64();
  };
  // Words [first, end) of one table for all.
  const auto rows_of = [](const reference::Array64& table, std::int64_t first, std::int64_t end) {
    reference::Array64 part = reference::zeros({end - first, table.axis(1)});
    for (std::int64_t row = first; row < end; ++row)
      for (std::int64_t i = 0; i < table.axis(1); ++i) part.at(row - first, i) = table.at(row, i);
    return part;
  };
  reference::RecurrentLanguageModel defined;
  defined.ends.natural_order = true;
  defined.ends.cutoffs = options.cutoffs;
  for (std::size_t i = 0; i <= options.cutoffs.size(); ++i) {
    const bool clusters = !options.cutoffs.empty();
    const std::string in = clusters ? text("embedding.clusters.", i, ".") : "embedding.",
                      out = clusters ? text("output.clusters.", i, ".") : "output.";
    const std::int64_t first = i == 0 ? 0 : options.cutoffs[i - 1],
                       end = i < options.cutoffs.size() ? options.cutoffs[i] : options.vocabulary;
    reference::Array64 table = first_of({in + "table", in + "weight"});
    if (!table.given()) table = rows_of(placed.value("embedding.table"), first, end);
    const reference::Array64 own = first_of({out + "table", out + "weight"});
    defined.ends.tables.push_back(table);
    defined.ends.projections.push_back(given(in + "projection"));
    defined.ends.out_tables.push_back(own.given() ? own : table);
    defined.ends.out_projections.push_back(options.tie_tables ? given(in + "projection") : given(out + "projection"));
    defined.ends.biases.push_back(placed.value(out + "bias"));
  }
  defined.ends.cluster_weight = given("output.cluster_head.weight");
  defined.ends.cluster_bias = given("output.cluster_head.bias");
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string name = options.layers == 1 ? "encoder." : text("encoder.layers.", layer, ".");
    defined.layers.push_back({placed.value(name + "input"), given(name + "recurrent"), placed.value(name + "bias")});
  }
  return defined;
}

struct Made {
  std::string name;
  RecurrentOptions options;
};
std::vector<Made> without_readout() {
  std::vector<Made> all;
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    RecurrentOptions options = variant.options;
    options.readout = ReadoutKind::identity;
    options.output_width = 0;
    if (options.encoder != RecurrentCell::lstm && options.encoder != RecurrentCell::qrnn) continue;
    if (options.tie_tables) options.embedding_width = options.width;
    all.push_back({variant.name, options});
  }
  return all;
}

TEST_CASE("recurrent: models of any depth, encoder and ends are their definition", "[recurrent]") {
  const Ids inputs = random_words(11, 5, 41), targets = random_words(11, 5, 42);
  for (const Made& made : without_readout()) {
    CAPTURE(made.name);
    PlacedRecurrent placed(made.options);
    const reference::RecurrentLanguageModel defined = definition(placed);
    // Two texts, of 7 and 4 words, in blocks of 3 and 8.
    const auto text_of = [](const Ids& all, std::ptrdiff_t first, std::ptrdiff_t end) {
      return Ids(all.begin() + first, all.begin() + end);
    };
    std::vector<double> wanted = defined.losses(text_of(inputs, 0, 7), text_of(targets, 0, 7));
    const std::vector<double> second = defined.losses(text_of(inputs, 7, 11), text_of(targets, 7, 11));
    wanted.insert(wanted.end(), second.begin(), second.end());
    std::vector<double> got =
        placed.losses({.inputs = text_of(inputs, 0, 3), .targets = text_of(targets, 0, 3), .preceding = {0, 1, 2}});
    const std::vector<double> more = placed.losses(
        {.inputs = text_of(inputs, 3, 11), .targets = text_of(targets, 3, 11), .preceding = {3, 4, 5, 6, 0, 1, 2, 3}});
    got.insert(got.end(), more.begin(), more.end());
    for (std::size_t t = 0; t < wanted.size(); ++t) CHECK(got[t] == Approx(wanted[t]).epsilon(1e-12));
    // Of every word, also those that are no target.
    placed.reset();
    placed.step.begin({});
    Tape tape(placed.step, Tape::Mode::inference);
    const TokenBatch batch = placed.batch(
        {.inputs = text_of(inputs, 0, 7), .targets = text_of(targets, 0, 7), .preceding = {0, 1, 2, 3, 4, 5, 6}});
    const std::vector<double> logs =
        placed.model.tokens().log_probabilities(placed.model.hidden(tape, batch, placed.past));
    for (std::size_t t = 0; t < 7; ++t) {
      double sum = 0;
      for (std::size_t word = 0; word < 5; ++word) sum += std::exp(logs[t * 5 + word]);
      CHECK(sum == Approx(1).epsilon(1e-12));
      CHECK(-logs[t * 5 + static_cast<std::size_t>(targets[t])] == Approx(wanted[t]).epsilon(1e-12));
    }
  }
}

using Shapes = std::map<std::string, std::string>;
Shapes shapes_of(const RecurrentOptions& options) {
  PlacedRecurrent placed(options);
  Shapes shapes;
  for (const auto& [name, parameter] : placed.store.parameters()) shapes[name] = text(parameter->shape());
  return shapes;
}

TEST_CASE("recurrent: names and shapes of layers and ends", "[recurrent]") {
  // One layer has the names that it always had.
  RecurrentOptions options{.vocabulary = 9, .embedding_width = 4, .width = 6, .readout = ReadoutKind::identity};
  CHECK(shapes_of(options) == Shapes{{"embedding.weight", "[9, 4]"},
                                     {"encoder.input", "[24, 4]"},
                                     {"encoder.recurrent", "[24, 6]"},
                                     {"encoder.bias", "[24]"},
                                     {"output.weight", "[9, 6]"},
                                     {"output.bias", "[9]"}});
  options.layers = 2;
  options.inner_width = 5;
  options.encoder = RecurrentCell::qrnn;
  options.inner_taps = 1;
  CHECK(shapes_of(options) == Shapes{{"embedding.weight", "[9, 4]"},
                                     {"encoder.layers.0.input", "[15, 8]"},
                                     {"encoder.layers.0.bias", "[15]"},
                                     {"encoder.layers.1.input", "[18, 5]"},
                                     {"encoder.layers.1.bias", "[18]"},
                                     {"output.weight", "[9, 6]"},
                                     {"output.bias", "[9]"}});
  options.layers = 1;
  options.encoder = RecurrentCell::rnn;
  options.cutoffs = {3};
  options.divisor = 2;
  CHECK(shapes_of(options) == Shapes{{"embedding.clusters.0.table", "[3, 4]"},
                                     {"embedding.clusters.1.table", "[6, 2]"},
                                     {"embedding.clusters.1.projection", "[4, 2]"},
                                     {"encoder.input", "[6, 4]"},
                                     {"encoder.recurrent", "[6, 6]"},
                                     {"encoder.bias", "[6]"},
                                     {"output.clusters.0.table", "[3, 6]"},
                                     {"output.clusters.0.bias", "[3]"},
                                     {"output.clusters.1.table", "[6, 3]"},
                                     {"output.clusters.1.projection", "[6, 3]"},
                                     {"output.clusters.1.bias", "[6]"},
                                     {"output.cluster_head.weight", "[1, 6]"},
                                     {"output.cluster_head.bias", "[1]"}});
  options.embedding_width = 6;
  options.tie_tables = true;
  const Shapes tied = shapes_of(options);
  CHECK(tied.contains("embedding.clusters.1.projection"));
  CHECK_FALSE(tied.contains("output.clusters.1.table"));
  CHECK_FALSE(tied.contains("output.clusters.1.projection"));
  options.cutoffs.clear();
  CHECK(shapes_of(options) == Shapes{{"embedding.table", "[9, 6]"},
                                     {"encoder.input", "[6, 6]"},
                                     {"encoder.recurrent", "[6, 6]"},
                                     {"encoder.bias", "[6]"},
                                     {"output.bias", "[9]"}});
}

TEST_CASE("recurrent: what is remembered of each layer", "[recurrent]") {
  const auto lengths = [](const RecurrentOptions& options) {
    PlacedRecurrent placed(options, 2);
    placed.losses({.inputs = random_words(8, 5, 1), .targets = random_words(8, 5, 2), .streams = 2});
    std::vector<std::string> shapes;
    for (const auto& part : placed.past) shapes.push_back(text(recurrent_past(*part).states().shape()));
    return shapes;
  };
  using PastShapes = std::vector<std::string>;
  RecurrentOptions options = small_recurrent(RecurrentCell::lstm, ReadoutKind::key_value);
  CHECK(lengths(options) == PastShapes{"[2, 2, 6]", "[2, 1, 6]"});
  options.layers = 2;
  options.inner_width = 5;
  CHECK(lengths(options) == PastShapes{"[2, 1, 5]", "[2, 1, 5]", "[2, 2, 6]", "[2, 1, 6]"});
  options.encoder = RecurrentCell::qrnn;
  options.taps = 3;
  options.inner_taps = 1;
  CHECK(lengths(options) == PastShapes{"[2, 1, 5]", "[2, 2, 3]", "[2, 2, 6]", "[2, 1, 6]"});
  options.readout = ReadoutKind::recurrent_memory;
  options.inner_taps = 0;
  CHECK(lengths(options) == PastShapes{"[2, 1, 5]", "[2, 2, 3]", "[2, 1, 6]", "[2, 1, 6]", "[2, 2, 5]", "[2, 1, 1]"});
}

TEST_CASE("recurrent: a second layer and clusters learn what one table of words does", "[recurrent]") {
  // Two words by turns, of the first cluster and of the last.
  for (const RecurrentCell encoder : {RecurrentCell::lstm, RecurrentCell::qrnn}) {
    RecurrentOptions options{.vocabulary = 6,
                             .embedding_width = 12,
                             .width = 12,
                             .layers = 2,
                             .encoder = encoder,
                             .readout = ReadoutKind::identity,
                             .cutoffs = {2, 4},
                             .divisor = 2,
                             .tie_tables = true,
                             .init_range = 0.3};
    CAPTURE(name_of(encoder));
    PlacedRecurrent placed(options, 1, DType::f64);
    const Ids inputs{0, 5, 0, 5, 0, 5, 0, 5}, targets{5, 0, 5, 0, 5, 0, 5, 0};
    const auto mean = [](const std::vector<double>& rows) {
      double sum = 0;
      for (const double row : rows) sum += row;
      return sum / static_cast<double>(rows.size());
    };
    const double before = mean(placed.losses({.inputs = inputs, .targets = targets}));
    for (int step = 0; step < 200; ++step) {
      placed.reset();
      placed.store.zero_gradients(placed.step);
      placed.train({.inputs = inputs, .targets = targets}, 0.125);
      for (const auto& [name, parameter] : placed.store.parameters()) {
        std::vector<double> value = placed.value(name).data;
        const std::vector<double> gradient = placed.gradient(name).data;
        for (std::size_t i = 0; i < value.size(); ++i) value[i] -= gradient[i];
        placed.set(name, value);
      }
    }
    placed.reset();
    CHECK(mean(placed.losses({.inputs = inputs, .targets = targets})) < 0.3 * before);
  }
}

}  // namespace
}  // namespace engram::harness::recurrent_layers_test
