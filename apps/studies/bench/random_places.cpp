#include "apps/studies/bench/random_places.hpp"

#include <vector>

namespace engram {

bool makes_places(std::string_view kernel) { return kernel == "order_row_uses"; }

void draw_selected(std::string_view kernel, std::span<const TensorArgument> tensors, Backend& backend,
                   std::uint64_t& state) {
  if (kernel != "product_key_select") return;
  const Tensor& half_scores = *tensors[0].tensor;
  const Tensor& ids = *tensors[2].tensor;
  std::uint64_t slots = 1;
  for (std::int64_t set = 0; set < half_scores.shape()[2]; ++set)
    slots *= static_cast<std::uint64_t>(half_scores.shape()[3]);
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(ids.count()));
  for (std::int64_t& id : drawn) {
    state = state * 6364136223846793005 + 1442695040888963407;
    id = static_cast<std::int64_t>((state >> 33) % slots);
  }
  backend.copy(ids.raw(), drawn.data(), ids.bytes(), CopyKind::host_to_device);
}

}  // namespace engram
