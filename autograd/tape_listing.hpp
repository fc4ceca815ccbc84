#pragma once
/// What a tape holds, for people: ask after the forward pass and before backward, which empties it.

#include <cstddef>
#include <string>

#include "autograd/tape.hpp"

namespace engram {

/// Bytes that the recorded operations keep for backward. Memory that several of them keep is counted once, memory of
/// parameters not at all, since it exists anyway.
std::size_t bytes_kept(const Tape& tape);

/// One aligned line per recorded operation, in order: number, op, scope, shapes of the inputs (`-`: one that needs no
/// gradient) and outputs, what it keeps with its bytes, names of its parameters; then a line with the totals. Scopes
/// are shown when the tape was told to keep them (Tape::keep_scopes).
std::string tape_table(const Tape& tape);

/// The tape as a Graphviz digraph: operations are boxes, parameters and leaves ellipses, edges carry shapes. Draw it
/// with `dot -Tsvg`.
std::string tape_graph(const Tape& tape);

}  // namespace engram
