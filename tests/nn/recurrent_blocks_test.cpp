/// Blocks, texts and streams of recurrent models: [key-value-predict 8.2], items 13 to 15;
/// and what pasts do when a step is taken back, a stream begins anew or a checkpoint is loaded.

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_recurrent.hpp"
#include "tests/nn/recurrent_variants.hpp"

namespace engram::harness::recurrent_blocks_test {
namespace {

using Block = PlacedRecurrent::Block;
using Ids = PlacedRecurrent::Ids;
using Numbers = std::vector<double>;

/// Columns [first, last) of a block of streams.
Block columns(const Block& block, std::int64_t first, std::int64_t last) {
  const std::int64_t length = static_cast<std::int64_t>(block.inputs.size()) / block.streams;
  Block part{.inputs = {}, .targets = {}, .streams = block.streams};
  const auto take = [&](const auto& from, auto& to) {
    if (from.empty()) return;
    for (std::int64_t b = 0; b < block.streams; ++b)
      to.insert(to.end(), from.begin() + b * length + first, from.begin() + b * length + last);
  };
  take(block.inputs, part.inputs);
  take(block.targets, part.targets);
  take(block.preceding, part.preceding);
  take(block.counts, part.counts);
  return part;
}

/// Stream by stream, of losses of blocks one after the other.
Numbers joined(const std::vector<Numbers>& parts, std::int64_t streams) {
  Numbers all;
  for (std::size_t b = 0; b < static_cast<std::size_t>(streams); ++b)
    for (const Numbers& part : parts) {
      const std::size_t length = part.size() / static_cast<std::size_t>(streams);
      all.insert(all.end(), part.begin() + static_cast<std::ptrdiff_t>(b * length),
                 part.begin() + static_cast<std::ptrdiff_t>((b + 1) * length));
    }
  return all;
}

void check_same(const Numbers& a, const Numbers& b, double tolerance = 1e-12) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(1e-14));
}

using Gradients = std::map<std::string, Numbers>;
Gradients gradients_of(PlacedRecurrent& placed) {
  Gradients all;
  for (const auto& [name, parameter] : placed.store.parameters()) all[name] = placed.gradient(name).data;
  return all;
}
void check_same(const Gradients& a, const Gradients& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, values] : a) {
    CAPTURE(name);
    check_same(values, b.at(name), 1e-9);
  }
}

/// Two streams of 20 words; texts begin at 0 and 13, and at 0 and 4.
Block twenty() {
  Block block{.inputs = random_words(40, 5, 3), .targets = random_words(40, 5, 4), .streams = 2};
  for (const std::int64_t start : {13, 4})
    for (std::int64_t t = 0; t < 20; ++t) block.preceding.push_back(t < start ? t : t - start);
  return block;
}

TEST_CASE("recurrent: blocks one after the other are one long block", "[recurrent]") {
  for (const RecurrentVariant& variant : all_recurrent_variants())
    for (const std::int64_t window : {1, 5, 15, 25}) {
      if (window != 5 && variant.options.readout_reach() == 0) continue;
      CAPTURE(variant.name, window);
      RecurrentOptions options = variant.options;
      options.window = window;
      PlacedRecurrent placed(options, 2);
      const Block whole = twenty();
      const Numbers wanted = placed.losses(whole);
      for (const std::vector<std::int64_t>& borders :
           {std::vector<std::int64_t>{0, 10, 20}, {0, 1, 2, 5, 13, 14, 20}, {0, 19, 20}}) {
        placed.reset();
        std::vector<Numbers> parts;
        for (std::size_t i = 1; i < borders.size(); ++i)
          parts.push_back(placed.losses(columns(whole, borders[i - 1], borders[i])));
        check_same(joined(parts, 2), wanted);
      }
    }
}

