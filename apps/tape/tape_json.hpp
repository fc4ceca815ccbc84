#pragma once
/// A recording as JSON, for the page and for other programs.

#include "apps/tape/tape_recording.hpp"
#include "core/files/json.hpp"

namespace engram {

/// {"title", "about", "values": [...], "ops": [...], "losses", "turn", ...}, members named as those of TapeRecording.
/// Numbers of tensors have 7 digits, null where they are not finite; times are milliseconds. Values are told by their
/// place in "values", -1 being none.
nlohmann::json json_of(const TapeRecording& recording);

}  // namespace engram
