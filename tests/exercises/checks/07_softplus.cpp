#include "tests/exercises/07_softplus.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/backward.hpp"
#include "autograd/functions/add.hpp"
#include "autograd/gradcheck.hpp"
#include "autograd/node.hpp"
#include "autograd/tape_listing.hpp"
#include "core/dtype.hpp"
#include "tests/exercises/checks/all.hpp"

namespace engram::exercises::check_07 {
namespace {

struct Answer {
  std::function<Variable(const Variable&)> softplus;
};

enum class Flaw { none, overflows, forgets_dy, sets, own_output, other_sign, keeps_both };

/// softplus without kernels of its own, and with a flaw.
struct Flawed final : Node {
  Tensor x, y;
  Flaw flaw;

  Flawed(Tensor input, Tensor output, Flaw what) : x(std::move(input)), y(std::move(output)), flaw(what) {}
  std::string_view name() const override { return "softplus"; }
  std::vector<Saved> saved() const override {
    return y ? std::vector<Saved>{{"x", x}, {"y", y}} : std::vector<Saved>{{"x", x}};
  }
  void backward(Step&, Backward& pass) override {
    Target dx = pass.input_grad(0);
    if (!dx) return;
    dispatch_float(x.dtype(), "softplus", [&]<class T>() {
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const T at = flaw == Flaw::own_output ? y.data<const T>()[i] : x.data<const T>()[i];
        const T dy = flaw == Flaw::forgets_dy ? T(1) : pass.output_grad().data<const T>()[i];
        T& out = dx.tensor.data<T>()[i];
        const T before = dx.write == Write::add && flaw != Flaw::sets ? out : T(0);
        out = before + dy / (1 + std::exp(flaw == Flaw::other_sign ? at : -at));
      }
    });
  }
};

Answer with(Flaw flaw) {
  return {[flaw](const Variable& x) {
    Tensor y = x.tape().step().empty(x.shape(), x.dtype());
    dispatch_float(x.dtype(), "softplus", [&]<class T>() {
      for (std::int64_t i = 0; i < y.count(); ++i) {
        const T at = x.value().data<const T>()[i];
        y.data<T>()[i] = flaw == Flaw::overflows ? std::log(1 + std::exp(at))
                                                 : std::max(at, T(0)) + std::log1p(std::exp(-std::abs(at)));
      }
    });
    const bool keeps_y = flaw == Flaw::keeps_both || flaw == Flaw::own_output;
    return x.tape().record(Flawed{x.value(), keeps_y ? y : Tensor{}, flaw}, {x}, y);
  }};
}

std::vector<double> numbers_of(const Tensor& tensor) {
  return {tensor.data<const double>(), tensor.data<const double>() + tensor.count()};
}

/// Gives y the gradient `dy`, and returns that of x.
std::vector<double> gradient_of(tour::Workshop& shop, Tape& tape, const Variable& x, const Variable& y,
                                const std::vector<double>& dy) {
  std::vector<Tensor> cotangents;  // handed over: nobody else may hold it
  cotangents.push_back(tour::tensor_of(shop.arena, y.shape(), dy));
  backward_from(std::vector{y}, std::move(cotangents));
  return numbers_of(tape.gradient(x));
}

void run_in_f32(const Answer& answer, tour::Workshop& shop, std::vector<Part>& parts) {
  shop.step.begin({});
  Tape tape(shop.step);
  Tensor x = shop.step.empty({2}, DType::f32);
  x.data<float>()[0] = 0.5f;
  x.data<float>()[1] = -2;
  const Variable y = answer.softplus(tape.constant(x));
  parts.push_back({.name = "softplus of 0.5 and -2 in f32",
                   .numbers = {y.value().data<const float>()[0], y.value().data<const float>()[1]},
                   .hint = "element types: dispatch_float calls its body with T = float here.",
                   .tolerance = 1e-6});
}

void run(const Answer& answer, std::vector<Part>& parts) {
  tour::Workshop shop;
  shop.step.begin({});
  const std::vector<double> points{0, 0.5, -2, 3, 1000, -1000}, cotangent{1, -2, 0.5, 3, 1, 1};
  {
    Tape tape(shop.step);
    const Variable x = tape.leaf(tour::tensor_of(shop.arena, {6}, points));
    const Variable y = answer.softplus(x);
    parts.push_back({"softplus of 0, 0.5, -2, 3, 1000 and -1000", numbers_of(y.value())});
    const double kept = static_cast<double>(bytes_kept(tape)) / (6 * sizeof(double));
    parts.push_back({"their gradients, for dy = 1 -2 0.5 3 1 1", gradient_of(shop, tape, x, y, cotangent)});
    parts.push_back({.name = "tensors that the node keeps", .numbers = {kept}, .at_most = true});
  }
  {
    Tape tape(shop.step);
    const Variable x = tape.leaf(tour::tensor_of(shop.arena, {6}, points));
    const Variable y = add(answer.softplus(x), answer.softplus(x));
    parts.push_back(
        {"gradients of softplus(x) + softplus(x), with the same dy", gradient_of(shop, tape, x, y, cotangent)});
  }
  run_in_f32(answer, shop, parts);
}

}  // namespace

Check check() {
  return make_check<Answer>(
      7, "07_softplus", "an operation for Engram's tape",
      {.answer = {softplus},
       .truth = with(Flaw::none),
       .mistakes = {{with(Flaw::overflows),
                     "exp(1000) is infinite. log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), where nothing overflows."},
                    {with(Flaw::forgets_dy),
                     "the derivative of softplus is right. The chain rule multiplies it by dy."},
                    {with(Flaw::own_output),
                     "the derivative is 1 / (1 + e^-x) with the input x; you put the output y in its place."},
                    {with(Flaw::other_sign),
                     "this is dy / (1 + e^x), which falls from 1 to 0. The slope of softplus grows from 0 to 1: "
                     "dy / (1 + e^-x), with the minus."},
                    {with(Flaw::keeps_both), "the node keeps two tensors. Its derivative needs x alone: keep no more."},
                    {with(Flaw::sets),
                     "x was used twice, and the second target said add: look at dx.write, as exercise 5 did."}},
       .run = run});
}

}  // namespace engram::exercises::check_07
