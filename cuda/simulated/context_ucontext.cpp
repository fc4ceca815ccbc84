#include "cuda/simulated/context.hpp"

namespace engram::simulated {

void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)()) {
  if (!context.initialised) getcontext(&context.registers);
  context.initialised = true;
  context.registers.uc_stack.ss_sp = stack;
  context.registers.uc_stack.ss_size = bytes;
  context.registers.uc_link = nullptr;
  makecontext(&context.registers, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.registers, &to.registers); }

}  // namespace engram::simulated
