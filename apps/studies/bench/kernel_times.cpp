#include "apps/studies/bench/kernel_times.hpp"

namespace engram {

void KernelTimes::before(const char*) {
  backend_->synchronize();
  running_.push_back({Clock::now()});
}

void KernelTimes::after(const char* kernel) {
  backend_->synchronize();
  const Running run = running_.back();
  running_.pop_back();
  const double seconds = std::chrono::duration<double>(Clock::now() - run.start).count();
  Total& total = totals_[kernel];
  ++total.calls;
  total.seconds += seconds - run.inner_seconds;
  if (!running_.empty()) running_.back().inner_seconds += seconds;
}

void KernelTimes::tensors(const char* kernel, std::span<const TensorArgument> arguments) {
  double bytes = 0;
  for (const TensorArgument& argument : arguments)
    if (*argument.tensor) bytes += static_cast<double>(argument.tensor->bytes());
  totals_[kernel].bytes += bytes;
}

double KernelTimes::seconds(std::string_view kernel) const {
  const auto entry = totals_.find(kernel);
  return entry == totals_.end() ? 0 : entry->second.seconds;
}

double KernelTimes::seconds() const {
  double sum = 0;
  for (const auto& [name, total] : totals_) sum += total.seconds;
  return sum;
}

}  // namespace engram
