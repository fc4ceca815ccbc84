/// Closed forms and equalities between recurrent models: [key-value-predict 8.2], items 5, 6,
/// 7, 10, 11 and 18.

#include <array>
#include <cmath>
#include <numeric>

#include "tests/harness/catch.hpp"
#include "tests/nn/placed_recurrent.hpp"
#include "tests/nn/recurrent_variants.hpp"

namespace engram::harness::recurrent_test {
namespace {

using Numbers = std::vector<double>;

/// Nine words of two texts.
const PlacedRecurrent::Block kWords{.inputs = {1, 4, 2, 6, 3, 5, 0, 1, 6},
                                    .targets = {4, 2, 6, 3, 5, 0, 1, 6, 2},
                                    .preceding = {0, 1, 2, 3, 4, 0, 1, 2, 3}};

void check_same(const Numbers& a, const Numbers& b, double tolerance = 1e-12) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance));
}

/// Gives an LSTM units of another one: unit u is what from[u] is there and reads the same units, each where it comes
/// first; -1: a unit that nothing reads, left as it is.
void copy_units(PlacedRecurrent& to, PlacedRecurrent& source, const std::vector<std::int64_t>& from) {
  const auto units = static_cast<std::int64_t>(from.size());
  const std::int64_t w = source.model.options().vector_width(), k = source.model.options().width;
  REQUIRE(to.model.options().width == units);
  const Numbers input = source.value("encoder.input").data, recurrent = source.value("encoder.recurrent").data,
                bias = source.value("encoder.bias").data;
  Numbers new_input = to.value("encoder.input").data, new_recurrent = to.value("encoder.recurrent").data,
          new_bias = to.value("encoder.bias").data;
  for (std::int64_t gate = 0; gate < 4; ++gate)
    for (std::int64_t u = 0; u < units; ++u) {
      const std::int64_t mine = gate * units + u;
      if (from[u] < 0) continue;
      const std::int64_t other = gate * k + from[u];
      new_bias[mine] = bias[other];
      std::copy_n(&input[other * w], w, &new_input[mine * w]);
      std::fill_n(&new_recurrent[mine * units], units, 0.0);
      for (std::int64_t seen = 0; seen < k; ++seen)
        for (std::int64_t v = 0; v < units; ++v)
          if (from[v] == seen) {
            new_recurrent[mine * units + v] = recurrent[other * k + seen];
            break;
          }
    }
  to.set("encoder.input", new_input);
  to.set("encoder.recurrent", new_recurrent);
  to.set("encoder.bias", new_bias);
  for (const char* const name : {"embedding.weight", "output.weight", "output.bias"})
    to.set(name, source.value(name).data);
}

RecurrentOptions of_width(RecurrentOptions options, std::int64_t width) {
  options.width = width;
  return options;
}

TEST_CASE("recurrent: keys, values and predictions with a window of one are the 2-gram", "[recurrent]") {
  constexpr std::int64_t d = 2;
  PlacedRecurrent two_gram(of_width(gold_options(RecurrentCell::lstm, ReadoutKind::n_gram, 2), 2 * d));
  RecurrentOptions options = gold_options(RecurrentCell::lstm, ReadoutKind::key_value_predict);
  options.window = 1;
  PlacedRecurrent attending(options);
  // Slice 1 is what predicts, slice 2 the values; keys are anything.
  copy_units(attending, two_gram, {-1, -1, 2, 3, 0, 1});
  const Numbers both = two_gram.value("readout.output").data;  // [W_x, W_r]
  Numbers output;                                              // [W_r, W_x]
  for (std::int64_t row = 0; row < d; ++row)
    for (const std::int64_t part : {1, 0})
      output.insert(output.end(), &both[row * 2 * d + part * d], &both[row * 2 * d + part * d] + d);
  attending.set("readout.output", output);
  check_same(attending.losses(kWords), two_gram.losses(kWords));
}

TEST_CASE("recurrent: keys and values are keys, values and a copy of the values", "[recurrent]") {
  PlacedRecurrent two(of_width(gold_options(RecurrentCell::lstm, ReadoutKind::key_value), 4));
  PlacedRecurrent three(gold_options(RecurrentCell::lstm, ReadoutKind::key_value_predict));
  copy_units(three, two, {0, 1, 2, 3, 2, 3});
  for (const char* const name : {"readout.key", "readout.query", "readout.score", "readout.output"})
    three.set(name, two.value(name).data);
  check_same(three.losses(kWords), two.losses(kWords));
}

