/// The program `autograd_tour [STEP]`: runs the listings of docs/guide/autograd-tour.md, all of them or one step;
/// `autograd_tour --trace OP` watches one operation, `autograd_tour --draw STEP [FILE]` writes the tape of a step as a
/// page or a drawing.

#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "apps/tour/drawn_step.hpp"
#include "apps/tour/tour.hpp"

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool draws = !arguments.empty() && arguments[0] == "--draw";
    const int code = draws ? engram::tour::draw_step(std::span(arguments).subspan(1), std::cout, std::cerr)
                           : engram::tour::run_tour(arguments, std::cout, std::cerr);
    return std::cout.flush() ? code : 1;
  } catch (const std::exception& error) {
    std::cerr << "autograd_tour: error: " << error.what() << '\n';
    return 1;
  }
}
