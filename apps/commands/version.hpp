#pragma once

#include <string>

namespace engram {

/// The version of the project that this program was built from, "0.1.0": that of the project() in CMakeLists.txt.
std::string program_version();

}  // namespace engram
