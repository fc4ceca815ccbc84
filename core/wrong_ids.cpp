#include "core/wrong_ids.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram {

std::int64_t WrongIds::lookup(std::string_view op, std::string_view what, std::int64_t below) {
  const auto found = std::ranges::find_if(
      lookups_, [&](const Lookup& known) { return known.op == op && known.what == what && known.below == below; });
  if (found != lookups_.end()) return found - lookups_.begin();
  lookups_.push_back({std::string(op), std::string(what), below});
  return static_cast<std::int64_t>(lookups_.size()) - 1;
}

Tensor& WrongIds::report() {
  if (!report_) {
    report_ = Tensor(Shape{1}, DType::i64, backend_->device(), memory_);
    backend_->copy(report_.raw(), &kNone, sizeof kNone, CopyKind::host_to_device);
  }
  return report_;
}

void WrongIds::check() {
  if (!report_ || !backend_->computes()) return;
  std::int64_t found = kNone;
  backend_->copy(&found, report_.raw(), sizeof found, CopyKind::device_to_host);
  if (found == kNone) return;
  backend_->copy(report_.raw(), &kNone, sizeof kNone, CopyKind::host_to_device);
  const Lookup& lookup = lookups_.at(static_cast<std::size_t>(found >> kPlaceBits));
  throw Error(text(lookup.op, ": ", lookup.what, " must be in [0, ", lookup.below, "), got another at place ",
                   found & ((std::int64_t{1} << kPlaceBits) - 1),
                   "\n  the device found it, in this step or one since the last report, and wrote 0 in its place, so "
                   "that it is lost"));
}

}  // namespace engram
