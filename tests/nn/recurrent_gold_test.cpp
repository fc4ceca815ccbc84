/// The golden numbers of [key-value-predict 8.1].

#include <numeric>

#include "tests/harness/catch.hpp"
#include "tests/nn/placed_recurrent.hpp"

namespace engram::harness::recurrent_gold_test {
namespace {

struct Gold {
  std::string name;
  RecurrentOptions options;
  double mean, last, norm, embedding, input, mean_reset;
};

std::vector<Gold> golds() {
  using enum RecurrentCell;
  using enum ReadoutKind;
  return {
      {"RNN", gold_options(rnn, identity), 2.5638634762, 1.0349515577, 1.37403342, 0.09206303, -0.11130248,
       2.5986089245},
      {"LSTM", gold_options(lstm, identity), 1.9320577591, 1.9860216038, 0.37757933, -0.00989982, -0.00872393,
       1.9565603447},
      {"FOFE HORNN", gold_options(hornn_fofe, identity), 2.4511937440, 0.9565615145, 0.91375803, -0.00873999,
       0.07071079, 2.2896919516},
      {"gated HORNN", gold_options(hornn_gated, identity), 2.4537414272, 0.9536683048, 0.89579731, -0.02675663,
       0.08296702, 2.2852670210},
      {"RM", gold_options(lstm, recurrent_memory), 1.9603394512, 1.5766469327, 0.35428695, -0.00623749, -0.00292320,
       1.9813116544},
      {"Attention", gold_options(lstm, attention), 2.2532069148, 1.2856765195, 0.69474168, 0.00365642, -0.00632196,
       2.2042912583},
      {"KV", gold_options(lstm, key_value), 2.0537180116, 1.9020510365, 0.33035913, 0.00443917, 0.00078188,
       2.0255103722},
      {"KVP", gold_options(lstm, key_value_predict), 2.0367526366, 1.7858165721, 0.28523662, -0.00435687, 0.00024101,
       2.0235867457},
      {"2-gram", gold_options(lstm, n_gram, 2), 2.0571733276, 1.6764921248, 0.33147910, 0.01110012, 0.00148158,
       2.0200307004},
      {"3-gram", gold_options(lstm, n_gram, 3), 2.0097920342, 1.7551429653, 0.29795545, 0.00407920, -0.00155514,
       2.0250026723},
  };
}

const PlacedRecurrent::Block kText{.inputs = {1, 4, 2, 6, 3}, .targets = {4, 2, 6, 3, 5}};

double mean(const std::vector<double>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

/// Everything in the table; `losses` and `gradients`: relative and absolute tolerances.
void check_gold(const Gold& gold, PlacedRecurrent& placed, double losses, double gradients) {
  CAPTURE(gold.name);
  set_gold_values(placed);
  placed.store.zero_gradients(placed.step);
  const std::vector<double> rows = placed.train(kText, 0.2);
  CHECK(mean(rows) == Approx(gold.mean).epsilon(losses));
  CHECK(rows[4] == Approx(gold.last).epsilon(losses));
  CHECK(placed.gradient_norm() == Approx(gold.norm).epsilon(gradients).margin(6e-9));
  CHECK(placed.gradient("embedding.weight").data[3] == Approx(gold.embedding).epsilon(gradients).margin(6e-9));
  CHECK(placed.gradient("encoder.input").data[0] == Approx(gold.input).epsilon(gradients).margin(6e-9));
  placed.reset();
  PlacedRecurrent::Block reset = kText;
  reset.preceding = {0, 1, 2, 0, 1};
  CHECK(mean(placed.losses(reset)) == Approx(gold.mean_reset).epsilon(losses));
}

TEST_CASE("recurrent gold: losses, gradients and resets of all models", "[recurrent]") {
  for (const Gold& gold : golds()) {
    PlacedRecurrent placed(gold.options);
    check_gold(gold, placed, 6e-11, 1e-9);
  }
}

TEST_CASE("recurrent gold: in f32, on every device", "[recurrent]") {
  for (const auto& backend : available_backends())
    for (const Gold& gold : golds()) {
      PlacedRecurrent placed(gold.options, 1, DType::f32, *backend);
      check_gold(gold, placed, 2e-6, 1e-4);
    }
}

TEST_CASE("recurrent gold: the weights of attention at the last position", "[recurrent]") {
  struct Weights {
    ReadoutKind readout;
    std::vector<double> wanted;
  };
  for (const Weights& of : {Weights{ReadoutKind::attention, {.36684424, .30274295, .33041281}},
                            {ReadoutKind::key_value, {.32781086, .33613481, .33605433}},
                            {ReadoutKind::key_value_predict, {.33521843, .33488978, .32989179}},
                            {ReadoutKind::recurrent_memory, {.21628285, .35716403, .42655312}}}) {
    CAPTURE(name_of(of.readout));
    PlacedRecurrent placed(gold_options(RecurrentCell::lstm, of.readout));
    set_gold_values(placed);
    placed.losses(kText);
    REQUIRE(placed.window_weights.shape() == Shape{1, 5, 3});
    const std::vector<double> weights = to_host(placed.backend, placed.window_weights).data;
    for (std::size_t i = 0; i < 3; ++i) CHECK(weights[12 + i] == Approx(of.wanted[i]).margin(6e-9));
  }
}

TEST_CASE("recurrent gold: a window of one position", "[recurrent]") {
  RecurrentOptions options = gold_options(RecurrentCell::lstm, ReadoutKind::key_value_predict);
  options.window = 1;
  PlacedRecurrent placed(options);
  set_gold_values(placed);
  placed.store.zero_gradients(placed.step);
  CHECK(mean(placed.train(kText, 0.2)) == Approx(2.0380343013).epsilon(6e-11));
  for (const char* const name : {"readout.key", "readout.query", "readout.score"})
    for (const double number : placed.gradient(name).data) CHECK(number == 0);
}

TEST_CASE("recurrent gold: two chunks", "[recurrent]") {
  struct Chunks {
    ReadoutKind readout;
    Carry carry;
    double mean;
    double norm = 0, input = 0;  // 0: not in the table
  };
  for (const Chunks& gold :
       {Chunks{ReadoutKind::key_value_predict, Carry::detached, 2.0367526366, 0.28419295, 0.00007968},
        {ReadoutKind::key_value_predict, Carry::none, 2.0370556800, 0.28443818, 0.00007806},
        {ReadoutKind::attention, Carry::none, 2.2093191634},
        {ReadoutKind::key_value, Carry::none, 2.0665225844}}) {
    CAPTURE(name_of(gold.readout), name_of(gold.carry));
    RecurrentOptions options = gold_options(RecurrentCell::lstm, gold.readout);
    options.carry = gold.carry;
    PlacedRecurrent placed(options);
    set_gold_values(placed);
    placed.store.zero_gradients(placed.step);
    std::vector<double> rows = placed.train({.inputs = {1, 4}, .targets = {4, 2}}, 0.2);
    const std::vector<double> more = placed.train({.inputs = {2, 6, 3}, .targets = {6, 3, 5}}, 0.2);
    rows.insert(rows.end(), more.begin(), more.end());
    CHECK(mean(rows) == Approx(gold.mean).epsilon(6e-11));
    if (gold.norm == 0) continue;
    CHECK(placed.gradient_norm() == Approx(gold.norm).epsilon(1e-9).margin(6e-9));
    CHECK(placed.gradient("encoder.input").data[0] == Approx(gold.input).margin(6e-9));
  }
}

}  // namespace
}  // namespace engram::harness::recurrent_gold_test
