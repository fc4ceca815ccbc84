#pragma once
/// Small files of codes for tests, in the forms of fastBPE and subword-nmt, and a vocabulary of theirs.

#include <string_view>

namespace engram::harness {

inline constexpr std::string_view kFastCodes =
    "l o 9\nlo w</w> 8\nn e 7\nne w 6\ne s 6\nes t</w> 5\na a 4\nlo w 3\nlow est</w> 2\nu n 2\n";
inline constexpr std::string_view kVersion2Codes =
    "#version: 0.2\nl o\nlo w</w>\nn e\nne w\ne s\nes t</w>\na a\nlo w\nlow est</w>\nu n\n";
inline constexpr std::string_view kVersion1Codes =
    "l o\nlo w\nlow </w>\nn e\nne w\ne s\nes t\nest </w>\na a\nlow est</w>\nu n\nunlow </w>\n";
inline constexpr std::string_view kSubwordList = "low 5\nlo@@ 4\nest 3\nne@@ 3\nw@@ 2\na@@ 2\na 2\naa@@ 1\n";

}  // namespace engram::harness
