/// Fused attention with products by warpgroups (cuda/attention/warpgroup_attention.hpp): on the simulated device the
/// same bits as without them, and on every device that has them as exact as bf16 is.

#include <utility>
#include <vector>

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/simulated_limits.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_warpgroup_test {
namespace {

using Positions = AttentionInputSizes::Positions;

struct Case {
  const char* name;
  AttentionOptions options;
  AttentionInputSizes sizes;
};

/// Heads of 64: tiles of slots, keys and queries that are full or not, with and without slots.
std::vector<Case> cases() {
  const auto options = [](std::int32_t longest, std::vector<std::int32_t> windows, double dropout) {
    AttentionOptions o = attention_options(longest, windows);
    o.score_scale = o.slot_score_scale = 0.125;
    o.slot_value_scale = 1.25;
    o.dropout = DropoutRule(dropout);
    return o;
  };
  AttentionOptions ramps = options(70, {70, 33}, 0.25);
  ramps.ramp = 8;
  return {
      {"slots alone, one tile", options(0, {0, 0}, 0.3), {.streams = 2, .block = 64, .depth = 64, .slots = 64}},
      {"slots alone, three tiles", options(0, {0}, 0.3), {.streams = 1, .block = 70, .depth = 64, .slots = 130}},
      {"slots alone, whole tiles of 128",
       options(0, {0, 0}, 0.3),
       {.streams = 1, .block = 80, .depth = 64, .slots = 256}},
      {"two tiles of slots, few queries", options(0, {0}, 0.3), {.streams = 2, .block = 20, .depth = 64, .slots = 120}},
      {"one query a stream", options(0, {0, 0}, 0.3), {.streams = 7, .block = 1, .depth = 64, .slots = 128}},
      {"a few slots and queries", options(0, {0, 0}, 0), {.streams = 1, .block = 17, .depth = 64, .slots = 5}},
      {"spans, ramps", ramps, {.streams = 2, .block = 67, .depth = 64, .slots = 65, .span = {0.83, 0.31}}},
      {"two queries, positions per head, missing past",
       options(40, {40, 21}, 0.4),
       {.streams = 3,
        .block = 35,
        .depth = 64,
        .slots = 100,
        .positions = Positions::per_head,
        .position_query = true,
        .past_valid = {40, 7, 0}}},
      {"no slots, two queries",
       options(75, {75, 20}, 0.1),
       {.streams = 2, .block = 33, .depth = 64, .position_query = true}},
      {"no positions",
       options(90, {90, 64}, 0),
       {.streams = 1, .block = 129, .depth = 64, .slots = 63, .positions = Positions::none}},
  };
}

/// out, lse and all gradients of a call with bf16 tensors.
std::vector<Array64> results(const std::vector<Array64>& x, const AttentionOptions& options,
                             const AttentionCall& call) {
  const Array64 dout =
      input_values("dout", {normal(Shape(std::span<const std::int64_t>(x[kContentQuery].shape)))}, DType::bf16)[0];
  const AttentionTruth forward = run_attention(x, options, call);
  std::vector<Array64> all = run_attention_backward(x, options, forward, dout, call);
  all.push_back(forward.out);
  all.push_back(forward.lse);
  return all;
}

AttentionCall bf16_call(Backend* backend) {
  return {.dtype = DType::bf16, .products = ProductPrecision::bf16, .backend = backend};
}

TEST_CASE("warpgroup attention: the bits of products by warps, in every order", "[attention][fused]") {
  Backend* const device = device_of(DeviceKind::simulated);
  if (device == nullptr) return;
  const FewShares few(*device);
  for (const Case& one : cases()) {
    INFO(one.name);
    const std::vector<Array64> x = attention_numbers(one.name, one.options, one.sizes);
    bool& may = simulated::warpgroup_products_of(*device);
    const bool before = std::exchange(may, true);
    std::int64_t done = simulated::warpgroup_product_count(*device);
    const std::vector<Array64> by_warpgroups = results(x, one.options, bf16_call(device));
    CHECK(simulated::warpgroup_product_count(*device) > done);
    may = false;
    done = simulated::warpgroup_product_count(*device);
    const std::vector<Array64> by_warps = results(x, one.options, bf16_call(device));
    CHECK(simulated::warpgroup_product_count(*device) == done);
    may = before;
    for (const std::string& fault : compare_bits("by warps", by_warps, by_warpgroups)) FAIL_CHECK(fault);
    if (one.sizes.block > 40) continue;
    for (const auto& [order, backend] : simulated_in_other_orders()) {
      const FewShares as_few(*backend);
      for (const bool warpgroups : {true, false}) {
        if (!warpgroups && one.sizes.block > 20) continue;  // the same kernels are in the smaller cases
        simulated::warpgroup_products_of(*backend) = warpgroups;
        for (const std::string& fault :
             compare_bits(order, results(x, one.options, bf16_call(backend.get())), by_warpgroups))
          FAIL_CHECK(fault);
      }
    }
  }
}

TEST_CASE("warpgroup attention: as exact as bf16 is", "[attention][fused]") {
  Backend* device = device_of(DeviceKind::cuda);
  if (device == nullptr) device = device_of(DeviceKind::simulated);
  if (device == nullptr) return;
  const FewShares few(*device);
  for (const Case& one : cases()) {
    INFO(one.name);
    const std::vector<Array64> x = attention_numbers(one.name, one.options, one.sizes);
    const std::vector<Array64> truth = results(x, one.options, {}), got = results(x, one.options, bf16_call(device));
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (!truth[i].given() || i == kSpan) continue;  // a difference of nearly equal numbers
      double error = 0, size = 0;
      for (std::size_t j = 0; j < truth[i].data.size(); ++j) {
        if (got[i].data[j] == truth[i].data[j]) continue;  // equal infinities, too
        error += (got[i].data[j] - truth[i].data[j]) * (got[i].data[j] - truth[i].data[j]);
        size += truth[i].data[j] * truth[i].data[j] + 1e-8;
      }
      CAPTURE(i);
      CHECK(error <= 0.02 * 0.02 * size);
    }
  }
}

}  // namespace
}  // namespace engram::harness::attention_warpgroup_test
