#include "apps/run/transfer/row_match.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/error.hpp"

namespace engram {
namespace {

/// A tensor with a row for each symbol.
struct SymbolTensor {
  std::string whole;  ///< its name where the vocabulary is in one piece: "output.bias"
  int cluster = -1;   ///< of "output.clusters.2.bias" 2
};

std::optional<SymbolTensor> symbol_tensor(std::string_view name) {
  constexpr std::array<std::string_view, 7> kWhole{"embedding.weight", "embedding.table", "output.weight",
                                                   "output.table",     "output.bias",     "readout.keys",
                                                   "readout.values"};
  if (std::ranges::find(kWhole, name) != kWhole.end()) return SymbolTensor{.whole = std::string(name)};
  // Classifiers of auxiliary losses (nn/layers/auxiliary_heads.hpp).
  if (name.starts_with("auxiliary.") && (name.ends_with(".weight") || name.ends_with(".bias")))
    return SymbolTensor{.whole = std::string(name)};
  constexpr std::string_view kClusters = ".clusters.";
  const std::size_t at = name.find(kClusters);
  if (at == std::string_view::npos) return std::nullopt;
  SymbolTensor found;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + at + kClusters.size(), end, found.cluster);
  if (error != std::errc()) return std::nullopt;
  found.whole = std::string(name.substr(0, at)) + std::string(rest, end);
  const bool known = std::ranges::find(kWhole, found.whole) != kWhole.end();
  return known ? std::optional(found) : std::nullopt;
}

/// What a recurrent model calls a tensor of all symbols if it is tied, for one that is not, and the other way; empty:
/// there is no such name. The table of a tied one is that of input and output.
std::string other_name(std::string_view whole) {
  if (whole == "output.weight" || whole == "embedding.weight") return "embedding.table";
  return whole == "embedding.table" ? "embedding.weight" : "";
}

/// The name in a recurrent model of one layer, or of several, of what the other calls so: the only layer is the first.
std::string name_of_other_depth(const std::string& name) {
  constexpr std::string_view kOnly = "encoder.", kAny = "encoder.layers.", kFirst = "encoder.layers.0.";
  if (name.starts_with(kFirst)) return text(kOnly, name.substr(kFirst.size()));
  return name.starts_with(kOnly) && !name.starts_with(kAny) ? text(kFirst, name.substr(kOnly.size())) : name;
}

std::int64_t first_symbol(const std::vector<std::int64_t>& cutoffs, int cluster) {
  return cluster <= 0 ? 0 : cutoffs.at(static_cast<std::size_t>(cluster) - 1);
}

/// One table for all clusters: a symbol keeps its vector in whichever it is.
bool has_one_table(const ModelOptions& model) {
  return model.family == ModelFamily::transformer_xl && model.transformer_xl.divisor == 1;
}

/// Of tensors that may be longer or shorter along one axis.
struct AxisRule {
  std::string_view ending;
  int axis;
  bool from_end;  // the last rows are those that both have
};
constexpr AxisRule kAxisRules[] = {
    {"position_keys", 0, false},         {"position_values", 0, false}, {".distance_keys", 0, true},
    {".distance_biases", 0, true},       {".positions", 0, true},       {"readout.temporal", 0, true},
    {"readout.temporal_value", 0, true}, {"persistent_keys", 1, false}, {"persistent_values", 1, false},
    {".memory.keys", 2, false}};

const AxisRule* axis_rule(std::string_view name) {
  static constexpr AxisRule kPositions{"positions", 0, false};  // of a window: row 0 is its first token's
  if (name == kPositions.ending) return &kPositions;
  const auto rule = std::ranges::find_if(kAxisRules, [&](const AxisRule& one) { return name.ends_with(one.ending); });
  return rule == std::end(kAxisRules) ? nullptr : rule;
}

std::int64_t product_of(const Shape& shape, int begin, int end) {
  std::int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) product *= shape[axis];
  return product;
}

RowMatch same_rows(std::string name, std::int64_t rows, std::int64_t length) {
  return {.from = {std::move(name)}, .rows = rows, .length = length, .place = [](std::int64_t row) {
            return RowMatch::Place{0, row};
          }};
}

}  // namespace

std::optional<RowMatch> RowMatcher::match(const std::string& name, const Shape& shape) const {
  if (symbol_tensor(name)) return of_symbols(name, shape);
  if (name.starts_with("output.cluster_head.")) return of_cluster_head(name, shape);
  if (name.ends_with(".attention.span")) return of_spans(name, shape);
  if (name.ends_with(".memory.values.rows")) return of_values(name, shape);
  if (axis_rule(name) != nullptr) return along_axis(name, shape);
  return whole(name, shape);
}

std::vector<RowMatcher::Cluster> RowMatcher::clusters_before(const std::string& whole) const {
  if (shape_of_(whole)) return {{whole, 0, -1}};
  const std::size_t dot = whole.find('.');
  std::vector<Cluster> found;
  for (int i = 0; i <= static_cast<int>(before_->model.cutoffs().size()); ++i) {
    const std::string name = text(whole.substr(0, dot), ".clusters.", i, whole.substr(dot));
    if (shape_of_(name)) found.push_back({name, first_symbol(before_->model.cutoffs(), i), i});
  }
  if (!found.empty()) return found;
  if (const std::string other = other_name(whole); shape_of_(other)) return {{other, 0, -1}};
  // What is tied has the name that the input gives it.
  return whole == "output.table" ? clusters_before("embedding.table") : found;
}

