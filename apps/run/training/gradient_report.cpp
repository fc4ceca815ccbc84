#include "apps/run/training/gradient_report.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/host_copy.hpp"

namespace engram {

void GradientReport::add(const Optimizer& optimizer, Backend& backend) {
  const std::vector<double> norms = optimizer.gradient_norms(backend);
  tensors_.resize(norms.size());
  double squares = 0;
  for (const double norm : norms) squares += norm * norm;
  const double clip = config_->optimizer.clip;
  const bool global = config_->optimizer.clip_kind == ClipKind::global;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    tensors_[i].norm_sum += norms[i];
    tensors_[i].largest = std::max(tensors_[i].largest, norms[i]);
    tensors_[i].clipped += clip > 0 && (global ? std::sqrt(squares) : norms[i]) > clip ? 1 : 0;
  }
  ++steps_;
}

nlohmann::json GradientReport::take(Backend& backend) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, steps_));
  nlohmann::json tensors = nlohmann::json::array();
  std::size_t index = 0;
  for (const ParameterGroup& group : store_->groups())
    for (const Parameter* parameter : group.parameters) {
      if (index >= tensors_.size()) break;
      const Tensor& tensor = tensors_[index++];
      tensors.push_back({{"name", parameter->name()},
                         {"norm", tensor.norm_sum / steps},
                         {"largest", tensor.largest},
                         {"clipped", static_cast<double>(tensor.clipped) / steps}});
    }
  nlohmann::json report{{"steps", steps_},
                        {"clip", config_->optimizer.clip},
                        {"clip_kind", name_of(config_->optimizer.clip_kind)},
                        {"tensors", tensors},
                        {"spans", spans(backend)}};
  tensors_.clear();
  steps_ = 0;
  return report;
}

nlohmann::json GradientReport::spans(Backend& backend) const {
  nlohmann::json layers = nlohmann::json::array();
  const AllAttentionOptions& model = config_->model.all_attention;
  if (config_->model.family != ModelFamily::all_attention || model.span != SpanKind::adaptive) return layers;
  const auto heads = static_cast<std::size_t>(model.context_heads());
  const double penalty = config_->training.span_loss * static_cast<double>(model.max_span) / static_cast<double>(heads);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const Parameter* span = store_->find(text("layers.", layer, ".attention.span"));
    if (span->frozen()) continue;
    std::vector<double> task(heads);
    const std::vector<double> gradient = host_doubles(backend, span->gradient());
    for (std::size_t head = 0; head < heads; ++head) task[head] = gradient[head] - penalty;
    layers.push_back({{"layer", layer}, {"task", task}, {"penalty", penalty}});
  }
  return layers;
}

}  // namespace engram
