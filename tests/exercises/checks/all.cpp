#include "tests/exercises/checks/all.hpp"

namespace engram::exercises {

std::vector<Check> all_checks() {
  std::vector<Check> checks{check_01::check(), check_02::check(), check_03::check(), check_04::check(),
                            check_05::check(), check_06::check(), check_07::check(), check_08::check(),
                            check_09::check(), check_10::check(), check_11::check(), check_12::check(),
                            check_13::check()};
#if defined(ENGRAM_CUDA_SIMULATED)  // its kernel needs the simulated device
  checks.push_back(check_14::check());
#endif
  return checks;
}

}  // namespace engram::exercises
