/// The maps of a page against the studies that they are made of, in every family.

#include "apps/studies/page/attention_maps.hpp"

#include <cmath>
#include <limits>

#include "apps/run/model/runtime.hpp"
#include "apps/studies/attention/distance_study.hpp"
#include "apps/studies/page/tensor_statistics.hpp"
#include "core/error.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::attention_maps_test {
namespace {

/// A trained model as the page opens it, and the beginning of its validation text.
struct MapModel {
  Runtime runtime{{}, 1};
  TrainedModel trained;
  std::vector<std::int32_t> tokens;
  MapModel(const TrainingRunOptions& options, std::int64_t count)
      : trained(options.out, CheckpointKind::newest, runtime) {
    const data::DataSet data = data::DataSet::open(options.data);
    const data::TokenView split = data.split("valid").beginning(count);
    tokens.resize(static_cast<std::size_t>(split.size()));
    split.copy(0, split.size(), tokens.data());
  }
};

double weight_of(const AttentionMaps& maps, const AttentionMap& head, std::int64_t row, std::int64_t column) {
  const std::int64_t columns = maps.distance_columns + maps.slot_columns;
  const double root = head.cells[static_cast<std::size_t>(row * columns + column)] / 255.0;
  return root * root * head.most;
}

TEST_CASE("cells of an all-attention model are the weights of its study") {
  const RunFolder folder;
  const TrainingRunOptions options = run_options(folder, "run");
  run_training(options, never());
  MapModel model(options, 100);
  const AttentionMaps maps = read_maps(model.trained, model.tokens, "a text");
  REQUIRE(maps.heads.size() == 4);
  CHECK((maps.rows == 64 && maps.nearest == 1 && maps.distance_bin == 1 && maps.slot_columns == 5));
  CHECK(maps.tokens.size() == 100);
  AttentionStudy study(model.trained.placed_as<AllAttentionModel>(), {.layer = 1, .head = 1, .rows = 64});
  study.read(model.tokens, 40);
  const AttentionMap& head = maps.heads[3];
  CHECK((head.layer == 1 && head.head == 1));
  // Half a step of the roots of weights.
  const auto close = [&head](double root, double weight) {
    return std::abs(root - std::sqrt(weight / head.most)) <= 0.5 / 255 + 1e-9;
  };
  for (std::int64_t row = 0; row < 64; ++row) {
    const AttentionRow& expected = study.rows()[static_cast<std::size_t>(row)];
    for (std::int64_t at = 0; at < maps.distance_columns + 5; ++at) {
      const bool is_slot = at >= maps.distance_columns;
      const auto place = static_cast<std::size_t>(is_slot ? at - maps.distance_columns : at);
      const double weight = is_slot                           ? expected.slots[place]
                            : place < expected.context.size() ? expected.context[place]
                                                              : 0;
      CHECK(close(std::sqrt(weight_of(maps, head, row, at) / head.most), weight));
    }
  }
  REQUIRE(head.slots.size() == 3);
  CHECK(head.slots[0].share >= head.slots[1].share);
  CHECK(head.slots[0].hits.size() == 4);
}

TEST_CASE("maps by distance, of windows too: weights of a query add up to 1") {
  const RunFolder folder;
  TrainingRunOptions xl = run_options(folder, "xl");
  xl.config =
      put_file(folder / "xl.toml",
               "[model]\nfamily = \"transformer_xl\"\nlayers = 2\nwidth = 16\nheads = 2\ninner = 24\nmemory = 20\n"
               "[optimizer]\nkind = \"adam\"\n[schedule]\nrate = 0.01\nsteps = 4\n[training]\nbatch = 2\nblock = "
               "20\nvalidate_every = 4\nvalidate_blocks = 2\n");
  run_training(xl, never());
  const ArticleFolder articles;
  const TrainingRunOptions windows =
      recurrent_run(articles, "windows", {"model.readout=key_value_predict", "model.window=3", "schedule.steps=5"});
  run_training(windows, never());
  const TrainingRunOptions memories = memory_run(folder, "memories", {"schedule.steps=3"});
  run_training(memories, never());
  for (const TrainingRunOptions& options : {xl, windows, memories}) {
    MapModel model(options, 90);
    const AttentionMaps maps = read_maps(model.trained, model.tokens, "a text");
    const ModelFamily family = model.trained.config().model.family;
    const bool is_xl = family == ModelFamily::transformer_xl, is_window = family == ModelFamily::recurrent;
    CHECK(maps.heads.size() == (is_xl ? 4 : is_window ? 1 : 6));
    CHECK(maps.nearest == (is_window ? 1 : 0));
    // Those of product keys read windows of 20, the last of which has 10 tokens: rows 26 to 63 are of three of them.
    CHECK(maps.window == (family == ModelFamily::product_key ? 20 : 0));
    if (maps.window > 0) CHECK(maps.distance_columns <= 20);
    for (const AttentionMap& head : maps.heads)
      for (std::int64_t row = 0; row < maps.rows; ++row) {
        double sum = 0;
        for (std::int64_t at = 0; at < maps.distance_columns; ++at) sum += weight_of(maps, head, row, at);
        CHECK(sum == Approx(1).margin(0.05));  // of rounded roots
      }
    if (!is_xl) continue;
    DistanceStudy study(model.trained.placed_as<TransformerXlModel>());
    study.read(model.tokens, 20);
    CHECK(study.queries() == 90);
    CHECK(study.heads()[2].layer == maps.heads[2].layer);
  }
}

TEST_CASE("models without weights to show say why") {
  ModelOptions identity;
  identity.family = ModelFamily::recurrent;
  identity.recurrent.readout = ReadoutKind::identity;
  std::string reason;
  CHECK(!has_maps(identity, reason));
  CHECK_THAT(reason, ContainsSubstring("identity"));
  ModelOptions memory;
  memory.family = ModelFamily::product_key;
  reason.clear();
  CHECK((has_maps(memory, reason) && reason.empty()));
}

TEST_CASE("statistics of a tensor leave out what is not finite") {
  const double inf = std::numeric_limits<double>::infinity();
  const TensorStatistics found = statistics_of("t", {5}, {3, -1, inf, std::nan(""), 0});
  CHECK((found.count == 5 && found.not_finite == 2));
  CHECK((found.least == -1 && found.most == 3));
  CHECK(found.norm == Approx(std::sqrt(10)));
  CHECK(found.mean == Approx(2.0 / 3));
  CHECK((found.histogram[0] == 1 && found.histogram[63] == 1 && found.histogram[16] == 1));
  CHECK(statistics_of("same", {3}, {2, 2, 2}).histogram[0] == 3);
  CHECK(statistics_of("nothing", {0}, {}).norm == 0);
}

}  // namespace
}  // namespace engram::harness::attention_maps_test
