/// Dropout of recurrent models, seen in gradients: what was dropped has none. And that evaluation has no dropout.

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/nn/placed_recurrent.hpp"
#include "tests/nn/recurrent_variants.hpp"

namespace engram::harness::recurrent_dropout_test {
namespace {

using Block = PlacedRecurrent::Block;
using reference::Array64;

constexpr std::int64_t kWords = 12, kWidth = 24;

RecurrentOptions plain(RecurrentCell encoder = RecurrentCell::lstm) {
  return {.vocabulary = kWords,
          .embedding_width = kWidth,
          .width = kWidth,
          .layers = 2,
          .encoder = encoder,
          .readout = ReadoutKind::identity,
          .init_range = 0.4};
}

/// Two streams of six different words each, so that every word is read once.
Block twelve() {
  Block block{.inputs = {}, .targets = random_words(12, kWords, 2), .streams = 2};
  for (std::int64_t word = 0; word < kWords; ++word) block.inputs.push_back(word);
  return block;
}

/// Which numbers of a gradient are something.
std::vector<bool> live(const Array64& gradient) {
  std::vector<bool> found;
  for (const double number : gradient.data) found.push_back(number != 0);
  return found;
}
double share(const std::vector<bool>& of) {
  return static_cast<double>(std::ranges::count(of, true)) / static_cast<double>(of.size());
}
/// Columns of a matrix that are not all 0.
std::vector<bool> live_columns(const Array64& gradient) {
  std::vector<bool> found(static_cast<std::size_t>(gradient.axis(1)));
  for (std::int64_t row = 0; row < gradient.axis(0); ++row)
    for (std::int64_t column = 0; column < gradient.axis(1); ++column)
      if (gradient.at(row, column) != 0) found[static_cast<std::size_t>(column)] = true;
  return found;
}

struct Trained : PlacedRecurrent {
  std::vector<double> rows;
  explicit Trained(const std::function<void(RecurrentOptions&)>& change, RecurrentOptions options = plain(),
                   Backend& device = *available_backends().front())
      : PlacedRecurrent(changed(options, change), 2, DType::f64, device) {
    store.zero_gradients(step);
    rows = train(twelve(), 0.1);
  }
  static RecurrentOptions changed(RecurrentOptions options, const std::function<void(RecurrentOptions&)>& change) {
    change(options);
    return options;
  }
};

TEST_CASE("recurrent dropout: a word is dropped as a whole, a number of a vector alone", "[recurrent]") {
  for (const auto& device : available_backends()) {
    Trained words([](auto& o) { o.word_dropout = 0.4; }, plain(), *device);
    const Array64 of_words = words.gradient("embedding.weight");
    std::int64_t dropped = 0;
    for (std::int64_t word = 0; word < kWords; ++word) {
      std::int64_t zeros = 0;
      for (std::int64_t i = 0; i < kWidth; ++i) zeros += of_words.at(word, i) == 0;
      CHECK((zeros == 0 || zeros == kWidth));
      dropped += zeros > 0;
    }
    CHECK(dropped > 0);
    CHECK(dropped < kWords);
    Trained numbers([](auto& o) { o.input_dropout = 0.4; }, plain(), *device);
    const std::vector<bool> of_numbers = live(numbers.gradient("embedding.weight"));
    CHECK(share(of_numbers) == Approx(0.6).margin(0.12));
    for (std::size_t word = 1; word < 6; ++word)
      CHECK_FALSE(std::equal(of_numbers.begin(), of_numbers.begin() + kWidth, of_numbers.begin() + word * kWidth));
  }
}

TEST_CASE("recurrent dropout: over time all positions of a stream lose the same numbers", "[recurrent]") {
  for (const auto& device : available_backends()) {
    Trained placed(
        [](auto& o) {
          o.input_dropout = 0.4;
          o.dropout_over_time = true;
        },
        plain(), *device);
    const std::vector<bool> found = live(placed.gradient("embedding.weight"));
    for (std::size_t word = 0; word < kWords; ++word)
      CHECK(std::equal(found.begin() + word * kWidth, found.begin() + (word + 1) * kWidth,
                       found.begin() + word / 6 * 6 * kWidth));
    CHECK_FALSE(std::equal(found.begin(), found.begin() + kWidth, found.begin() + 6 * kWidth));
    CHECK(share(found) == Approx(0.6).margin(0.2));
  }
}

TEST_CASE("recurrent dropout: between layers, and before the softmax", "[recurrent]") {
  for (const RecurrentCell encoder : {RecurrentCell::lstm, RecurrentCell::qrnn}) {
    CAPTURE(name_of(encoder));
    RecurrentOptions options = plain(encoder);
    options.taps = 1;
    Trained between(
        [](auto& o) {
          o.layer_dropout = 0.9;
          o.dropout_over_time = true;
        },
        options);
    // A number that both streams lost has no part in the second layer, those of the first are all there.
    const std::vector<bool> inputs = live_columns(between.gradient("encoder.layers.1.input"));
    CHECK(share(inputs) < 0.5);
    CHECK(share(inputs) > 0);
    CHECK(share(live_columns(between.gradient("encoder.layers.0.input"))) == 1);
    CHECK(share(live_columns(between.gradient("output.weight"))) == 1);
    Trained last(
        [](auto& o) {
          o.output_dropout = 0.9;
          o.dropout_over_time = true;
        },
        options);
    CHECK(share(live_columns(last.gradient("output.weight"))) < 0.5);
    CHECK(share(live_columns(last.gradient("output.weight"))) > 0);
  }
}

TEST_CASE("recurrent dropout: weights that steps multiply, the same in all of a block", "[recurrent]") {
  Trained lstm([](auto& o) { o.weight_dropout = 0.5; });
  for (const char* const layer : {"encoder.layers.0.", "encoder.layers.1."}) {
    CHECK(share(live(lstm.gradient(text(layer, "recurrent")))) == Approx(0.5).margin(0.05));
    CHECK(share(live(lstm.gradient(text(layer, "input")))) == 1);
  }
  Trained quasi([](auto& o) { o.weight_dropout = 0.5; }, plain(RecurrentCell::qrnn));
  CHECK(share(live(quasi.gradient("encoder.layers.0.input"))) == Approx(0.5).margin(0.05));
  CHECK(share(live(quasi.gradient("encoder.layers.0.bias"))) == 1);
}

TEST_CASE("recurrent dropout: evaluation has none, the same step draws the same, another draws anew", "[recurrent]") {
  const auto all = [](RecurrentOptions& o) {
    o.word_dropout = 0.2;
    o.input_dropout = o.layer_dropout = o.output_dropout = o.weight_dropout = 0.3;
    o.dropout_over_time = true;
  };
  for (const RecurrentCell encoder :
       {RecurrentCell::rnn, RecurrentCell::lstm, RecurrentCell::hornn_gated, RecurrentCell::qrnn}) {
    CAPTURE(name_of(encoder));
    const auto nothing = [](RecurrentOptions&) {};
    Trained without(nothing, plain(encoder)), with(all, plain(encoder)), again(all, plain(encoder));
    CHECK(with.rows == again.rows);
    CHECK(with.rows != without.rows);
    CHECK(with.gradient("output.weight").data == again.gradient("output.weight").data);
    for (PlacedRecurrent* each : {static_cast<PlacedRecurrent*>(&without), static_cast<PlacedRecurrent*>(&with)})
      each->reset();
    CHECK(with.losses(twelve()) == without.losses(twelve()));
    // A training step of another number.
    with.reset();
    with.at.step = 1;
    CHECK(with.train(twelve(), 0.1) != again.rows);
  }
}

}  // namespace
}  // namespace engram::harness::recurrent_dropout_test
