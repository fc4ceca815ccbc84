/// T1, T2 and T3 of [transformer-xl 12]: numbers of the gold model.

#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/nn/gold_xl.hpp"

namespace engram::harness::transformer_xl_gold_test {
namespace {

struct Row {
  const char* name;
  std::function<void(TransformerXlOptions&)> change;  // of case A
  std::vector<double> losses;
  Ids lengths = {3, 3};
};

void no_memory(TransformerXlOptions& o) { o.memory = 0; }
void shaw(TransformerXlOptions& o, ShawTerms terms) {
  o.positions = PositionKind::shaw;
  o.shaw_terms = terms;
  o.position_rows = 4;
}
void zeros(TransformerXlOptions& o, Visibility visibility, std::int64_t clamp) {
  o.memory_start = MemoryStart::zeros;
  o.visibility = visibility;
  o.clamp = clamp;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"A", [](auto&) {}, {3.22652992, 2.70151234, 1.84679623, 2.66283826, 3.46188225, 2.96458408}},
      {"B", [](auto& o) { o.clamp = 2; }, {3.22652992, 2.70151234, 1.84679623, 2.66342544, 3.46907894, 2.93435767}},
      {"C",
       [](auto& o) {
         o.memory = 2;
         o.visibility = Visibility::last_memory;
       },
       {3.22652992, 2.70151234, 1.85536778, 2.67306070, 3.25225059, 2.69647129}},
      {"D",
       [](auto& o) { zeros(o, Visibility::all, 0); },
       {3.46462372, 2.64349372, 1.86037646, 2.67240655, 3.52288512, 3.07917425}},
      {"E",
       [](auto& o) { zeros(o, Visibility::last_memory, 4); },
       {3.46691247, 2.64087237, 1.85782059, 2.66499453, 3.43549961, 3.02123512}},
      {"F",
       [](auto& o) { zeros(o, Visibility::last_memory_plus_1, 4); },
       {3.46771859, 2.64197871, 1.85956847, 2.67081589, 3.48748712, 3.05198222}},
      {"G", [](auto& o) { o.memory = 2; }, {3.22652992, 2.70151234, 1.84679623, 2.68249231, 3.37667591, 3.00702080}},
      {"H", no_memory, {3.22652992, 2.70151234, 1.84679623, 2.65768266, 3.23968094, 2.83776098}},
      {"A reversed",
       [](auto& o) { o.cluster_order = ClusterOrder::reversed; },
       {2.75873135, 3.04252006, 1.84679623, 3.04816754, 3.00610861, 2.96458408}},
      {"A pre-norm",
       [](auto& o) { o.pre_norm = true; },
       {3.50189174, 2.20536519, 2.25819857, 2.51336084, 3.62669711, 3.68457024}},
      {"shaw abcd",
       [](auto& o) { shaw(o, ShawTerms::abcd); },
       {3.22652992, 2.70832252, 1.84540788, 2.65562374, 3.51171887, 2.97244923}},
      {"shaw ab",
       [](auto& o) { shaw(o, ShawTerms::ab); },
       {3.22652992, 2.71108229, 1.84484853, 2.65275413, 3.53599190, 2.79555186}},
      {"absolute sinusoidal",
       [](auto& o) {
         no_memory(o);
         o.positions = PositionKind::absolute_sinusoidal;
       },
       {3.05619957, 2.64268929, 1.80287824, 2.62492635, 3.36780410, 3.21920563},
       {6}},
  };
  return all;
}

TransformerXlOptions options_of(const Row& row) {
  TransformerXlOptions options = gold_options();
  row.change(options);
  return options;
}

TEST_CASE("T1: losses of the gold model, with memories of states and in rings") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    PlacedXl placed(options_of(row));
    fill_gold(placed);
    CHECK(farthest_apart(gold_losses(placed, row.lengths, placed.memory()), row.losses) < 1e-8);
    CHECK(farthest_apart(gold_losses(placed, row.lengths, placed.ring()), row.losses) < 1e-8);
  }
}

TEST_CASE("T1: the definition has the numbers of the gold model too") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    PlacedXl placed(options_of(row));
    fill_gold(placed);
    const reference::TransformerXl defined = placed.definition();
    reference::XlState state;
    std::vector<double> losses;
    std::ptrdiff_t first = 0;
    for (const std::int64_t length : row.lengths) {
      const Ids tokens(kGoldTokens.begin() + first, kGoldTokens.begin() + first + length);
      const reference::Array64 all =
          reference::xl_log_probabilities(defined, reference::xl_hidden(defined, tokens, state));
      for (std::int64_t i = 0; i < length; ++i)
        losses.push_back(-all.at(i, kGoldTargets[static_cast<std::size_t>(first + i)]));
      first += length;
    }
    CHECK(farthest_apart(losses, row.losses) < 1e-8);
  }
}

