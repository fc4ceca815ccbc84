#include "apps/studies/cbt/question_scores.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "apps/run/model/target_losses.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kCandidates = data::CbtQuestion::kCandidates;
/// Questions whose candidates are read side by side: ten rows each, in as many columns as the longest of them needs.
constexpr std::size_t kForkedQuestions = 8;

/// In [begin, end) or shorter.
template <class T>
std::span<const T> part_of(std::span<const T> all, std::size_t begin, std::size_t most) {
  return all.subspan(begin, std::min(most, all.size() - begin));
}

/// Of the question with this candidate in its blank; 0 behind its end.
std::int32_t filled_in(const TokenQuestion& question, std::int32_t candidate, std::int64_t at) {
  const std::int64_t behind = at - std::ssize(question.prefix);
  if (behind < 0) return question.prefix[static_cast<std::size_t>(at)];
  if (behind == 0) return candidate;
  return behind <= std::ssize(question.suffix) ? question.suffix[static_cast<std::size_t>(behind - 1)] : 0;
}

/// The scores of the candidates by the sums of their rows, one a candidate.
CandidateScores scores_of(const TokenQuestion& question, const CandidateScores& sums) {
  CandidateScores found{};
  for (std::size_t candidate = 0; candidate < kCandidates; ++candidate) {
    // Rows of one token are computed apart and may differ in their last bits, but it is one thing that they say.
    const auto same = std::ranges::find(question.candidates, question.candidates.at(candidate));
    found.at(candidate) = sums.at(static_cast<std::size_t>(same - question.candidates.begin()));
    if (!std::isfinite(found.at(candidate)))
      throw Error(text("cbt: ln p of every candidate must be finite, got ", found.at(candidate),
                       "\n  the model's parameters may not be finite"));
  }
  return found;
}

}  // namespace

QuestionScorer::QuestionScorer(const Placed<RecurrentModel>& placed, CandidateScore score, std::int64_t batch,
                               std::int64_t block)
    : placed_(placed),
      score_(score),
      batch_(static_cast<std::size_t>(batch)),
      block_length_(placed.model.depends_on_blocks() ? block : 0) {}

std::int64_t QuestionScorer::shared_tokens(const TokenQuestion& question) const {
  const std::int64_t all = std::ssize(question.prefix) - 1;
  return block_length_ == 0 ? all : all / block_length_ * block_length_;
}

std::vector<CandidateScores> QuestionScorer::operator()(std::span<const TokenQuestion> questions,
                                                        const EvaluationWatch& watch) {
  std::vector<std::size_t> order(questions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return questions[i].prefix.size(); });

  std::vector<CandidateScores> scores(questions.size());
  for (std::size_t first = 0; first < order.size(); first += batch_) {
    const Places places = part_of(Places(order), first, batch_);
    ModelPast& past = reading_(std::ssize(places));
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
  std::int64_t longest = 0;
  for (const std::size_t place : places) longest = std::max(longest, shared_tokens(questions[place]));

  // All end at the last column. What is before the shorter ones, whole blocks if blocks matter, is forgotten where they
  // begin.
  const std::int64_t columns = block_length_ > 0 ? block_length_ : kReadColumns;
  std::vector<std::int32_t> inputs, preceding;
  for (std::int64_t first = 0; first < longest; first += columns) {
    const std::int64_t end = std::min(first + columns, longest);
    inputs.clear();
    preceding.clear();
    for (const std::size_t place : places) {
      const std::int64_t padding = longest - shared_tokens(questions[place]);
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
  // A row reads what is left of the prefix, the candidate and the suffix but for its last token; targets are one
  // further. Behind the end of a shorter one is token 0, whose losses are left out.
  const auto scored = [&](const TokenQuestion& question) {
    return score_ == CandidateScore::whole ? std::ssize(question.suffix) + 1 : 1;
  };
  const auto first_scored = [&](const TokenQuestion& question) {
    return std::ssize(question.prefix) - 1 - shared_tokens(question);
  };
  std::int64_t longest = 0;
  std::vector<std::int64_t> forks;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TokenQuestion& question = questions[places[i]];
    longest = std::max(longest, first_scored(question) + scored(question));
    forks.insert(forks.end(), kCandidates, streams[i]);
  }
  ModelPast& forked = forked_(std::ssize(forks));
  copy_streams(forked, past, forks);

  std::vector<CandidateScores> sums(places.size(), CandidateScores{});
  std::vector<std::int32_t> inputs, targets, preceding;
  const std::int64_t columns = block_length_ > 0 ? block_length_ : longest;
  for (std::int64_t first = 0; first < longest; first += columns) {
    const std::int64_t length = std::min(columns, longest - first);
    inputs.clear();
    targets.clear();
    preceding.clear();
    for (const std::size_t place : places)
      for (const std::int32_t candidate : questions[place].candidates)
        for (std::int64_t column = first; column < first + length; ++column) {
          const std::int64_t at = shared_tokens(questions[place]) + column;
          inputs.push_back(filled_in(questions[place], candidate, at));
          targets.push_back(filled_in(questions[place], candidate, at + 1));
          preceding.push_back(static_cast<std::int32_t>(at));
        }
    const std::vector<double> losses =
        run({.inputs = inputs, .targets = targets, .preceding = preceding, .scored = {}, .length = length}, forked);
    auto loss = losses.begin();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t begin = first_scored(questions[places[i]]), end = begin + scored(questions[places[i]]);
      for (double& sum : sums[i])
        for (std::int64_t column = first; column < first + length; ++column, ++loss)
          if (column >= begin && column < end) sum -= *loss;
    }
  }

  for (std::size_t i = 0; i < places.size(); ++i) scores[places[i]] = scores_of(questions[places[i]], sums[i]);
}

std::vector<double> QuestionScorer::run(const BlockTokens& block, ModelPast& past) {
  return placed_.runtime.in_step([&](Step& step) {
    const TokenBatch batch = tensors_.batch_of(block, placed_);
    Tape tape(step, Tape::Mode::inference);
    const Variable hidden = placed_.model.hidden(tape, batch, past);
    std::vector<double> losses;
    if (!block.targets.empty())
      losses = target_losses(placed_.model.tokens(), hidden, batch, placed_.runtime.backend());
    step.wrong_ids().check();
    return losses;
  });
}

}  // namespace engram
