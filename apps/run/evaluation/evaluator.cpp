#include "apps/run/evaluation/evaluator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/evaluation/part_findings.hpp"
#include "apps/run/evaluation/span_means.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/target_losses.hpp"
#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"
#include "nn/models/model_options.hpp"

namespace engram {
namespace {

/// A model that reads parts of blocks.
class PartReader {
 public:
  PartReader(const PlacedModel& placed, const EvaluationHooks& hooks)
      : placed_(placed), spanned_(all_attention_of(placed.model)), hooks_(&hooks) {}

  PartFindings read(const data::Block& part, ModelPast& past) {
    if (part.zero_caches)
      for (const auto& layer : past) layer->reset();
    // Every target's loss is read, those that do not count among them: the model need not know which these are.
    BlockTokens all_targets = tokens_of(part);
    all_targets.scored = {};
    Backend& backend = placed_.runtime.backend();
    return placed_.runtime.in_step([&](Step& step) {
      const TokenBatch batch = tensors_.batch_of(all_targets, placed_);
      Tape tape(step, Tape::Mode::inference);
      ModelTrace trace(step.objects());
      trace.keep_memories = static_cast<bool>(hooks_->reads);
      PartFindings found;
      const Variable hidden = LanguageModel::scored(placed_.model.hidden(tape, batch, past, &trace), batch);
      if (spanned_ != nullptr) found.zetas = SpanMeans::read(*spanned_, trace, backend);
      if (hooks_->reads)
        hand_over(trace, part, backend, [&found](std::size_t layer, auto ids, auto weights) {
          found.reads.push_back({layer, {ids.begin(), ids.end()}, {weights.begin(), weights.end()}});
        });
      found.losses = target_losses(placed_.model.tokens(), hidden, batch, backend);
      if (hooks_->change) hooks_->change(part, hidden.value(), found.losses);
      step.wrong_ids().check();
      return found;
    });
  }

 private:
  PlacedModel placed_;
  AllAttentionModel* spanned_;  // the model, where it has spans
  const EvaluationHooks* hooks_;
  BlockTensors tensors_;
};

/// A pass over a plan, some blocks at a time.
class SharedPass {
 public:
  SharedPass(const PlacedModel& placed, const PastOf& past_of, const EvaluationHooks& hooks, const WorkShare& share)
      : reader_(placed, hooks),
        past_of_(past_of),
        hooks_(hooks),
        share_(share),
        spanned_(all_attention_of(placed.model)),
        blocks_(static_cast<std::size_t>(share.blocks_at_once())) {}

  /// Goes on by some blocks; false where there are none.
  bool go_on(data::EvaluationPlan& plan) {
    const Stopwatch watch;
    const std::int64_t before = result_.inputs;
    std::size_t count = 0;
    while (count < blocks_.size() && plan.next(blocks_[count])) ++count;
    if (count == 0) return false;
    const std::vector<PartFindings> found = find(count);
    const std::size_t parts = found.size() / count;
    for (std::size_t i = 0; i < count; ++i)
      add(blocks_[i], {found.begin() + static_cast<std::ptrdiff_t>(i * parts), parts});
    result_.blocks.push_back({result_.inputs - before, watch.seconds()});
    return true;
  }
  /// Gives the model the means of its spans.
  Evaluation end() {
    if (spanned_ != nullptr) spans_.give_to(*spanned_);
    return result_;
  }

