#pragma once
/// What GCC is told about the loop that follows, and about roundings. Clang needs to be told less, and warns of hints
/// that it cannot use.

#if defined(__clang__)
#define ENGRAM_INDEPENDENT
#define ENGRAM_UNROLL(times)
#define ENGRAM_ROUNDED(product) (product)
#else
#define ENGRAM_LOOP_HINT(text) _Pragma(#text)
/// No iteration reads what another one writes.
#define ENGRAM_INDEPENDENT ENGRAM_LOOP_HINT(GCC ivdep)
/// A product that is rounded although a sum follows in another statement: GCC would make one instruction of both in
/// some places, and in others not. Clang does so within a statement alone.
#define ENGRAM_ROUNDED(product) __builtin_assoc_barrier(product)
/// So many iterations become one.
#define ENGRAM_UNROLL(times) ENGRAM_LOOP_HINT(GCC unroll times)
#endif
