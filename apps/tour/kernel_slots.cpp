/// Step 7: the loops become kernels, chosen by the device of the step.

#include <fmt/ostream.h>

#include <string>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "core/error.hpp"
#include "core/kernels/add.hpp"
#include "core/kernels/matmul.hpp"
#include "core/kernels/pointwise.hpp"
#include "core/kernels/reduce.hpp"

namespace engram::tour {
namespace {

struct Names final : KernelObserver {
  std::string seen;
  void before(const char* kernel) override { seen += std::string(" ") + kernel; }
  void after(const char*) override {}
};

constinit Kernel<void(const Tensor& x, Tensor& y)> cube{"cube"};  // declared, but nobody has filled it

}  // namespace

void kernel_slots(std::ostream& out) {
  using kernels::Transpose;
  Workshop shop;
  Names names;
  shop.step.observe(&names);
  const Tensor x = tensor_of(shop.heap, {2, 2}, {0.5, -1.0, 0.25, 0.75});
  const Tensor w = tensor_of(shop.heap, {2, 2}, {-3.0, 1.0, 0.5, 2.0});
  Tensor product = shop.step.empty({2, 2}, DType::f64), sum = product, y = shop.step.empty({2, 2}, DType::f64);
  Tensor loss = shop.step.empty({1}, DType::f64);

  kernels::matmul(shop.step, MatrixView::of(x), Transpose::no, MatrixView::of(w), Transpose::no,
                  MatrixView::of(product), /*batch=*/1, /*factor=*/1.0, Write::set);
  kernels::add(shop.step, product, x, sum);
  kernels::pointwise_forward<Tanh>(shop.step, sum, y);
  kernels::sum_forward(shop.step, y, /*factor=*/1.0, loss);
  fmt::print(out, "loss = {} by{}\n", numbers(loss), names.seen);
  try {
    cube(shop.step, x, y);
  } catch (const NotAvailable& error) {
    fmt::print(out, "{}\n", error.what());
  }
}

}  // namespace engram::tour
