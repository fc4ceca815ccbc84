#pragma once
/// What is said when every thread of a block waits.

#include <deque>
#include <string>

#include "cuda/simulated/thread.hpp"

namespace engram::simulated {

/// "the rule, got the facts", with a line for every place where some of the first `count` threads wait.
std::string deadlock_report(const std::deque<Thread>& threads, int count);

}  // namespace engram::simulated
