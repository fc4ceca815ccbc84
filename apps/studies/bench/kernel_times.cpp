#include "apps/studies/bench/kernel_times.hpp"

#include "core/launch_count.hpp"

namespace engram {
namespace {

constexpr std::size_t kMostMarked = 4096;  // calls whose marks are kept: a device has to keep them too

}  // namespace

void KernelTimes::before(const char* kernel) {
  const char* const caller = running_.empty() ? nullptr : calls_[running_.back()].kernel;
  running_.push_back(calls_.size());
  calls_.push_back(
      {.kernel = kernel, .caller = caller, .launches = launch_count(*backend_), .begin = nullptr, .end = nullptr});
  calls_.back().begin = backend_->mark();
}

void KernelTimes::after(const char*) {
  Call& call = calls_[running_.back()];
  call.launches = launch_count(*backend_) - call.launches;
  call.end = backend_->mark();
  running_.pop_back();
  if (running_.empty() && (!backend_->works_behind() || calls_.size() >= kMostMarked)) settle();
}

void KernelTimes::settle() const {
  for (const Call& call : calls_) {
    const double seconds = call.end->seconds_since(*call.begin);
    Total& total = totals_[call.kernel];
    ++total.calls;
    total.seconds += seconds;
    total.launches += call.launches;
    if (call.caller == nullptr) continue;
    totals_[call.caller].seconds -= seconds;
    totals_[call.caller].launches -= call.launches;
  }
  calls_.clear();
}

void KernelTimes::tensors(const char* kernel, std::span<const TensorArgument> arguments) {
  double bytes = 0;
  for (const TensorArgument& argument : arguments)
    if (*argument.tensor) bytes += static_cast<double>(argument.tensor->bytes());
  totals_[kernel].bytes += bytes;
}

const std::map<std::string, KernelTimes::Total, std::less<>>& KernelTimes::totals() const {
  if (running_.empty()) settle();
  return totals_;
}

double KernelTimes::seconds(std::string_view kernel) const {
  const auto entry = totals().find(kernel);
  return entry == totals_.end() ? 0 : entry->second.seconds;
}

double KernelTimes::seconds() const {
  double sum = 0;
  for (const auto& [name, total] : totals()) sum += total.seconds;
  return sum;
}

}  // namespace engram
