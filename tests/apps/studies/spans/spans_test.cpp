/// The span report: positions, the released average, costs, and the history of a run.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/model/runtime.hpp"
#include "apps/studies/spans/head_spans.hpp"
#include "apps/studies/spans/span_history.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::spans_test {
namespace {

AllAttentionOptions options_of(std::int64_t layers, std::int64_t heads, std::int64_t max_span) {
  AllAttentionOptions options;
  options.vocabulary = 10;
  options.layers = layers;
  options.width = 8 * heads;
  options.heads = heads;
  options.slots = 4;
  options.max_span = max_span;
  return options;
}

void save_spans(const std::filesystem::path& path, const std::vector<float>& zeta) {
  const auto heads = static_cast<std::int64_t>(zeta.size());
  const float other = 7;
  write_safetensors(path,
                    std::vector{host_tensor("layers.0.attention.span", DType::f32, {heads}, zeta.data()),
                                host_tensor("output.bias", DType::f32, {1}, &other)},
                    {});
}

}  // namespace

TEST_CASE("zeta and positions of every head") {
  const AllAttentionOptions model = options_of(2, 2, 100);
  const auto layers = spans_of(model, {{0, 0.25}, {0.501, 1}});
  CHECK(layers.at(0).at(0).span == 0);
  CHECK(layers.at(0).at(0).positions == 32);
  CHECK(layers.at(0).at(1).span == 25);
  CHECK(layers.at(0).at(1).positions == 57);
  CHECK(layers.at(1).at(0).span == Approx(50.1));
  CHECK(layers.at(1).at(0).positions == 83);
  CHECK(layers.at(1).at(1).positions == 100);
  CHECK(range_of(layers[0]).least == 32);
  CHECK(range_of(layers[0]).mean == 44.5);
  CHECK(range_of(layers[0]).most == 57);

  const SpanStatistics all = span_statistics(model, layers, 50);
  CHECK(all.mean_positions == Approx((32 + 57 + 83 + 100) / 4.0));
  CHECK(all.most_positions == 100);
  // ceil(100 * 0.125) + 32 = 45 and min(100, ceil(75.05) + 32) = 100.
  CHECK(all.released_mean == 72.5);
  CHECK(all.released_most == 100);
  // Attention to the context costs in proportion to the window: 18 d + 8 d^2 / M FLOPs per position and layer.
  const double per_position = 2 * (18 * 16 + 8 * 16 * 16 / 50.0);
  CHECK(all.flops_ragged == Approx(per_position * 68));
  CHECK(all.flops_layer == Approx(per_position * (57 + 100) / 2));
  CHECK(all.flops_full == Approx(per_position * 100));
}

TEST_CASE("fixed spans are constant") {
  AllAttentionOptions model = options_of(3, 2, 40);
  model.span = SpanKind::fixed;
  const auto layers = spans_of(model, {});
  REQUIRE(layers.size() == 3);
  for (const LayerSpans& heads : layers)
    for (const HeadSpan& head : heads) CHECK(head.positions == 40);
  const SpanStatistics all = span_statistics(model, layers, 8);
  CHECK(all.mean_positions == 40);
  CHECK(all.released_mean == 40);
  CHECK(all.flops_ragged == all.flops_full);
}

TEST_CASE("spans are read from a checkpoint without its other tensors") {
  const harness::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  const AllAttentionOptions model = options_of(1, 2, 64);
  save_spans(path, {0.5f, 0});
  const auto layers = read_spans(CheckpointFile(path), model);
  CHECK(layers.at(0).at(0).zeta == 0.5);
  CHECK(layers.at(0).at(0).positions == 64);
  CHECK(layers.at(0).at(1).positions == 32);

  save_spans(path, {0.5f, 0, 0});
  CHECK_THROWS_AS(read_spans(CheckpointFile(path), model), FileError);
  save_spans(path, {0.5f, 1.25f});
  const std::string message = harness::message_of<FileError>([&] { read_spans(CheckpointFile(path), model); });
  CHECK_THAT(message, ContainsSubstring("layers.0.attention.span") && ContainsSubstring("1.25"));
  CHECK_THROWS_AS(read_spans(CheckpointFile(path), options_of(2, 2, 64)), FileError);
}

TEST_CASE("the history leaves out what a resumed run lost, and a torn last line") {
  const harness::TemporaryFolder folder;
  const auto train = [](int step, int mean) {
    return "{\"event\":\"train\",\"step\":" + std::to_string(step) + ",\"span_mean\":" + std::to_string(mean) +
           ",\"span_longest\":90,\"span_layer_mean\":50.5,\"spans\":[[90," + std::to_string(mean) + "],[3,4]]}\n";
  };
  const std::filesystem::path path = harness::put_file(
      folder / "metrics.jsonl", "{\"event\":\"start\",\"step\":0}\n" + train(10, 40) + train(20, 41) + train(30, 42) +
                                    "{\"event\":\"resume\",\"step\":20}\n" + train(30, 43) +
                                    "{\"event\":\"valid_short\",\"step\":30,\"bpc\":2}\n{\"event\":\"tra");
  const std::vector<SpanMoment> history = read_span_history(path);
  REQUIRE(history.size() == 3);
  CHECK(history[0].step == 10);
  CHECK(history[1].mean == 41);
  CHECK(history[2].step == 30);
  CHECK(history[2].mean == 43);
  CHECK(history[2].longest == 90);
  CHECK(history[2].released_mean == 50.5);
  CHECK(history[2].heads == std::vector<std::vector<std::int64_t>>{{90, 43}, {3, 4}});

  // Runs that were made before the metrics had every head.
  harness::put_file(path,
                    "{\"event\":\"train\",\"step\":5,\"span_mean\":3,\"span_longest\":4,\"span_layer_mean\":2}\n");
  REQUIRE(read_span_history(path).size() == 1);
  CHECK(read_span_history(path)[0].heads.empty());

  harness::put_file(path, train(10, 40) + "not a report\n");
  CHECK_THAT(harness::message_of<FileError>([&] { read_span_history(path); }), ContainsSubstring("line 2"));
  CHECK_THROWS_AS(read_span_history(folder / "none.jsonl"), FileError);
}

}  // namespace engram::spans_test