std::optional<RowMatch> RowMatcher::of_symbols(const std::string& name, const Shape& shape) const {
  const SymbolTensor now = *symbol_tensor(name);
  std::vector<Cluster> clusters = clusters_before(now.whole);
  const bool anywhere = has_one_table(before_->model) && has_one_table(now_->model);
  const auto fits = [&](const Cluster& cluster) {
    const Shape before = *shape_of_(cluster.name);
    return before.rank() == shape.rank() &&
           product_of(before, 1, before.rank()) == product_of(shape, 1, shape.rank()) &&
           (anywhere || cluster.number == now.cluster);
  };
  RowMatch match{.rows = shape[0], .length = product_of(shape, 1, shape.rank())};
  std::vector<std::int64_t> tensors;  // by cluster before, in `from`
  for (const Cluster& cluster : clusters) {
    tensors.push_back(fits(cluster) ? static_cast<std::int64_t>(match.from.size()) : -1);
    if (fits(cluster)) match.from.push_back(cluster.name);
  }
  if (match.from.empty()) return std::nullopt;
  const std::int64_t first = first_symbol(now_->model.cutoffs(), now.cluster);
  match.place = [first, clusters = std::move(clusters), tensors = std::move(tensors),
                 symbols = symbols_](std::int64_t row) -> RowMatch::Place {
    const std::int64_t before = symbols->before_of.at(static_cast<std::size_t>(first + row));
    if (before < 0) return {};
    const auto next = std::ranges::upper_bound(clusters, before, {}, &Cluster::first);
    const auto index = static_cast<std::size_t>(next - clusters.begin() - 1);
    return {static_cast<int>(tensors[index]), before - clusters[index].first};
  };
  return match;
}

std::optional<RowMatch> RowMatcher::of_cluster_head(const std::string& name, const Shape& shape) const {
  std::optional<RowMatch> match = whole(name, shape);
  if (!match || before_->model.family != ModelFamily::transformer_xl ||
      before_->model.transformer_xl.cluster_order == now_->model.transformer_xl.cluster_order)
    return match;
  match->place = [rows = match->rows](std::int64_t row) { return RowMatch::Place{0, rows - 1 - row}; };
  return match;
}

std::optional<RowMatch> RowMatcher::of_spans(const std::string& name, const Shape& shape) const {
  std::optional<RowMatch> match = whole(name, shape);
  const std::int64_t before = before_->model.all_attention.max_span, now = now_->model.all_attention.max_span;
  if (!match || before == now) return match;
  match->factor = static_cast<double>(before) / static_cast<double>(now);
  match->is_share = true;
  return match;
}

std::optional<RowMatch> RowMatcher::of_values(const std::string& name, const Shape& shape) const {
  const ProductKeyOptions &before = before_->model.memories(), &now = now_->model.memories();
  const std::optional<Shape> old = shape_of_(name);
  if (!old || old->rank() != 2 || before.keys != now.keys || (*old)[1] != shape[1]) return std::nullopt;
  const bool flat = now.keys == KeyKind::flat;
  if (!flat && before.factors != now.factors) return std::nullopt;
  RowMatch match = same_rows(name, shape[0], shape[1]);
  if (*old == shape) return match;
  // Slot (a, b, ..) of a grid is row (a n + b) n + .. of the table.
  const std::int64_t digits = flat ? 1 : now.factors, base_now = flat ? shape[0] : now.subkeys,
                     base_before = flat ? (*old)[0] : before.subkeys;
  match.place = [digits, base_now, base_before](std::int64_t row) -> RowMatch::Place {
    std::int64_t place = 0, unit = 1;
    for (std::int64_t i = 0; i < digits; ++i, row /= base_now, unit *= base_before) {
      if (row % base_now >= base_before) return {};
      place += row % base_now * unit;
    }
    return {0, place};
  };
  return match;
}

std::optional<RowMatch> RowMatcher::along_axis(const std::string& name, const Shape& shape) const {
  const AxisRule& rule = *axis_rule(name);
  const std::optional<Shape> old = shape_of_(name);
  if (!old || old->rank() != shape.rank() || rule.axis >= shape.rank()) return std::nullopt;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axis != rule.axis && (*old)[axis] != shape[axis]) return std::nullopt;
  const std::int64_t now = shape[rule.axis], before = (*old)[rule.axis];
  const std::int64_t inner = product_of(shape, rule.axis + 1, shape.rank());
  RowMatch match = same_rows(name, product_of(shape, 0, rule.axis) * now, inner);
  if (now == before) return match;
  const std::int64_t shift = rule.from_end ? before - now : 0;
  match.place = [now, before, shift](std::int64_t row) -> RowMatch::Place {
    const std::int64_t at = row % now + shift;
    if (at < 0 || at >= before) return {};
    return {0, row / now * before + at};
  };
  // Slots are used times the root of their number: what a value adds to a result stays as it was.
  if (name.ends_with("persistent_values"))
    match.factor = std::sqrt(static_cast<double>(before) / static_cast<double>(now));
  return match;
}

std::optional<RowMatch> RowMatcher::whole(const std::string& name, const Shape& shape) const {
  std::string from = name;
  constexpr std::string_view kOutputPart = "output.";
  // What is tied has the name that the input gives it.
  if (!shape_of_(from) && name.starts_with(kOutputPart) && name.ends_with("projection"))
    from = text("embedding.", name.substr(kOutputPart.size()));
  if (!shape_of_(from)) from = name_of_other_depth(name);
  const std::optional<Shape> old = shape_of_(from);
  if (!old || *old != shape) return std::nullopt;
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return same_rows(from, rows, rows == 0 ? 0 : shape.count() / rows);
}

}  // namespace engram
