#pragma once
/// A recording as a drawing: operations as boxes, scopes as boxes around them.

#include <string>
#include <string_view>

#include "apps/tape/tape_recording.hpp"

namespace engram {

/// What every drawing for Graphviz begins with.
inline constexpr std::string_view kTapeGraphBeginning = "digraph tape {";

/// As a Graphviz digraph, read from left to right. An operation says the shape of its output, the bytes that it keeps,
/// which colour it the more they are, the parameters that it reads, and with `times` how long it took forward and
/// backward. Leaves are ellipses; constants are not drawn. The same recording without times gives the same text on
/// every machine.
std::string tape_graph(const TapeRecording& recording, bool times = true);

/// The drawing as SVG, by Graphviz's `dot`, whose own notes are taken out. Throws NotAvailable where there is no `dot`,
/// saying what to do, Error with its message where it fails.
std::string drawn_by_graphviz(const std::string& graph);

}  // namespace engram