TEST_CASE("T1: losses of the gold model in f32, on every device") {
  for (const auto& device : available_backends())
    for (const Row& row : rows()) {
      CAPTURE(row.name, name_of(device->device().kind));
      PlacedXl placed(options_of(row), DType::f32, *device);
      fill_gold(placed);
      CHECK(farthest_apart(gold_losses(placed, row.lengths, placed.memory()), row.losses) < 2e-5);
      CHECK(farthest_apart(gold_losses(placed, row.lengths, placed.ring()), row.losses) < 2e-5);
    }
}

TEST_CASE("T1: windows of three tokens with stride 1 and no memory") {
  TransformerXlOptions options = gold_options();
  options.memory = 0;
  PlacedXl placed(options);
  fill_gold(placed);
  std::vector<double> losses;
  for (std::ptrdiff_t last = 0; last < 6; ++last) {
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, last - 2);
    const Ids tokens(kGoldTokens.begin() + first, kGoldTokens.begin() + last + 1);
    const Ids targets(kGoldTargets.begin() + first, kGoldTargets.begin() + last + 1);
    ModelPast past = placed.memory();
    losses.push_back(placed.losses(tokens, targets, past).back());
  }
  CHECK(farthest_apart(losses, {3.22652992, 2.70151234, 1.84679623, 2.67578794, 3.27448585, 2.83776098}) < 1e-8);
}

TEST_CASE("T2: a row of log-probabilities and an embedding of the gold model") {
  PlacedXl placed(gold_options());
  fill_gold(placed);
  ModelPast past = placed.memory();
  placed.run({0, 7, 9}, past);
  const reference::Array64 all = placed.run({3, 10, 5}, past);
  const std::vector<double> row(all.data.end() - 11, all.data.end());
  CHECK(farthest_apart(row, {-3.25095421, -2.96458408, -2.35200568, -1.69218932, -1.28317201, -2.82991485, -3.37899178,
                             -2.84501897, -2.55526732, -2.73157535, -2.82668017}) < 1e-8);
  double total = 0;
  for (const double value : row) total += std::exp(value);
  CHECK(total == Approx(1).epsilon(1e-12));

  placed.step.begin({});
  Tape tape(placed.step, Tape::Mode::inference);
  const Variable vector = placed.model.tokens().embed(tape, placed.batch({0}, {}, 1));
  CHECK(farthest_apart(to_host(placed.backend, vector.value()).data,
                       {-0.93870361, -0.37542251, 0.35637383, 0.92820528, 1.08339485, 0.75228288, 0.08349502,
                        -0.62277111}) < 1e-8);
}

TEST_CASE("T3: gradients of the gold model's second segment, its memory constant") {
  PlacedXl placed(gold_options());
  fill_gold(placed);
  ModelPast past = placed.memory();
  placed.run({0, 7, 9}, past);
  placed.store.zero_gradients(placed.step);
  CHECK(placed.train({3, 10, 5}, {10, 5, 1}, past, 1.0 / 3) == Approx(3.0297681985).margin(1e-9));
  const auto check = [&](const std::string& name, std::int64_t row, std::int64_t column, double expected) {
    CAPTURE(name, row, column);
    const reference::Array64 gradient = placed.gradient(name);
    const std::int64_t width = gradient.rank() == 1 ? 3 : gradient.axis(1);  // u, v: heads of depth 3
    CHECK(std::abs(gradient.data[static_cast<std::size_t>(row * width + column)] - expected) < 1e-7);
  };
  check("layers.0.attention.query", 1, 2, -0.00096836);
  check("layers.0.attention.key", 1, 3, -0.00299882);
  check("layers.1.attention.value", 2, 5, -0.00078953);
  check("layers.0.attention.position", 4, 1, 0.00003130);
  check("layers.0.attention.content_bias", 0, 0, -0.00053236);
  check("layers.0.attention.position_bias", 1, 2, 0.00348596);
  check("layers.1.feed_forward_norm.gain", 0, 3, -0.00469822);
  check("embedding.clusters.1.table", 0, 0, -0.02650553);
  check("embedding.clusters.2.table", 1, 1, 0.06004327);
  check("embedding.clusters.1.projection", 2, 3, 0.01255876);
  check("output.clusters.0.projection", 5, 0, 0.02970302);
  check("output.cluster_head.weight", 1, 0, 0.05387379);
}

}  // namespace
}  // namespace engram::harness::transformer_xl_gold_test
