#include "apps/run/transfer/weight_transfer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "apps/data/vocabulary/placeholders.hpp"
#include "apps/run/transfer/row_match.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Copies rows of a checkpoint into a parameter, of which a rank may hold some columns.
class RowCopy {
 public:
  RowCopy(const WeightSource& source, const RowMatch& match, Parameter& to, Backend& backend);

  /// Returns the number of rows that were copied.
  std::int64_t run();

 private:
  void copy_run(std::int64_t row, const RowMatch::Place& from, std::int64_t count);
  template <class From, class To>
  void convert_row(const std::byte* from, To* to) const;

  const WeightSource* source_;
  const RowMatch* match_;
  Parameter* to_;
  Backend* backend_;
  std::vector<WeightSource::Weight> weights_;
  std::int64_t first_column_ = 0, columns_;  // that this rank holds
  std::vector<std::byte> host_;
};

RowCopy::RowCopy(const WeightSource& source, const RowMatch& match, Parameter& to, Backend& backend)
    : source_(&source), match_(&match), to_(&to), backend_(&backend), columns_(match.length) {
  for (const std::string& name : match.from) weights_.push_back(source.find(name).value());
  if (to.shared_by() == nullptr) return;
  first_column_ = to.columns().begin;
  columns_ = to.columns().count;
}

std::int64_t RowCopy::run() {
  std::int64_t copied = 0;
  constexpr std::int64_t kChunkNumbers = std::int64_t{1} << 18;
  const std::int64_t most = std::max<std::int64_t>(1, kChunkNumbers / std::max<std::int64_t>(1, columns_));
  for (std::int64_t row = 0; row < match_->rows;) {
    const RowMatch::Place from = match_->place(row);
    std::int64_t count = 1;
    for (; count < most && row + count < match_->rows; ++count) {
      const RowMatch::Place next = match_->place(row + count);
      if (next.tensor != from.tensor || (from.tensor >= 0 && next.row != from.row + count)) break;
    }
    if (from.tensor >= 0) {
      copy_run(row, from, count);
      copied += count;
    }
    row += count;
  }
  return copied;
}

void RowCopy::copy_run(std::int64_t row, const RowMatch::Place& from, std::int64_t count) {
  const WeightSource::Weight& weight = weights_[static_cast<std::size_t>(from.tensor)];
  const std::string& name = match_->from[static_cast<std::size_t>(from.tensor)];
  if (from.row < 0 || (from.row + count) * match_->length > weight.shape.count())
    throw FileError(text("training: '", source_->path().string(), "' must have row ", from.row + count - 1, " of ",
                         name, ", which its configuration says, got ", weight.shape));
  const DType dtype = to_->value().dtype();
  const std::size_t stored = size_of(weight.dtype), number = size_of(dtype);
  host_.resize(static_cast<std::size_t>(count * columns_) * number);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* const begin =
        weight.bytes.data() + static_cast<std::size_t>((from.row + i) * match_->length + first_column_) * stored;
    std::byte* const to = host_.data() + static_cast<std::size_t>(i * columns_) * number;
    if (weight.dtype == dtype && match_->factor == 1) {
      std::memcpy(to, begin, static_cast<std::size_t>(columns_) * number);
      continue;
    }
    dispatch_storage(weight.dtype, "--from", [&]<class From>() {
      dispatch_storage(dtype, "--from", [&]<class To>() { convert_row<From>(begin, reinterpret_cast<To*>(to)); });
    });
  }
  auto* const values = static_cast<std::byte*>(to_->value().raw());
  backend_->copy(values + static_cast<std::size_t>(row * columns_) * number, host_.data(), host_.size(),
                 CopyKind::host_to_device);
  backend_->synchronize();  // the piece is filled anew
}

template <class From, class To>
void RowCopy::convert_row(const std::byte* from, To* to) const {
  for (std::int64_t i = 0; i < columns_; ++i) {
    From stored;
    std::memcpy(&stored, from + static_cast<std::size_t>(i) * sizeof(From), sizeof(From));
    double value = static_cast<double>(static_cast<Compute<From>>(stored)) * match_->factor;
    if (match_->is_share) value = std::min(value, 1.0);
    to[i] = To(static_cast<Compute<To>>(value));
    if (std::isfinite(value) && !std::isfinite(static_cast<double>(static_cast<Compute<To>>(to[i]))))
      throw FileError(text("training: '", source_->path().string(), "' must have numbers that fit ",
                           to_->value().dtype(), ", got ", value, " in ", match_->from.front()));
  }
}

/// Keys of the model that are not the source's; vocabularies are told apart symbol by symbol.
std::vector<ConfigDifference> model_differences(const RunConfig& before, const RunConfig& now) {
  std::vector<ConfigDifference> differences = config_differences(before, now);
  std::erase_if(differences, [](const ConfigDifference& difference) {
    const std::string_view key = difference.key;
    return key == "model.vocabulary" || !(key.starts_with("model.") || key.starts_with("product_key."));
  });
  return differences;
}

void require_family(const WeightSource& source, const RunConfig& now) {
  const ModelFamily before = source.facts().config.model.family;
  if (before != now.model.family)
    throw UsageError(text("training: --from must name weights of the family ", name_of(now.model.family),
                          ", that of the configuration, got '", source.path().string(), "' of ", name_of(before)));
}

bool has_vectors(const std::string& name) {
  return name == "embedding.weight" || (name.starts_with("embedding.") && name.ends_with("table"));
}

}  // namespace

std::int64_t WeightTransfer::taken_numbers() const {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.taken;
  return sum;
}

std::int64_t WeightTransfer::all_numbers() const {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.numbers;
  return sum;
}

WeightTransfer transfer_weights(const WeightSource& source, const RunConfig& now, const data::Vocabulary& vocabulary,
                                ParameterStore& store, Runtime& runtime) {
  require_family(source, now);
  const RunConfig& before = source.facts().config;
  WeightTransfer transfer{.checkpoint = source.path().string(),
                          .identity = source.identity(),
                          .step = source.facts().step,
                          .averaged = source.averaged(),
                          .symbols = match_symbols(source.facts().vocabulary, vocabulary),
                          .placeholders = data::are_placeholders(source.facts().vocabulary),
                          .model = model_differences(before, now)};
  const auto shape_of = [&source](const std::string& name) -> std::optional<Shape> {
    const auto weight = source.find(name);
    return weight ? std::optional(weight->shape) : std::nullopt;
  };
  const RowMatcher matcher(before, now, transfer.symbols, shape_of);
  std::set<std::string> used;
  for (const auto& [name, parameter] : store.parameters()) {
    WeightTransfer::Tensor& tensor = transfer.tensors.emplace_back(
        WeightTransfer::Tensor{.name = name, .numbers = parameter->shape().count(), .before = {}});
    if (const std::optional<RowMatch> match = matcher.match(name, parameter->shape())) {
      const std::int64_t rows = RowCopy(source, *match, *parameter, runtime.backend()).run();
      tensor.taken = rows * match->length;
      if (rows > 0) used.insert(match->from.begin(), match->from.end());
      if (has_vectors(name)) transfer.vectors += rows;
    } else if (const std::optional<Shape> other = shape_of(name)) {
      tensor.before = text(*other);
    }
  }
  for (const std::string& name : source.names())
    if (!used.contains(name)) transfer.left.push_back(name);
  if (transfer.taken_numbers() == 0)
    throw UsageError(text("training: --from must name weights of which some fit the model, got '",
                          source.path().string(), "', none of whose ", transfer.left.size(), " tensors do"));
  return transfer;
}

}  // namespace engram
