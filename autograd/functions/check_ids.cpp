#include "autograd/functions/check_ids.hpp"

#include <vector>

#include "core/error.hpp"

namespace engram {

#if defined(NDEBUG)
void check_ids(std::string_view, std::string_view, Step&, const Tensor&, std::int64_t) {}
#else
namespace {

template <class Id>
void check(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below) {
  std::pmr::vector<Id> host(static_cast<std::size_t>(ids.count()), step.objects());
  if (host.empty()) return;
  step.backend().copy(host.data(), ids.raw(), ids.bytes(), CopyKind::device_to_host);
  for (std::size_t i = 0; i < host.size(); ++i)
    if (host[i] < 0 || host[i] >= below)
      throw Error(text(op, ": ", what, " must be in [0, ", below, "), got ", host[i], " at place ", i));
}

}  // namespace

void check_ids(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below) {
  if (ids.dtype() == DType::i64)
    check<std::int64_t>(op, what, step, ids, below);
  else
    check<std::int32_t>(op, what, step, ids, below);
}
#endif

}  // namespace engram
