#pragma once
/// Amounts of memory in words.

#include <string>

namespace engram {

/// "12.3 MiB".
std::string bytes_text(double bytes);

}  // namespace engram
