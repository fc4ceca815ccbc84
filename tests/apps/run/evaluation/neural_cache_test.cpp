/// A cache mixed into a model's probabilities: numbers by hand, and an evaluation with it, whatever the blocks.

#include "apps/run/evaluation/neural_cache.hpp"

#include <array>
#include <cmath>
#include <map>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "core/error.hpp"
#include "nn/models/recurrent.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::neural_cache_test {
namespace {

using Vector = std::vector<double>;

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.below(9));
  return tokens;
}

/// A model as it starts, and a text of four articles for it.
struct CacheBench {
  Runtime runtime{{}, 1};
  ParameterStore store;
  RecurrentModel model{{.vocabulary = 9,
                        .embedding_width = 5,
                        .width = 12,
                        .readout = ReadoutKind::key_value,
                        .window = 3,
                        .init_range = 0.6}};
  std::vector<std::int32_t> tokens = some_tokens(160, 3);
  std::vector<std::int64_t> starts{0, 50, 51, 110};
  std::vector<Vector> vectors = std::vector<Vector>(160);  // that entered the softmax, by place of the target

  CacheBench() {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 7);
  }
  /// Losses by place, with a cache or without.
  std::vector<double> losses(const NeuralCacheOptions& cache, int block, int rows) {
    data::ArticleEvaluation plan({data::TokenView(tokens), starts, 0}, block, rows);
    ModelPast past = model.frozen_past(runtime.backend(), runtime.memory(), rows, DType::f64, block);
    std::vector<double> found(tokens.size(), -1);
    StreamCaches caches(cache);
    const auto change = [&](const data::Block& of, const Tensor& hidden, std::span<double> nll) {
      Vector host(static_cast<std::size_t>(hidden.count()));
      runtime.backend().copy(host.data(), hidden.raw(), hidden.bytes(), CopyKind::device_to_host);
      const std::size_t width = host.size() / nll.size();
      for (std::size_t i = 0; i < nll.size(); ++i)
        if (of.scored[i] != 0)
          vectors[static_cast<std::size_t>(of.places[i])].assign(&host[i * width], &host[i * width] + width);
      if (cache.positions > 0) caches.apply(of, host, nll);
    };
    evaluate({model, runtime, DType::f64}, plan, past,
             {.found = [&](std::int64_t place, double nll) { found[static_cast<std::size_t>(place)] = nll; },
              .reads = {},
              .change = change});
    return found;
  }
};

}  // namespace

TEST_CASE("neural cache: two pairs by hand", "[cache]") {
  const double uniform = std::log(4.0);
  NeuralCache cache({.positions = 5, .theta = std::log(3.0), .lambda = 0.2}, 2);
  const Vector right{1, 0}, up{0, 1};
  CHECK(cache.loss(right, 0, 1.25) == 1.25);  // an empty cache says nothing
  cache.push(right, 0);
  cache.push(up, 1);
  const double expected[] = {.35, .25, .2, .2};
  for (std::int32_t word = 0; word < 4; ++word)
    CHECK(std::exp(-cache.loss(right, word, uniform)) == Approx(expected[word]).epsilon(1e-14));
  // p_cache itself: 3/4 and 1/4.
  CHECK((std::exp(-cache.loss(right, 0, uniform)) - .2) / .2 == Approx(.75).epsilon(1e-13));
  CHECK((std::exp(-cache.loss(right, 1, uniform)) - .2) / .2 == Approx(.25).epsilon(1e-13));

  NeuralCache without({.positions = 5, .theta = 1, .lambda = 0}, 2);
  without.push(right, 0);
  CHECK(without.loss(right, 0, 1.2345) == 1.2345);
}

TEST_CASE("neural cache: the oldest go, large scores are no overflow, and a reset forgets", "[cache]") {
  NeuralCache cache({.positions = 2, .theta = 1, .lambda = 0.5}, 1);
  const Vector one{1}, large{1e4};
  for (const std::int32_t word : {7, 1, 2}) cache.push(one, word);
  CHECK(std::exp(-cache.loss(one, 7, std::log(2.0))) == Approx(.25));  // 7 is gone
  CHECK(std::exp(-cache.loss(one, 1, std::log(2.0))) == Approx(.5));
  cache.push(large, 3);
  CHECK(std::exp(-cache.loss(large, 3, std::log(2.0))) == Approx(.75));
  CHECK(std::exp(-cache.loss(large, 2, std::log(2.0))) == Approx(.25));
  cache.reset();
  CHECK(cache.loss(one, 3, 0.5) == 0.5);
  cache.push(one, 4);
  CHECK(std::exp(-cache.loss(one, 4, std::log(2.0))) == Approx(.75));
  CHECK(std::exp(-cache.loss(one, 2, std::log(2.0))) == Approx(.25));
  CHECK(cache.loss(one, 2, 1000) == Approx(1000 + std::log(2.0)));  // exp(-1000) is 0
}