 private:
  /// Of all parts of the first blocks, block by block, what was found in them, by whatever rank.
  std::vector<PartFindings> find(std::size_t count) {
    const std::vector<PartFindings> own = find_own(count);
    if (share_.size() == 1) return own;
    std::string bytes;
    for (const PartFindings& part : own) part.append_to(bytes);
    const std::vector<std::string> told = share_.ranks->gather_texts(bytes);
    const auto blocks = static_cast<std::int64_t>(count), parts = share_.parts_of(blocks);
    std::vector<PartFindings> all(static_cast<std::size_t>(share_.blocks_apart ? parts : blocks * parts));
    for (int rank = 0; rank < share_.size(); ++rank) {
      std::string_view left = told[static_cast<std::size_t>(rank)];
      const std::int64_t begin = share_.first_part(rank, parts), end = share_.first_part(rank + 1, parts);
      for (std::int64_t block = 0; block < (share_.blocks_apart ? 1 : blocks); ++block)
        for (std::int64_t part = begin; part < end; ++part)
          all[static_cast<std::size_t>(block * parts + part)] = PartFindings::take_from(left);
    }
    return all;
  }
  /// Of this rank's parts.
  std::vector<PartFindings> find_own(std::size_t count) {
    const auto blocks = static_cast<std::int64_t>(count), parts = share_.parts_of(blocks);
    const std::int64_t begin = share_.own_begin(parts), end = share_.own_end(parts);
    std::vector<PartFindings> own;
    if (share_.blocks_apart)
      for (std::int64_t block = begin; block < end; ++block)
        own.push_back(read_block(blocks_[static_cast<std::size_t>(block)]));
    else
      for (std::size_t block = 0; block < count; ++block)
        for (std::int64_t piece = begin; piece < end; ++piece) own.push_back(read_piece(blocks_[block], piece));
    return own;
  }
  PartFindings read_block(const data::Block& block) { return reader_.read(block, past_of_(0, block.rows)); }
  PartFindings read_piece(const data::Block& block, std::int64_t piece) {
    if (share_.pieces == 1) return read_block(block);
    data::copy_rows(block, share_.first_row(piece, block.rows), share_.first_row(piece + 1, block.rows), part_);
    return reader_.read(part_, past_of_(piece, part_.rows));
  }

  /// Adds up what was found in a block, in the order of its rows.
  void add(const data::Block& block, std::span<const PartFindings> parts) {
    std::size_t i = 0;
    for (const PartFindings& part : parts) {
      if (spanned_ != nullptr) spans_.add(*spanned_, part.zetas);
      if (hooks_.reads)
        for (const PartFindings::Reads& reads : part.reads)
          hooks_.reads(static_cast<std::size_t>(reads.layer), reads.ids, reads.weights);
      for (const double loss : part.losses) {
        const std::size_t target = i++;
        if (block.scored[target] == 0) continue;
        result_.nll_sum += loss;
        if (hooks_.found) hooks_.found(block.place_of(static_cast<std::int64_t>(target)), loss);
      }
    }
    result_.scored += block.scored_count;
    result_.inputs += static_cast<std::int64_t>(block.inputs.size());
  }

  PartReader reader_;
  const PastOf& past_of_;
  const EvaluationHooks& hooks_;
  const WorkShare share_;
  AllAttentionModel* spanned_;  // the model, where it has spans
  std::vector<data::Block> blocks_;
  data::Block part_;
  SpanMeans spans_;
  Evaluation result_;
};

}  // namespace

double Evaluation::bits() const { return nll() / std::numbers::ln2; }

double Evaluation::tokens_per_second(std::size_t warm) const {
  std::vector<double> rates;
  for (std::size_t i = blocks.size() > warm ? warm : 0; i < blocks.size(); ++i)
    rates.push_back(static_cast<double>(blocks[i].inputs) / blocks[i].seconds);
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::ranges::nth_element(rates, middle);
  return *middle;
}

Evaluation evaluate(const PlacedModel& placed, data::EvaluationPlan& plan, ModelPast& past,
                    const EvaluationHooks& hooks) {
  return evaluate(
      placed, plan, [&past](std::int64_t, std::int64_t) -> ModelPast& { return past; }, hooks);
}

Evaluation evaluate(const PlacedModel& placed, data::EvaluationPlan& plan, const PastOf& past_of,
                    const EvaluationHooks& hooks, const WorkShare& share) {
  const Stopwatch watch;
  SharedPass pass(placed, past_of, hooks, share);
  plan.begin();
  while (pass.go_on(plan)) {
  }
  Evaluation result = pass.end();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace engram
