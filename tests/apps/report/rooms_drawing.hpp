#pragma once
/// The rooms of the project and who includes whom, drawn from the includes themselves: docs/rooms.svg.

#include <string>

#include "tests/harness/source_tree.hpp"

namespace engram {

/// An SVG document. A box is a top folder, of apps a room; what is written in it are its own folders, by floors. An
/// arrow goes from a box down to one that it includes from, unless other arrows lead there as well.
std::string draw_rooms(const source_tree::Includes& includes);

}  // namespace engram
