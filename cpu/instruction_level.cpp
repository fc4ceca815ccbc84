#include "cpu/instruction_level.hpp"

#include "core/error.hpp"

#if defined(ENGRAM_CPU_MODULES)
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/log.hpp"
#endif

namespace engram::cpu {

#if defined(ENGRAM_CPU_MODULES)
namespace {

namespace fs = std::filesystem;

struct Level {
  std::string_view name;
  bool (*runs)();
};
// Best first; the names are those of the modules.
constexpr Level kLevels[] = {
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
     }},
    {"avx2",
     [] {
       return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt");
     }},
    {"baseline", [] { return true; }},
};

// Beside the program when installed, in the folder of the build otherwise.
fs::path module_file(std::string_view level) {
  const std::string name = text("libengram_cpu_", level, ".so");
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {program, program / ".." / "lib" / "engram", fs::path(ENGRAM_CPU_MODULES)})
    if (fs::exists(folder / name, ignored)) return folder / name;
  return {};
}

bool load(std::string_view level) {
  if (level == "baseline") return true;
  const fs::path file = module_file(level);
  if (file.empty()) {
    log(LogLevel::warning,
        text("cpu: kernels for ", level, " must lie in ", ENGRAM_CPU_MODULES, " or beside the program, found none"));
    return false;
  }
  // Its static initialisers fill the slots; it stays loaded.
  if (dlopen(file.c_str(), RTLD_NOW) != nullptr) return true;
  log(LogLevel::warning, text("cpu: ", file.string(), " cannot be loaded: ", dlerror()));
  return false;
}

std::string choose() {
  const char* const asked = std::getenv("ENGRAM_CPU");
  const std::string_view wanted = asked == nullptr ? "" : asked;
  bool known = wanted.empty();
  for (const Level& level : kLevels) {
    if (!wanted.empty() && level.name != wanted) continue;
    known = true;
    if (level.runs() && load(level.name)) return std::string(level.name);
    if (!wanted.empty()) throw UsageError(text("cpu: ENGRAM_CPU=", wanted, " does not run on this machine"));
  }
  if (!known) throw UsageError(text("cpu: ENGRAM_CPU must be baseline, avx2 or avx512, got '", wanted, "'"));
  return "baseline";
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
