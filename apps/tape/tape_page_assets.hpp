#pragma once
/// The files that the page of a tape is made of, as they were when the program was built (apps/embed.cmake).

#include <string_view>

namespace engram {

/// page/style.css.
std::string_view tape_page_style();
/// The scripts of page/, one behind the other.
std::string_view tape_page_script();

}  // namespace engram
