#pragma once
/// An array that does not change once it is made; copies share its memory.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace engram {

template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  explicit SharedArray(std::vector<T> elements)
      : elements_(std::make_shared<const std::vector<T>>(std::move(elements))) {}

  std::size_t size() const { return elements_ ? elements_->size() : 0; }
  const T& operator[](std::size_t index) const { return (*elements_)[index]; }
  const T* begin() const { return elements_ ? elements_->data() : nullptr; }
  const T* end() const { return begin() + size(); }

  friend bool operator==(const SharedArray& x, std::span<const T> y) { return std::ranges::equal(x, y); }
  friend bool operator==(const SharedArray& x, const SharedArray& y) {
    return x.elements_ == y.elements_ || std::ranges::equal(x, y);
  }

 private:
  std::shared_ptr<const std::vector<T>> elements_;
};

}  // namespace engram
