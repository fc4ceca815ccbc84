#include "autograd/functions/matmul.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

using kernels::Transpose;

Transpose flipped(Transpose t) { return t == Transpose::yes ? Transpose::no : Transpose::yes; }

struct Matmul final : Node {
  Tensor a, b;  // as given
  Transpose transpose_a, transpose_b;

  Matmul(Tensor left, Tensor right, Transpose ta, Transpose tb)
      : a(std::move(left)), b(std::move(right)), transpose_a(ta), transpose_b(tb) {}
  std::string_view name() const override { return "matmul"; }
  std::vector<Saved> saved() const override { return {{"a", a}, {"b", b}}; }

  // With C = A' B' (primes: as used), dA' = dC B'^T and dB' = A'^T dC; a stored transpose turns the product around.
  void backward(Step& step, Backward& pass) override {
    const Tensor& dy = pass.output_grad();
    const std::int64_t batch = dy.shape().rank() == 3 ? dy.shape()[0] : 1;
    const MatrixView dc = MatrixView::of(dy), va = MatrixView::of(a), vb = MatrixView::of(b);
    if (Target da = pass.input_grad(0)) {
      const MatrixView target = MatrixView::of(da.tensor);
      if (transpose_a == Transpose::no)
        kernels::matmul(step, dc, Transpose::no, vb, flipped(transpose_b), target, batch, 1.0, da.write);
      else
        kernels::matmul(step, vb, transpose_b, dc, Transpose::yes, target, batch, 1.0, da.write);
    }
    if (Target db = pass.input_grad(1)) {
      const MatrixView target = MatrixView::of(db.tensor);
      if (transpose_b == Transpose::no)
        kernels::matmul(step, va, flipped(transpose_a), dc, Transpose::no, target, batch, 1.0, db.write);
      else
        kernels::matmul(step, dc, Transpose::yes, va, transpose_a, target, batch, 1.0, db.write);
    }
  }
};

}  // namespace

Variable matmul(const Variable& a, const Variable& b, Transpose transpose_a, Transpose transpose_b) {
  const Shape &sa = a.shape(), &sb = b.shape();
  const bool ranks = sa.rank() == sb.rank() && (sa.rank() == 2 || (sa.rank() == 3 && sa[0] == sb[0]));
  const int rows_axis = transpose_a == Transpose::yes ? -1 : -2, columns_axis = transpose_b == Transpose::yes ? -2 : -1;
  if (!ranks || sa[-3 - rows_axis] != sb[-3 - columns_axis])
    throw ShapeError(text("matmul: inner sizes and batches must agree, got ", sa,
                          transpose_a == Transpose::yes ? " (transposed)" : "", " and ", sb,
                          transpose_b == Transpose::yes ? " (transposed)" : ""));
  check_dtype("matmul", "b", b.value(), a.dtype());
  check_same_device("matmul", a.value(), b.value());
  Step& step = a.tape().step();
  const std::int64_t m = sa[rows_axis], n = sb[columns_axis];
  const std::int64_t batch = sa.rank() == 3 ? sa[0] : 1;
  Tensor c = step.empty(sa.rank() == 3 ? Shape{batch, m, n} : Shape{m, n}, a.dtype());
  kernels::matmul(step, MatrixView::of(a.value()), transpose_a, MatrixView::of(b.value()), transpose_b,
                  MatrixView::of(c), batch, 1.0, Write::set);
  return a.tape().record(Matmul{a.value(), b.value(), transpose_a, transpose_b}, {a, b}, std::move(c));
}

}  // namespace engram
