#pragma once
/// A recording as one HTML page that is stepped through, forward and then backward. It asks nothing of the network.

#include <string>
#include <string_view>

#include "apps/tape/tape_recording.hpp"

namespace engram {

/// What every such page begins with.
inline constexpr std::string_view kTapePageBeginning = "<!DOCTYPE html>\n<!-- engram tape -->\n";

/// The whole page. `made`: who made it, "Engram 1.0". Without scripts it has a table of the operations. Everything of
/// the recording is escaped.
std::string tape_page(const TapeRecording& recording, std::string_view made);

}  // namespace engram
