#pragma once
/// What the module libengram_mpi.so offers: MPI behind functions that take plain values, so that the program needs no
/// MPI to be built or to run, and the module nothing of the program. A module is built for one MPI (Open MPI, MPICH),
/// whose handles it keeps to itself.

#include <cstddef>

extern "C" {

/// Sends and receives that belong together.
struct EngramMpiMessages;

/// All are called by one thread. What returns int returns 0, or a code for `error_text`.
struct EngramMpiCalls {
  /// Of this table: another one is refused.
  int version;
  /// Begins MPI. It is the first to be called.
  int (*begin)(int* rank, int* size);
  /// Ends MPI, once all ranks call it and nothing is on its way.
  int (*end)();
  void (*abort)(int code);
  /// The library's name and version, cut to `room` with the 0 at its end.
  void (*library)(char* name, std::size_t room);
  void (*error_text)(int code, char* message, std::size_t room);

  struct EngramMpiMessages* (*new_messages)();
  /// Only when they have arrived, or when MPI is not used any more.
  void (*delete_messages)(struct EngramMpiMessages*);
  /// Messages between two ranks arrive in the order in which they were sent. Lengths are at most 2^31 - 1 bytes, and
  /// equal on both sides.
  int (*send)(struct EngramMpiMessages*, const void* bytes, int length, int to);
  int (*receive)(struct EngramMpiMessages*, void* bytes, int length, int from);
  /// Lets all go on. `arrived`: whether they are complete.
  int (*test)(struct EngramMpiMessages*, int* arrived);
  /// The other side of one that has not arrived, receives first; -1: there is none.
  int (*waits_for)(struct EngramMpiMessages*);

  /// Last words, in no order with the messages. They are copied, and nothing is waited for.
  int (*tell)(const char* words, int length, int to);
  /// Takes what was told, at most `room` bytes of it. `from`: -1: nothing was.
  int (*hear)(int* from, char* words, int room, int* length);
};

/// What the module exports, as "engram_mpi_calls".
const struct EngramMpiCalls* engram_mpi_calls();
}

namespace engram::cpu {

inline constexpr int kMpiCallsVersion = 1;
/// A code that no MPI has: a message was shorter than the receiver said.
inline constexpr int kMpiTooShort = -1;

}  // namespace engram::cpu
