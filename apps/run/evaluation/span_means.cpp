#include "apps/run/evaluation/span_means.hpp"
#include "core/host_copy.hpp"

namespace engram {

void SpanMeans::add(const AllAttentionModel& model, const ModelTrace& trace, Backend& backend) {
  if (model.options().span != SpanKind::dynamic) return;
  const auto heads = static_cast<std::size_t>(model.options().context_heads());
  sums_.resize(trace.layers.size(), std::vector<double>(heads));
  for (std::size_t layer = 0; layer < trace.layers.size(); ++layer) {
    const Tensor& zeta = trace.layers[layer].span.value();  // [B, M, H]
    const std::vector<double> host = host_doubles(backend, zeta);
    for (std::size_t i = 0; i < host.size(); ++i) sums_[layer][i % heads] += host[i];
    if (layer == 0) queries_ += zeta.count() / static_cast<std::int64_t>(heads);
  }
}

void SpanMeans::give_to(AllAttentionModel& model) const {
  if (queries_ == 0) return;
  for (std::size_t layer = 0; layer < sums_.size(); ++layer) {
    std::vector<double> means = sums_[layer];
    for (double& mean : means) mean /= static_cast<double>(queries_);
    model.span(static_cast<std::int64_t>(layer)).take_means(std::move(means));
  }
}

}  // namespace engram
