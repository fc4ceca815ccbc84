/// Fused attention (cuda/attention/fused_attention.hpp) on the simulated device, or on a card: against f64 on the CPU,
/// and against the plain form, which serves the same calls where the queries are not aligned to 16 bytes.

#include <cmath>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/simulated_limits.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_fused_test {
namespace {

using Positions = AttentionInputSizes::Positions;

/// The card where the tests run on one, else the simulated device; nullptr: neither is there.
Backend* fused_device() {
  Backend* const card = device_of(DeviceKind::cuda);
  return card != nullptr ? card : device_of(DeviceKind::simulated);
}

/// f32 tensors and products in bf16.
AttentionCall fused_call(Backend* backend) {
  return {.dtype = DType::f32, .products = ProductPrecision::bf16, .backend = backend};
}
AttentionCall plain_call(Backend* backend) {
  AttentionCall call = fused_call(backend);
  call.shift = 1;
  return call;
}

struct FusedCase {
  const char* name;
  AttentionOptions options;
  AttentionInputSizes sizes;
};

template <class Change>
AttentionOptions changed(AttentionOptions options, Change change) {
  options.score_scale = 0.3;
  options.slot_score_scale = 0.2;
  change(options);
  return options;
}

/// Tiles have 64 rows and products blocks of 16: sizes around both.
const std::vector<FusedCase>& fused_cases() {
  static const std::vector<FusedCase> cases{
      {"ragged windows, ramps inside, slots",
       changed(attention_options(70, {9, 70, 0, 33}),
               [](AttentionOptions& o) {
                 o.ramp = 8;
                 o.dropout = DropoutRule(0.25);
               }),
       {.block = 67, .depth = 16, .slots = 5, .span = {0.05, 0.83, 0.4, 0.31}}},
      {"own position, two queries, positions per head, a ring, missing past",
       changed(attention_options(40, {40, 21}),
               [](AttentionOptions& o) {
                 o.min_distance = 0;
                 o.past_count = 1234;
                 o.ramp = 12;
                 o.mask_offset = 1;
                 o.ramp_gradient = RampGradient::right;
               }),
       {.streams = 3,
        .block = 35,
        .depth = 32,
        .slots = 70,
        .positions = Positions::per_head,
        .position_query = true,
        .span = {0.5, 0.275},
        .past_valid = {40, 7, 0}}},
      {"many tiles, spans that end at a slot",
       changed(attention_options(160, {160, 100}),
               [](AttentionOptions& o) {
                 o.ramp = 32;
                 o.dropout = DropoutRule(0.4);
               }),
       {.streams = 1, .block = 130, .depth = 16, .position_query = true, .span = {0.75, 0.25}, .past_valid = {90}}},
      {"heads of depth 64",
       changed(attention_options(48, {48}), [](AttentionOptions& o) { o.score_scale = o.slot_score_scale = 0.125; }),
       {.streams = 1, .block = 33, .depth = 64, .slots = 17}},
      {"heads of depth 128",
       changed(attention_options(20, {20, 3}), [](AttentionOptions& o) { o.score_scale = o.slot_score_scale = 0.08; }),
       {.streams = 1,
        .block = 17,
        .depth = 128,
        .slots = 16,
        .positions = Positions::per_head,
        .position_query = true}},
      // Padded to 16, 64 and 128.
      {"heads of depth 41",
       changed(attention_options(70, {9, 70, 33}),
               [](AttentionOptions& o) {
                 o.ramp = 8;
                 o.score_scale = o.slot_score_scale = 0.15;
                 o.dropout = DropoutRule(0.25);
               }),
       {.block = 67, .depth = 41, .slots = 5, .span = {0.05, 0.83, 0.31}}},
      {"heads of depth 6, two queries, positions per head, missing past",
       changed(attention_options(40, {40, 21}),
               [](AttentionOptions& o) {
                 o.min_distance = 0;
                 o.past_count = 1234;
               }),
       {.streams = 3,
        .block = 35,
        .depth = 6,
        .positions = Positions::per_head,
        .position_query = true,
        .past_valid = {40, 7, 0}}},
      {"heads of depth 96",
       changed(attention_options(20, {20, 3}), [](AttentionOptions& o) { o.score_scale = o.slot_score_scale = 0.1; }),
       {.streams = 1, .block = 17, .depth = 96, .slots = 16, .position_query = true}},
      {"slots only",
       changed(attention_options(0, {0, 0}), [](AttentionOptions& o) { o.dropout = DropoutRule(0.3); }),
       {.streams = 3, .block = 70, .depth = 16, .slots = 130}},
      {"no positions, one query per stream",
       changed(attention_options(90, {90, 64}), [](AttentionOptions& o) { o.past_count = 77; }),
       {.streams = 5, .block = 1, .depth = 16, .slots = 3, .positions = Positions::none, .position_query = true}},
      {"hardly anything to see",
       changed(attention_options(5, {0, 0, 2}), [](AttentionOptions&) {}),
       {.streams = 2, .block = 18, .depth = 16, .past_valid = {0, 1}}},
  };
  return cases;
}

/// One pass forward and one back.
struct Results {
  AttentionTruth forward;
  std::vector<Array64> gradients;

