#pragma once
/// The tape of a step of the tour as something to look at: `autograd_tour --draw STEP [FILE]`.

#include <ostream>
#include <span>
#include <string>

#include "apps/tape/tape_recording.hpp"

namespace engram::tour {

/// What the step's first tape that runs backwards from a loss did, its gradients compared with differences. Throws
/// UsageError for a step without one.
TapeRecording recorded_step(std::size_t step);

/// Writes the page (tape_page) of a step, or, to a FILE that ends with .dot or .svg, the drawing. Says to `out` what
/// was written. `arguments`: the step's number, and the file, tape-STEP.html where it is not given. Returns the exit
/// code: 0, or 2 for arguments that are wrong. Throws FileError for a file that cannot be written, or is of another
/// kind, and NotAvailable for .svg without Graphviz.
int draw_step(std::span<const std::string> arguments, std::ostream& out, std::ostream& errors);

}  // namespace engram::tour