TEST_CASE("neural cache: an evaluation is the formula, whatever blocks and streams", "[cache]") {
  CacheBench bench;
  const std::vector<double> plain = bench.losses({}, 16, 1);
  const NeuralCacheOptions options{.positions = 20, .theta = 0.7, .lambda = 0.3};
  const std::vector<double> cached = bench.losses(options, 16, 1);

  // All of it, word by word, from the vectors that entered the softmax.
  std::size_t changed = 0;
  for (std::size_t place = 0; place < plain.size(); ++place) {
    std::size_t start = 0;
    for (const std::int64_t begin : bench.starts)
      if (static_cast<std::size_t>(begin) <= place) start = static_cast<std::size_t>(begin);
    std::map<std::int32_t, double> of_word;
    double all = 0;
    for (std::size_t i = place < start + 20 ? start : place - 20; i < place; ++i) {
      double product = 0;
      for (std::size_t k = 0; k < bench.vectors[i].size(); ++k)
        product += bench.vectors[i][k] * bench.vectors[place][k];
      of_word[bench.tokens[i]] += std::exp(0.7 * product);
      all += std::exp(0.7 * product);
    }
    const double expected =
        all == 0 ? plain[place] : -std::log(.7 * std::exp(-plain[place]) + .3 * of_word[bench.tokens[place]] / all);
    CHECK(cached[place] == Approx(expected).epsilon(1e-10));
    changed += cached[place] != plain[place] ? 1 : 0;
  }
  CHECK(changed > 140);

  for (const auto& [block, rows] : {std::pair(1, 1), {7, 1}, {200, 1}, {5, 3}, {16, 4}}) {
    CAPTURE(block, rows);
    const std::vector<double> other = bench.losses(options, block, rows);
    for (std::size_t i = 0; i < cached.size(); ++i) CHECK(other[i] == Approx(cached[i]).epsilon(1e-10));
  }
  CHECK(bench.losses({.positions = 20, .theta = 0.7, .lambda = 0}, 16, 1) == plain);
}

TEST_CASE("neural cache: the command", "[cache]") {
  const RunFolder folder(3000, 1, data::TokenKind::word);
  const auto path = [&](const char* name) { return (folder / name).string(); };
  put_file(folder / "recurrent.toml", R"([model]
family = "recurrent"
embedding_width = 8
width = 12
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 6
[training]
batch = 4
block = 10
)");
  const auto train = [&](const Arguments& more) {
    Arguments all{"train", "--data", path("data")};
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult trained = run_engram(all);
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
  };
  train({"--config", path("recurrent.toml"), "--out", path("run")});
  const auto evaluated = [&](const Arguments& more) {
    Arguments all{"evaluate", path("run"), "--data", path("data"), "--split", "test", "--dtype", "f64", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto nll = [&](const Arguments& more) { return json_of(evaluated(more)).at("nll").get<double>(); };
  const double plain = nll({});
  CHECK(nll({"--cache", "50", "--cache-lambda", "0"}) == plain);
  const nlohmann::json cached = json_of(evaluated({"--cache", "50", "--cache-theta", "0.5"}));
  CHECK(cached.at("cache").at("positions") == 50);
  CHECK(cached.at("cache").at("theta") == 0.5);
  CHECK(cached.at("cache").at("lambda") == 0.1);
  CHECK(cached.at("nll").get<double>() != plain);
  CHECK(nll({"--cache", "50", "--cache-theta", "0.5", "--exact"}) ==
        Approx(nll({"--cache", "50", "--cache-theta", "0.5", "--exact", "--block", "7"})).epsilon(1e-10));

  CHECK_THAT(error_of(evaluated({"--cache-theta", "2"}), 2), ContainsSubstring("are those of --cache"));
  CHECK_THAT(error_of(evaluated({"--cache", "9", "--cache-lambda", "1"}), 2), ContainsSubstring("in [0, 1), got 1"));
  CHECK_THAT(error_of(evaluated({"--cache", "-9"}), 2), ContainsSubstring("at least 0, got '-9'"));
  CHECK_THAT(error_of(evaluated({"--cache", "9", "--cache-theta", "1e308"}), 2),
             ContainsSubstring("--cache-theta must be from 0 to 1e+09, got 1e+308"));
  CHECK_THAT(error_of(evaluated({"--cache", "9", "--window", "20"}), 2), ContainsSubstring("--window too"));
  put_file(folder / "other.toml", small_config());
  train({"--config", path("other.toml"), "--out", path("other"), "--set", "schedule.steps=1"});
  CHECK_THAT(error_of({"evaluate", path("other"), "--data", path("data"), "--cache", "9"}, 2),
             ContainsSubstring("of family recurrent, got one of family all_attention"));
}

}  // namespace engram::harness::neural_cache_test