  std::vector<Array64> all() const {
    std::vector<Array64> list = gradients;
    list.push_back(forward.out);
    list.push_back(forward.lse);
    return list;
  }
};
Results run_both(const std::vector<Array64>& x, const AttentionOptions& options, const AttentionCall& call) {
  const Array64 dout =
      input_values("dout", {normal(Shape(std::span<const std::int64_t>(x[kContentQuery].shape)))}, DType::f32)[0];
  Results results{run_attention(x, options, call), {}};
  results.gradients = run_attention_backward(x, options, results.forward, dout, call);
  return results;
}

/// |got - wanted| / |wanted|, Euclidean norms; equal infinities agree, and elements below 1e-4 count as that.
double distance(const Array64& got, const Array64& wanted) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < wanted.data.size(); ++i) {
    if (got.data[i] == wanted.data[i]) continue;
    difference += std::pow(got.data[i] - wanted.data[i], 2);
    size += std::pow(wanted.data[i], 2) + 1e-8;
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

/// The fused form misses f64 by as much as the plain form does, of which every operand is rounded to bf16 as well.
void check_exactness(const FusedCase& one, Backend* device) {
  const std::vector<Array64> x = attention_numbers(one.name, one.options, one.sizes);
  const std::vector<Array64> truth = run_both(x, one.options, {}).all();
  const std::vector<Array64> fused = run_both(x, one.options, fused_call(device)).all();
  const std::vector<Array64> plain = run_both(x, one.options, plain_call(device)).all();
  REQUIRE(fused.size() == truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!truth[i].given()) continue;
    const double error = distance(fused[i], truth[i]), plain_error = distance(plain[i], truth[i]);
    CAPTURE(i, error, plain_error);
    // One rounding is wrong by 0.2% in the mean; differences of nearly equal numbers, as in a span's gradient, by more.
    CHECK(error < 1.5 * plain_error + (i == kSpan ? 0.04 : 0.003));
  }
}

TEST_CASE("fused attention: as exact as the plain form", "[attention][fused]") {
  Backend* const device = fused_device();
  if (device == nullptr) return;
  const FewShares few(*device);
  for (const FusedCase& one : fused_cases()) {
    INFO(one.name);
    check_exactness(one, device);
  }
}

/// Small calls of every kind, with sizes around the borders of tiles.
FusedCase random_case(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const auto one_of = [&](std::initializer_list<int> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  };
  const int heads = 1 + below(3), longest = one_of({1, 15, 16, 17, 31, 48, 63, 64, 65, 79, 100});
  std::vector<std::int32_t> windows;
  for (int head = 0; head < heads; ++head) windows.push_back(head == 0 ? longest : below(longest + 1));
  AttentionOptions options = attention_options(below(8) == 0 ? 0 : longest + below(3), windows);
  const bool context = options.max_distance > 0;
  options.score_scale = options.slot_score_scale = 0.25;
  options.min_distance = context ? below(2) : 1;
  options.mask_offset = below(2);
  options.ramp_gradient = static_cast<RampGradient>(below(3));
  options.dropout = DropoutRule(below(2) == 0 ? 0 : 0.3);
  if (context && below(2) == 0) options.past_count = below(200);
  FusedCase one{"random", options, {.streams = 1 + below(3), .block = one_of({1, 15, 16, 17, 33, 63, 64, 65, 80})}};
  AttentionInputSizes& sizes = one.sizes;
  sizes.depth = below(6) == 0 ? 32 : 16;
  sizes.slots = context ? one_of({-1, -1, 0, 1, 16, 17, 64, 65}) : one_of({1, 63, 70});
  sizes.positions = static_cast<Positions>(below(3));
  sizes.position_query = context && below(2) == 0;
  if (context && below(3) > 0) {
    one.options.ramp = one_of({1, 4, 16, 40});
    for (int head = 0; head < heads; ++head)
      sizes.span.push_back(below(2) == 0 ? below(17) / 16.0 : 1.0 * below(longest + 1) / options.max_distance);
  }
  if (context && below(3) == 0)
    for (int stream = 0; stream < sizes.streams; ++stream) sizes.past_valid.push_back(below(longest + 2));
  return one;
}

