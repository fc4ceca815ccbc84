#include "tests/exercises/03_linear.hpp"

#include <algorithm>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_03 {
namespace {

struct Answer {
  std::function<void(const Matrix&, const Matrix&, const Matrix&, Matrix&, Matrix&, std::span<double>)> backward;
};

/// The sum of dy (x W^T + b).
double loss_of(const Matrix& x, const Matrix& w, std::span<const double> b, const Matrix& dy) {
  double sum = 0;
  for (int r = 0; r < x.rows(); ++r)
    for (int o = 0; o < w.rows(); ++o) sum += dy(r, o) * (dot(x.row(r), w.row(o)) + b[static_cast<std::size_t>(o)]);
  return sum;
}

void by_differences(const Matrix& x, const Matrix& w, const Matrix& dy, Matrix& dx, Matrix& dw, std::span<double> db) {
  const std::vector<double> b(db.size(), 0.5);
  dx = slopes([&](const Matrix& at) { return loss_of(at, w, b, dy); }, x);
  dw = slopes([&](const Matrix& at) { return loss_of(x, at, b, dy); }, w);
  std::ranges::copy(slopes([&](const std::vector<double>& at) { return loss_of(x, w, at, dy); }, b), db.begin());
}

void run(const Answer& answer, std::vector<Part>& parts) {
  struct Trial {
    std::string name;
    int rows, in, out;
  };
  for (const Trial& trial :
       {Trial{"two rows, two in, two out", 2, 2, 2}, Trial{"four rows, three in, two out", 4, 3, 2},
        Trial{"one row, one in, three out", 1, 1, 3}}) {
    const Matrix x = some_matrix(trial.rows, trial.in, 4), w = some_matrix(trial.out, trial.in, 5);
    Matrix dx(trial.rows, trial.in, kUnwritten), dw(trial.out, trial.in, kUnwritten);
    std::vector<double> db(static_cast<std::size_t>(trial.out), kUnwritten);
    answer.backward(x, w, some_matrix(trial.rows, trial.out, 6), dx, dw, db);
    parts.push_back({"db, " + trial.name, db});
    parts.push_back({"dw, " + trial.name, dw.numbers(), std::size_t(trial.in)});
    parts.push_back({"dx, " + trial.name, dx.numbers(), std::size_t(trial.in)});
  }
}

struct Flaw {
  bool last_row = false, mean = false, turned_index = false, transposed = false, other_side = false;
};

/// Throws std::out_of_range where the row has fewer numbers than `count`.
double sum_of_row(const Matrix& m, int row, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += m(row, i);
  return sum;
}

Answer with(Flaw flaw) {
  return {[flaw](const Matrix& x, const Matrix& w, const Matrix& dy, Matrix& dx, Matrix& dw, std::span<double> db) {
    by_differences(x, w, dy, dx, dw, db);
    const int rows = x.rows();
    for (std::size_t o = 0; o < db.size(); ++o) {
      if (flaw.last_row) db[o] = dy(rows - 1, static_cast<int>(o));
      if (flaw.mean) db[o] /= rows;
      if (flaw.turned_index) db[o] = sum_of_row(dy, static_cast<int>(o), rows);
    }
    if (flaw.last_row)
      for (int o = 0; o < w.rows(); ++o)
        for (int i = 0; i < w.columns(); ++i) dw(o, i) = dy(rows - 1, o) * x(rows - 1, i);
    if (flaw.transposed)
      for (int o = 0; o < w.rows(); ++o)
        for (int i = 0; i < w.columns(); ++i) {
          double sum = 0;
          for (int r = 0; r < rows; ++r) sum += x(r, o) * dy(r, i);
          dw(o, i) = sum;
        }
    if (flaw.other_side)
      for (int r = 0; r < rows; ++r)
        for (int i = 0; i < w.columns(); ++i) {
          double sum = 0;
          for (int o = 0; o < w.rows(); ++o) sum += dy(r, o) * w(i, o);
          dx(r, i) = sum;
        }
  }};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      3, "03_linear", "a linear map with a bias",
      {.answer = {linear_backward},
       .truth = {by_differences},
       .mistakes = {{with({.last_row = true}),
                     "db is dy of the last row: the rows before it were overwritten. One w and one b serve every row, "
                     "so their gradients are sums over rows. Set the sum to 0 first, then add."},
                    {with({.mean = true}), "db is the mean over rows. It is the sum: b is used once by every row."},
                    {with({.turned_index = true}),
                     "the indices of dy are the wrong way round in db: this sums a row of dy. b[o] was added to the "
                     "column o, in every row r: sum dy(r, o) over r."},
                    {with({.transposed = true}),
                     "this is x^T dy, the transposed of dw. dw has the shape of w, [out, in]: dy^T x."},
                    {with({.other_side = true}),
                     "this is dy W^T. x met the column i of w, so dx(r, i) sums dy(r, o) w(o, i) over o: dy W."}},
       .run = run});
}

}  // namespace engram::exercises::check_03
