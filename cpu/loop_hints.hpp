#pragma once
/// What GCC is told about the loop that follows. Clang needs to be told less, and warns of hints that it cannot use.
/// And what a processor is told about memory that a loop will read.

#if defined(__clang__)
#define ENGRAM_INDEPENDENT
#define ENGRAM_UNROLL(times)
#else
#define ENGRAM_LOOP_HINT(text) _Pragma(#text)
/// No iteration reads what another one writes.
#define ENGRAM_INDEPENDENT ENGRAM_LOOP_HINT(GCC ivdep)
/// So many iterations become one.
#define ENGRAM_UNROLL(times) ENGRAM_LOOP_HINT(GCC unroll times)
#endif

namespace engram::cpu {

/// Where lines that are asked for should wait (the third argument of __builtin_prefetch). Rows ahead are as large as
/// the first cache, whose few outstanding misses would be what the reading waits for. Asked for where the rows are met,
/// not by a function: GCC takes one that only asks for memory for one that does nothing.
inline constexpr int kSecondCache = 2;

}  // namespace engram::cpu