TEST_CASE("fused attention: calls of every kind", "[attention][fused]") {
  Backend* const device = fused_device();
  if (device == nullptr) return;
  const FewShares few(*device);
  for (unsigned seed = 0; seed < 16; ++seed) {
    CAPTURE(seed);
    check_exactness(random_case(seed), device);
  }
}

TEST_CASE("fused attention: deep heads on a card with little shared memory", "[attention][fused]") {
  Backend* const simulated = device_of(DeviceKind::simulated);
  if (simulated == nullptr) return;
  struct Limited {
    std::size_t& limit;
    std::size_t before = std::exchange(limit, std::size_t{99} << 10);  // of many cards
    ~Limited() { limit = before; }
  } limited{simulated::shared_limit_of(*simulated)};
  for (const FusedCase& one : fused_cases()) {
    INFO(one.name);
    const std::vector<Array64> x = attention_numbers(one.name, one.options, one.sizes);
    std::int64_t plain_calls = 0;
    AttentionCall call = fused_call(simulated);
    call.plain_calls = &plain_calls;
    run_attention(x, one.options, call);
    CHECK(plain_calls == (one.sizes.depth > 64 ? 1 : 0));
    if (one.sizes.depth > 64) check_exactness(one, simulated);
  }
}

TEST_CASE("fused attention: which calls it serves", "[attention][fused]") {
  Backend* const device = fused_device();
  if (device == nullptr) return;
  AttentionInputSizes sizes{.block = 20, .slots = 3, .span = {0.5, 0.2}};
  std::int64_t plain_calls = 0;
  const auto workspace = [&](std::int64_t depth, AttentionCall call) {
    const AttentionOptions options = attention_options(30, {30, 12});
    sizes.depth = depth;
    const std::vector<Array64> x = attention_numbers("serves", options, sizes);
    std::size_t bytes = 0;
    call.workspace = &bytes;
    call.plain_calls = &plain_calls;
    run_attention(x, options, call);
    return bytes;
  };
  // The plain form holds matrices of scores, the fused one nothing, or padded heads.
  for (const std::int64_t depth : {16, 32, 64, 128}) CHECK(workspace(depth, fused_call(device)) == 0);
  for (const std::int64_t depth : {8, 24, 36, 48, 100}) {
    CHECK(workspace(depth, fused_call(device)) > 0);
    CHECK(plain_calls == 0);
  }
  CHECK(workspace(129, fused_call(device)) > 0);
  CHECK(plain_calls == 1);
  CHECK(workspace(16, plain_call(device)) > 0);
  AttentionCall other = fused_call(device);
  other.products = ProductPrecision::f32;
  CHECK(workspace(16, other) > 0);
  CHECK(plain_calls == 0);  // nobody asked for another form
  other = fused_call(device);
  other.dtype = DType::f64;
  CHECK(workspace(16, other) > 0);
  sizes.query_spans = true;
  CHECK(workspace(16, fused_call(device)) > 0);
  sizes.query_spans = false;
  sizes.position_values = Positions::shared;
  CHECK(workspace(16, fused_call(device)) > 0);
}

