/// The program `autograd_tour [STEP]`: runs the listings of docs/guide/autograd-tour.md, all of them or one step;
/// `autograd_tour --trace OP` watches one operation.

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "apps/tour/tour.hpp"

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const int code = engram::tour::run_tour(arguments, std::cout, std::cerr);
    return std::cout.flush() ? code : 1;
  } catch (const std::exception& error) {
    std::cerr << "autograd_tour: error: " << error.what() << '\n';
    return 1;
  }
}
