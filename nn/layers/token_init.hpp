#pragma once
/// How both ends of a language model start: [all-attention 1.9], and of Transformer-XL,
/// section 4.1.

#include <cstdint>
#include <optional>

#include "core/names.hpp"
#include "nn/init.hpp"

namespace engram {

/// How the entries of tables start. The first losses of `unit`, the released models' way, are far above ln V when the
/// tables are tied: 50 to 110 nats at width 512, which a long training soon forgets.
enum class TableInit : std::uint8_t {
  unit,   ///< N(0, 1)
  scaled  ///< N(0, 1 / E_i): first losses near ln V
};
constexpr auto names_of(TableInit) {
  return std::to_array<Named<TableInit>>({{TableInit::unit, "unit"}, {TableInit::scaled, "scaled"}});
}

/// What both ends start from: the Transformer-XL family's way.
struct TokenStart {
  Initializer table = init::normal(0.02);       ///< vectors of the input, and of the output where it shares them
  Initializer weight = init::normal(0.02);      ///< weights of the output and of the clusters' slots
  Initializer projection = init::normal(0.01);  ///< of the clusters, or of a table that is not as wide as the model
  Initializer bias = init::zeros();             ///< of the output
};

struct TokenInit {
  TableInit table_init = TableInit::unit;
  std::optional<TokenStart> start;  ///< instead of table_init and uniform weights

  /// Vectors of so many numbers.
  Initializer table(std::int64_t width) const {
    if (start) return start->table;
    return init::normal_variance(table_init == TableInit::scaled ? 1.0 / static_cast<double>(width) : 1.0);
  }
  /// Projections, of maps with so many inputs.
  Initializer projection(std::int64_t inputs) const { return start ? start->projection : init::uniform_fan_in(inputs); }
  /// The output's weights, and its biases.
  Initializer weight(std::int64_t inputs) const { return start ? start->weight : init::uniform_fan_in(inputs); }
  Initializer bias(std::int64_t inputs) const { return start ? start->bias : init::uniform_fan_in(inputs); }
};

}  // namespace engram
