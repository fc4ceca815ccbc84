#include "apps/commands/version.hpp"

namespace engram {

std::string program_version() { return ENGRAM_VERSION; }

std::string build_facts() {
  return "commit    " ENGRAM_COMMIT "\ncompiler  " ENGRAM_COMPILER "\nbuild     " ENGRAM_BUILD
         "\nfeatures  " ENGRAM_FEATURES "\ndevices   " ENGRAM_DEVICES;
}

}  // namespace engram
