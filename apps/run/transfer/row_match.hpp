#pragma once
/// Which rows of a model's tensors are rows of another model's: one rule for each kind of tensor, whose shapes may
/// differ. docs/guide/fine-tuning.md has them as a table.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/transfer/symbol_match.hpp"
#include "core/shape.hpp"

namespace engram {

/// A tensor of now, seen as `rows` rows of `length` numbers.
struct RowMatch {
  std::vector<std::string> from;  ///< tensors before
  std::int64_t rows = 0, length = 0;
  struct Place {
    int tensor = -1;       ///< in `from`; -1: there is none
    std::int64_t row = 0;  ///< in rows of the same length
  };
  std::function<Place(std::int64_t row)> place;
  double factor = 1;      ///< numbers are multiplied by it
  bool is_share = false;  ///< and are at most 1 then
};

class RowMatcher {
 public:
  /// The shape of a tensor before; none: there was no such tensor.
  using ShapeOf = std::function<std::optional<Shape>(const std::string& name)>;

  /// Configurations with known vocabularies, of one family. All must outlive it.
  RowMatcher(const RunConfig& before, const RunConfig& now, const SymbolMatch& symbols, ShapeOf shape_of)
      : before_(&before), now_(&now), symbols_(&symbols), shape_of_(std::move(shape_of)) {}

  /// Of a tensor now; nothing where no rule finds rows for it.
  std::optional<RowMatch> match(const std::string& name, const Shape& shape) const;

 private:
  struct Cluster {
    std::string name;
    std::int64_t first;  // symbol
    int number;          // -1: all of the vocabulary
  };
  std::vector<Cluster> clusters_before(const std::string& whole) const;
  std::optional<RowMatch> of_symbols(const std::string& name, const Shape& shape) const;
  std::optional<RowMatch> of_cluster_head(const std::string& name, const Shape& shape) const;
  std::optional<RowMatch> of_spans(const std::string& name, const Shape& shape) const;
  std::optional<RowMatch> of_values(const std::string& name, const Shape& shape) const;
  std::optional<RowMatch> along_axis(const std::string& name, const Shape& shape) const;
  std::optional<RowMatch> whole(const std::string& name, const Shape& shape) const;

  const RunConfig *before_, *now_;
  const SymbolMatch* symbols_;
  ShapeOf shape_of_;
};

}  // namespace engram
