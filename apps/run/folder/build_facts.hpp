#pragma once
/// What the program was built from and how.

#include <string>
#include <string_view>

namespace engram {

struct BuildFacts {
  std::string_view version;   ///< of the project() in CMakeLists.txt, "0.1.0"
  std::string_view commit;    ///< checked out when the build was configured; "unknown" outside of a checkout
  std::string_view compiler;  ///< its name and version
  std::string_view build;     ///< kind of build, and for which machines
  std::string_view features;  ///< libraries
  std::string_view devices;   ///< that it has code for
};
BuildFacts build_facts();

/// What two programs must have alike to compute the same bits on machines that are: all but the devices, in a line.
std::string build_text();

/// build_facts() for people: the version, and a line for each of the others, which its name begins. The last line has
/// no end.
std::string version_text();

}  // namespace engram
