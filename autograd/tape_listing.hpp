#pragma once
/// What a tape holds, for people: ask after the forward pass and before backward, which empties it.

#include <cstddef>
#include <string>
#include <vector>

#include "autograd/tape.hpp"

namespace engram {

/// What the operation of a tape's entry keeps for backward, without what is absent and values of parameters, which are
/// there anyway. As long as these handles live, an operation that consumes one of them fails.
std::vector<Node::Saved> kept_tensors(const Tape& tape, const Tape::Entry& entry);

/// "128 B", "1.5 KiB", "2.0 MiB".
std::string listed_bytes(std::size_t bytes);

/// Bytes that the recorded operations keep for backward. Memory that several of them keep is counted once, memory of
/// parameters not at all, since it exists anyway.
std::size_t bytes_kept(const Tape& tape);

/// One aligned line per recorded operation, in order: number, op, scope, shapes of the inputs (`-`: one that needs no
/// gradient) and outputs, what it keeps with its bytes, names of its parameters; then a line with the totals. Scopes
/// are shown when the tape was told to keep them (Tape::keep_scopes).
std::string tape_table(const Tape& tape);

}  // namespace engram
