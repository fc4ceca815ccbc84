/// A model that begins with the weights of another one: which numbers it has then, tensor by tensor.

#include "apps/run/transfer/weight_transfer.hpp"

#include <algorithm>
#include <cmath>

#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/transfer/transfer_report.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/run/transfer/transfer_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::weight_transfer_test {
namespace {

/// A trained model, and one of the same configuration but for `changes` that begins with its weights.
struct Pair {
  RunFolder folder;
  SmallModel source;
  Values fresh, before, now;  // start values of the second model, the source's, and what the second has in the end
  WeightTransfer transfer;

  Pair(const std::string& toml, const std::vector<std::string>& of_source, std::vector<std::string> changes)
      : source(toml, folder.data(), of_source) {
    before = source.train(3).values();
    const auto path = source.save(folder / "source/model.safetensors");
    std::vector<std::string> overrides = of_source;
    overrides.insert(overrides.end(), changes.begin(), changes.end());
    SmallModel next(toml, folder.data(), overrides);
    fresh = next.values();
    transfer = next.begin_with(path);
    now = next.values();
  }
  std::vector<std::string> list(const char* key) const {
    std::vector<std::string> names;
    const nlohmann::json all = json_of(transfer);
    for (const auto& entry : all.at(key)) names.push_back(entry.is_object() ? entry.at("name") : entry);
    return names;
  }
};

double evaluated(const std::filesystem::path& checkpoint, const data::DataSet& data) {
  Runtime runtime({}, 1);
  TrainedModel model(checkpoint, CheckpointKind::newest, runtime);
  return evaluate_split(model, {data, "test"}, {.exact = true}).result.nll();
}

TEST_CASE("weights of the same model are taken to the last bit, in every family: so is its evaluation") {
  for (const std::string& toml : small_configs_of_families()) {
    CAPTURE(toml);
    const RunFolder folder;
    SmallModel source(toml, folder.data());
    const auto from = source.train(3).save(folder / "source/model.safetensors");
    SmallModel next(toml, folder.data(), {"training.seed=12"});
    REQUIRE(next.values() != source.values());
    const WeightTransfer transfer = next.begin_with(from);
    CHECK(next.values() == source.values());
    CHECK(transfer.taken_numbers() == transfer.all_numbers());
    CHECK(transfer.vectors == next.data.vocabulary().size());
    CHECK(transfer.left.empty());
    CHECK(transfer.model.empty());
    CHECK(transfer.step == 3);
    const double expected = evaluated(from, source.data);
    CHECK(evaluated(next.save(folder / "next/model.safetensors"), next.data) == expected);
    next.train(1);
    CHECK(evaluated(next.save(folder / "next/model.safetensors"), next.data) != expected);
  }
}

TEST_CASE("weights in f32 are taken into f64 and back") {
  const RunFolder folder;
  SmallModel source(small_config(), folder.data());
  const auto from = source.train(2).save(folder / "source/model.safetensors");
  SmallModel wide(small_config(), folder.data(), {"training.seed=3"}, DType::f64);
  wide.begin_with(from);
  CHECK(wide.values() == source.values());
  SmallModel narrow(small_config(), folder.data(), {"training.seed=4"});
  narrow.begin_with(wide.save(folder / "wide/model.safetensors"));
  CHECK(narrow.values() == source.values());
}

TEST_CASE("a longer span keeps positions and spans in tokens, a shorter one cuts them") {
  for (const double now_span : {96.0, 20.0}) {
    const Pair pair(small_config(), {"model.span_init=0.5"}, {text("model.max_span=", now_span)});
    CAPTURE(now_span);
    const std::vector<double>&keys = pair.now.at("position_keys"), &keys_before = pair.before.at("position_keys");
    const auto shared = static_cast<std::size_t>(std::min(48.0, now_span)) * 8;
    for (std::size_t i = 0; i < keys.size(); ++i)
      CHECK(keys[i] == (i < shared ? keys_before[i] : pair.fresh.at("position_keys")[i]));
    for (const char* const name : {"layers.0.attention.span", "layers.1.attention.span"})
      for (std::size_t head = 0; head < 2; ++head) {
        const double tokens = 48 * pair.before.at(name)[head];
        CHECK(pair.now.at(name)[head] * now_span == Approx(std::min(tokens, now_span)));
      }
    CHECK(pair.now.at("layers.0.attention.query") == pair.before.at("layers.0.attention.query"));
    CHECK(pair.transfer.model.size() == 1);
    CHECK(pair.list("partly").size() == (now_span > 48 ? 1 : 0));
  }
}

TEST_CASE("more persistent slots: those that were there add what they added, the others start anew") {
  const Pair pair(small_config(), {}, {"model.slots=7"});
  constexpr std::size_t kHeads = 2, kWidth = 8;
  const auto at = [&](const Values& values, const char* name, std::size_t slots, std::size_t head, std::size_t slot,
                      std::size_t i) { return values.at(name)[(head * slots + slot) * kWidth + i]; };
  constexpr const char* kKeys = "layers.1.attention.persistent_keys";
  constexpr const char* kValues = "layers.1.attention.persistent_values";
  for (std::size_t head = 0; head < kHeads; ++head)
    for (std::size_t slot = 0; slot < 7; ++slot)
      for (std::size_t i = 0; i < kWidth; ++i) {
        const bool was = slot < 5;
        CHECK(at(pair.now, kKeys, 7, head, slot, i) ==
              (was ? at(pair.before, kKeys, 5, head, slot, i) : at(pair.fresh, kKeys, 7, head, slot, i)));
        // Values are used times the root of the number of slots.
        if (was)
          CHECK(at(pair.now, kValues, 7, head, slot, i) * std::sqrt(7.0) ==
                Approx(at(pair.before, kValues, 5, head, slot, i) * std::sqrt(5.0)));
        else
          CHECK(at(pair.now, kValues, 7, head, slot, i) == at(pair.fresh, kValues, 7, head, slot, i));
      }
}

TEST_CASE("a grid of product keys of another size keeps the slots that both have") {
  for (const int now_keys : {8, 4}) {
    CAPTURE(now_keys);
    const Pair pair(small_memory_config(), {}, {text("product_key.subkeys=", now_keys)});
    constexpr const char* kRows = "layers.2.memory.values.rows";
    const auto n = static_cast<std::size_t>(now_keys);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b)
        for (std::size_t i = 0; i < 16; ++i) {
          const bool was = a < 6 && b < 6;
          const std::vector<double>& expected = (was ? pair.before : pair.fresh).at(kRows);
          CHECK(pair.now.at(kRows)[(a * n + b) * 16 + i] == expected[(was ? a * 6 + b : a * n + b) * 16 + i]);
        }
    constexpr const char* kKeys = "layers.2.memory.keys";  // [2 heads, 2 sets, n, 4]
    for (std::size_t set = 0; set < 4; ++set)
      for (std::size_t key = 0; key < n; ++key)
        CHECK(pair.now.at(kKeys)[(set * n + key) * 4] ==
              (key < 6 ? pair.before.at(kKeys)[(set * 6 + key) * 4] : pair.fresh.at(kKeys)[(set * n + key) * 4]));
    CHECK(pair.now.at("layers.2.memory.query.norm.running_mean") ==
          pair.before.at("layers.2.memory.query.norm.running_mean"));
  }
}

