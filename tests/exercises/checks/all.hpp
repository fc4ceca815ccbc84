#pragma once
/// The checks, one namespace each: their sources are compiled together.

#include "tests/exercises/checks/exercise.hpp"

namespace engram::exercises {
namespace check_01 {
Check check();
}
namespace check_02 {
Check check();
}
namespace check_03 {
Check check();
}
namespace check_04 {
Check check();
}
namespace check_05 {
Check check();
}
namespace check_06 {
Check check();
}
namespace check_07 {
Check check();
}
namespace check_08 {
Check check();
}
namespace check_09 {
Check check();
}
namespace check_10 {
Check check();
}
namespace check_11 {
Check check();
}
namespace check_12 {
Check check();
}
namespace check_13 {
Check check();
}
namespace check_14 {
Check check();
}
}  // namespace engram::exercises
