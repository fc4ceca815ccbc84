#pragma once
/// How the readers of PyTorch's files refuse one.

#include <string_view>

#include "core/error.hpp"

namespace engram {

/// Throws FileError "pytorch: <where>: <parts>".
template <class... Parts>
[[noreturn]] void refuse_pytorch(std::string_view where, const Parts&... parts) {
  throw FileError(text("pytorch: ", where, ": ", parts...));
}

}  // namespace engram
