#include "apps/run/evaluation/span_means.hpp"
#include "core/host_copy.hpp"

namespace engram {

std::vector<std::vector<double>> SpanMeans::read(const AllAttentionModel& model, const ModelTrace& trace,
                                                 Backend& backend) {
  std::vector<std::vector<double>> zetas;
  if (model.options().span == SpanKind::dynamic)
    for (const auto& layer : trace.layers) zetas.push_back(host_doubles(backend, layer.span.value()));
  return zetas;
}

void SpanMeans::add(const AllAttentionModel& model, const std::vector<std::vector<double>>& zetas) {
  const auto heads = static_cast<std::size_t>(model.options().context_heads());
  sums_.resize(zetas.size(), std::vector<double>(heads));
  for (std::size_t layer = 0; layer < zetas.size(); ++layer)
    for (std::size_t i = 0; i < zetas[layer].size(); ++i) sums_[layer][i % heads] += zetas[layer][i];
  if (!zetas.empty()) queries_ += static_cast<std::int64_t>(zetas.front().size() / heads);
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