TEST_CASE("tables of positions keep the rows of the same distances") {
  const std::vector<std::string> learned{"model.positions=absolute_learned", "model.memory=0",
                                         "model.position_rows=44"};
  const Pair absolute(small_xl_config(), learned, {"model.position_rows=50"});
  constexpr const char* kTable = "layers.1.positions";
  for (std::size_t row = 0; row < 50; ++row)  // the last row is the last token's
    CHECK(absolute.now.at(kTable)[row * 16] ==
          (row < 6 ? absolute.fresh.at(kTable)[row * 16] : absolute.before.at(kTable)[(row - 6) * 16]));

  const Pair windows(small_memory_config(), {}, {"model.position_rows=30"});
  for (std::size_t row = 0; row < 30; ++row)  // row 0 is the first token's
    CHECK(windows.now.at("positions")[row * 16] ==
          (row < 24 ? windows.before : windows.fresh).at("positions")[row * 16]);

  const Pair recurrent(small_recurrent_config(), {}, {"model.window=6"});
  constexpr const char* kTemporal = "readout.temporal";
  const std::size_t width = recurrent.now.at(kTemporal).size() / 6;
  for (std::size_t row = 0; row < 6; ++row)  // the last row is the present word's
    CHECK(recurrent.now.at(kTemporal)[row * width] ==
          (row < 2 ? recurrent.fresh.at(kTemporal)[row * width] : recurrent.before.at(kTemporal)[(row - 2) * width]));
}

