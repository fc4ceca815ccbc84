/// Both ends of the Transformer-XL family: T9 and T10 (e) of [transformer-xl 12], and the columns of
/// [transformer-xl 5.2] that are theirs; names and first values of parameters, and options that do not fit.

#include <array>
#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/token_variants.hpp"

namespace engram::harness::token_io_test {
namespace {

using reference::Array64;
using Names = std::vector<std::string>;

std::vector<std::int32_t> words_below(std::int32_t end) {
  std::vector<std::int32_t> words;
  for (std::int32_t word = 0; word < end; ++word) words.push_back(word);
  return words;
}

/// -ln p of every word of the vocabulary after one state.
std::vector<double> losses_after(TokenBench& bench, const Array64& state) {
  const std::int64_t count = bench.options.vocabulary, width = bench.options.width;
  Array64 states = reference::zeros({1, count, width});
  for (std::int64_t word = 0; word < count; ++word)
    for (std::int64_t i = 0; i < width; ++i) states.at(0, word, i) = state.at(i);
  const std::vector<std::int32_t> words = words_below(static_cast<std::int32_t>(count));
  Tape tape(bench.step, Tape::Mode::inference);
  const TokenBatch block = bench.batch(words, words, 1);
  return bench.row_losses(bench.tokens().losses(tape.constant(bench.tensor(states)), block, 1), words.size());
}

TEST_CASE("T9a: without cut-offs it is a plain softmax over the table", "[tokens]") {
  TokenBench bench({.vocabulary = 13, .width = 6, .cutoffs = {}, .tie_plain = true}, *available_backends().front());
  const Values values = random_values(bench.store, 2);
  bench.set(values);
  const Array64 state = reference::RandomArrays(3).array({6});
  const Array64& table = values.at("embedding.table");
  std::vector<double> logits;
  double sum = 0;
  for (std::int64_t word = 0; word < 13; ++word) {
    double logit = values.at("output.bias").at(word);
    for (std::int64_t i = 0; i < 6; ++i) logit += table.at(word, i) * state.at(i);
    logits.push_back(logit);
    sum += std::exp(logit);
  }
  const std::vector<double> losses = losses_after(bench, state);
  for (std::size_t word = 0; word < 13; ++word)
    CHECK(losses[word] == Approx(std::log(sum) - logits[word]).epsilon(1e-13));
}

TEST_CASE("T9b: the probabilities of one to four clusters sum to 1", "[tokens]") {
  const std::vector<std::int64_t> cutoffs{4, 9, 13};
  for (std::size_t tails = 0; tails <= cutoffs.size(); ++tails)
    for (const std::int64_t divisor : {1, 2})
      for (const ClusterOrder order : {ClusterOrder::natural, ClusterOrder::reversed}) {
        CAPTURE(tails, divisor, order == ClusterOrder::natural);
        TokenBench bench({.vocabulary = 17,
                          .width = 8,
                          .cutoffs = {cutoffs.begin(), cutoffs.begin() + static_cast<std::ptrdiff_t>(tails)},
                          .divisor = divisor,
                          .cluster_order = order,
                          .tie_plain = true},
                         *available_backends().front());
        bench.set(random_values(bench.store, 2 + tails, 1));
        double sum = 0;
        for (const double loss : losses_after(bench, reference::RandomArrays(3).array({8}))) sum += std::exp(-loss);
        CHECK(sum == Approx(1).epsilon(1e-13));
      }
}

TEST_CASE("T9d: with one tail cluster both orders are one, with two they are not", "[tokens]") {
  for (const std::vector<std::int64_t>& cutoffs : {std::vector<std::int64_t>{5}, std::vector<std::int64_t>{5, 8}}) {
    std::vector<std::vector<double>> losses;
    for (const ClusterOrder order : {ClusterOrder::natural, ClusterOrder::reversed}) {
      TokenBench bench({.vocabulary = 11, .width = 8, .cutoffs = cutoffs, .divisor = 2, .cluster_order = order},
                       *available_backends().front());
      bench.set(random_values(bench.store, 2));
      losses.push_back(losses_after(bench, reference::RandomArrays(3).array({8})));
    }
    CHECK((losses[0] == losses[1]) == (cutoffs.size() == 1));
    // The words of cluster 0 do not know the difference.
    CHECK(std::equal(losses[0].begin(), losses[0].begin() + 5, losses[1].begin()) == true);
  }
}

TEST_CASE("T9e: targets of cluster 0 alone leave the tails' parameters without gradient", "[tokens]") {
  const std::vector<std::int32_t> inputs{0, 12, 4, 7, 1, 16}, targets{1, 0, 2, 4, 4, 3};
  for (const std::int64_t divisor : {1, 2}) {
    TokenBench bench({.vocabulary = 17,
                      .width = 8,
                      .embedding_width = 6,
                      .cutoffs = {5, 11},
                      .divisor = divisor,
                      .tie_projections = false},
                     *available_backends().front());
    bench.set(random_values(bench.store, 2));
    for (const bool padded : {false, true}) {
      bench.store.zero_gradients(bench.step);
      Tape tape(bench.step);
      // States that need a gradient, or nothing behind the output would be asked for.
      const Variable hidden = tape.leaf(bench.tensor(reference::RandomArrays(3).array({1, 6, 8})));
      std::vector<Variable> losses;
      for (LossPart& part : bench.tokens().losses(hidden, bench.batch(inputs, targets, 1, padded), 1))
        losses.push_back(std::move(part.loss));
      tape.backward(losses);
      for (const auto& [name, parameter] : bench.store.parameters()) {
        CAPTURE(divisor, padded, name);
        const Array64 gradient = to_host(bench.backend, parameter->gradient());
        if (name == "embedding.table") {
          CHECK(reference::norm(rows_of(gradient, 0, 5)) > 0.01);
          CHECK(reference::norm(rows_of(gradient, 5, 17)) == 0);
          continue;
        }
        const bool head =
            name.find("clusters.0.") != std::string::npos || name.find("cluster_head") != std::string::npos;
        const bool of_input = name.starts_with("embedding.") && name.ends_with("projection");
        CHECK((reference::norm(gradient) > 0) == (head && !of_input));
      }
    }
  }
}

TEST_CASE("T10e: with all parameters zero the probabilities are those of the clusters' sizes", "[tokens]") {
  for (const std::int64_t divisor : {1, 2}) {
    TokenBench bench({.vocabulary = 11, .width = 8, .cutoffs = {5, 8}, .divisor = divisor},
                     *available_backends().front());
    bench.set(random_values(bench.store, 2, 0));
    const std::vector<double> losses = losses_after(bench, reference::RandomArrays(3).array({8}));
    for (std::size_t word = 0; word < 11; ++word)
      CHECK(losses[word] == Approx(word < 5 ? 1.94591015 : 3.04452244).margin(5.1e-9));
  }
}

TEST_CASE("T2: the vector of the first word of the gold model", "[tokens]") {
  TokenBench bench({.vocabulary = 11,
                    .width = 8,
                    .cutoffs = {5, 8},
                    .divisor = 2,
                    .cluster_order = ClusterOrder::natural,
                    .untied_projections = {0}},
                   *available_backends().front());
  Values values = random_values(bench.store, 2);
  const auto fill = [&](const char* name, int number) {
    std::vector<double>& numbers = values.at(name).data;
    for (std::size_t e = 0; e < numbers.size(); ++e)
      numbers[e] = 0.3 * std::sin(0.9 * number + 0.7 * static_cast<double>(e) + 0.2);
  };
  fill("embedding.clusters.0.table", 0);
  fill("embedding.clusters.0.projection", 3);
  bench.set(values);
  Tape tape(bench.step, Tape::Mode::inference);
  const std::vector<std::int32_t> word{0};
  const Array64 vector = to_host(bench.backend, bench.tokens().embed(tape, bench.batch(word, {}, 1)).value());
  const double expected[] = {-0.93870361, -0.37542251, 0.35637383, 0.92820528,
                             1.08339485,  0.75228288,  0.08349502, -0.62277111};
  for (std::int64_t i = 0; i < 8; ++i) CHECK(vector.at(0, 0, i) == Approx(expected[i]).margin(5.1e-9));
}

/// Of both ends that have no memory.
struct Counts {
  std::int64_t tables = 0, projections = 0, rest = 0;
  bool operator==(const Counts&) const = default;
};

Counts count(const TokenIoOptions& options) {
  BothEnds ends(options);
  ParameterStore store;
  collect(ends, store);
  Counts counts;
  for (const auto& [name, parameter] : store.parameters()) {
    CHECK_FALSE(parameter->placed());
    (name.ends_with("table")        ? counts.tables
     : name.ends_with("projection") ? counts.projections
                                    : counts.rest) += parameter->shape().count();
  }
  CHECK(counts.tables + counts.projections + counts.rest == store.count());
  return counts;
}

TEST_CASE("counts of parameters are those of the published models", "[tokens]") {
  const auto plain = [](std::int64_t vocabulary, std::int64_t width) {
    return count({.vocabulary = vocabulary, .width = width, .cutoffs = {}, .tie_plain = true});
  };
  CHECK(plain(204, 512) == Counts{104'448, 0, 204});  // enwik8
  CHECK(plain(204, 1024) == Counts{208'896, 0, 204});
  CHECK(plain(27, 512) == Counts{13'824, 0, 27});  // text8
  CHECK(plain(27, 1024) == Counts{27'648, 0, 27});

  TokenIoOptions words{.vocabulary = 267'735,  // wt103
                       .width = 410,
                       .cutoffs = {20'000, 40'000, 200'000},
                       .divisor = 1,
                       .cluster_order = ClusterOrder::natural,
                       .untied_projections = {0}};
  CHECK(count(words) == Counts{109'771'350, 0, 268'968});
  words.tie_tables = false;  // V E more
  CHECK(count(words) == Counts{2 * 109'771'350, 0, 268'968});
  words.tie_tables = true;
  words.width = 1024;
  words.divisor = 4;
  CHECK(count(words) == Counts{36'923'760, 2'441'216, 270'810});

  TokenIoOptions sentences{.vocabulary = 793'471,  // lm1b
                           .width = 1024,
                           .cutoffs = {60'000, 100'000, 640'000},
                           .divisor = 4,
                           .cluster_order = ClusterOrder::reversed,
                           .tie_projections = false};
  CHECK(count(sentences) == Counts{108'695'536, 2'785'280, 796'546});
  sentences.width = 1280;
  CHECK(count(sentences) == Counts{135'869'420, 4'352'000, 797'314});
  sentences.cluster_order = ClusterOrder::natural;
  sentences.project_same_width = false;
  CHECK(count(sentences) == Counts{135'869'420, 1'075'200, 797'314});
  sentences.width = 1024;
  CHECK(count(sentences) == Counts{108'695'536, 688'128, 796'546});
}

Names names(const TokenIoOptions& options) {
  BothEnds ends(options);
  ParameterStore store;
  collect(ends, store);
  Names all;
  for (const auto& entry : store.parameters()) all.push_back(entry.first);
  return all;
}

TEST_CASE("names of the parameters of both ends", "[tokens]") {
  const Names head{"output.cluster_head.bias", "output.cluster_head.weight", "output.clusters.0.bias",
                   "output.clusters.1.bias"};
  const auto with_head = [&](Names first) {
    first.insert(first.end(), head.begin(), head.end());
    return first;
  };
  TokenIoOptions options{.vocabulary = 17, .width = 8, .cutoffs = {5}, .divisor = 1};
  CHECK(names(options) == with_head({"embedding.table"}));
  options.embedding_width = 6;
  CHECK(names(options) == with_head({"embedding.projection", "embedding.table"}));
  options.embedding_width = 0;
  options.divisor = 2;
  CHECK(names(options) == with_head({"embedding.clusters.0.projection", "embedding.clusters.0.table",
                                     "embedding.clusters.1.projection", "embedding.clusters.1.table"}));
  options.project_same_width = false;
  CHECK(names(options) ==
        with_head({"embedding.clusters.0.table", "embedding.clusters.1.projection", "embedding.clusters.1.table"}));
  options.tie_tables = false;
  options.untied_projections = {1};
  CHECK(names(options) == Names{"embedding.clusters.0.table", "embedding.clusters.1.projection",
                                "embedding.clusters.1.table", "output.cluster_head.bias", "output.cluster_head.weight",
                                "output.clusters.0.bias", "output.clusters.0.table", "output.clusters.1.bias",
                                "output.clusters.1.projection", "output.clusters.1.table"});
  TokenIoOptions plain{.vocabulary = 17, .width = 8, .cutoffs = {}, .tie_plain = true};
  CHECK(names(plain) == Names{"embedding.table", "output.bias"});
  plain.embedding_width = 6;
  plain.untied_projections = {0};
  plain.tie_tables = false;
  CHECK(names(plain) ==
        Names{"embedding.projection", "embedding.table", "output.bias", "output.projection", "output.table"});
  plain.tie_plain = false;
  plain.embedding_width = 0;
  CHECK(names(plain) == Names{"embedding.weight", "output.bias", "output.weight"});
}

TEST_CASE("with a start both ends are normal, with biases of 0", "[tokens]") {
  for (const std::int64_t divisor : {0, 1, 2}) {  // 0: no clusters
    TokenBench bench({.vocabulary = 900,
                      .width = 96,
                      .embedding_width = 64,
                      .cutoffs = divisor == 0 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{300, 600},
                      .divisor = divisor == 0 ? 4 : divisor,
                      .tie_tables = false,
                      .tie_projections = false,
                      .tie_plain = true,
                      .start = TokenStart{}},
                     *available_backends().front());
    for (const auto& [name, parameter] : bench.store.parameters()) {
      CAPTURE(divisor, name);
      const Array64 values = to_host(bench.backend, parameter->value());
      double largest = 0;
      for (const double value : values.data) largest = std::max(largest, std::abs(value));
      if (name.ends_with("bias")) {
        CHECK(largest == 0);
        continue;
      }
      const double deviation = name.ends_with("projection") ? 0.01 : 0.02;
      const double numbers = static_cast<double>(values.count());
      CHECK(reference::norm(values) / std::sqrt(numbers) == Approx(deviation).epsilon(3 / std::sqrt(2 * numbers)));
      CHECK(largest > 2 * deviation);  // beyond sqrt(3) of it, where a uniform distribution ends
    }
  }
}

TEST_CASE("options of both ends that do not fit are refused", "[tokens]") {
  const auto refusal = [](const TokenIoOptions& options) {
    return message_of<UsageError>([&] { make_token_io(options); });
  };
  TokenIoOptions clusters{.vocabulary = 17, .width = 8, .cutoffs = {5, 11}, .divisor = 0};
  CHECK_THAT(refusal(clusters), ContainsSubstring("divisor must be at least 1, got 0"));
  clusters.divisor = 3;
  CHECK_THAT(refusal(clusters),
             ContainsSubstring("8 / 3^2 after the cut-off 11") && ContainsSubstring("cutoffs = [5] would fit"));
  clusters.divisor = 2;
  for (const std::int64_t cluster : {-1, 3}) {
    clusters.untied_projections = {0, cluster};
    CHECK_THAT(refusal(clusters),
               ContainsSubstring(text("untied_projections must name clusters from 0 to 2, got ", cluster)));
  }
  TokenIoOptions plain{.vocabulary = 17, .width = 8, .cutoffs = {}};
  plain.embedding_width = 6;
  CHECK_THAT(refusal(plain), ContainsSubstring("as wide as the model, 8, got 6"));
  plain.tie_plain = true;
  CHECK_NOTHROW(make_token_io(plain));
  plain.untied_projections = {1};
  CHECK_THAT(refusal(plain), ContainsSubstring("untied_projections") && ContainsSubstring("got 1"));
  plain.untied_projections = {};
  plain.embedding_width = -2;
  CHECK_THAT(refusal(plain), ContainsSubstring("at least 1, got -2"));
}

TEST_CASE("gradients of one table and of one projection in bf16 are near those in f32", "[tokens]") {
  const std::vector<std::int32_t> inputs{16, 0, 4, 5, 12, 10, 11, 3}, targets{5, 16, 1, 10, 13, 4, 0, 11};
  for (const auto& backend : available_backends()) {
    if (!backend->stores_bf16()) continue;
    for (const std::int64_t size : {8, 5})
      for (const bool clusters : {true, false}) {
        std::vector<Values> gradients;
        for (const ActivationPrecision precision : {ActivationPrecision::f32, ActivationPrecision::bf16}) {
          TokenBench bench({.vocabulary = 17,
                            .width = 8,
                            .embedding_width = size,
                            .cutoffs = clusters ? std::vector<std::int64_t>{5, 11} : std::vector<std::int64_t>{},
                            .divisor = 1,
                            .tie_plain = true},
                           *backend, DType::f32);
          bench.set(random_values(bench.store, 2));
          bench.step.set_activations(precision);
          if (precision == ActivationPrecision::bf16) bench.store.keep_rounded(bench.step);
          bench.store.zero_gradients(bench.step);
          Tape tape(bench.step);
          const TokenBatch block = bench.batch(inputs, targets, 1);
          std::vector<Variable> losses;
          for (LossPart& part : bench.tokens().losses(bench.tokens().embed(tape, block), block, 1))
            losses.push_back(std::move(part.loss));
          tape.backward(losses);
          Values& all = gradients.emplace_back();
          for (const auto& [name, parameter] : bench.store.parameters())
            all[name] = to_host(*backend, parameter->gradient());
        }
        for (const auto& [name, expected] : gradients[0]) {
          CAPTURE(name_of(backend->device().kind), size, clusters, name);
          CHECK(reference::distance_between(gradients[1].at(name), expected) < 0.02 * reference::norm(expected));
        }
      }
  }
}

}  // namespace
}  // namespace engram::harness::token_io_test
