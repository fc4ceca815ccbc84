#pragma once
/// Student's distribution, of as many degrees of freedom as an estimated variance has, whole or not.

namespace engram {

/// The probability that |t| <= `bound`. `bound` at least 0, `freedom` at least 1.
double student_coverage(double bound, double freedom);

/// The bound that |t| stays within with this probability: 0.95 and 4 give 2.776. `coverage` in (0, 1), `freedom` at
/// least 1.
double student_bound(double coverage, double freedom);

}  // namespace engram
