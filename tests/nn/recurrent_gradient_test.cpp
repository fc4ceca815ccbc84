/// Derivatives of whole recurrent models against central differences, over two blocks with texts that begin in their
/// middle: what the second block remembers of the first is constant. And f32 on every device against f64, and the same
/// bits with any number of threads.

#include <omp.h>

#include <map>

#include "tests/harness/catch.hpp"
#include "tests/nn/placed_recurrent.hpp"
#include "tests/nn/recurrent_variants.hpp"

namespace engram::harness::recurrent_gradient_test {
namespace {

/// Two streams and two blocks of four positions; the last target of the first stream does not count.
struct TwoBlocks : PlacedRecurrent {
  static constexpr double kWeight = 0.25;
  Block first{.inputs = random_words(8, 5, 21),
              .targets = random_words(8, 5, 22),
              .preceding = {0, 1, 2, 3, 0, 1, 0, 1},
              .streams = 2};
  Block second{.inputs = random_words(8, 5, 23),
               .targets = random_words(8, 5, 24),
               .preceding = {4, 5, 0, 1, 2, 3, 4, 5},
               .counts = {1, 1, 1, 0, 1, 1, 1, 1},
               .streams = 2};
  /// Of every past, what it remembers of the first block.
  std::vector<std::vector<std::byte>> remembered;

  explicit TwoBlocks(const RecurrentOptions& options, DType type = DType::f64,
                     Backend& device = *available_backends().front())
      : PlacedRecurrent(options, 2, type, device) {
    losses(first);
    for (const auto& part : past) {
      const Tensor& states = recurrent_past(*part).states();
      std::vector<std::byte>& host = remembered.emplace_back(states.bytes());
      backend.copy(host.data(), states.raw(), host.size(), CopyKind::device_to_host);
    }
  }

  /// The loss, the second block coming after what is remembered of the first in any case.
  double loss_after_constants() {
    reset();
    train(first, kWeight);
    double sum = loss;
    for (std::size_t i = 0; i < past.size(); ++i) {
      RecurrentPast& part = recurrent_past(*past[i]);
      part.restore(part.states().shape()[1], 4);
      backend.copy(part.states().raw(), remembered[i].data(), remembered[i].size(), CopyKind::host_to_device);
    }
    train(second, kWeight);
    sum += loss;
    return sum;
  }
  /// The losses as training has them, one block after the other.
  std::vector<double> rows() {
    reset();
    std::vector<double> all = train(first, kWeight);
    const std::vector<double> more = train(second, kWeight);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::map<std::string, reference::Array64> gradients() {
    store.zero_gradients(step);
    rows();
    std::map<std::string, reference::Array64> all;
    for (const auto& [name, parameter] : store.parameters()) all[name] = gradient(name);
    return all;
  }
};

/// Parameters whose gradient is nothing: what scores a window of one position.
bool is_dead(const RecurrentOptions& options, const std::string& name) {
  return options.readout == ReadoutKind::recurrent_memory && options.window == 1 &&
         (name == "readout.keys" || name == "readout.temporal");
}

TEST_CASE("recurrent: gradients of all parameters equal central differences", "[recurrent][night]") {
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    CAPTURE(variant.name);
    TwoBlocks bench(variant.options);
    const std::map<std::string, reference::Array64> analytic = bench.gradients();
    bench.differentiates = false;
    for (const auto& [name, gradient] : analytic) {
      CAPTURE(name);
      reference::Array64 value = bench.value(name);
      const reference::Array64 numeric = reference::central_differences(
          value,
          [&, &set = name] {
            bench.set(set, value.data);
            return bench.loss_after_constants();
          },
          1e-5);
      bench.set(name, value.data);
      if (is_dead(variant.options, name)) {
        CHECK(reference::norm(gradient) == 0);
        CHECK(reference::norm(numeric) == 0);
        continue;
      }
      CHECK(reference::norm(numeric) > 1e-5);
      CHECK(reference::distance_between(gradient, numeric) < 1e-7 * std::max(0.05, reference::norm(numeric)));
    }
  }
}

TEST_CASE("recurrent: losses and gradients in f32 are those in f64, on every device", "[recurrent]") {
  for (const auto& device : available_backends())
    for (const RecurrentVariant& variant : all_recurrent_variants()) {
      CAPTURE(variant.name, name_of(device->device().kind));
      TwoBlocks exact(variant.options), bench(variant.options, DType::f32, *device);
      const std::vector<double> wanted_rows = exact.rows(), got_rows = bench.rows();
      REQUIRE(wanted_rows.size() == got_rows.size());
      for (std::size_t i = 0; i < wanted_rows.size(); ++i) CHECK(got_rows[i] == Approx(wanted_rows[i]).epsilon(2e-5));
      const std::map<std::string, reference::Array64> wanted = exact.gradients(), got = bench.gradients();
      for (const auto& [name, gradient] : wanted) {
        CAPTURE(name);
        const double norm = reference::norm(gradient);
        CHECK(reference::distance_between(gradient, got.at(name)) < 1e-4 * std::max(0.05, norm));
      }
    }
}

struct Threads {
  int before = omp_get_max_threads();
  explicit Threads(int count) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before); }
};

/// Large enough for work that is shared out.
RecurrentOptions wide(RecurrentOptions options) {
  options.vocabulary = 211;
  options.embedding_width = 40;
  options.width = 96;
  if (options.tie_tables) options.embedding_width = options.hidden_width();
  options.window = 5;
  options.init_range = 0.1;
  return options;
}

TEST_CASE("recurrent: the same bits with 1, 2 and 8 threads", "[recurrent][night]") {
  for (const RecurrentVariant& variant : all_recurrent_variants()) {
    if (variant.options.output_width > 0) continue;
    CAPTURE(variant.name);
    const PlacedRecurrent::Block block{
        .inputs = random_words(16 * 6, 211, 31), .targets = random_words(16 * 6, 211, 32), .streams = 16};
    std::vector<std::vector<double>> rows;
    std::vector<std::map<std::string, std::vector<double>>> gradients;
    for (const int count : {1, 2, 8}) {
      const Threads threads(count);
      PlacedRecurrent placed(wide(variant.options), 16, DType::f32);
      placed.store.zero_gradients(placed.step);
      rows.push_back(placed.train(block, 0.01));
      const std::vector<double> more = placed.train(block, 0.01);
      rows.back().insert(rows.back().end(), more.begin(), more.end());
      for (const auto& [name, parameter] : placed.store.parameters())
        gradients.resize(rows.size()), gradients.back()[name] = placed.gradient(name).data;
    }
    CHECK(rows[1] == rows[0]);
    CHECK(rows[2] == rows[0]);
    CHECK(gradients[1] == gradients[0]);
    CHECK(gradients[2] == gradients[0]);
  }
}

}  // namespace
}  // namespace engram::harness::recurrent_gradient_test