TEST_CASE("recurrent: streams without texts are one text from where their past is empty", "[recurrent]") {
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    CAPTURE(variant.name);
    PlacedRecurrent placed(variant.options, 2);
    Block whole = twenty();
    for (std::int64_t i = 0; i < 40; ++i) whole.preceding[static_cast<std::size_t>(i)] = i % 20;
    const Numbers wanted = placed.losses(whole);
    placed.reset();
    whole.preceding.clear();
    std::vector<Numbers> parts;
    for (const std::int64_t first : {0, 3, 4, 10, 15}) {
      const std::int64_t last = first == 0 ? 3 : first == 3 ? 4 : first == 4 ? 10 : first == 10 ? 15 : 20;
      parts.push_back(placed.losses(columns(whole, first, last)));
    }
    check_same(joined(parts, 2), wanted);
  }
}

TEST_CASE("recurrent: without carry the first position of a block reads nothing, in training alone", "[recurrent]") {
  for (const ReadoutKind readout : {ReadoutKind::attention, ReadoutKind::key_value, ReadoutKind::key_value_predict,
                                    ReadoutKind::n_gram, ReadoutKind::recurrent_memory}) {
    CAPTURE(name_of(readout));
    RecurrentOptions options = small_recurrent(RecurrentCell::lstm, readout);
    options.window = 3;
    PlacedRecurrent carrying(options, 2);
    options.carry = Carry::none;
    PlacedRecurrent placed(options, 2);
    const Block whole = twenty(), first = columns(whole, 0, 10), second = columns(whole, 10, 20);
    for (PlacedRecurrent* each : {&placed, &carrying}) each->losses(first);
    const Numbers with = carrying.losses(second), evaluated = placed.losses(second);
    CHECK(evaluated == with);
    placed.reset();
    placed.train(first, 1);
    const Numbers without = placed.train(second, 1);
    const Numbers weights = placed.window_weights ? to_host(placed.backend, placed.window_weights).data : Numbers();
    for (std::size_t b = 0; b < 2; ++b) {
      CHECK(without[b * 10] != with[b * 10]);
      if (options.attends())
        for (std::size_t column = 0; column < 3; ++column) CHECK(weights[(b * 10) * 3 + column] == 0);
      // The window lies in the block from here on.
      for (std::size_t t = 3; t < 10; ++t) CHECK(without[b * 10 + t] == Approx(with[b * 10 + t]).epsilon(1e-12));
    }
    // The readout is as at the start of a text, the encoder goes on: not even the first loss is that of a new text.
    Block begun = second;
    for (std::size_t i = 0; i < begun.preceding.size(); ++i) begun.preceding[i] = static_cast<std::int64_t>(i) % 10;
    placed.reset();
    CHECK(placed.train(begun, 1)[0] != without[0]);
  }
}

TEST_CASE("recurrent: evaluation may carry nothing too, and then depends on blocks", "[recurrent]") {
  RecurrentOptions options = small_recurrent(RecurrentCell::lstm, ReadoutKind::key_value);
  PlacedRecurrent carrying(options, 2);
  CHECK_FALSE(carrying.model.depends_on_blocks());
  options.carry_evaluation = false;
  PlacedRecurrent placed(options, 2);
  CHECK(placed.model.depends_on_blocks());
  const Block whole = twenty();
  CHECK(placed.losses(whole) == carrying.losses(whole));
  placed.reset();
  const Numbers first = placed.losses(columns(whole, 0, 10)), second = placed.losses(columns(whole, 10, 20));
  CHECK(joined({first, second}, 2) != carrying.losses(whole));
}