TEST_CASE("a recurrent model's tables are found where they are tied, and where they are not") {
  constexpr const char *kTied = "model.tie_tables=true", *kApart = "model.tie_tables=false";
  const std::vector<std::string> plain{"model.readout=n_gram", "model.parts=1", "model.embedding_width=24"};
  std::vector<std::string> source = plain;
  source.emplace_back(kTied);
  const Pair apart(small_recurrent_config(), source, {kApart});
  const std::vector<double>& table = apart.before.at("embedding.table");
  CHECK(apart.now.at("embedding.weight") == table);
  CHECK(apart.now.at("output.weight") == table);
  CHECK(apart.now.at("output.bias") == apart.before.at("output.bias"));
  CHECK(apart.transfer.taken_numbers() == apart.transfer.all_numbers());
  CHECK(apart.transfer.left.empty());
  // One table is that of the input; that of the output is left, and named.
  source.back() = kApart;
  const Pair tied(small_recurrent_config(), source, {kTied});
  CHECK(tied.now.at("embedding.table") == tied.before.at("embedding.weight"));
  CHECK(tied.transfer.left == std::vector<std::string>{"output.weight"});
}

TEST_CASE("the only layer of a recurrent model is the first of several, and the first of several the only one") {
  for (const std::string encoder : {"lstm", "qrnn"}) {
    CAPTURE(encoder);
    const std::vector<std::string> plain{"model.readout=n_gram", "model.parts=1", "model.encoder=" + encoder};
    std::vector<std::string> several = plain;
    several.emplace_back("model.layers=3");
    const auto check = [](const Pair& pair, const std::string& from, const std::string& to) {
      int found = 0;
      for (const auto& [name, values] : pair.now) {
        if (!name.starts_with(to)) continue;
        CHECK(values == pair.before.at(from + name.substr(to.size())));
        ++found;
      }
      CHECK(found > 0);
    };
    const Pair more(small_recurrent_config(), plain, {"model.layers=3"});
    check(more, "encoder.", "encoder.layers.0.");
    CHECK(more.transfer.left.empty());
    for (const auto& [name, values] : more.now)
      if (name.starts_with("encoder.layers.1.")) CHECK(values == more.fresh.at(name));
    check(Pair(small_recurrent_config(), several, {"model.layers=1"}), "encoder.layers.0.", "encoder.");
  }
}

TEST_CASE("Transformer-XL takes another length of memory without a change") {
  const Pair pair(small_xl_config(), {}, {"model.memory=40"});
  CHECK(pair.now == pair.before);
  CHECK(pair.transfer.model.size() == 1);
}

TEST_CASE("what a model did not have is new, what it has no more is left, and both are named") {
  const std::vector<std::string> memory{"product_key.layers=[2]", "product_key.subkeys=6", "product_key.heads=2",
                                        "product_key.selected=3", "product_key.query_width=8"};
  const Pair added(small_xl_config(), {}, memory);
  CHECK(added.now.at("layers.0.feed_forward.inner.weight") == added.before.at("layers.0.feed_forward.inner.weight"));
  for (const std::string& name : added.list("new")) {
    CHECK_THAT(name, ContainsSubstring("layers.1.memory."));
    CHECK(added.now.at(name) == added.fresh.at(name));
  }
  CHECK(added.list("new").size() > 4);
  CHECK(added.transfer.left ==
        std::vector<std::string>{"layers.1.feed_forward.inner.bias", "layers.1.feed_forward.inner.weight",
                                 "layers.1.feed_forward.outer.bias", "layers.1.feed_forward.outer.weight"});
  const std::string table = table_of(added.transfer, 80);
  CHECK_THAT(table, ContainsSubstring("left (4 tensors): layers.1.feed_forward.*\n"));

  const Pair deeper(small_config(), {}, {"model.layers=4"});
  CHECK(deeper.now.at("layers.1.attention.key") == deeper.before.at("layers.1.attention.key"));
  CHECK(deeper.now.at("layers.3.attention.key") == deeper.fresh.at("layers.3.attention.key"));
  CHECK_THAT(table_of(deeper.transfer, 80), ContainsSubstring("): layers.2-3.*\n"));
}