TEST_CASE("recurrent: one part is a projection of the state", "[recurrent]") {
  for (const RecurrentCell cell : {RecurrentCell::rnn, RecurrentCell::hornn_fofe, RecurrentCell::hornn_gated}) {
    CAPTURE(name_of(cell));
    RecurrentOptions options = gold_options(cell, ReadoutKind::identity);
    options.output_map = true;
    PlacedRecurrent mapped(options), part(gold_options(cell, ReadoutKind::n_gram, 1));
    for (const auto& [name, parameter] : mapped.store.parameters())
      part.set(name == "encoder.output" ? "readout.output" : name, mapped.value(name).data);
    check_same(part.losses(kWords), mapped.losses(kWords));
  }
}

TEST_CASE("recurrent: where states do not change, delays do nothing", "[recurrent]") {
  RecurrentOptions options = gold_options(RecurrentCell::rnn, ReadoutKind::n_gram, 3);
  PlacedRecurrent delayed(options);
  options.parts = 1;
  options.output_width = 2;
  PlacedRecurrent direct(options);
  for (const auto& [name, parameter] : delayed.store.parameters()) direct.set(name, delayed.value(name).data);
  for (PlacedRecurrent* placed : {&delayed, &direct}) {
    placed->set("encoder.recurrent", Numbers(36, 0.0));
    placed->set("readout.output", spec_fill(10, 12));
    placed->set("output.weight", spec_fill(20, 14));
    placed->set("encoder.bias", spec_fill(4, 6));
  }
  const PlacedRecurrent::Block same{.inputs = {2, 2, 2, 2, 2, 2}, .targets = {4, 2, 6, 3, 5, 0}};
  const Numbers with = delayed.losses(same), without = direct.losses(same);
  CHECK(std::abs(with[0] - without[0]) > 1e-4);
  CHECK(std::abs(with[1] - without[1]) > 1e-4);
  for (std::size_t t = 2; t < 6; ++t) CHECK(with[t] == Approx(without[t]).epsilon(1e-12));
}

/// An LSTM with recurrent memory.
struct Memory : PlacedRecurrent {
  Memory() : PlacedRecurrent(gold_options(RecurrentCell::lstm, ReadoutKind::recurrent_memory)) {}
  /// The same number for each of the unit's gates.
  void set_bias(double update, double keep, double candidate) {
    Numbers bias(18, update);
    std::fill_n(bias.begin() + 6, 6, keep);
    std::fill_n(bias.begin() + 12, 6, candidate);
    set("readout.bias", bias);
  }
};

TEST_CASE("recurrent memory: a closed gate leaves the state, an open one takes the candidate", "[recurrent]") {
  Memory memory;
  PlacedRecurrent state(gold_options(RecurrentCell::lstm, ReadoutKind::identity));
  const auto share = [&memory](PlacedRecurrent& other) {
    for (const char* const name :
         {"embedding.weight", "encoder.input", "encoder.recurrent", "encoder.bias", "output.weight", "output.bias"})
      other.set(name, memory.value(name).data);
  };
  share(state);
  memory.set_bias(-40, 0.3, 0.2);
  check_same(memory.losses(kWords), state.losses(kWords));

  // Candidates are tanh(h) where the memory has no part in them and all of the state is kept.
  PlacedRecurrent squashed(gold_options(RecurrentCell::lstm, ReadoutKind::n_gram, 1));
  share(squashed);
  Numbers unit(36, 0.0);
  for (std::size_t i = 0; i < 6; ++i) unit[7 * i] = 1;
  squashed.set("readout.output", unit);
  memory.set_bias(40, 40, 0);
  Numbers of_memory = memory.value("readout.memory").data;
  std::fill(of_memory.begin() + 72, of_memory.end(), 0.0);
  memory.set("readout.memory", of_memory);
  memory.set("readout.candidate", unit);
  memory.reset();
  check_same(memory.losses(kWords), squashed.losses(kWords));
}

