#include "tests/exercises/02_cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_02 {
namespace {

using Targets = std::span<const int>;
struct Answer {
  std::function<double(const Matrix& logits, Targets targets, Matrix& dlogits)> loss;
};

double loss_of(const Matrix& logits, Targets targets) {
  double loss = 0;
  for (int r = 0; r < logits.rows(); ++r) {
    const double largest = *std::ranges::max_element(logits.row(r));
    double sum = 0;
    for (const double score : logits.row(r)) sum += std::exp(score - largest);
    loss += largest + std::log(sum) - logits(r, targets[static_cast<std::size_t>(r)]);
  }
  return loss / logits.rows();
}

double by_differences(const Matrix& logits, Targets targets, Matrix& dlogits) {
  dlogits = slopes([&](const Matrix& at) { return loss_of(at, targets); }, logits);
  return loss_of(logits, targets);
}

void run(const Answer& answer, std::vector<Part>& parts) {
  struct Trial {
    std::string name;
    Matrix logits;
    std::vector<int> targets;
  };
  const Trial trials[] = {
      {"one row with the logits 1 2 3, target 2", Matrix(1, 3, {1, 2, 3}), {2}},
      {"three rows of four", some_matrix(3, 4, 3), {1, 0, 3}},
      {"two rows with logits about 1000", Matrix(2, 3, {1000, 1001, 999, -1000, 0, 1000.5}), {0, 2}}};
  for (const Trial& trial : trials) {
    Matrix dlogits(trial.logits.rows(), trial.logits.columns(), kUnwritten);
    const double loss = answer.loss(trial.logits, trial.targets, dlogits);
    parts.push_back({"loss of " + trial.name, {loss}});
    parts.push_back({"dlogits of " + trial.name, dlogits.numbers(), std::size_t(dlogits.columns())});
  }
}

struct Flaw {
  bool no_target = false, no_mean = false, flipped = false, all_elements = false, overflows = false;
  bool target_alone = false;                        ///< one_hot / rows is subtracted from a softmax that is not divided
  bool whole_share = false, whole_of_loss = false;  ///< 1 / rows is a division of integers, of the loss too
};

Answer with(Flaw flaw) {
  return {[flaw](const Matrix& logits, Targets targets, Matrix& dlogits) {
    const double whole = logits.rows() == 1 ? 1 : 0;
    const double share = flaw.no_mean || flaw.target_alone ? 1
                         : flaw.whole_share                ? whole
                         : flaw.all_elements               ? 1.0 / static_cast<double>(logits.numbers().size())
                                                           : 1.0 / logits.rows();
    double loss = 0;
    for (int r = 0; r < logits.rows(); ++r) {
      const double largest = flaw.overflows ? 0 : *std::ranges::max_element(logits.row(r));
      const int target = targets[static_cast<std::size_t>(r)];
      double sum = 0;
      for (const double score : logits.row(r)) sum += std::exp(score - largest);
      loss -= std::log(std::exp(logits(r, target) - largest) / sum);
      for (int c = 0; c < logits.columns(); ++c) {
        const double one_hot = c != target || flaw.no_target ? 0 : flaw.target_alone ? 1.0 / logits.rows() : 1;
        dlogits(r, c) = share * (flaw.flipped ? -1 : 1) * (std::exp(logits(r, c) - largest) / sum - one_hot);
      }
    }
    return flaw.whole_of_loss ? loss * whole : loss / logits.rows();
  }};
}

constexpr const char* kWholeNumbers =
    "1 / rows of two integers is an integer: 1 for one row, 0 for more. Write 1.0 / rows, or divide a double by rows.";

}  // namespace

Check check() {
  return make_check<Answer>(
      2, "02_cross_entropy", "cross entropy of a softmax",
      {.answer = {cross_entropy},
       .truth = {by_differences},
       .mistakes = {{with({.no_target = true}),
                     "your gradient is right in every column but the target's: subtract 1 there (the one-hot row)."},
                    {with({.no_mean = true}),
                     "the loss is the mean over rows, so every derivative has a factor 1 / rows, which is missing."},
                    {with({.flipped = true}),
                     "this is one-hot - softmax: the sign is turned round. A larger score of a wrong column makes the "
                     "loss larger, so its derivative is positive."},
                    {with({.all_elements = true}),
                     "you divide by the number of all elements. The mean is over rows only."},
                    {with({.target_alone = true}),
                     "only the one-hot row is divided by the number of rows. p - 1 / rows divides before it subtracts: "
                     "write (p - 1) / rows, and p / rows in the other columns."},
                    {with({.whole_share = true}), kWholeNumbers},
                    {with({.whole_share = true, .whole_of_loss = true}), kWholeNumbers},
                    {with({.overflows = true}),
                     "the formula is right, but exp(1000) is infinite. Subtract the row's largest logit from all of "
                     "them first: the softmax stays the same."}},
       .run = run});
}

}  // namespace engram::exercises::check_02
