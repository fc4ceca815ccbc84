/// In modules only: needs a symbol of the program that has the same headers, so that a module of another build is not
/// loaded at all (instruction_level.cpp).

#include "cpu/interface_stamp.hpp"

extern "C" const int INTERFACE_STAMP;
extern "C" const int* engram_module_interface() { return &INTERFACE_STAMP; }
