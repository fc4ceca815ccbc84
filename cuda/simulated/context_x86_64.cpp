#include <cstdint>

#include "cuda/simulated/context.hpp"

#if !defined(__x86_64__)
#error "this file is for x86-64: ENGRAM_SIMULATED_SWITCH=UCONTEXT works everywhere"
#endif

extern "C" void engram_switch_context(void** save_stack_pointer, void* load_stack_pointer);

// The System V calling convention: the caller has saved every register but these. The control words of the floating
// point units are left alone; kernels do not change them.
asm(R"(
.text
.globl engram_switch_context
.hidden engram_switch_context
.type engram_switch_context, @function
engram_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size engram_switch_context, .-engram_switch_context
)");

namespace engram::simulated {

void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)()) {
  const std::uintptr_t top = (reinterpret_cast<std::uintptr_t>(stack) + bytes) & ~std::uintptr_t{15};
  auto* word = reinterpret_cast<std::uintptr_t*>(top);
  *--word = 0;  // where a caller's return address would be: debuggers stop there, and the stack is aligned
  *--word = reinterpret_cast<std::uintptr_t>(entry);
  for (int saved = 0; saved < 6; ++saved) *--word = 0;
  context.stack_pointer = word;
}

void switch_context(Context& from, Context& to) { engram_switch_context(&from.stack_pointer, to.stack_pointer); }

}  // namespace engram::simulated
