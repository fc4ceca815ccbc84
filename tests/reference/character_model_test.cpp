/// The whole-model definition: it must not depend on how a text is cut into blocks, on trimming or on the other
/// streams ([all-attention 12], T5 and T6), and must start near a uniform guess when its outputs are zero.

#include <algorithm>
#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/character_model.hpp"

namespace engram::reference::character_model_test {
namespace {

constexpr std::int64_t kVocabulary = 7, kWidth = 4, kHeads = 2, kSpan = 224;

CharacterModel random_model(std::int64_t slots, bool feed_forward, std::uint64_t seed) {
  RandomArrays random(seed);
  CharacterModel model;
  model.embedding = random.array({kVocabulary, kWidth});
  model.positions.keys = random.array({kSpan, kWidth / kHeads});
  for (int l = 0; l < 3; ++l) {
    ModelLayer layer;
    AttentionWeights& w = layer.attention;
    for (Array64* map : {&w.query, &w.key, &w.value, &w.out}) *map = random.array({kWidth, kWidth});
    if (slots > 0) {
      w.slot_keys = random.array({kHeads, slots, kWidth / kHeads});
      w.slot_values = random.array({kHeads, slots, kWidth / kHeads});
    }
    w.span = random.array({kHeads}, 0.2);
    for (double& span : w.span.data) span = std::abs(span);
    w.norm_gain = random.array({kWidth});
    w.norm_bias = random.array({kWidth});
    if (feed_forward)
      layer.feed_forward =
          FeedForwardWeights{random.array({6, kWidth}), random.array({6}),     random.array({kWidth, 6}),
                             random.array({kWidth}),    constant(1, {kWidth}), zeros({kWidth})};
    model.layers.push_back(layer);
  }
  model.out_weight = random.array({kVocabulary, kWidth});
  model.out_bias = random.array({kVocabulary});
  model.heads = kHeads;
  model.ramp = 32;
  return model;
}

std::vector<std::int64_t> random_tokens(std::int64_t count, std::uint64_t seed) {
  RandomArrays random(seed);
  std::vector<std::int64_t> tokens;
  for (std::int64_t k = 0; k < count; ++k) tokens.push_back(random.below(kVocabulary));
  return tokens;
}

/// Losses of tokens 1.. given those before, one stream, in blocks of `block`.
std::vector<double> losses(const CharacterModel& model, const std::vector<std::int64_t>& tokens, std::int64_t block) {
  ModelState state;
  std::vector<double> result;
  const auto count = static_cast<std::int64_t>(tokens.size()) - 1;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const auto first = tokens.begin() + begin, last = tokens.begin() + std::min(begin + block, count);
    const ModelResult step = character_model(model, {first, last}, {first + 1, last + 1}, 1, state);
    result.insert(result.end(), step.row_loss.data.begin(), step.row_loss.data.end());
  }
  return result;
}

void check_equal(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  double largest = 0;
  for (std::size_t k = 0; k < got.size(); ++k) largest = std::max(largest, std::abs(got[k] - expected[k]));
  CHECK(largest <= tolerance);
}

TEST_CASE("T6: blocks, trimming and streams do not change the model", "[reference]") {
  const std::int64_t slots = GENERATE(0, 6);
  const Pad pad = GENERATE(Pad::attend_zero, Pad::mask);
  CAPTURE(slots, pad == Pad::mask);
  CharacterModel model = random_model(slots, slots == 0, 60);
  model.pad = pad;
  const std::vector<std::int64_t> tokens = random_tokens(241, 61);
  const std::vector<double> whole = losses(model, tokens, 240);
  for (const std::int64_t block : {48, 16, 5}) check_equal(losses(model, tokens, block), whole, 1e-12);
  model.trimmed = true;
  for (const std::int64_t block : {240, 48, 7}) check_equal(losses(model, tokens, block), whole, 1e-12);

  ModelState state;
  std::vector<std::int64_t> inputs(tokens.begin(), tokens.end() - 1), targets(tokens.begin() + 1, tokens.end());
  const std::vector<std::int64_t> other = random_tokens(241, 62);
  inputs.insert(inputs.end(), other.begin(), other.end() - 1);
  targets.insert(targets.end(), other.begin() + 1, other.end());
  const ModelResult both = character_model(model, inputs, targets, 2, state);
  for (const Array64& cache : state.caches) CHECK(cache.axis(1) < kSpan);  // trimming did happen
  check_equal({both.row_loss.data.begin(), both.row_loss.data.begin() + 240}, whole, 1e-12);
  check_equal({both.row_loss.data.begin() + 240, both.row_loss.data.end()}, losses(model, other, 240), 1e-12);
}

TEST_CASE("the stream start matters: zero vectors dilute, a mask does not", "[reference]") {
  CharacterModel model = random_model(6, false, 63);
  const std::vector<std::int64_t> tokens = random_tokens(21, 64);
  const std::vector<double> zero_vectors = losses(model, tokens, 20);
  model.pad = Pad::mask;
  const std::vector<double> masked = losses(model, tokens, 20);
  CHECK(std::abs(zero_vectors[0] - masked[0]) > 1e-6);
}

TEST_CASE("T5: a later token changes nothing before it", "[reference]") {
  const CharacterModel model = random_model(6, false, 50);
  std::vector<std::int64_t> tokens = random_tokens(121, 51);
  const std::vector<std::int64_t> targets(120, 0);
  ModelState before_state, after_state;
  const ModelResult before = character_model(model, {tokens.begin(), tokens.begin() + 120}, targets, 1, before_state);
  tokens[100] = (tokens[100] + 1) % kVocabulary;
  const ModelResult after = character_model(model, {tokens.begin(), tokens.begin() + 120}, targets, 1, after_state);
  for (std::int64_t t = 0; t < 100; ++t) CHECK(before.row_loss.at(t) == after.row_loss.at(t));
  CHECK(before.row_loss.at(100) != after.row_loss.at(100));
}

TEST_CASE("the mean loss with a zero output map is that of a uniform guess", "[reference]") {
  CharacterModel model = random_model(6, true, 70);
  model.out_weight = zeros({kVocabulary, kWidth});
  model.out_bias = zeros({kVocabulary});
  ModelState state;
  const ModelResult result = character_model(model, {1, 2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 0}, 2, state);
  CHECK(result.loss == Approx(std::log(7.0)).epsilon(1e-14));
  CHECK(result.logits.shape == std::vector<std::int64_t>{2, 3, kVocabulary});
  CHECK(state.caches[0].shape == std::vector<std::int64_t>{2, 3, kWidth});
}

}  // namespace
}  // namespace engram::reference::character_model_test
