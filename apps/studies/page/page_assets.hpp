#pragma once
/// The files that a page is made of, as they were when the program was built (apps/embed.cmake).

#include <string_view>

namespace engram {

/// style.css.
std::string_view page_style();
/// The scripts, one behind the other.
std::string_view page_script();
/// Chart.js, which draws the lines; empty: it was not there when the program was built.
std::string_view chart_library();

}  // namespace engram