TEST_CASE("a new memory whose values are zeros leaves the model as it was") {
  const RunFolder folder;
  SmallModel source(small_xl_config(), folder.data());
  const auto from = source.train(3).save(folder / "source/model.safetensors");
  for (const std::string placement : {"after", "beside"}) {
    SmallModel next(
        small_xl_config(), folder.data(),
        {"product_key.layers=[2]", "product_key.subkeys=6", "product_key.heads=2", "product_key.selected=3",
         "product_key.query_width=8", "product_key.value_init=zeros", "product_key.placement=" + placement});
    next.begin_with(from);
    const auto to = next.save(folder / "next/model.safetensors");
    CHECK(evaluated(to, next.data) == evaluated(from, source.data));
  }
}

TEST_CASE("a matrix of another width is never cut, and where nothing fits there is one error") {
  const Pair wider(small_xl_config(), {}, {"model.inner=32"});
  constexpr const char* kInner = "layers.0.feed_forward.inner.weight";
  CHECK(wider.now.at(kInner) == wider.fresh.at(kInner));
  CHECK(wider.now.at("layers.0.attention.query") == wider.before.at("layers.0.attention.query"));
  const std::string table = table_of(wider.transfer, 80);
  CHECK_THAT(table, ContainsSubstring("of another shape, so new (6 tensors):"));
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = table.find('\n', begin);
    CHECK(end - begin <= 80);
    begin = end + 1;
  }

  const RunFolder folder;
  SmallModel source(small_config(), folder.data());
  const auto from = source.save(folder / "source/model.safetensors");
  SmallModel other(small_config(), folder.data(),
                   {"model.width=24", "model.heads=3", "model.slots=6", "model.max_span=40"});
  // Biases of the output have a number for each symbol, whatever the width; without any symbol nothing is left.
  CHECK(other.begin_with(from).taken_numbers() > 0);
  const auto strange = make_data(folder / "strange", "0123 4567 89\n" + std::string(4000, '5') + "0123 456789\n");
  SmallModel none(
      small_config(), strange,
      {"model.width=24", "model.heads=2", "model.slots=6", "model.max_span=40", "model.layers=1", "training.batch=2"});
  CHECK_NOTHROW(none.begin_with(from));  // line ends, blanks and heads' spans are shared
  SmallModel xl(small_xl_config(), folder.data());
  CHECK_THAT(message_of<UsageError>([&] { xl.begin_with(from); }),
             ContainsSubstring("of the family transformer_xl") && ContainsSubstring("all_attention"));
}

TEST_CASE("of a run whose weights are averaged the mean is taken, as evaluation has it") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"training.weight_average=true", "training.validate_every=1", "schedule.rate=1e-9",
                       "schedule.steps=16", "schedule.warmup=0"};
  run_training(options, never());
  const auto path = checkpoint_path(options.out, CheckpointKind::newest);
  Runtime runtime({}, 1);
  TrainedModel evaluated_model(path, CheckpointKind::newest, runtime);
  REQUIRE(evaluated_model.averaged_over() > 0);
  SmallModel next(small_config(), folder.data());
  const WeightTransfer transfer = next.begin_with(options.out);
  CHECK(transfer.averaged);
  const Values now = next.values();
  for (const auto& [name, parameter] : evaluated_model.store().parameters())
    CHECK(now.at(name) == host_doubles(runtime.backend(), parameter->value()));
}

TEST_CASE("names of tensors in few words") {
  const std::vector<std::string> all{"embedding.weight", "layers.0.a",  "layers.0.b", "layers.1.a", "layers.1.b",
                                     "layers.10.a",      "layers.10.b", "layers.2.a", "layers.2.b"};
  CHECK(grouped_names({"embedding.weight", "layers.0.a", "layers.1.a", "layers.10.a"}, all) ==
        std::vector<std::string>{"embedding.weight", "layers.0-1,10.a"});
  CHECK(grouped_names({"layers.1.a", "layers.1.b", "layers.10.b", "layers.2.a", "layers.2.b"}, all) ==
        std::vector<std::string>{"layers.1-2.*", "layers.10.b"});
  CHECK(grouped_names({"layers.0.x.a", "layers.0.x.b.c", "layers.0.x.b.d", "output.a"},
                      {"layers.0.a", "layers.0.x.a", "layers.0.x.b.c", "layers.0.x.b.d", "output.a", "output.b"}) ==
        std::vector<std::string>{"layers.0.x.*", "output.a"});
  CHECK(grouped_names({}, all).empty());
}

}  // namespace
}  // namespace engram::harness::weight_transfer_test
