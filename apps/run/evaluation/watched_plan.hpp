#pragma once
/// An evaluation plan that tells how far a pass has come, and may end it early.

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "apps/data/blocks/evaluation_plan.hpp"

namespace engram {

/// Called with the targets that have been scored so far, and all that a pass scores.
using EvaluationWatch = std::function<void(std::int64_t scored, std::int64_t all)>;

class WatchedPlan final : public data::EvaluationPlan {
 public:
  /// `most_blocks`: after which a pass ends; 0: only with the plan.
  WatchedPlan(std::unique_ptr<data::EvaluationPlan> plan, EvaluationWatch watch, std::int64_t most_blocks = 0)
      : plan_(std::move(plan)), watch_(std::move(watch)), most_blocks_(most_blocks) {}

  void begin() override {
    plan_->begin();
    scored_ = 0;
    blocks_ = 0;
  }
  /// Whoever asks for the next block is done with the one before, or, as one of several ranks, about to be.
  bool next(data::Block& block) override {
    if (watch_ && scored_ > 0) watch_(scored_, plan_->scored_count());
    if (most_blocks_ > 0 && blocks_ == most_blocks_) return false;
    if (!plan_->next(block)) return false;
    ++blocks_;
    scored_ += block.scored_count;
    return true;
  }
  std::int64_t block_count() const override { return plan_->block_count(); }
  std::int64_t scored_count() const override { return plan_->scored_count(); }
  std::int64_t longest_block() const override { return plan_->longest_block(); }

 private:
  std::unique_ptr<data::EvaluationPlan> plan_;
  EvaluationWatch watch_;
  std::int64_t most_blocks_, blocks_ = 0, scored_ = 0;
};

}  // namespace engram
