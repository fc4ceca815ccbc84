#include "apps/studies/bench/cost_bench.hpp"

#include <algorithm>
#include <map>

#include "apps/studies/bench/rehearsal.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Gives launches to the slot that was called last and has not returned.
class CostObserver final : public KernelObserver {
 public:
  CostObserver(LaunchCounter& counter, KernelTimes& times) : counter_(&counter), times_(&times) {}

  void before(const char* kernel) override {
    collect();
    running_.emplace_back(kernel);
    times_->before(kernel);
  }
  void after(const char* kernel) override {
    times_->after(kernel);
    collect();
    running_.pop_back();
  }
  void tensors(const char* kernel, std::span<const TensorArgument> arguments) override {
    times_->tensors(kernel, arguments);
  }
  std::map<std::string, std::vector<PlaceCost>>& costs() { return costs_; }

 private:
  void collect() {
    for (const LaunchCost& launch : counter_->take()) {
      std::vector<PlaceCost>& places = costs_[running_.empty() ? "(outside kernels)" : running_.back()];
      auto place = std::ranges::find(places, launch.place, [](const PlaceCost& one) { return one.cost.place; });
      if (place == places.end()) {
        places.push_back({.cost = {.place = launch.place}, .times = std::vector<CardTime>(known_cards().size())});
        place = places.end() - 1;
      }
      place->cost.add(launch);
      for (std::size_t card = 0; card < place->times.size(); ++card) add(place->times[card], launch, card);
    }
  }
  void add(CardTime& sum, const LaunchCost& launch, std::size_t card) {
    const CardTime time = least_time(launch, known_cards()[card]);
    sum.seconds += time.seconds;
    sum.bound = time.bound;
  }

  LaunchCounter* counter_;
  KernelTimes* times_;
  std::vector<std::string> running_;
  std::map<std::string, std::vector<PlaceCost>> costs_;
};

/// Counting ends where this does.
class Counting {
 public:
  explicit Counting(LaunchCounter& counter) : counter_(&counter) { counter_->count_launches(true); }
  ~Counting() { counter_->count_launches(false); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  LaunchCounter* counter_;
};

}  // namespace

double KernelCost::seconds(std::size_t card) const {
  double sum = 0;
  for (const PlaceCost& place : places) sum += place.times[card].seconds;
  return sum;
}

CardTime::Bound KernelCost::bound(std::size_t card) const {
  const auto longest =
      std::ranges::max_element(places, {}, [card](const PlaceCost& place) { return place.times[card].seconds; });
  return longest == places.end() ? CardTime::Bound::nothing : longest->times[card].bound;
}

CostResult count_costs(const BenchCase& bench, Runtime& runtime) {
  LaunchCounter* const counter = launch_counter(runtime.backend());
  if (counter == nullptr)
    throw UsageError(text("bench: --cost must run on a device whose kernels tell their accesses, got ",
                          runtime.backend().device(),
                          "\n  --device simulated does, of a program that was built with -DENGRAM_COST=ON "
                          "(docs/guide/cost-report.md)"));
  Rehearsal rehearsal(bench, runtime);
  rehearsal.fill_caches();
  BenchResult step(runtime.backend());
  CostObserver observer(*counter, step.kernels);
  {
    const Counting counting(*counter);
    step.seconds = rehearsal.train(1, &observer, false);
  }
  counter->take();
  step.cost = rehearsal.cost();
  step.tokens = step.own_tokens = bench.config.training.batch * bench.config.training.block;

  CostResult result{.tokens = step.tokens, .parameters = rehearsal.parameters(), .kernels = {}};
  for (auto& [name, places] : observer.costs()) {
    KernelCost one{.kernel = name, .calls = 0, .places = std::move(places), .floors = {}};
    if (const auto total = step.kernels.totals().find(name); total != step.kernels.totals().end())
      one.calls = total->second.calls;
    for (const CardLimits& card : known_cards())
      one.floors.push_back(step.kernel_floor(name, card.as_machine(bench.config.training.products)));
    result.kernels.push_back(std::move(one));
  }
  std::ranges::stable_sort(result.kernels, std::ranges::greater{},
                           [](const KernelCost& one) { return one.seconds(0); });
  return result;
}

}  // namespace engram