TEST_CASE("recurrent: two texts in a stream are the two apart", "[recurrent]") {
  for (const RecurrentVariant& variant : all_recurrent_variants())
    for (const std::int64_t start : {0, 1, 4, 8}) {
      CAPTURE(variant.name, start);
      PlacedRecurrent placed(variant.options);
      Block both{.inputs = random_words(9, 5, 8), .targets = random_words(9, 5, 9)};
      for (std::int64_t t = 0; t < 9; ++t) both.preceding.push_back(t < start ? t : t - start);
      // Something came before, of which the text at 0 must not know either.
      const auto before = [&] {
        placed.reset();
        placed.losses({.inputs = random_words(4, 5, 10), .targets = random_words(4, 5, 11)});
      };
      before();
      placed.store.zero_gradients(placed.step);
      const Numbers together = placed.train(both, 0.1);
      const Gradients summed = gradients_of(placed);
      placed.store.zero_gradients(placed.step);
      std::vector<Numbers> apart;
      for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{0, start}, {start, 9}}) {
        if (first == last) continue;
        placed.reset();
        apart.push_back(placed.train(columns(both, first, last), 0.1));
      }
      check_same(together, joined(apart, 1));
      check_same(summed, gradients_of(placed));
    }
}

TEST_CASE("recurrent: streams do not know each other, nor what does not count", "[recurrent]") {
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    CAPTURE(variant.name);
    Block block{.inputs = random_words(18, 5, 12), .targets = random_words(18, 5, 13), .streams = 3};
    for (const std::int64_t start : {2, 5, 0})
      for (std::int64_t t = 0; t < 6; ++t) block.preceding.push_back(t < start ? t : t - start);
    block.counts = Numbers(18, 1.0);
    for (const std::size_t i : {4, 5, 17}) block.counts[i] = 0;
    // Losses where they count, and what gradients are of.
    const auto run = [&](const Block& of) {
      PlacedRecurrent placed(variant.options, 3);
      placed.store.zero_gradients(placed.step);
      Numbers rows = placed.train(of, 0.1);
      double sum = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) sum += rows[i] *= of.counts[i];
      CHECK(placed.loss == Approx(0.1 * sum).epsilon(1e-13));
      return std::pair(rows, gradients_of(placed));
    };
    const auto [rows, gradients] = run(block);

    Block permuted = block;
    const auto permute = [](auto& values) { std::rotate(values.begin(), values.begin() + 6, values.end()); };
    permute(permuted.inputs);
    permute(permuted.targets);
    permute(permuted.preceding);
    permute(permuted.counts);
    auto [other_rows, other_gradients] = run(permuted);
    Numbers rotated = rows;
    permute(rotated);
    check_same(other_rows, rotated);
    check_same(other_gradients, gradients);

    Block garbage = block;
    for (const std::size_t i : {4, 5, 17}) {
      garbage.inputs[i] = (block.inputs[i] + 2) % 5;
      garbage.targets[i] = (block.targets[i] + 1) % 5;
      garbage.preceding[i] = 0;
    }
    const auto [rows_beside, gradients_beside] = run(garbage);
    CHECK(rows_beside == rows);
    check_same(gradients_beside, gradients);
  }
}

TEST_CASE("recurrent: pasts are taken back, begun anew and restored", "[recurrent]") {
  for (const auto& device : available_backends())
    for (const RecurrentVariant& variant : all_recurrent_variants()) {
      CAPTURE(variant.name, name_of(device->device().kind));
      RecurrentOptions options = variant.options;
      options.carry = Carry::detached;
      PlacedRecurrent placed(options, 2, DType::f32, *device);
      const Block whole = twenty(), first = columns(whole, 0, 7), second = columns(whole, 7, 14),
                  third = columns(whole, 14, 20);
      const Numbers begin = placed.losses(first), middle = placed.losses(second), end = placed.losses(third);
      // Begun anew.
      placed.reset();
      for (const auto& part : placed.past) CHECK(state_past(*part).valid() == 0);
      CHECK(placed.losses(first) == begin);
      // A block that is taken back was not there; before the second block and before the first.
      placed.losses(second);
      for (const auto& part : placed.past) {
        CHECK(state_past(*part).valid() == 14);
        state_past(*part).undo(7);
        CHECK(state_past(*part).valid() == 7);
      }
      CHECK(placed.losses(second) == middle);
      placed.reset();
      placed.losses(second);
      for (const auto& part : placed.past) {
        state_past(*part).undo(7);
        CHECK(state_past(*part).valid() == 0);
        CHECK(state_past(*part).states().shape()[1] == 0);
      }
      CHECK(placed.losses(first) == begin);
      placed.losses(second);
      // Into a past of another model, as a checkpoint does.
      PlacedRecurrent other(options, 2, DType::f32, *device);
      for (std::size_t i = 0; i < placed.past.size(); ++i) {
        const StatePast& from = state_past(*placed.past[i]);
        StatePast& to = state_past(*other.past[i]);
        to.restore(from.states().shape()[1], from.valid());
        CHECK(to.valid() == 14);
        device->copy(to.states().raw(), from.states().raw(), from.states().bytes(), CopyKind::device_to_device);
      }
      CHECK(other.losses(third) == end);
      for (const auto& part : other.past) state_past(*part).restore(0, 0);
      CHECK(other.losses(first) == begin);
      CHECK_THROWS_WITH(state_past(*other.past[0]).restore(99, 3),
                        ContainsSubstring("must remember") && ContainsSubstring("got 99"));
    }
}

