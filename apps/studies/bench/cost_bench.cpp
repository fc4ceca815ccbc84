#include "apps/studies/bench/cost_bench.hpp"

#include <algorithm>
#include <map>

#include "apps/studies/bench/attention_instructions.hpp"
#include "apps/studies/bench/random_places.hpp"
#include "apps/studies/bench/rehearsal.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Gives launches to the slot that was called last and has not returned.
class CostObserver final : public KernelObserver {
 public:
  CostObserver(LaunchCounter& counter, Backend& backend, KernelTimes& times, const AttentionShape& attention,
               int blocks)
      : counter_(&counter), backend_(&backend), times_(&times), attention_(attention), blocks_(blocks) {}

  void before(const char* kernel) override {
    collect();
    counter_->sample({.blocks = blocks_, .whole = makes_places(kernel)});
    running_.emplace_back(kernel);
    times_->before(kernel);
  }
  void after(const char* kernel) override {
    times_->after(kernel);
    collect();
    running_.pop_back();
    counter_->sample({.blocks = blocks_});
  }
  void tensors(const char* kernel, std::span<const TensorArgument> arguments) override {
    if (blocks_ > 0) draw_selected(kernel, arguments, *backend_, drawn_);
    times_->tensors(kernel, arguments);
  }
  std::map<std::string, std::vector<PlaceCost>>& costs() { return costs_; }

 private:
  void collect() {
    for (LaunchCost& launch : counter_->take()) {
      launch.instructions = attention_instructions(launch, attention_);
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
  Backend* backend_;
  KernelTimes* times_;
  AttentionShape attention_;
  int blocks_;
  std::uint64_t drawn_ = 1;
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

/// Launches are sampled while this lives.
class Sampling {
 public:
  Sampling(LaunchCounter& counter, int blocks) : counter_(&counter) { counter_->sample({.blocks = blocks}); }
  ~Sampling() { counter_->sample({}); }
  Sampling(const Sampling&) = delete;
  Sampling& operator=(const Sampling&) = delete;

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

CostResult count_costs(const BenchCase& bench, Runtime& runtime, int blocks) {
  LaunchCounter* const counter = launch_counter(runtime.backend());
  if (counter == nullptr)
    throw UsageError(text("bench: --cost must run on a device whose kernels tell their accesses, got ",
                          runtime.backend().device(),
                          "\n  --device simulated does, of a program that was built with -DENGRAM_COST=ON "
                          "(docs/guide/cost-report.md)"));
  const Sampling sampling(*counter, blocks);
  Rehearsal rehearsal(bench, runtime);
  rehearsal.fill_caches();
  BenchResult step(runtime.backend());
  const AttentionShape attention =
      AttentionShape::of(bench.config.model, bench.config.training.activations == ActivationPrecision::bf16);
  CostObserver observer(*counter, runtime.backend(), step.kernels, attention, blocks);
  {
    const Counting counting(*counter);
    step.seconds = rehearsal.train(1, &observer, false);
  }
  counter->take();
  step.cost = rehearsal.cost();
  step.tokens = step.own_tokens = bench.config.training.batch * bench.config.training.block;

  CostResult result{.tokens = step.tokens,
                    .parameters = rehearsal.parameters(),
                    .flops = step.cost.training.total() * static_cast<double>(step.tokens),
                    .device_bytes = runtime.backend().reserved_bytes(),
                    .blocks = blocks,
                    .cards = {},
                    .kernels = {}};
  for (auto& [name, places] : observer.costs()) {
    KernelCost one{.kernel = name, .calls = 0, .places = std::move(places), .floors = {}};
    if (const auto total = step.kernels.totals().find(name); total != step.kernels.totals().end())
      one.calls = total->second.calls;
    for (const CardLimits& card : known_cards())
      one.floors.push_back(step.kernel_floor(name, card.as_machine(bench.config.training.products)));
    result.kernels.push_back(std::move(one));
  }
  for (std::size_t card = 0; card < known_cards().size(); ++card)
    if (std::ranges::all_of(result.kernels, [card](const KernelCost& kernel) {
          return std::ranges::all_of(
              kernel.places, [card](const PlaceCost& place) { return can_launch(known_cards()[card], place.cost); });
        }))
      result.cards.push_back(card);
  std::ranges::stable_sort(result.kernels, std::ranges::greater{},
                           [](const KernelCost& one) { return one.seconds(0); });
  return result;
}

}  // namespace engram
