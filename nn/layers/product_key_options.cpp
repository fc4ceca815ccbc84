#include "nn/layers/product_key_options.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {

std::int64_t ProductKeyOptions::slots() const {
  std::int64_t total = 1;
  for (std::int64_t i = 0; i < factors; ++i) {
    if (subkeys > 0 && total > std::numeric_limits<std::int64_t>::max() / subkeys)
      throw UsageError(text("product_key: subkeys^factors must fit 63 bits, got ", subkeys, "^", factors));
    total *= subkeys;
  }
  return total;
}

QueryNetworkOptions ProductKeyOptions::query_options(std::int64_t width) const {
  return {.width = width,
          .heads = heads,
          .factors = keys == KeyKind::flat ? 1 : factors,
          .query_width = query_width,
          .kind = query_network,
          .hidden = query_hidden,
          .norm = query_norm};
}

std::vector<std::int64_t> ProductKeyOptions::memory_layers(std::int64_t model_layers) const {
  if (!layers.empty()) {
    std::vector<std::int64_t> sorted = layers;
    std::ranges::sort(sorted);
    if (sorted.front() < 1 || sorted.back() > model_layers)
      throw UsageError(text("product_key: layers must be from 1 to ", model_layers, ", the layers of the model, got ",
                            sorted.front() < 1 ? sorted.front() : sorted.back()));
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      throw UsageError(text("product_key: layers must be given once each, got ", *twice, " twice"));
    return sorted;
  }
  if (count <= 0) return {};
  if (count >= model_layers)
    throw UsageError(text("product_key: count must be below the ", model_layers, " layers of the model, got ", count,
                          "\n  an explicit list (product_key.layers) may name every layer"));
  std::vector<std::int64_t> found;
  const std::int64_t step = (model_layers + count) / (count + 1);  // ceil(L / (m + 1))
  for (std::int64_t i = 1; i <= count; ++i)
    found.push_back(count * step < model_layers
                        ? i * step
                        : static_cast<std::int64_t>(std::floor(
                              static_cast<double>(i * model_layers) / static_cast<double>(count + 1) + 0.5)));
  return found;
}

void ProductKeyOptions::check(std::int64_t width, std::int64_t model_layers) const {
  using namespace option_limits;
  constexpr OptionRules rules("product_key: ");
  rules.within("count", count, 0, kLayers);
  if (!any()) return;
  rules.require(count == 0 || layers.empty(), "count", "0 beside a list of layers", count);
  const auto memories = static_cast<std::int64_t>(memory_layers(model_layers).size());
  check_memories(width, shared_values ? 1 : memories);
}

void ProductKeyOptions::check_memories(std::int64_t width, std::int64_t tables) const {
  using namespace option_limits;
  constexpr OptionRules rules("product_key: ");
  rules.require(factors == 2 || factors == 3, "factors", "2 or 3", factors);
  rules.within("subkeys", subkeys, 1, kRows);
  rules.within("heads", heads, 1, 64);
  constexpr std::int64_t kMostSelected = 1 << 20;
  rules.within("selected", selected, 1, kMostSelected);
  rules.require(selected <= slots(), "selected", text("from 1 to the ", slots(), " slots of subkeys ", subkeys),
                selected);
  rules.within("query_width", query_width, 2, kWidth);
  rules.within("value_width", value_width, 0, kWidth, ", 0 for the model's width");
  rules.require(projection || gate == MemoryGate::swish || value_width_in(width) == width, "value_width",
                text("the model's width ", width, " without product_key.projection or the gate swish"), value_width);
  rules.require(!projection || gate != MemoryGate::swish, "projection",
                "false with the gate swish, which has an output map of its own", projection);
  rules.require(value_dtype == DType::f32 || value_dtype == DType::bf16, "value_dtype", "f32 or bf16",
                name_of(value_dtype));
  for (const auto& [name, rate] : {std::pair<std::string_view, double>{"input_dropout", input_dropout},
                                   {"query_dropout", query_dropout},
                                   {"value_dropout", value_dropout}})
    rules.dropout(name, rate);
  query_options(width).check();
  // Sizes are counted in bytes, and the state of an optimiser has up to 16 for a number.
  constexpr std::int64_t kMostNumbers = std::numeric_limits<std::int64_t>::max() / 16;
  rules.require(slots() <= kMostNumbers / value_width_in(width) / tables, "subkeys",
                text("small enough that subkeys^factors values of ", value_width_in(width), " numbers fit 63 bits"),
                subkeys);
  const std::int64_t most_keys = std::min(kRows, kMostNumbers / heads / query_width);
  rules.require(keys != KeyKind::flat || slots() <= most_keys, "subkeys",
                text("small enough that there are at most ", most_keys, " flat keys of ", query_width,
                     " numbers in each head, subkeys^factors"),
                subkeys);
}

}  // namespace engram
