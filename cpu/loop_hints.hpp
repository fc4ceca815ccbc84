#pragma once
/// What GCC is told about the loop that follows. Clang needs to be told less, and warns of hints that it cannot use.

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