TEST_CASE("fused attention: the same bits in every order, and again", "[attention][fused]") {
  Backend* const device = fused_device();
  if (device == nullptr) return;
  const FewShares few(*device);
  for (const std::size_t number : {0, 1}) {
    const FusedCase& one = fused_cases()[number];
    INFO(one.name);
    const std::vector<Array64> x = attention_numbers(one.name, one.options, one.sizes);
    const std::vector<Array64> wanted = run_both(x, one.options, fused_call(device)).all();
    CHECK(compare_bits("again", run_both(x, one.options, fused_call(device)).all(), wanted).empty());
    for (const auto& [order, backend] : simulated_in_other_orders()) {
      const FewShares as_few(*backend);
      for (const std::string& fault :
           compare_bits(order, run_both(x, one.options, fused_call(backend.get())).all(), wanted))
        FAIL_CHECK(fault);
    }
  }
}

TEST_CASE("fused attention: gradients are added, or left out", "[attention][fused]") {
  Backend* const device = fused_device();
  if (device == nullptr) return;
  for (const std::size_t number : {0, 1, 5, 6}) {
    const FusedCase& one = fused_cases()[number];
    INFO(one.name);
    const std::vector<Array64> x = attention_numbers(one.name, one.options, one.sizes);
    const Results set = run_both(x, one.options, fused_call(device));
    AttentionCall call = fused_call(device);
    call.write = Write::add;
    std::vector<Array64> added = run_both(x, one.options, call).gradients;
    for (Array64& gradient : added)
      for (double& element : gradient.data) element -= 1;
    for (const std::string& fault : compare_elements("added", added, set.gradients, 1e-6)) FAIL_CHECK(fault);
    for (const int unwanted : {0, 1}) {
      call = fused_call(device);
      std::vector<Array64> wanted = set.gradients;
      for (int i = unwanted; i < kPastValid; i += 2) {
        call.unwanted.push_back(i);
        wanted[static_cast<std::size_t>(i)] = {};
      }
      for (const std::string& fault : compare_bits("some", run_both(x, one.options, call).gradients, wanted))
        FAIL_CHECK(fault);
    }
  }
}

/// A letter for every number that is 0, where dropout dropped it, and another for the others: in a result that is
/// weights themselves.
std::string dropped(const Array64& weights) {
  std::string letters;
  for (const double weight : weights.data) letters += weight == 0 ? '.' : 'x';
  return letters;
}

TEST_CASE("fused attention: dropout decides as everywhere", "[attention][fused]") {
  Backend* const device = fused_device();
  if (device == nullptr) return;
  // Values are unit vectors, a component for every key and slot, so that outputs are weights; so are cotangents, a
  // component for every query, so that the gradients of values are.
  AttentionOptions options = attention_options(30, {27});
  options.dropout = DropoutRule(0.4);
  options.min_distance = GENERATE(0, 1);
  const std::int64_t past = 27, block = 20, slots = 17, depth = 64;
  std::vector<Array64> x =
      attention_numbers("decisions", options, {.streams = 1, .block = block, .depth = depth, .slots = slots});
  const auto unit_vectors = [&](Array64& rows, std::int64_t first) {
    for (std::int64_t i = 0; i < rows.count(); ++i)
      rows.data[static_cast<std::size_t>(i)] = i % depth == first + i / depth ? 1 : 0;
  };
  REQUIRE(past + block + slots == depth);
  unit_vectors(x[kPastValues], 0);
  unit_vectors(x[kValues], past);
  unit_vectors(x[kSlotValues], past + block);
  Array64 dout = reference::zeros(x[kContentQuery].shape);
  unit_vectors(dout, 0);
  for (double& number : x[kContentQuery].data) number *= 0.1;
  const auto decisions = [&](const AttentionCall& call) {
    const AttentionTruth forward = run_attention(x, options, call);
    const std::vector<Array64> gradients = run_attention_backward(x, options, forward, dout, call);
    std::vector<std::string> all{dropped(forward.out)};
    for (const AttentionArgument place : {kPastValues, kValues, kSlotValues})
      all.push_back(dropped(gradients[static_cast<std::size_t>(place)]));
    return all;
  };
  const std::vector<std::string> wanted = decisions({}), fused = decisions(fused_call(device));
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(fused[i] == wanted[i]);
  CHECK(decisions(plain_call(device)) == wanted);
  options.dropout = {};
  CHECK(decisions(fused_call(device)) != wanted);
}

}  // namespace
}  // namespace engram::harness::attention_fused_test
