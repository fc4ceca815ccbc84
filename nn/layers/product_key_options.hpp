#pragma once
/// Everything that defines the product-key memories of a model, and what is refused. Lample et al.: "Large Memory
/// Layers with Product Keys" (2019); all details in docs/mathematics/product-key.md.

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/names.hpp"
#include "nn/layers/query_network.hpp"
#include "nn/layers/query_norm.hpp"

namespace engram {

/// Where a memory stands in its layer; F is the feed-forward sublayer ([product-key 1.6]).
enum class MemoryPlacement : std::uint8_t {
  replace,  ///< instead of F, inside the residual and its norm: the paper's
  beside,   ///< F(x) + memory(x), inside the residual and its norm: Kim, Jung (2020)
  after     ///< x + memory(x) behind the layer, without a norm of its own
};
constexpr auto names_of(MemoryPlacement) {
  return std::to_array<Named<MemoryPlacement>>(
      {{MemoryPlacement::replace, "replace"}, {MemoryPlacement::beside, "beside"}, {MemoryPlacement::after, "after"}});
}
/// What slots are found by.
enum class KeyKind : std::uint8_t {
  product,  ///< a slot for every combination of sub-keys: n^factors slots
  flat      ///< a key for each of as many slots: the paper's baseline
};
constexpr auto names_of(KeyKind) {
  return std::to_array<Named<KeyKind>>({{KeyKind::product, "product"}, {KeyKind::flat, "flat"}});
}
/// What the values that were read go through ([product-key 8]).
enum class MemoryGate : std::uint8_t {
  none,   ///< nothing; or one linear map, where values are not as wide as the model
  swish,  ///< W2 (y * silu(W1 x)): Memory+ of Berges et al. (2024)
  scalar  ///< sigmoid(<u, x>) y, one number for each position
};
constexpr auto names_of(MemoryGate) {
  return std::to_array<Named<MemoryGate>>(
      {{MemoryGate::none, "none"}, {MemoryGate::swish, "swish"}, {MemoryGate::scalar, "scalar"}});
}
/// From which distribution values start.
enum class ValueStart : std::uint8_t {
  normal,  ///< N(0, 1 / value width)
  zeros
};
constexpr auto names_of(ValueStart) {
  return std::to_array<Named<ValueStart>>({{ValueStart::normal, "normal"}, {ValueStart::zeros, "zeros"}});
}

/// A memory that is made by itself (ProductKeyMemory) reads all of these but the first block and `shared_values`, which
/// say where a model has its memories.
struct ProductKeyOptions {
  std::vector<std::int64_t> layers =
      {};                  ///< that have a memory, the first being 1; empty: `count` of them, by the rule
  std::int64_t count = 0;  ///< m, memories of the model, at memory_layers(); 0: as many as `layers` says
  MemoryPlacement placement = MemoryPlacement::replace;

  KeyKind keys = KeyKind::product;
  std::int64_t factors = 2;        ///< sets of sub-keys: 2 or 3
  std::int64_t subkeys = 512;      ///< n, of each set and head; slots are n^factors
  std::int64_t heads = 4;          ///< H, with queries and keys of their own
  std::int64_t selected = 32;      ///< k, slots that a head reads
  std::int64_t query_width = 512;  ///< dq, of each head; a multiple of factors
  std::int64_t value_width = 0;    ///< dv; 0: the model's width. Another one needs a projection or the gate `swish`
  bool projection = false;         ///< a linear map dv -> width behind the values
  bool shared_values = false;      ///< all memories read one table
  MemoryGate gate = MemoryGate::none;

  QueryNetworkKind query_network = QueryNetworkKind::linear;
  std::vector<std::int64_t> query_hidden = {};  ///< mlp, heads_mlp: widths of hidden layers
  QueryNorm query_norm = QueryNorm::batch;  ///< `batch` trains with two rows or more; others take each row by itself
  bool unit_keys = false;                   ///< sub-keys are scaled to unit length before they are compared

  ValueStart value_init = ValueStart::normal;
  DType value_dtype = DType::f32;  ///< f32 or bf16; in a store of f64, f32 stands for f64
  bool same_keys = false;          ///< all memories start with the same keys, as in the released program
  double input_dropout = 0;        ///< on what the query network reads
  double query_dropout = 0;
  double value_dropout = 0;  ///< on the layer's result, behind gate and projection

  /// Whether a model has memories at all.
  bool any() const { return count > 0 || !layers.empty(); }
  /// N, rows of a table of values. Throws UsageError beyond 63 bits.
  std::int64_t slots() const;
  std::int64_t value_width_in(std::int64_t width) const { return value_width > 0 ? value_width : width; }
  QueryNetworkOptions query_options(std::int64_t width) const;
  /// The layers that have a memory, from 1 on, ascending, in a model of so many: `layers`, or the rule of
  /// [product-key 1.7], which puts m of them at regular intervals, none in the last layer. Throws UsageError.
  std::vector<std::int64_t> memory_layers(std::int64_t model_layers) const;
  /// Throws UsageError naming the option and its value ([product-key 9]). width, model_layers: of the model.
  void check(std::int64_t width, std::int64_t model_layers) const;
  /// The same for one memory by itself, whatever `layers` and `count` are.
  void check_alone(std::int64_t width) const { check_memories(width, 1); }

 private:
  void check_memories(std::int64_t width, std::int64_t tables) const;
};

}  // namespace engram
