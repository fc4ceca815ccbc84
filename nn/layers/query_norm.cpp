#include "nn/layers/query_norm.hpp"

#include "autograd/functions/reshape.hpp"
#include "autograd/functions/rms_norm.hpp"
#include "core/error.hpp"

namespace engram {

QueryNormalisation::QueryNormalisation(QueryNorm norm, std::int64_t heads, std::int64_t factors,
                                       std::int64_t query_width)
    : norm_(norm) {
  for (const auto& [name, value] : {std::pair{"heads", heads}, {"factors", factors}, {"query_width", query_width}})
    if (value < 1) throw UsageError(text("query norm: ", name, " must be at least 1, got ", value));
  if (query_width % factors != 0)
    throw UsageError(text("query norm: query_width must be a multiple of factors ", factors, ", got ", query_width));
  sub_width_ = query_width / factors;
  if (norm == QueryNorm::batch) batch_.emplace(heads * query_width);
  if (norm == QueryNorm::layer) layer_.emplace(sub_width_);
  if (norm == QueryNorm::rms) rms_.emplace(sub_width_);
}

Variable QueryNormalisation::forward(const Variable& queries, const RowMask& mask) {
  if (norm_ == QueryNorm::none) return queries;
  if (batch_) return batch_->forward(queries, mask);
  const Variable each = reshape(queries, {queries.shape().count() / sub_width_, sub_width_});
  return reshape(layer_ ? layer_->forward(each) : rms_ ? rms_->forward(each) : l2_norm(each), queries.shape());
}

void QueryNormalisation::visit(Visitor& visit) {
  if (batch_) batch_->visit(visit);
  if (layer_) layer_->visit(visit);
  if (rms_) rms_->visit(visit);
}

}  // namespace engram
