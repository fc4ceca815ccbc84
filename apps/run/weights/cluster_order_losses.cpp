#include "apps/run/weights/cluster_order_losses.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "apps/data/blocks/segment_evaluation.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/model/placed_model.hpp"
#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

void fill_from(std::span<const TensorSource> sources, const ParameterStore& store, Backend& backend) {
  std::vector<std::byte> chunk;
  for (const TensorSource& source : sources) {
    const Parameter* const parameter = store.find(source.name);
    if (parameter == nullptr) throw Error(text("import: the model must have a parameter ", source.name, ", got none"));
    const Tensor& to = parameter->value();
    for (std::size_t begin = 0; begin < to.bytes(); begin += chunk.size()) {
      chunk.resize(std::min(TensorSource::kChunkBytes, to.bytes() - begin));
      source.read(begin, chunk);
      backend.copy(static_cast<std::byte*>(to.raw()) + begin, chunk.data(), chunk.size(), CopyKind::host_to_device);
      backend.synchronize();  // the chunk is filled anew
    }
  }
}

}  // namespace

ClusterOrderLosses cluster_order_losses(ModelOptions options, std::span<const TensorSource> sources, DType dtype,
                                        data::TokenView tokens) {
  constexpr std::int64_t kMostTokens = 512;
  constexpr int kSegment = 128;
  const data::TokenView sample(tokens.data(), tokens.width(), std::min(tokens.size(), kMostTokens + 1));
  data::SegmentEvaluation plan(sample, kSegment);
  Runtime runtime;
  const auto loss = [&](ClusterOrder order) {
    options.transformer_xl.cluster_order = order;
    ParameterStore store;
    const std::unique_ptr<LanguageModel> model = make_model(options);
    collect(*model, store);
    store.place(runtime.backend(), dtype, /*seed=*/0);
    fill_from(sources, store, runtime.backend());
    model->refresh(runtime.backend());
    const PlacedModel placed{*model, runtime, dtype};
    ModelPast past = placed.frozen_past(1, plan.longest_block());
    return evaluate(placed, plan, past).nll();
  };
  ClusterOrderLosses losses{.tokens = plan.scored_count()};
  losses.natural = loss(ClusterOrder::natural);
  losses.reversed = loss(ClusterOrder::reversed);
  return losses;
}

}  // namespace engram
