#include "cpu/instruction_level.hpp"

#include "core/error.hpp"

#if defined(ENGRAM_CPU_MODULES)
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "core/log.hpp"
#include "cpu/interface_stamp.hpp"
#include "cpu/module_file.hpp"

// What a module of this build needs, and no other: see module_stamp.cpp. Visible in libengram.so too, which hides
// names.
#pragma GCC visibility push(default)
extern "C" {
extern const int INTERFACE_STAMP;
const int INTERFACE_STAMP = 1;
}
#pragma GCC visibility pop
#endif

namespace engram::cpu {

#if defined(ENGRAM_CPU_MODULES)
namespace {

struct Level {
  std::string_view name;
  bool (*runs)();
};
// Best first; the names are those of the modules.
constexpr Level kLevels[] = {
    {"avx512", [] { return __builtin_cpu_supports("x86-64-v4") != 0; }},
    {"avx2", [] { return __builtin_cpu_supports("x86-64-v3") != 0; }},
    {"baseline", [] { return true; }},
};

// Why a level's kernels cannot be used; empty: they are in use.
std::string load(const Level& level) {
  if (!level.runs()) return text("this machine does not run ", level.name);
  if (level.name == "baseline") return {};
  // A module finds its slots among the symbols of all. Those of a library that was itself loaded for one user alone, as
  // extensions of Python are, become that first.
  if (const std::string library = own_library().string(); !library.empty())
    dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  // Its static initialisers fill the slots; it stays loaded.
  const std::string module = module_file(text("libengram_cpu_", level.name, ".so"));
  if (dlopen(module.c_str(), RTLD_NOW) != nullptr) return {};
  return text("the kernels for ", level.name, " cannot be loaded: ", dlerror());
}

std::string choose() {
  const char* const asked = std::getenv("ENGRAM_CPU");
  const std::string_view wanted = asked == nullptr ? "" : asked;
  for (const Level& level : kLevels) {
    if (!wanted.empty() && level.name != wanted) continue;
    const std::string fault = load(level);
    if (fault.empty()) return std::string(level.name);
    if (!wanted.empty()) throw UsageError(text("cpu: ENGRAM_CPU=", wanted, " was asked for, but ", fault));
    if (level.runs()) log(LogLevel::warning, text("cpu: ", fault));
  }
  throw UsageError(text("cpu: ENGRAM_CPU must be baseline, avx2 or avx512, got '", wanted, "'"));
}

}  // namespace
#else
namespace {

std::string choose() { return "native"; }

}  // namespace
#endif

const std::string& use_best_instructions() {
  static const std::string level = choose();
  return level;
}

}  // namespace engram::cpu
