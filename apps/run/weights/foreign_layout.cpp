#include "apps/run/weights/foreign_layout.hpp"

#include <cstdint>
#include <map>
#include <vector>

#include "core/error.hpp"

namespace engram {
namespace {

std::vector<std::string> differences(const ForeignWeights& weights, std::span<const ForeignLayoutTensor> layout,
                                     const std::function<bool(const std::string& name)>& ignored) {
  std::vector<std::string> found;
  std::map<std::string, bool, std::less<>> fits;  // those of the layout
  for (const ForeignLayoutTensor& tensor : layout) {
    bool& good = fits[tensor.name] = false;
    const auto stored = weights.tensors.find(tensor.name);
    if (stored == weights.tensors.end()) {
      if (tensor.copy_of.empty()) found.push_back(text("missing: ", tensor.name, " ", tensor.shape));
      continue;
    }
    const Shape& shape = stored->second.shape;
    if (shape != tensor.shape) {
      found.push_back(text("different: ", tensor.name, " must be ", tensor.shape, ", got ", shape));
    } else if (!stored->second.kind) {
      found.push_back(text("different: ", tensor.name, " must be of floating-point numbers, got integers"));
    } else if (!tensor.copy_of.empty() && fits[tensor.copy_of]) {
      if (const std::int64_t at = first_difference(stored->second, weights.tensors.at(tensor.copy_of)); at >= 0)
        found.push_back(
            text("untied: ", tensor.name, " must repeat ", tensor.copy_of, ", got another value at element ", at));
    } else {
      good = true;
    }
  }
  for (const auto& [name, stored] : weights.tensors)
    if (!fits.contains(name) && !ignored(name)) found.push_back(text("extra: ", name, " ", stored.shape));
  return found;
}

}  // namespace

void require_layout(const ForeignWeights& weights, std::span<const ForeignLayoutTensor> layout,
                    const std::function<bool(const std::string& name)>& ignored) {
  const std::vector<std::string> found = differences(weights, layout, ignored);
  if (found.empty()) return;
  std::string message = text("import: '", weights.path.string(), "' must hold exactly the tensors of the model, got ",
                             found.size(), found.size() == 1 ? " difference" : " differences");
  for (const std::string& line : found) message += "\n  " + line;
  throw FileError(message);
}

}  // namespace engram
