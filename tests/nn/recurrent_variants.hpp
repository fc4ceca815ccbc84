#pragma once
/// One small recurrent model of every kind, for tests.

#include <string>
#include <vector>

#include "core/error.hpp"
#include "nn/layers/recurrent_options.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness {

struct RecurrentVariant {
  std::string name;
  RecurrentOptions options;
};

/// V = 5, w = 3, k = 6, a window of 2 and higher-order encoders of order 2; starts are wide, so that no derivative is
/// lost in rounding.
inline RecurrentOptions small_recurrent(RecurrentCell encoder, ReadoutKind readout) {
  return {.vocabulary = 5,
          .embedding_width = 3,
          .width = 6,
          .encoder = encoder,
          .order = 2,
          .readout = readout,
          .window = 2,
          .parts = 3,
          .init_range = 1.2};
}

/// Every encoder with every readout, and every option that another path goes through.
inline std::vector<RecurrentVariant> recurrent_variants() {
  using enum RecurrentCell;
  using enum ReadoutKind;
  std::vector<RecurrentVariant> all;
  for (const RecurrentCell encoder : {rnn, lstm, hornn_fofe, hornn_gated})
    for (const ReadoutKind readout : {identity, attention, key_value, key_value_predict, n_gram, recurrent_memory})
      all.push_back({text(name_of(encoder), ", ", name_of(readout)), small_recurrent(encoder, readout)});
  const auto put = [&](const std::string& name, RecurrentCell encoder, ReadoutKind readout, auto change) {
    RecurrentOptions options = small_recurrent(encoder, readout);
    change(options);
    all.push_back({name, options});
  };
  for (const RecurrentCell encoder : {rnn, hornn_fofe, hornn_gated})
    put(text(name_of(encoder), ", output_map"), encoder, identity, [](auto& o) { o.output_map = true; });
  for (const ReadoutKind readout : {attention, key_value_predict})
    put(text(name_of(readout), ", missing = zero"), lstm, readout, [](auto& o) {
      o.missing = MissingPositions::zero;
      o.window = 4;
    });
  put("key_value, a window longer than two blocks", lstm, key_value, [](auto& o) { o.window = 9; });
  put("recurrent_memory, temporal_value", lstm, recurrent_memory, [](auto& o) { o.temporal_value = true; });
  put("recurrent_memory, the present word alone", lstm, recurrent_memory, [](auto& o) { o.window = 1; });
  put("n_gram, one part", lstm, n_gram, [](auto& o) {
    o.parts = 1;
    o.output_width = 2;
  });
  put("n_gram, wider than its parts", lstm, n_gram, [](auto& o) { o.output_width = 5; });
  put("key_value_predict, nothing carried", lstm, key_value_predict, [](auto& o) { o.carry = Carry::none; });
  put("n_gram, nothing carried", rnn, n_gram, [](auto& o) { o.carry = Carry::none; });
  put("recurrent_memory, nothing carried", hornn_gated, recurrent_memory, [](auto& o) {
    o.carry = Carry::none;
    o.window = 4;
  });
  put("two layers, lstm", lstm, identity, [](auto& o) { o.layers = 2; });
  put("three layers of another width, key_value", lstm, key_value, [](auto& o) {
    o.layers = 3;
    o.inner_width = 5;
    o.window = 4;
  });
  put("two layers, hornn_gated, recurrent_memory", hornn_gated, recurrent_memory, [](auto& o) { o.layers = 2; });
  put("two layers, rnn, output_map", rnn, identity, [](auto& o) {
    o.layers = 2;
    o.inner_width = 4;
    o.output_map = true;
  });
  for (const ReadoutKind readout : {identity, key_value_predict, n_gram, recurrent_memory})
    put(text("qrnn, ", name_of(readout)), qrnn, readout, [](auto&) {});
  put("qrnn, one tap", qrnn, identity, [](auto& o) { o.taps = 1; });
  put("three layers, qrnn, more taps above", qrnn, attention, [](auto& o) {
    o.layers = 3;
    o.inner_width = 4;
    o.inner_taps = 3;
  });
  put("two layers, qrnn, taps below alone", qrnn, n_gram, [](auto& o) {
    o.layers = 2;
    o.taps = 4;
    o.inner_taps = 1;
  });
  return all;
}

/// And models whose input and output have something in common, or a vocabulary in clusters: of them output.weight and
/// output.bias are not all of the output.
inline std::vector<RecurrentVariant> recurrent_variants_of_ends() {
  using enum RecurrentCell;
  using enum ReadoutKind;
  std::vector<RecurrentVariant> all;
  const auto put = [&](const std::string& name, RecurrentCell encoder, ReadoutKind readout, auto change) {
    RecurrentOptions options = small_recurrent(encoder, readout);
    change(options);
    all.push_back({name, options});
  };
  put("tied tables", lstm, identity, [](auto& o) {
    o.tie_tables = true;
    o.embedding_width = 6;
  });
  put("tied tables, key_value", lstm, key_value, [](auto& o) { o.tie_tables = true; });
  put("clusters", lstm, identity, [](auto& o) {
    o.cutoffs = {1, 3};
    o.divisor = 1;
  });
  put("clusters of shorter vectors", qrnn, key_value_predict, [](auto& o) {
    o.cutoffs = {2};
    o.divisor = 2;
  });
  put("clusters, two layers, tied", lstm, identity, [](auto& o) {
    o.layers = 2;
    o.embedding_width = 6;
    o.cutoffs = {1, 3};
    o.divisor = 2;
    o.tie_tables = true;
  });
  put("clusters of one tied table", rnn, n_gram, [](auto& o) {
    o.embedding_width = 2;
    o.cutoffs = {3};
    o.divisor = 1;
    o.tie_tables = true;
  });
  return all;
}
inline std::vector<RecurrentVariant> all_recurrent_variants() {
  std::vector<RecurrentVariant> all = recurrent_variants(), ends = recurrent_variants_of_ends();
  all.insert(all.end(), ends.begin(), ends.end());
  return all;
}

inline std::vector<std::int64_t> random_words(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(random.below(vocabulary));
  return ids;
}

}  // namespace engram::harness
