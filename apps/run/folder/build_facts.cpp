#include "apps/run/folder/build_facts.hpp"

#include "core/error.hpp"

namespace engram {

BuildFacts build_facts() {
  return {.version = ENGRAM_VERSION,
          .commit = ENGRAM_COMMIT,
          .compiler = ENGRAM_COMPILER,
          .build = ENGRAM_BUILD,
          .features = ENGRAM_FEATURES,
          .devices = ENGRAM_DEVICES};
}

std::string build_text() {
  const BuildFacts facts = build_facts();
  return text(facts.version, " of ", facts.commit, " (", facts.compiler, "; ", facts.build, "; ", facts.features, ")");
}

std::string version_text() {
  const BuildFacts facts = build_facts();
  return text(facts.version, "\ncommit    ", facts.commit, "\ncompiler  ", facts.compiler, "\nbuild     ", facts.build,
              "\nfeatures  ", facts.features, "\ndevices   ", facts.devices);
}

}  // namespace engram
