#include <cstdint>

#include "cuda/simulated/context.hpp"

#if !defined(__aarch64__)
#error "this file is for aarch64: ENGRAM_SIMULATED_SWITCH=UCONTEXT works everywhere"
#endif

extern "C" void engram_switch_context(void** save_stack_pointer, void* load_stack_pointer);
extern "C" void engram_enter_context();

// The AAPCS64 calling convention: the caller has saved every register but x19 to x30 and the lower halves of v8 to v15.
// A new context begins in engram_enter_context, with the function to call in x19.
asm(R"(
.text
.globl engram_switch_context
.hidden engram_switch_context
.type engram_switch_context, %function
engram_switch_context:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size engram_switch_context, .-engram_switch_context

.globl engram_enter_context
.hidden engram_enter_context
.type engram_enter_context, %function
engram_enter_context:
  mov x29, #0
  mov x30, #0
  br x19
.size engram_enter_context, .-engram_enter_context
)");

namespace engram::simulated {

void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)()) {
  const std::uintptr_t top = (reinterpret_cast<std::uintptr_t>(stack) + bytes) & ~std::uintptr_t{15};
  auto* saved = reinterpret_cast<std::uintptr_t*>(top - 160);
  for (int word = 0; word < 20; ++word) saved[word] = 0;
  saved[0] = reinterpret_cast<std::uintptr_t>(entry);                   // x19
  saved[11] = reinterpret_cast<std::uintptr_t>(&engram_enter_context);  // x30: where the switch returns to
  context.stack_pointer = saved;
}

void switch_context(Context& from, Context& to) { engram_switch_context(&from.stack_pointer, to.stack_pointer); }

}  // namespace engram::simulated
