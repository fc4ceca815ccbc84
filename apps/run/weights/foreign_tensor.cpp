#include "apps/run/weights/foreign_tensor.hpp"

#include <algorithm>
#include <vector>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace engram {

ForeignTensor ForeignTensor::dense(Shape shape, std::optional<StoredFloat> kind, std::span<const std::byte> stored) {
  ForeignTensor tensor{.shape = shape, .kind = kind, .stored = stored};
  std::int64_t step = 1;
  for (int axis = shape.rank(); axis-- > 0; step *= shape[axis]) tensor.strides[static_cast<std::size_t>(axis)] = step;
  return tensor;
}

void ForeignTensor::read(std::size_t begin, DType to, std::span<std::byte> out) const {
  const std::size_t width = size_of(to);
  const auto at = [&](std::size_t element) {
    std::int64_t place = first;
    for (int axis = shape.rank(); axis-- > 0;) {
      const auto size = static_cast<std::size_t>(shape[axis]);
      place += strides[static_cast<std::size_t>(axis)] * static_cast<std::int64_t>(element % size);
      element /= size;
    }
    return static_cast<std::size_t>(place);
  };
  // Elements that lie beside each other: whole tensors, or parts of rows, or single ones.
  std::size_t run = 1;
  for (int axis = shape.rank(); axis-- > 0;) {
    if (strides[static_cast<std::size_t>(axis)] != static_cast<std::int64_t>(run) && shape[axis] != 1) break;
    run *= static_cast<std::size_t>(shape[axis]);
  }
  for (std::size_t done = 0, count = out.size() / width; done < count;) {
    const std::size_t element = begin + done, part = std::min(run - element % run, count - done);
    read_floats(stored, kind.value(), at(element), to, out.subspan(done * width, part * width));
    done += part;
  }
}

ForeignTensor ForeignTensor::reversed(int axis) const {
  ForeignTensor turned = *this;
  std::int64_t& stride = turned.strides[static_cast<std::size_t>(axis)];
  turned.first += (shape[axis] - 1) * stride;
  stride = -stride;
  return turned;
}

ForeignTensor ForeignTensor::with_axes(std::initializer_list<int> axes) const {
  ForeignTensor chosen{.kind = kind, .stored = stored, .first = first};
  std::vector<std::int64_t> sizes;
  for (const int axis : axes) {
    chosen.strides[sizes.size()] = strides[static_cast<std::size_t>(axis)];
    sizes.push_back(shape[axis]);
  }
  chosen.shape = Shape(std::span<const std::int64_t>(sizes));
  if (chosen.shape.count() != shape.count())
    throw Error(text("import: of ", shape, " the axes left out must be of size 1, got ", chosen.shape));
  return chosen;
}

}  // namespace engram
