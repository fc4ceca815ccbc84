#include "apps/commands/version.hpp"

namespace engram {

std::string program_version() { return ENGRAM_VERSION; }

}  // namespace engram
