#include "apps/studies/sweeps/sweep_result.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace engram {
namespace {

struct Member {
  const SweepRun* run;
  const RunResult* result;
};

std::string state_of(const std::vector<Member>& members) {
  const auto described = [](const RunResult& result) {
    std::string name(name_of(result.outcome));
    if (result.outcome == RunOutcome::diverged || result.outcome == RunOutcome::out_of_memory)
      name += text(" after step ", result.step);
    return name;
  };
  if (members.size() == 1) return described(*members.front().result);
  std::map<RunOutcome, std::vector<std::string>> groups;
  for (const Member& member : members) groups[member.result->outcome].push_back(described(*member.result));
  if (groups.size() == 1 && groups.begin()->first == RunOutcome::done) return "done";
  std::string state;
  for (const auto& [outcome, names] : groups) {
    const bool alike =
        std::ranges::all_of(names, [&first = names.front()](const std::string& name) { return name == first; });
    state += text(state.empty() ? "" : ", ", names.size(), " ", alike ? names.front() : std::string(name_of(outcome)));
  }
  return state;
}

/// Runs of a variant differ in their seeds, so they have memories in the same layers.
std::vector<ProductKeySpread> collect_memories(const std::vector<Member>& members) {
  std::vector<ProductKeySpread> memories;
  const auto most = std::ranges::max_element(members, {}, [](const Member& m) { return m.result->memories.size(); });
  for (std::size_t place = 0; place < most->result->memories.size(); ++place) {
    const auto spread = [&](double ProductKeyFigures::*figure) {
      std::vector<std::optional<double>> numbers;
      for (const Member& member : members)
        if (place < member.result->memories.size()) numbers.push_back(member.result->memories[place].*figure);
      return spread_of(numbers).value_or(Spread{});
    };
    memories.push_back({.layer = most->result->memories[place].layer,
                        .usage = spread(&ProductKeyFigures::usage),
                        .top_usage = spread(&ProductKeyFigures::top_usage),
                        .kl = spread(&ProductKeyFigures::kl)});
  }
  return memories;
}

VariantResult collect(const SweepVariant& variant, const std::vector<Member>& members) {
  VariantResult collected;
  collected.kind = members.front().run->kind;
  collected.name = variant.name;
  collected.overrides = variant.overrides;
  collected.parameters = members.front().run->parameters;
  const auto& least = *std::ranges::min_element(members, {}, [](const Member& member) { return member.result->step; });
  collected.steps = least.result->step;
  collected.tokens = collected.steps * least.run->config.training.batch * least.run->config.training.block;
  const auto spread = [&](std::optional<double> RunResult::*number) {
    std::vector<std::optional<double>> numbers;
    for (const Member& member : members) numbers.push_back(member.result->*number);
    return spread_of(numbers);
  };
  collected.valid = spread(&RunResult::valid);
  collected.best_valid = spread(&RunResult::best_valid);
  collected.test = spread(&RunResult::test);
  collected.best_test = spread(&RunResult::best_test);
  collected.tokens_per_second = spread(&RunResult::tokens_per_second);
  for (const Member& member : members) {  // that have it have the same
    if (!member.result->inference_tokens) continue;
    collected.inference_tokens = member.result->inference_tokens;
    collected.inference_words = member.result->inference_words;
  }
  collected.mean_span = spread(&RunResult::mean_span);
  collected.released_span = spread(&RunResult::released_span);
  collected.memories = collect_memories(members);
  collected.state = state_of(members);
  return collected;
}

}  // namespace

std::optional<Spread> spread_of(const std::vector<std::optional<double>>& numbers) {
  Spread spread;
  int count = 0;
  for (const std::optional<double>& number : numbers) {
    if (!number) continue;
    spread.mean += *number;
    spread.least = count == 0 ? *number : std::min(spread.least, *number);
    spread.most = count == 0 ? *number : std::max(spread.most, *number);
    ++count;
  }
  if (count == 0) return std::nullopt;
  spread.mean /= count;
  return spread;
}

std::vector<VariantResult> collect_variants(const SweepOptions& options, const std::vector<SweepRun>& runs,
                                            const std::vector<RunResult>& results) {
  std::vector<VariantResult> variants;
  VariantResult* best = nullptr;
  for (std::size_t variant = 0; variant < options.variants.size(); ++variant) {
    std::vector<Member> members;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i].variant == variant) members.push_back({&runs[i], &results[i]});
    variants.push_back(collect(options.variants[variant], members));
  }
  for (VariantResult& variant : variants)
    if (variant.state == name_of(RunOutcome::done) && variant.best_valid &&
        (best == nullptr || variant.best_valid->mean < best->best_valid->mean))
      best = &variant;
  if (best != nullptr && variants.size() > 1) best->best = true;
  return variants;
}

}  // namespace engram
