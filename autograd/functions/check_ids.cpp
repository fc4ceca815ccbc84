#include "autograd/functions/check_ids.hpp"

#include <vector>

#include "core/error.hpp"
#include "core/kernels/replace_wrong_ids.hpp"

namespace engram {

namespace {

template <class Id>
void check(std::string_view op, std::string_view what, const Id* ids, std::int64_t count, std::int64_t below) {
  for (std::int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= below)
      throw Error(text(op, ": ", what, " must be in [0, ", below, "), got ", ids[i], " at place ", i));
}

#if !defined(NDEBUG)
template <class Id>
void check_copied(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below) {
  std::pmr::vector<Id> host(static_cast<std::size_t>(ids.count()), step.objects());
  if (host.empty() || step.backend().capturing()) return;  // captured steps are those that were checked before
  step.backend().copy(host.data(), ids.raw(), ids.bytes(), CopyKind::device_to_host);
  check(op, what, host.data(), ids.count(), below);
}
#endif

}  // namespace

#if defined(NDEBUG)
bool ids_are_checked() { return false; }
void check_ids(std::string_view, std::string_view, Step&, const Tensor&, std::int64_t) {}
#else
bool ids_are_checked() { return true; }
void check_ids(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below) {
  if (ids.dtype() == DType::i64)
    check_copied<std::int64_t>(op, what, step, ids, below);
  else
    check_copied<std::int32_t>(op, what, step, ids, below);
}
#endif

void check_row_ids(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below) {
  if (step.device().kind == DeviceKind::cpu) return check(op, what, ids.data<const std::int64_t>(), ids.count(), below);
  check_ids(op, what, step, ids, below);
  Tensor checked = ids;
  kernels::replace_wrong_ids(step, below, step.wrong_ids().lookup(op, what, below), checked, step.wrong_ids().report());
}

}  // namespace engram
