#include "apps/run/training/nan_trace.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/host_copy.hpp"

namespace engram {
namespace {

/// The first element that is not finite, or the count.
std::int64_t first_bad(Backend& backend, const Tensor& tensor, double& value) {
  return dispatch_storage(tensor.dtype(), "trace-nan", [&]<class T>() {
    const std::vector<T> host = host_copy<T>(backend, tensor);
    for (std::size_t i = 0; i < host.size(); ++i) {
      const auto number = static_cast<Compute<T>>(host[i]);
      if (std::isfinite(number) || number == -std::numeric_limits<Compute<T>>::infinity()) continue;
      value = static_cast<double>(number);
      return static_cast<std::int64_t>(i);
    }
    return tensor.count();
  });
}

std::string shapes_of(std::span<const TensorArgument> arguments) {
  std::string shapes;
  for (const auto& [tensor, written] : arguments) {
    shapes += shapes.empty() ? "" : ", ";
    shapes += *tensor ? text(tensor->shape()) : std::string("none");
  }
  return shapes;
}

}  // namespace

void NanTrace::tensors(const char* kernel, std::span<const TensorArgument> arguments) {
  for (const auto& [tensor, written] : arguments) {
    if (!written || !*tensor || is_integer(tensor->dtype())) continue;
    double value = 0;
    const std::int64_t element = first_bad(*backend_, *tensor, value);
    if (element == tensor->count()) continue;
    throw Error(text(kernel, ": every number written must be finite, got ", value, " at element ", element, " of ",
                     tensor->shape(), " (", tensor->dtype(), ")\n  its tensors, inputs first: ", shapes_of(arguments)));
  }
}

}  // namespace engram
