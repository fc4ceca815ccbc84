#pragma once

#include <string>

namespace engram {

/// The version of the project that this program was built from, "0.1.0": that of the project() in CMakeLists.txt.
std::string program_version();

/// What the program was built from and how, for reports of faults: a line each for the commit that was checked out when
/// the build was configured ("unknown" outside of a checkout), the compiler, the kind of build, the libraries, and the
/// devices. Names begin the lines; the last line has no end.
std::string build_facts();

}  // namespace engram
