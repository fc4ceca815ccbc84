#include "apps/cbt/question_scores.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/training/target_losses.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kCandidates = data::CbtQuestion::kCandidates;
/// Columns of a block of context.
constexpr std::int64_t kReadColumns = 64;
/// Questions whose candidates are read side by side: ten rows each, in as many columns as the longest of them needs.
constexpr std::size_t kForkedQuestions = 8;

/// In [begin, end) or shorter.
template <class T>
std::span<const T> part_of(std::span<const T> all, std::size_t begin, std::size_t most) {
  return all.subspan(begin, std::min(most, all.size() - begin));
}

}  // namespace

QuestionScorer::QuestionScorer(RecurrentModel& model, Runtime& runtime, DType dtype, CandidateScore score,
                               std::int64_t batch)
    : model_(&model), runtime_(&runtime), dtype_(dtype), score_(score), batch_(static_cast<std::size_t>(batch)) {}

std::vector<CandidateScores> QuestionScorer::operator()(std::span<const TokenQuestion> questions,
                                                        const EvaluationWatch& watch) {
  std::vector<std::size_t> order(questions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return questions[i].prefix.size(); });

  std::vector<CandidateScores> scores(questions.size());
  for (std::size_t first = 0; first < order.size(); first += batch_) {
    const Places places = part_of(Places(order), first, batch_);
    ModelPast& past = past_of(reading_, std::ssize(places));
    read_prefixes(questions, places, past);

    std::vector<std::int64_t> streams(places.size());
    std::iota(streams.begin(), streams.end(), std::int64_t{0});
    std::ranges::stable_sort(
        streams, {}, [&](std::int64_t i) { return questions[places[static_cast<std::size_t>(i)]].suffix.size(); });
    std::vector<std::size_t> sorted;
    for (const std::int64_t stream : streams) sorted.push_back(places[static_cast<std::size_t>(stream)]);
    for (std::size_t i = 0; i < sorted.size(); i += kForkedQuestions) {
      const Places forked = part_of(Places(sorted), i, kForkedQuestions);
      read_candidates(questions, forked, part_of(std::span<const std::int64_t>(streams), i, kForkedQuestions), past,
                      scores);
      if (watch) watch(static_cast<std::int64_t>(first + i + forked.size()), std::ssize(questions));
    }
  }
  return scores;
}

void QuestionScorer::read_prefixes(std::span<const TokenQuestion> questions, Places places, ModelPast& past) {
  for (const auto& part : past) part->reset();
  const auto length_of = [&](std::size_t place) { return std::ssize(questions[place].prefix) - 1; };
  std::int64_t longest = 0;
  for (const std::size_t place : places) longest = std::max(longest, length_of(place));

  // All end at the last column. What is before the shorter ones is forgotten where they begin.
  std::vector<std::int32_t> inputs, preceding;
  for (std::int64_t first = 0; first < longest; first += kReadColumns) {
    const std::int64_t end = std::min(first + kReadColumns, longest);
    inputs.clear();
    preceding.clear();
    for (const std::size_t place : places) {
      const std::int64_t padding = longest - length_of(place);
      for (std::int64_t column = first; column < end; ++column) {
        const std::int64_t at = column - padding;
        inputs.push_back(at < 0 ? 0 : questions[place].prefix[static_cast<std::size_t>(at)]);
        preceding.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(at, 0)));
      }
    }
    run({.inputs = inputs, .targets = {}, .preceding = preceding, .scored = {}, .length = end - first}, past);
  }
}

void QuestionScorer::read_candidates(std::span<const TokenQuestion> questions, Places places,
                                     std::span<const std::int64_t> streams, const ModelPast& past,
                                     std::vector<CandidateScores>& scores) {
  const auto scored = [&](const TokenQuestion& question) {
    return score_ == CandidateScore::whole ? question.suffix.size() + 1 : 1;
  };
  std::size_t longest = 0;
  for (const std::size_t place : places) longest = std::max(longest, scored(questions[place]));

  // Inputs are the prefix's last token, the candidate and the suffix but for its last token; targets are one further.
  // Behind the end of a shorter one is token 0, whose losses are left out.
  std::vector<std::int32_t> inputs, targets, preceding;
  std::vector<std::int64_t> forks;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TokenQuestion& question = questions[places[i]];
    for (const std::int32_t candidate : question.candidates) {
      forks.push_back(streams[i]);
      std::int32_t before = question.prefix.back();
      for (std::size_t column = 0; column < longest; ++column) {
        const std::int32_t target = column == 0                 ? candidate
                                    : column < scored(question) ? question.suffix[column - 1]
                                                                : 0;
        inputs.push_back(before);
        targets.push_back(target);
        preceding.push_back(static_cast<std::int32_t>(question.prefix.size() - 1 + column));
        before = target;
      }
    }
  }
  ModelPast& forked = past_of(forked_, std::ssize(forks));
  copy_streams(forked, past, forks);
  const std::vector<double> losses = run({.inputs = inputs,
                                          .targets = targets,
                                          .preceding = preceding,
                                          .scored = {},
                                          .length = static_cast<std::int64_t>(longest)},
                                         forked);

  for (std::size_t i = 0; i < places.size(); ++i) {
    const TokenQuestion& question = questions[places[i]];
    CandidateScores& found = scores[places[i]];
    for (std::size_t candidate = 0; candidate < kCandidates; ++candidate) {
      const auto row = losses.begin() + static_cast<std::ptrdiff_t>((i * kCandidates + candidate) * longest);
      // Rows of one token are computed apart and may differ in their last bits, but it is one thing that they say.
      const auto same = std::ranges::find(question.candidates, question.candidates.at(candidate));
      const auto first = static_cast<std::size_t>(same - question.candidates.begin());
      found.at(candidate) = first < candidate
                                ? found.at(first)
                                : -std::accumulate(row, row + static_cast<std::ptrdiff_t>(scored(question)), 0.0);
      if (!std::isfinite(found.at(candidate)))
        throw Error(text("cbt: ln p of every candidate must be finite, got ", found.at(candidate),
                         "\n  the model's parameters may not be finite"));
    }
  }
}

std::vector<double> QuestionScorer::run(const BlockTokens& block, ModelPast& past) {
  Step& step = runtime_->step();
  step.begin({});
  std::vector<double> losses;
  {
    block_.write(block, 1, nullptr, runtime_->backend(), runtime_->memory(), dtype_);
    const TokenBatch batch = block_.piece(0);
    Tape tape(step, Tape::Mode::inference);
    const Variable hidden = model_->hidden(tape, batch, past);
    if (!block.targets.empty()) losses = target_losses(model_->tokens(), hidden, batch, dtype_, runtime_->backend());
    step.wrong_ids().check();
  }
  runtime_->arena().end_step();
  return losses;
}

ModelPast& QuestionScorer::past_of(std::map<std::int64_t, ModelPast>& pasts, std::int64_t streams) {
  const auto made = pasts.find(streams);
  if (made != pasts.end()) return made->second;
  return pasts[streams] = model_->frozen_past(runtime_->backend(), runtime_->memory(), streams, dtype_, kReadColumns);
}

}  // namespace engram
