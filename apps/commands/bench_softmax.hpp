#pragma once

#include "apps/commands/bench_options.hpp"

namespace engram {

/// `engram bench --softmax`: times and prints. Throws UsageError for a vocabulary that is too small for clusters.
void bench_softmax(const BenchOptions& shared);

}  // namespace engram
