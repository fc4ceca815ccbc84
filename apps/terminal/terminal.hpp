#pragma once
/// What stderr is and may be written to it. All of it is asked anew each time: windows change, and a program goes to
/// the background and comes back.

#include "core/terminal_columns.hpp"

namespace engram {

/// Whether a line can be written over and over on stderr: it is a terminal, TERM is not "dumb", and
/// messages are not left to another process (core/log.hpp).
bool is_line_terminal();
/// Whether one may be written now: stderr is such a terminal, and the program is in the foreground; in the background
/// it would write over what a shell shows.
bool takes_lines();
/// Whether NO_COLOR is unset or empty (https://no-color.org). For a terminal that takes lines.
bool shows_colours();

}  // namespace engram
