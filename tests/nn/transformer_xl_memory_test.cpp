/// T4 to T8 of [transformer-xl 12]: which keys a query sees, what memories hold, and that the cut
/// into segments does not matter where it must not.

#include <cmath>

#include "autograd/functions/attention.hpp"
#include "nn/past/segment_memory.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_xl.hpp"

namespace engram::harness::transformer_xl_memory_test {
namespace {

/// Any one layer or more of this family, without clusters.
TransformerXlOptions plain(std::int64_t layers, std::int64_t memory, Visibility visibility = Visibility::all) {
  TransformerXlOptions options;
  options.vocabulary = 11;
  options.layers = layers;
  options.width = 8;
  options.heads = 2;
  options.depth = 3;
  options.inner = 10;
  options.memory = memory;
  options.visibility = visibility;
  return options;
}

TEST_CASE("T4: row i of the position scores is shifted by S - 1 - i, as the attention operation has it") {
  // X[i][k] = 10 i + k, table row k being distance K - 1 - k: (10 i, 1) . (1, K - 1 - d).
  const std::int64_t block = 3, memory = 2, all = 5, depth = 8, window = memory + block - 1;
  Backend& backend = *available_backends().front();
  HeapAllocator heap(backend);
  Step step(backend, heap, 1);
  step.begin({});
  Tape tape(step, Tape::Mode::inference);
  const auto constant = [&](Shape shape, const std::function<double(std::int64_t, std::int64_t)>& element) {
    Tensor tensor = step.empty(shape, DType::f64);
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<double>()[i] = element(i / shape[-1], i % shape[-1]);
    return tape.constant(tensor);
  };
  const auto zero = [](std::int64_t, std::int64_t) { return 0.0; };
  AttentionVariables in;
  in.content_query = constant({1, block, depth}, zero);
  in.position_query = constant({1, block, depth}, [](std::int64_t i, std::int64_t c) {
    return c == 0 ? 10.0 * static_cast<double>(i) : c == 1 ? 1.0 : 0.0;
  });
  in.position_keys = constant({all, depth}, [&](std::int64_t d, std::int64_t c) {
    return c == 0 ? 1.0 : c == 1 ? static_cast<double>(all - 1 - d) : 0.0;
  });
  in.keys = constant({1, block, depth}, zero);
  in.past_keys = constant({window, depth}, zero);
  // Values say which key they are of, so that the result is the row of probabilities.
  in.values = constant({1, block, depth}, [&](std::int64_t j, std::int64_t c) { return c == memory + j ? 1.0 : 0.0; });
  in.past_values =
      constant({window, depth}, [&](std::int64_t r, std::int64_t c) { return c == r - (window - memory) ? 1.0 : 0.0; });
  in.past_valid = step.empty({1}, DType::i32);
  *in.past_valid.data<std::int32_t>() = static_cast<std::int32_t>(memory);
  AttentionOptions options;
  options.min_distance = 0;
  options.max_distance = static_cast<int>(window);
  options.windows = HeadWindows({static_cast<std::int32_t>(window)});
  const AttentionResult result = attention(in, options);

  const std::vector<std::vector<double>> expected{{2, 3, 4}, {11, 12, 13, 14}, {20, 21, 22, 23, 24}};
  reference::Array64 x = reference::zeros({block, all});
  for (std::int64_t i = 0; i < block; ++i)
    for (std::int64_t k = 0; k < all; ++k) x.at(i, k) = 10.0 * static_cast<double>(i) + static_cast<double>(k);
  const reference::Array64 shifted = reference::xl_shift(x, memory);
  for (std::int64_t i = 0; i < block; ++i) {
    const std::vector<double>& row = expected[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < all; ++j) {
      const double share = result.out.value().data<double>()[i * depth + j];
      CAPTURE(i, j);
      if (j >= static_cast<std::int64_t>(row.size())) {
        CHECK(share == 0);
        CHECK(shifted.at(i, j) == 0);
        continue;
      }
      CHECK(std::log(share) + result.lse.data<double>()[i] == Approx(row[static_cast<std::size_t>(j)]).margin(1e-12));
      CHECK(shifted.at(i, j) == row[static_cast<std::size_t>(j)]);
    }
  }
}

/// Which tokens change the last hidden state of every position of the second block: one layer, so that these are the
/// keys that its query sees.
std::vector<Ids> seen_keys(const TransformerXlOptions& options, std::int64_t first, std::int64_t second, bool in_ring) {
  PlacedXl placed(options);
  placed.spread(5);
  const auto states = [&](const Ids& tokens) {
    ModelPast past = in_ring ? placed.ring(1, second) : placed.memory();
    if (first > 0) placed.hidden({tokens.begin(), tokens.begin() + first}, past);
    return placed.hidden({tokens.begin() + first, tokens.end()}, past);
  };
  const Ids tokens = random_ids(first + second, 10, 3);
  const reference::Array64 before = states(tokens);
  std::vector<Ids> seen(static_cast<std::size_t>(second));
  for (std::int64_t key = 0; key < first + second; ++key) {
    Ids changed = tokens;
    changed[static_cast<std::size_t>(key)] = 10;
    const reference::Array64 after = states(changed);
    for (std::int64_t i = 0; i < second; ++i)
      for (std::int64_t d = 0; d < options.width; ++d)
        if (before.at(0, i, d) != after.at(0, i, d)) {
          seen[static_cast<std::size_t>(i)].push_back(key);
          break;
        }
  }
  return seen;
}

TEST_CASE("T5: the keys that queries see") {
  for (const bool ring : {false, true}) {
    CAPTURE(ring);
    using Sets = std::vector<Ids>;
    CHECK(seen_keys(plain(1, 2), 2, 3, ring) == Sets{{0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}});
    CHECK(seen_keys(plain(1, 2, Visibility::last_memory), 2, 3, ring) == Sets{{1, 2}, {2, 3}, {3, 4}});
    CHECK(seen_keys(plain(1, 2, Visibility::last_memory_plus_1), 2, 3, ring) == Sets{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}});
    CHECK(seen_keys(plain(1, 5, Visibility::last_memory), 0, 3, ring) == Sets{{0}, {0, 1}, {0, 1, 2}});
    CHECK(seen_keys(plain(1, 0), 0, 3, ring) == Sets{{0}, {0, 1}, {0, 1, 2}});
    CHECK(seen_keys(plain(1, 0), 2, 3, ring) == Sets{{2}, {2, 3}, {2, 3, 4}});
  }
}

/// The positions whose states the first layer remembers: its states are the tokens' vectors.
Ids remembered(PlacedXl& placed, ModelPast& past) {
  const auto& memory = dynamic_cast<SegmentMemory&>(*past.front());
  const reference::Array64 states = to_host(placed.backend, memory.states());
  const reference::Array64 table = placed.value("embedding.table");
  Ids positions;
  const std::int64_t length = states.axis(1);
  for (std::int64_t row = length - std::min(length, memory.valid()); row < length; ++row)
    for (std::int64_t word = 0; word < table.axis(0); ++word)
      if (std::abs(states.at(0, row, 0) - std::sqrt(8.0) * table.at(word, 0)) < 1e-12) positions.push_back(word);
  return positions;
}

TEST_CASE("T6: what memories hold, also where blocks are fed positions again") {
  PlacedXl placed(plain(2, 4));  // token t is at position t
  ModelPast past = placed.memory();
  placed.run({0, 1, 2}, past);
  CHECK(remembered(placed, past) == Ids{0, 1, 2});
  placed.run({3, 4, 5}, past);
  CHECK(remembered(placed, past) == Ids{2, 3, 4, 5});
  placed.run({6, 7, 8}, past);
  CHECK(remembered(placed, past) == Ids{5, 6, 7, 8});

  past = placed.memory();
  placed.run({0, 1, 2}, past, 1, 1);
  CHECK(remembered(placed, past) == Ids{0, 1});
  placed.run({2, 3, 4, 5}, past, 1, 1);
  CHECK(remembered(placed, past) == Ids{1, 2, 3, 4});
  placed.run({5, 6, 7, 8}, past, 1, 1);
  CHECK(remembered(placed, past) == Ids{4, 5, 6, 7});
  placed.run({8}, past, 1, 3);  // fewer than are fed again
  CHECK(remembered(placed, past) == Ids{4, 5, 6, 7});

  const reference::XlRange second = reference::xl_memory_range(2, 4, 1, 4);
  CHECK(second.begin == 1);
  CHECK(second.end == 5);
}

TEST_CASE("T6: positions that are fed again are seen once") {
  // The last block sees all before it in both streams, with its first token from the memory or fed again.
  TransformerXlOptions options = plain(2, 9);
  for (const bool ring : {false, true}) {
    PlacedXl placed(options);
    placed.spread(8);
    ModelPast once = ring ? placed.ring() : placed.memory(), again = ring ? placed.ring() : placed.memory();
    const Ids tokens = random_ids(9, 11, 6);
    const auto block = [&](std::ptrdiff_t first, std::ptrdiff_t end) {
      return Ids(tokens.begin() + first, tokens.begin() + end);
    };
    placed.run(block(0, 6), once);
    const std::vector<double> plainly = placed.run(block(6, 9), once).data;
    placed.run(block(0, 3), again, 1, 1);
    placed.run(block(2, 6), again, 1, 1);
    std::vector<double> twice = placed.run(block(5, 9), again).data;
    twice.erase(twice.begin(), twice.begin() + 11);
    CHECK(farthest_apart(plainly, twice) < 1e-13);
  }
}

/// Log-probabilities after all tokens, in blocks of these lengths, the last one repeated.
std::vector<double> in_blocks(PlacedXl& placed, const Ids& tokens, const Ids& lengths, ModelPast past) {
  std::vector<double> all;
  std::size_t block = 0;
  for (std::ptrdiff_t first = 0; first < static_cast<std::ptrdiff_t>(tokens.size());) {
    const std::ptrdiff_t length = lengths[std::min(block++, lengths.size() - 1)];
    const auto end = std::min(static_cast<std::ptrdiff_t>(tokens.size()), first + length);
    const std::vector<double> part = placed.run({tokens.begin() + first, tokens.begin() + end}, past).data;
    all.insert(all.end(), part.begin(), part.end());
    first = end;
  }
  return all;
}

std::vector<TransformerXlOptions> recurrent_kinds(std::int64_t memory) {
  std::vector<TransformerXlOptions> kinds;
  for (const bool pre_norm : {false, true}) {
    TransformerXlOptions options = plain(3, memory);
    options.pre_norm = pre_norm;
    kinds.push_back(options);
    options.positions = PositionKind::shaw;
    options.position_rows = 4;
    for (const ShawTerms terms : {ShawTerms::ab, ShawTerms::abcd}) {
      options.shaw_terms = terms;
      kinds.push_back(options);
    }
  }
  return kinds;
}

TEST_CASE("T7: segments with a long enough memory equal one segment") {
  const Ids tokens = random_ids(6, 11, 9);
  for (const TransformerXlOptions& options : recurrent_kinds(6)) {
    CAPTURE(name_of(options.positions), name_of(options.shaw_terms), options.pre_norm);
    PlacedXl placed(options);
    placed.spread(2);
    const std::vector<double> whole = in_blocks(placed, tokens, {6}, placed.memory());
    for (const Ids& lengths : {Ids{3, 3}, Ids{1, 5}, Ids{2, 4}, Ids{1}}) {
      CHECK(farthest_apart(in_blocks(placed, tokens, lengths, placed.memory()), whole) < 1e-12);
      CHECK(farthest_apart(in_blocks(placed, tokens, lengths, placed.ring()), whole) < 1e-12);
    }
  }
}

TEST_CASE("T7: a memory beyond the history changes nothing, if it starts empty") {
  const Ids tokens = random_ids(6, 11, 9);
  for (const MemoryStart start : {MemoryStart::empty, MemoryStart::zeros}) {
    TransformerXlOptions options = plain(2, 6);
    options.memory_start = start;
    PlacedXl placed(options);
    placed.spread(2);
    const std::vector<double> before = in_blocks(placed, tokens, {3}, placed.memory());
    placed.model.set_context({.memory = 11, .visibility = Visibility::all, .start = start, .clamp = 0});
    const std::vector<double> after = in_blocks(placed, tokens, {3}, placed.memory());
    if (start == MemoryStart::empty)
      CHECK(farthest_apart(before, after) < 1e-13);
    else
      CHECK(farthest_apart(before, after) > 1e-3);
  }
}

TEST_CASE("T7: with windows of one length the length of blocks does not matter") {
  const Ids tokens = random_ids(12, 11, 9);
  for (TransformerXlOptions options : recurrent_kinds(4))
    for (const Visibility visibility : {Visibility::last_memory, Visibility::last_memory_plus_1})
      for (const MemoryStart start : {MemoryStart::empty, MemoryStart::zeros}) {
        options.visibility = visibility;
        options.memory_start = start;
        CAPTURE(name_of(options.positions), name_of(options.shaw_terms), options.pre_norm, name_of(visibility),
                name_of(start));
        PlacedXl placed(options);
        placed.spread(2);
        const std::vector<double> single = in_blocks(placed, tokens, {1}, placed.memory());
        for (const std::int64_t length : {2, 3, 6, 12}) {
          CHECK(farthest_apart(in_blocks(placed, tokens, {length}, placed.memory()), single) < 1e-12);
          CHECK(farthest_apart(in_blocks(placed, tokens, {length}, placed.ring(1, 1)), single) < 1e-12);
        }
      }
}

/// The farthest distance at which a token changes a hidden state; the result must not depend on tokens after it.
std::int64_t farthest_influence(const TransformerXlOptions& options, std::int64_t block) {
  PlacedXl placed(options);
  placed.spread(4);
  const Ids tokens = random_ids(24, 10, 12);
  const auto states = [&](const Ids& all) {
    ModelPast past = placed.memory();
    std::vector<reference::Array64> blocks;
    for (std::ptrdiff_t first = 0; first < 24; first += block)
      blocks.push_back(placed.hidden({all.begin() + first, all.begin() + first + block}, past));
    return blocks;
  };
  const std::vector<reference::Array64> before = states(tokens);
  std::int64_t farthest = 0;
  for (std::int64_t p = 0; p < 24; ++p) {
    Ids changed = tokens;
    changed[static_cast<std::size_t>(p)] = 10;
    const std::vector<reference::Array64> after = states(changed);
    for (std::int64_t t = 0; t < 24; ++t)
      for (std::int64_t d = 0; d < options.width; ++d)
        if (before[static_cast<std::size_t>(t / block)].at(0, t % block, d) !=
            after[static_cast<std::size_t>(t / block)].at(0, t % block, d)) {
          CHECK(t >= p);
          farthest = std::max(farthest, t - p);
        }
  }
  CHECK(placed.model.reach() >= farthest);
  if (options.visibility != Visibility::all)
    CHECK(placed.model.reach() == farthest);
  else if (options.memory % block == 0)
    CHECK(farthest == options.layers * options.memory + block - 1);  // reach() knows no more than the longest block
  return farthest;
}

TEST_CASE("T8: how far tokens reach, and what reach() says") {
  for (const std::int64_t block : {1, 2, 3})
    CHECK(farthest_influence(plain(2, 2, Visibility::last_memory), block) == 2);
  CHECK(farthest_influence(plain(2, 2, Visibility::last_memory_plus_1), 3) == 4);
  CHECK(farthest_influence(plain(2, 3), 3) == 8);
  CHECK(farthest_influence(plain(2, 4), 2) == 9);
  CHECK(farthest_influence(plain(2, 0), 4) == 3);
  farthest_influence(plain(2, 2), 3);
}

}  // namespace
}  // namespace engram::harness::transformer_xl_memory_test