TEST_CASE("recurrent: context is read and has no losses", "[recurrent]") {
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    CAPTURE(variant.name);
    PlacedRecurrent placed(variant.options, 2);
    const Block whole = columns(twenty(), 0, 9);
    const Numbers wanted = placed.losses(whole);
    placed.reset();
    placed.step.begin({});
    Tape tape(placed.step, Tape::Mode::inference);
    Block behind = whole;
    behind.targets = columns(whole, 3, 9).targets;
    TokenBatch batch = placed.batch(behind);
    batch.context = 3;
    const Variable hidden = LanguageModel::scored(placed.model.hidden(tape, batch, placed.past), batch);
    REQUIRE(hidden.shape()[1] == 6);
    const Numbers rows = placed.losses_of(hidden, batch, 1);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t t = 0; t < 6; ++t) CHECK(rows[b * 6 + t] == Approx(wanted[b * 9 + 3 + t]).epsilon(1e-12));
  }
}

TEST_CASE("recurrent: blocks that do not fit are refused", "[recurrent]") {
  PlacedRecurrent placed(small_recurrent(RecurrentCell::lstm, ReadoutKind::key_value_predict), 2);
  CHECK_THROWS_WITH(placed.losses({.inputs = {1, 2, 3}, .targets = {2, 3, 4}}),
                    ContainsSubstring("the past is of 2 streams") && ContainsSubstring("block of 1"));
  const auto with = [&](auto change) {
    placed.step.begin({});
    Tape tape(placed.step, Tape::Mode::inference);
    TokenBatch batch = placed.batch({.inputs = {1, 2, 3, 4}, .targets = {2, 3, 4, 0}, .streams = 2});
    change(batch);
    placed.model.hidden(tape, batch, placed.past);
  };
  CHECK_THROWS_WITH(with([](TokenBatch& batch) { batch.fed_again = 1; }), ContainsSubstring("reads every token once"));
  CHECK_THROWS_WITH(with([](TokenBatch& batch) { batch.context = 2; }), ContainsSubstring("context must be in [0, 2)"));
  CHECK_THROWS_WITH(with([&](TokenBatch& batch) {
                      batch.preceding = placed.ids({0, 1}, {2, 1});
                    }),
                    ContainsSubstring("preceding"));
  CHECK_THROWS_WITH(with([&](TokenBatch& batch) {
                      batch.inputs = placed.ids({1, 2}, {2});
                    }),
                    ContainsSubstring("[B, M]"));
  ModelPast none;
  placed.step.begin({});
  Tape tape(placed.step, Tape::Mode::inference);
  const TokenBatch batch = placed.batch({.inputs = {1, 2}, .targets = {2, 3}, .streams = 2});
  CHECK_THROWS_WITH(placed.model.hidden(tape, batch, none), ContainsSubstring("training_past"));
}

}  // namespace
}  // namespace engram::harness::recurrent_blocks_test
