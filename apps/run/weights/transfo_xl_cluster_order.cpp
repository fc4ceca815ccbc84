#include "apps/run/weights/transfo_xl_cluster_order.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {
namespace {

ClusterOrderFound found_order(ClusterOrder order, std::string_view why) {
  return {.order = order, .note = text("cluster order ", name_of(order), ": ", why)};
}

}  // namespace

ClusterOrderFound cluster_order_by_origin(const TransfoXlOrigin& origin) {
  if (origin.original_names && origin.tied_position_biases)
    return found_order(ClusterOrder::reversed,
                       "the tensors are named as in the original PyTorch program, which has the last cluster first");
  if (!origin.original_names && !origin.tied_position_biases)
    return found_order(ClusterOrder::natural,
                       "every layer has position biases of its own, as no model of the original PyTorch program has");
  for (const std::string& name : origin.architectures) {
    if (name == "MemTransformerLM")
      return found_order(ClusterOrder::reversed, "config.json names the original PyTorch program's class " + name);
    if (name.starts_with("TransfoXL"))
      return found_order(ClusterOrder::natural, text("config.json names the class ", name, ", which reads them so"));
  }
  if (origin.model_type == "transfo-xl")
    return found_order(ClusterOrder::natural, "config.json is that of Hugging Face's class, which reads them so");
  return {.decided = false,
          .note = text("cluster order taken as ", name_of(ClusterOrder::natural),
                       ", but not known: weights that were renamed from the original PyTorch program would look the "
                       "same and be reversed\n  --cluster-order sets it, --data measures it")};
}

TensorSource with_rows_reversed(TensorSource source) {
  const auto rows = static_cast<std::size_t>(source.shape[0]);
  const std::size_t row = static_cast<std::size_t>(source.shape.count()) * size_of(source.dtype) / rows;
  source.read = [inner = std::move(source.read), rows, row](std::size_t offset, std::span<std::byte> to) {
    while (!to.empty()) {
      const std::size_t within = offset % row, part = std::min(row - within, to.size());
      inner((rows - 1 - offset / row) * row + within, to.first(part));
      offset += part;
      to = to.subspan(part);
    }
  };
  return source;
}

}  // namespace engram
