/// The mean of the weights against a plain mean, and the rule that starts it ([transformer-xl 4.6]).

#include "nn/optim/weight_average.hpp"

#include <map>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::weight_average_test {
namespace {

struct AverageBench : Bench {
  ParameterStore store;  // before the parameters, whose memory it owns
  Parameter first{{2}, Initializer{Initializer::Kind::constant, 1}};
  Parameter second{{3, 70}, Initializer{Initializer::Kind::normal, 1}};
  Parameter span{{2}, Initializer{Initializer::Kind::constant, 0.5}, "spans"};
  reference::RandomArrays random{3};

  explicit AverageBench(DType dtype = DType::f64) {
    store.add("first", first);
    store.add("second", second);
    store.add("span", span);
    store.place(*backend, dtype, 5);
    step.begin({});
  }
  std::vector<Parameter*> parameters() { return {&first, &second, &span}; }
  /// As an update would.
  void change() {
    for (Parameter* parameter : parameters())
      write(parameter->value(), random.array(PlacedModel::shape_of(*parameter)));
  }
  std::vector<std::vector<double>> values() {
    std::vector<std::vector<double>> all;
    for (Parameter* parameter : parameters()) all.push_back(read(parameter->value()).data);
    return all;
  }
};

TEST_CASE("weight average: the mean of the updates since the start, in place of the weights and back") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-14 : 1e-6;
    CAPTURE(name_of(dtype));
    AverageBench bench(dtype);
    WeightAverage average(bench.store);
    CHECK_FALSE(average.started());
    for (int round = 0; round < 2; ++round) {  // the second begins anew
      bench.change();
      average.start(bench.step);
      CHECK(average.updates() == 0);
      std::vector<std::vector<double>> mean;
      for (int update = 1; update <= 7; ++update) {
        bench.change();
        average.add(bench.step);
        const auto values = bench.values();
        if (mean.empty()) mean.resize(values.size());
        for (std::size_t p = 0; p < values.size(); ++p) {
          mean[p].resize(values[p].size());
          for (std::size_t i = 0; i < values[p].size(); ++i) mean[p][i] += (values[p][i] - mean[p][i]) / update;
        }
      }
      CHECK(average.updates() == 7);
      const auto trained = bench.values();
      average.swap(bench.step);
      CHECK(average.swapped());
      const auto swapped = bench.values();
      for (std::size_t p = 0; p < mean.size(); ++p)
        for (std::size_t i = 0; i < mean[p].size(); ++i)
          CHECK(swapped[p][i] == Approx(mean[p][i]).margin(tolerance).epsilon(0));
      average.swap(bench.step);
      CHECK_FALSE(average.swapped());
      CHECK(bench.values() == trained);  // every bit
    }
  }
}

TEST_CASE("weight average: copies in bf16 follow the exchange") {
  AverageBench bench(DType::f32);
  bench.store.keep_rounded(bench.step);
  WeightAverage average(bench.store);
  average.start(bench.step);
  bench.write(bench.second.value(), reference::constant(1, {3, 70}));
  average.add(bench.step);
  bench.write(bench.second.value(), reference::constant(3, {3, 70}));
  average.add(bench.step);
  const auto rounded = [&bench] { return bench.read(bench.second.value_for(ActivationPrecision::bf16)).data; };
  average.swap(bench.step);
  CHECK(rounded() == std::vector<double>(210, 2));
  average.swap(bench.step);
  CHECK(rounded() == std::vector<double>(210, 3));
}

TEST_CASE("weight average: its state names every parameter and goes on in a resumed run") {
  AverageBench bench;
  WeightAverage average(bench.store);
  int found = 0;
  average.visit_state([&found](const std::string&, const Tensor&) { ++found; });
  CHECK(found == 0);
  average.start(bench.step);
  average.add(bench.step);
  bench.change();
  average.add(bench.step);
  std::map<std::string, reference::Array64> saved;
  average.visit_state([&](const std::string& name, const Tensor& tensor) { saved[name] = bench.read(tensor); });
  REQUIRE(saved.size() == 3);
  CHECK(saved.count("first.weight_mean") == 1);
  CHECK(saved.at("second.weight_mean").shape == std::vector<std::int64_t>{3, 70});

  AverageBench other;
  WeightAverage resumed(other.store);
  resumed.start(other.step);
  resumed.visit_state([&](const std::string& name, const Tensor& tensor) { other.write(tensor, saved.at(name)); });
  resumed.restore(average.updates());
  bench.change();
  for (std::size_t p = 0; p < 3; ++p)
    other.write(other.parameters()[p]->value(), bench.read(bench.parameters()[p]->value()));
  average.add(bench.step);
  resumed.add(other.step);
  average.swap(bench.step);
  resumed.swap(other.step);
  CHECK(bench.values() == other.values());
}

TEST_CASE("weight average: what is out of order is refused") {
  AverageBench bench;
  WeightAverage average(bench.store);
  CHECK_THROWS_AS(average.add(bench.step), Error);
  CHECK_THROWS_AS(average.swap(bench.step), Error);
  CHECK_THROWS_AS(average.restore(1), Error);
  average.start(bench.step);
  CHECK_THROWS_AS(average.swap(bench.step), Error);
  CHECK_THROWS_AS(average.restore(-1), UsageError);
  average.add(bench.step);
  average.swap(bench.step);
  CHECK_THROWS_AS(average.add(bench.step), Error);
  CHECK_THROWS_AS(average.start(bench.step), Error);
  CHECK_THROWS_AS(average.restore(1), Error);
}

TEST_CASE("averaging starts when a loss is not below the best of all older than the last five") {
  AveragingTrigger trigger;
  const auto after = [&trigger](double loss) {
    trigger.add(loss);
    return trigger.reached();
  };
  for (const double loss : {5.0, 4.0, 9.0, 9.0, 9.0}) CHECK_FALSE(after(loss));
  CHECK_FALSE(after(4.5));  // 6th: nothing is older than the five before it
  CHECK_FALSE(after(4.9));  // 7th: below 5
  const std::vector<double> state = trigger.state();
  CHECK(after(4.0));  // 8th: not below the best of 5 and 4
  CHECK(after(1.0));  // for good

  AveragingTrigger resumed;
  resumed.restore(state);
  CHECK_FALSE(resumed.reached());
  resumed.add(3.999);
  CHECK_FALSE(resumed.reached());
  resumed.restore(state);
  resumed.add(4.1);
  CHECK(resumed.reached());
  resumed.restore(resumed.state());
  CHECK(resumed.reached());

  AveragingTrigger impatient(1);
  impatient.add(2);
  impatient.add(3);
  CHECK_FALSE(impatient.reached());
  impatient.add(2.5);
  CHECK(impatient.reached());
}

TEST_CASE("averaging does not start while losses fall") {
  AveragingTrigger trigger;
  for (int i = 0; i < 50; ++i) trigger.add(5 - 0.01 * i);
  CHECK_FALSE(trigger.reached());
}

}  // namespace
}  // namespace engram::harness::weight_average_test