TEST_CASE("recurrent memory: without keys all words weigh the same", "[recurrent]") {
  Memory memory;
  memory.set("readout.keys", Numbers(42, 0.0));
  memory.set("readout.temporal", Numbers(18, 0.0));
  memory.losses(kWords);
  const Numbers weights = to_host(memory.backend, memory.window_weights).data;
  for (std::size_t t = 0; t < 9; ++t) {
    const auto seen = std::min<std::int64_t>(3, kWords.preceding[t] + 1);
    for (std::int64_t column = 0; column < 3; ++column)
      CHECK(weights[3 * t + static_cast<std::size_t>(column)] ==
            Approx(column >= 3 - seen ? 1.0 / static_cast<double>(seen) : 0.0).epsilon(1e-14));
  }
}

TEST_CASE("recurrent: without a softmax's weights every word costs ln V", "[recurrent]") {
  for (const RecurrentVariant& variant : recurrent_variants()) {
    CAPTURE(variant.name);
    PlacedRecurrent placed(variant.options);
    const PlacedRecurrent::Block block{.inputs = random_words(7, 5, 1), .targets = random_words(7, 5, 2)};
    placed.set("output.weight", Numbers(static_cast<std::size_t>(5 * variant.options.hidden_width()), 0.0));
    placed.set("output.bias", Numbers(5, 0.0));
    for (const double loss : placed.losses(block)) CHECK(loss == Approx(std::log(5.0)).epsilon(1e-14));
  }
}

TEST_CASE("recurrent: gradients of the bias sum to nothing, and moving all of it changes nothing", "[recurrent]") {
  for (const RecurrentVariant& variant : recurrent_variants()) {
    CAPTURE(variant.name);
    PlacedRecurrent placed(variant.options);
    const PlacedRecurrent::Block block{.inputs = random_words(7, 5, 1), .targets = random_words(7, 5, 2)};
    const auto run = [&] {
      placed.reset();
      placed.store.zero_gradients(placed.step);
      std::vector<Numbers> all{placed.train(block, 0.2)};
      for (const auto& [name, parameter] : placed.store.parameters()) all.push_back(placed.gradient(name).data);
      return all;
    };
    const std::vector<Numbers> before = run();
    const Numbers of_bias = placed.gradient("output.bias").data;
    CHECK(std::abs(std::accumulate(of_bias.begin(), of_bias.end(), 0.0)) < 1e-14);
    Numbers moved = placed.value("output.bias").data;
    for (double& number : moved) number += 1.75;
    placed.set("output.bias", moved);
    const std::vector<Numbers> after = run();
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i)
      for (std::size_t n = 0; n < before[i].size(); ++n) CHECK(after[i][n] == Approx(before[i][n]).margin(1e-13));
  }
}

TEST_CASE("recurrent: a vocabulary of one word costs nothing", "[recurrent]") {
  RecurrentOptions options = gold_options(RecurrentCell::lstm, ReadoutKind::key_value_predict);
  options.vocabulary = 1;
  PlacedRecurrent placed(options);
  for (const double loss : placed.losses({.inputs = {0, 0, 0}, .targets = {0, 0, 0}})) CHECK(loss == 0);
}

TEST_CASE("recurrent: weights start as the formulas say", "[recurrent]") {
  for (const RecurrentVariant& variant : recurrent_variants()) {
    RecurrentOptions options = variant.options;
    options.vocabulary = 400;
    options.embedding_width = 30;
    options.width = 120;
    options.init_range = 0.1;
    PlacedRecurrent placed(options, 1, DType::f32);
    for (const auto& [name, parameter] : placed.store.parameters()) {
      CAPTURE(variant.name, name);
      Numbers values = placed.value(name).data;
      if (name.starts_with("encoder.") && name.ends_with("bias") && options.has_cells()) {
        const auto gates = std::ptrdiff_t{options.encoder == RecurrentCell::lstm ? 4 : 3};
        const std::ptrdiff_t units = std::ssize(values) / gates;
        for (std::ptrdiff_t i = units; i < 2 * units; ++i) CHECK(values[static_cast<std::size_t>(i)] == 1);
        values.erase(values.begin() + units, values.begin() + 2 * units);
      }
      double sum = 0, squares = 0;
      bool inside = true;
      for (const double value : values) {
        inside = inside && std::abs(value) < 0.1;
        sum += value;
        squares += value * value;
      }
      CHECK(inside);
      CHECK(squares > 0);
      if (values.size() < 10000) continue;
      const double count = static_cast<double>(values.size()), mean = sum / count;
      CHECK(squares / count - mean * mean == Approx(0.01 / 3).epsilon(0.1));
    }
  }
}

}  // namespace
}  // namespace engram::harness::recurrent_test
