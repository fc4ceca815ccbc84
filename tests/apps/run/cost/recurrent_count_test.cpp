/// Parameters of every published model of the key-value-predict family, and widths that make others as large:
/// [key-value-predict 1.8].

#include <cstdlib>
#include <filesystem>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/cost/recurrent_cost.hpp"
#include "apps/run/cost/solved_width.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"

namespace engram::recurrent_count_test {
namespace {

RecurrentOptions published(const std::string& name) {
  return load_run_config(std::filesystem::path(ENGRAM_SOURCE_DIR) / "apps/configs/key-value-predict" / (name + ".toml"))
      .model.recurrent;
}

TEST_CASE("recurrent count: the integers of every row", "[recurrent]") {
  const std::pair<const char*, std::int64_t> rows[] = {
      {"rnn", 23'902'656},
      {"lstm", 23'898'200},
      {"fofe-hornn", 23'866'439},
      {"gated-hornn", 23'920'160},
      {"recurrent-memory-window-15", 70'643'600},
      {"attention-window-10", 23'926'608},
      {"key-value-window-10", 23'879'520},
      {"key-value-predict-window-5", 25'578'774},
      {"key-value-predict-equal-budget", 23'943'366},
      {"2-gram", 23'901'488},
      {"3-gram", 23'874'460},
      {"4-gram", 23'858'824},
      {"5-gram", 23'941'960},
      // An LSTM of 834, a projection to 278 and the softmax.
      {"wide-lstm", 4 * 834 * (300 + 834 + 1) + 278 * 834 + 77'000 * 279},
  };
  for (const auto& [name, wanted] : rows) {
    CAPTURE(name);
    CHECK(parameters_without_embedding(published(name)) == wanted);
  }
  RecurrentOptions fofe = published("fofe-hornn"), gated = published("gated-hornn");
  fofe.output_map = gated.output_map = false;
  CHECK(parameters_without_embedding(fofe) == 23'774'630);
  CHECK(parameters_without_embedding(gated) == 23'831'951);
}

RunConfig of_table_8(const std::string& name) {
  return load_run_config(std::filesystem::path(ENGRAM_SOURCE_DIR) / "apps/configs/transformer-xl" / (name + ".toml"));
}

TEST_CASE("recurrent count: Transformer-XL's tables 1 and 8", "[recurrent]") {
  const auto count_of = [](const std::string& name) { return count_parameters(*make_model(of_table_8(name).model)); };
  const std::int64_t words = 267'735;
  // Both ends are one table of 400 numbers a word; three slots of clusters and a bias for each word.
  const std::int64_t table = 400 * words, ends = words + 3 * 400 + 3;
  const ParameterCount qrnn = count_of("wikitext-103-qrnn");
  CHECK(qrnn.of(ParameterRole::encoder) == 3 * 2500 * (2 * 400 + 1) + 2 * 3 * 2500 * (2500 + 1) + 3 * 400 * (2500 + 1));
  CHECK(qrnn.of(ParameterRole::embeddings) == table);
  CHECK(qrnn.of(ParameterRole::cluster_head) + qrnn.of(ParameterRole::output_biases) == ends);
  CHECK(qrnn.of(ParameterRole::projections) == 0);
  CHECK(qrnn.total == 153'886'638);
  const ParameterCount lstm = count_of("wikitext-103-lstm");
  CHECK(lstm.of(ParameterRole::encoder) ==
        4 * 1764 * (400 + 1764 + 1) + 4 * 1764 * (2 * 1764 + 1) + 4 * 400 * (1764 + 400 + 1));
  CHECK(lstm.total - lstm.of(ParameterRole::encoder) == table + ends);
  // Of the group's budget, as count_of("wikitext-103-base") says it.
  CHECK(static_cast<double>(lstm.total) == Approx(151'107'538).epsilon(0.002));
  CHECK(count_of("wikitext-103-base").total == 151'107'538);
  const ParameterCount cache = count_of("wikitext-103-lstm-cache");
  const std::int64_t numbers = 2800 * 1024 + 17'200 * 256 + 56'000 * 64 + (words - 76'000) * 16;
  CHECK(cache.of(ParameterRole::embeddings) == numbers);
  CHECK(cache.of(ParameterRole::output) == numbers);
  CHECK(cache.of(ParameterRole::projections) == 2 * 1024 * (256 + 64 + 16));
  CHECK(cache.of(ParameterRole::encoder) == 4 * 1024 * (2 * 1024 + 1));
  CHECK(parameters_without_embedding(of_table_8("wikitext-103-lstm-cache").model.recurrent) ==
        cache.total - numbers - 1024 * (256 + 64 + 16));
}

TEST_CASE("recurrent count: a width is solved for layers and clusters, not for tied tables", "[recurrent]") {
  RecurrentOptions options{.vocabulary = 1000, .embedding_width = 32, .width = 96, .layers = 2};
  options.readout = ReadoutKind::key_value_predict;
  options.cutoffs = {100, 400};
  options.divisor = 2;
  const SolvedWidth solved = solve_width(options);
  CHECK(solved.width % 3 == 0);
  options.width = solved.width;
  CHECK(parameters_without_embedding(options) == solved.parameters);
  for (const std::int64_t beside : {-3, 3}) {
    options.width = solved.width + beside;
    CHECK(std::abs(parameters_without_embedding(options) - solved.target) >=
          std::abs(solved.parameters - solved.target));
  }
  // Of clusters each half as wide as the one before, the last has a number at least.
  CHECK_THROWS_WITH(solve_width(options, 10), ContainsSubstring("at width 12"));
  options.tie_tables = true;
  CHECK_THROWS_WITH(solve_width(options), ContainsSubstring("model.tie_tables = true"));
}

TEST_CASE("recurrent cost: layers, taps and clusters", "[recurrent]") {
  RecurrentOptions options{.vocabulary = 1000, .embedding_width = 32, .width = 24, .layers = 3, .inner_width = 40};
  options.readout = ReadoutKind::identity;
  CHECK(forward_flops(options).encoder == 8.0 * (40 * (32 + 40) + 40 * (40 + 40) + 24 * (40 + 24)));
  const StepSetting setting{.block = 20, .batch = 4};
  CHECK(step_cost(options, setting).recurrence_flops == 8.0 * (40 * 40 + 40 * 40 + 24 * 24));
  CHECK(step_cost(options, setting).recurrence_exponentials == 5.0 * (40 + 40 + 24));
  options.encoder = RecurrentCell::qrnn;
  options.taps = 2;
  options.inner_taps = 1;
  CHECK(forward_flops(options).encoder == 6.0 * (40 * 2 * 32 + 40 * 40 + 24 * 40));
  CHECK(step_cost(options, setting).recurrence_flops == 0);
  CHECK(forward_exponentials(options) == 3.0 * (40 + 40 + 24));
  CHECK(forward_flops(options).softmax == 2.0 * 1000 * 24);
  CHECK(forward_flops(options).input == 0);
  options.cutoffs = {100, 400};
  options.divisor = 2;
  const RecurrentFlops clusters = forward_flops(options, {0.5, 0.3, 0.2});
  CHECK(clusters.softmax ==
        Approx(2 * (102.0 * 24 + 0.3 * (300 * 12 + 24 * 12) + 0.2 * (600 * 6 + 24 * 6))).epsilon(1e-14));
  CHECK(clusters.input == Approx(2 * (0.3 * 32 * 16 + 0.2 * 32 * 8)).epsilon(1e-14));
  CHECK(training_flops(options, {0.5, 0.3, 0.2}).total() == Approx(3 * clusters.total()).epsilon(1e-14));
  // Without shares they are assumed.
  CHECK(forward_flops(options).softmax == forward_flops(options, assumed_shares(options.cutoffs, 1000)).softmax);
  CHECK(step_cost(options, setting).output_flops == 0);
}

TEST_CASE("recurrent count: windows change nothing but the temporal matrix", "[recurrent]") {
  for (const int window : {1, 5, 10, 15}) {
    const std::string tail = text("-window-", window);
    CHECK(published("attention" + tail).window == window);
    CHECK(parameters_without_embedding(published("attention" + tail)) == 23'926'608);
    CHECK(parameters_without_embedding(published("key-value" + tail)) == 23'879'520);
    CHECK(parameters_without_embedding(published("key-value-predict" + tail)) == 25'578'774);
    CHECK(parameters_without_embedding(published("recurrent-memory" + tail)) == 70'643'600 - (15 - window) * 300);
  }
}

TEST_CASE("recurrent count: widths of equal budgets", "[recurrent]") {
  struct Row {
    std::int64_t vocabulary, target, rnn, fofe, gated, attention, key_value, predict, two, three, four, five;
  };
  using enum RecurrentCell;
  using enum ReadoutKind;
  for (const Row& row : {Row{77000, 23'898'200, 307, 305, 298, 296, 560, 786, 564, 786, 968, 1120},
                         {33278, 10'737'878, 316, 310, 295, 291, 524, 696, 530, 699, 824, 915},
                         {10000, 3'731'200, 349, 330, 288, 277, 442, 537, 452, 540, 596, 635}}) {
    CAPTURE(row.vocabulary);
    const auto solved = [&](RecurrentCell encoder, ReadoutKind readout, std::int64_t parts = 1) {
      const SolvedWidth found = solve_width({.vocabulary = row.vocabulary,
                                             .embedding_width = 300,
                                             .width = 12 * parts,
                                             .encoder = encoder,
                                             .readout = readout,
                                             .parts = parts});
      CHECK(found.target == row.target);
      return found.width;
    };
    CHECK(solved(lstm, identity) == 300);
    CHECK(solved(rnn, identity) == row.rnn);
    CHECK(solved(hornn_fofe, identity) == row.fofe);
    CHECK(solved(hornn_gated, identity) == row.gated);
    CHECK(solved(lstm, attention) == row.attention);
    CHECK(solved(lstm, key_value) == row.key_value);
    CHECK(solved(lstm, key_value_predict) == row.predict);
    CHECK(solved(lstm, n_gram, 2) == row.two);
    CHECK(solved(lstm, n_gram, 3) == row.three);
    CHECK(solved(lstm, n_gram, 4) == row.four);
    CHECK(solved(lstm, n_gram, 5) == row.five);
  }
  CHECK_THROWS_WITH(solve_width({.vocabulary = 100, .embedding_width = 3, .width = 3}, 10),
                    ContainsSubstring("must exist") && ContainsSubstring("at width 3"));
}

TEST_CASE("recurrent cost: FLOPs of the worked table", "[recurrent]") {
  struct Row {
    const char* name;
    double encoder, readout, softmax, total;
  };
  for (const Row& row : {Row{"lstm", 1.44, 0, 46.2, 47.6},
                         {"attention-window-10", 1.41, 0.72, 45.6, 47.7},
                         {"key-value-window-10", 3.85, 0.64, 43.1, 47.6},
                         {"key-value-predict-window-5", 7.57, 0.63, 42.8, 51.0},
                         {"4-gram", 9.82, 0.47, 37.3, 47.6}}) {
    CAPTURE(row.name);
    const RecurrentFlops flops = forward_flops(published(row.name));
    CHECK(flops.encoder / 1e6 == Approx(row.encoder).margin(0.0051));
    CHECK((flops.readout + flops.window) / 1e6 == Approx(row.readout).margin(0.0051));
    CHECK(flops.softmax / 1e6 == Approx(row.softmax).margin(0.051));
    CHECK(flops.total() / 1e6 == Approx(row.total).margin(0.051));
    CHECK(training_flops(published(row.name)).total() == Approx(3 * flops.total()));
  }
}

TEST_CASE("recurrent cost: what steps in time and the softmax multiply themselves", "[recurrent]") {
  const StepSetting setting{.block = 20, .batch = 64};
  const StepCost lstm = step_cost(published("key-value-predict-window-5"), setting);
  CHECK(lstm.recurrence_flops == 2.0 * 4 * 834 * 834);
  CHECK(lstm.output_flops == 3.0 * 2 * 77000 * 278);
  CHECK(lstm.recurrence_exponentials == 5.0 * 834);
  CHECK(lstm.window_exponentials == 5.0 * 278 + 5);
  // The input map, the recurrent weight's gradient and the readout are left to plain products.
  CHECK(lstm.training.products - 2 * lstm.recurrence_flops - lstm.output_flops ==
        Approx(3.0 * 2 * 4 * 834 * 300 + 2.0 * 4 * 834 * 834 + 3.0 * 2 * 4 * 278 * 278));
  const StepCost gated = step_cost(published("gated-hornn"), setting);
  CHECK(gated.recurrence_flops == 2.0 * 6 * 297 * 297);
  CHECK(gated.window_exponentials == 0);
}

}  // namespace
}  // namespace engram::recurrent_count_test
