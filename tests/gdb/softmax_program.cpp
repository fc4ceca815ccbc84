/// Softmax watched as `autograd_tour --trace softmax` does it, in a program of few sources, which are built with all
/// that a debugger wants to know: tests/gdb/check.py types docs/guide/debugging.md into gdb on it. With --objects it
/// has one of everything that gdb's printers show, and stops nowhere else.

#include <cmath>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <string_view>

#include "apps/tour/trace/op_examples.hpp"
#include "apps/tour/trace/op_trace.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "cuda/simulated/block.hpp"  // gdb reads threads by it; the engine itself is linked as it is everywhere

namespace {

using namespace engram;

/// Where gdb stops to look at the objects, all of which are in memory for it.
__attribute__((noinline)) void look_at(std::initializer_list<const void*> objects) {
  std::cout << objects.size() << " objects\n";
}

template <class T>
Tensor numbers(Allocator& memory, Shape shape, DType dtype) {
  Tensor tensor(shape, dtype, {DeviceKind::cpu}, memory);
  for (std::int64_t i = 0; i < shape.count(); ++i) tensor.data<T>()[i] = T(0.5f * static_cast<float>(i) - 1);
  return tensor;
}

void show_objects() {
  const auto backend = open_backend({DeviceKind::cpu});
  HeapAllocator memory(*backend);
  Step step(*backend, memory);
  Parameter weight({2, 2}, {Initializer::Kind::constant, 0.25}), unplaced({7}, {Initializer::Kind::constant, 0});
  ParameterStore store;
  store.add("layer.weight", weight);
  store.place(*backend, DType::f32, /*seed=*/1);
  store.zero_gradients(step);
  const Tensor none, empty = numbers<float>(memory, {0, 3}, DType::f32),
                     scalar = numbers<double>(memory, {}, DType::f64);
  const Tensor stored = numbers<bf16>(memory, {2, 2}, DType::bf16),
               ids = numbers<std::int64_t>(memory, {3}, DType::i64);
  const Tensor large = numbers<float>(memory, {5, 20}, DType::f32);
  large.data<float>()[50] = NAN;
  const Target set{stored, Write::set}, add{stored, Write::add}, unwanted;
  const Device second_card{DeviceKind::cuda, 1};
  const bf16 one_number(-1.5f);
  Tape tape(step);
  const Variable absent, constant = tape.constant(ids), leaf = tape.leaf(stored), trained = tape.parameter(weight);
  look_at({&none, &empty, &scalar, &stored, &ids, &large, &set, &add, &unwanted, &second_card, &one_number, &absent,
           &constant, &leaf, &trained, &weight, &unplaced, &tape});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    engram::Device device;
    for (int i = 1; i + 1 < argc; ++i)
      if (std::string_view(argv[i]) == "--device") device = engram::parse_device(argv[i + 1]);
    if (argc > 1 && std::string_view(argv[1]) == "--objects") {
      show_objects();
      return 0;
    }
    const engram::tour::OpExample example = engram::tour::softmax_example();
    std::cout << engram::tour::trace_text(example, device, engram::tour::trace_op(example, device));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
