#pragma once

namespace engram {

/// Whether a kernel replaces its output or adds to it.
enum class Write : bool { set, add };

}  // namespace engram
