#pragma once
/// Gradients that are sums over the streams (slots, positions, spans). Streams are dealt into groups; each (group,
/// head) sums on its own, and finish() adds the groups up in order, so the bits do not depend on the threads.

#include <optional>

#include "cpu/attention/attention_tile.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {

/// What one (group, head) sums; nullptr: not wanted.
template <class T>
struct Partial {
  T* slot_keys = nullptr;        ///< [N, D]
  T* slot_values = nullptr;      ///< [N, D]
  T* position_keys = nullptr;    ///< [slots, D], by place in the band
  T* position_values = nullptr;  ///< the same
  double* span = nullptr;        ///< of the head; the span of a query is no sum over streams
};

/// Where the partial sums of all (group, head) pairs lie in one workspace.
template <class T>
class Partials {
 public:
  Partials(Step& step, const AttentionData<T>& data, const AttentionGradients& gradients, std::int64_t groups)
      : sizes_(data.plan.sizes),
        heads_(data.plan.heads),
        groups_(groups),
        want_(gradients),
        position_first_(step.objects()) {
    for (const HeadPlan& head : heads_) {
      position_first_.push_back(position_total_);
      position_total_ += head.slots * sizes_.depth;
    }
    want_position_keys_ = want_.position_keys && data.position_keys;
    want_position_values_ = want_.position_values && data.position_values;
    want_spans_ = want_.span && !has_query_spans(data.in);
    slot_size_ = sizes_.persistent * sizes_.depth;
    group_size_ = (want_position_keys_ ? position_total_ : 0) + (want_position_values_ ? position_total_ : 0) +
                  (want_.slot_keys ? sizes_.heads * slot_size_ : 0) +
                  (want_.slot_values ? sizes_.heads * slot_size_ : 0);
    memory_.emplace(step.memory(), sizeof(T) * static_cast<std::size_t>(groups * group_size_));
    spans_.emplace(step.memory(), sizeof(double) * static_cast<std::size_t>(groups * sizes_.heads));
  }

  Partial<T> of(std::int64_t group, std::int64_t head) const {
    T* at = memory_->template data<T>() + group * group_size_;
    Partial<T> partial;
    if (want_position_keys_) {
      partial.position_keys = at + position_first_[static_cast<std::size_t>(head)];
      at += position_total_;
    }
    if (want_position_values_) {
      partial.position_values = at + position_first_[static_cast<std::size_t>(head)];
      at += position_total_;
    }
    if (want_.slot_keys) {
      partial.slot_keys = at + head * slot_size_;
      at += sizes_.heads * slot_size_;
    }
    if (want_.slot_values) partial.slot_values = at + head * slot_size_;
    if (want_spans_) partial.span = spans_->template data<double>() + group * sizes_.heads + head;
    return partial;
  }
  void clear(const Partial<T>& partial, std::int64_t head) const {
    for (T* const positions : {partial.position_keys, partial.position_values})
      if (positions != nullptr)
        std::fill_n(positions, heads_[static_cast<std::size_t>(head)].slots * sizes_.depth, T(0));
    if (partial.slot_keys != nullptr) std::fill_n(partial.slot_keys, slot_size_, T(0));
    if (partial.slot_values != nullptr) std::fill_n(partial.slot_values, slot_size_, T(0));
    if (partial.span != nullptr) *partial.span = 0;
  }

  /// Adds everything up in the order of groups (and heads, for a shared position table) and writes the results.
  void finish(const AttentionOptions& options) const {
    if (want_.slot_keys) add_slots(want_.slot_keys, &Partial<T>::slot_keys);
    if (want_.slot_values) add_slots(want_.slot_values, &Partial<T>::slot_values);
    if (want_spans_) {
      T* span = want_.span.data<T>();
      for (std::int64_t head = 0; head < sizes_.heads; ++head) {
        double sum = 0;
        for (std::int64_t group = 0; group < groups_; ++group) sum += *of(group, head).span;
        const auto gradient = static_cast<T>(options.ramp > 0 ? sum * options.max_distance / options.ramp : 0.0);
        span[head] = want_.span.write == Write::add ? span[head] + gradient : gradient;
      }
    }
    if (want_.position_keys)
      add_positions(options, want_.position_keys, want_position_keys_ ? &Partial<T>::position_keys : nullptr);
    if (want_.position_values)
      add_positions(options, want_.position_values, want_position_values_ ? &Partial<T>::position_values : nullptr);
  }

 private:
  void add_slots(const Target& target, T* Partial<T>::*member) const {
    parallel_items(sizes_.heads, [&](std::int64_t head) {
      auto to = vec(target.data<T>() + head * slot_size_, slot_size_);
      store(to, vec(of(0, head).*member, slot_size_), target.write);
      for (std::int64_t group = 1; group < groups_; ++group) to += vec(of(group, head).*member, slot_size_);
    });
  }
  // nullptr: no distance has a sum.
  void add_positions(const AttentionOptions& options, const Target& target, T* Partial<T>::*member) const {
    const std::int64_t rows = target.tensor.shape()[0], length = target.tensor.shape()[1], depth = sizes_.depth;
    const bool shared = length == depth;
    parallel_chunks(rows, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        T* to = target.data<T>() + row * length;
        if (target.write == Write::set) std::fill_n(to, length, T(0));
        if (member == nullptr) continue;
        for (std::int64_t head = 0; head < sizes_.heads; ++head) {
          const std::int64_t place = heads_[static_cast<std::size_t>(head)].window - row - options.min_distance;
          if (place < 0 || place >= heads_[static_cast<std::size_t>(head)].slots) continue;
          auto sum = vec(to + (shared ? 0 : head * depth), depth);
          for (std::int64_t group = 0; group < groups_; ++group)
            sum += vec(of(group, head).*member + place * depth, depth);
        }
      }
    });
  }

  const AttentionSizes& sizes_;
  const std::pmr::vector<HeadPlan>& heads_;
  std::int64_t groups_;
  const AttentionGradients& want_;
  bool want_position_keys_ = false, want_position_values_ = false, want_spans_ = false;
  std::pmr::vector<std::int64_t> position_first_;
  std::int64_t position_total_ = 0, slot_size_ = 0, group_size_ = 0;
  std::optional<Workspace> memory_, spans_;
};

}  // namespace engram::cpu
