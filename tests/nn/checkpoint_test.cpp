#include "nn/checkpoint.hpp"

#include <cstring>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::checkpoint_test {

namespace {

struct Fixture {
  TemporaryFolder folder;
  std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu, 0});
  HeapAllocator memory{*backend};

  template <class T>
  NamedTensor named(std::string name, Shape shape, const std::vector<T>& values) {
    Tensor tensor(shape, dtype_of<T>, backend->device(), memory);
    REQUIRE(values.size() * sizeof(T) == tensor.bytes());
    if (!values.empty()) std::memcpy(tensor.raw(), values.data(), tensor.bytes());
    return {std::move(name), tensor};
  }
  NamedTensor f32(std::string name, const std::vector<float>& values) {
    return named(std::move(name), {static_cast<std::int64_t>(values.size())}, values);
  }
  NamedTensor f64(std::string name, const std::vector<double>& values) {
    return named(std::move(name), {static_cast<std::int64_t>(values.size())}, values);
  }
  std::filesystem::path save(const std::vector<NamedTensor>& tensors, const Metadata& metadata = {}) {
    save_checkpoint(folder / "model.safetensors", *backend, tensors, metadata);
    return folder / "model.safetensors";
  }
  // The message of a refused load, after a look that no wanted tensor has changed.
  std::string refusal(const std::filesystem::path& path, const std::vector<NamedTensor>& wanted,
                      const LoadRules& rules = {}) {
    std::vector<std::string> before;
    for (const NamedTensor& one : wanted)
      before.emplace_back(static_cast<const char*>(one.tensor.raw()), one.tensor.bytes());
    const CheckpointFile file(path);
    const std::string message = message_of<FileError>([&] { file.load(*backend, wanted, rules); });
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(std::memcmp(wanted[i].tensor.raw(), before[i].data(), before[i].size()) == 0);
    return message;
  }
};

template <class T>
std::vector<T> values(const NamedTensor& named) {
  return {named.tensor.data<T>(), named.tensor.data<T>() + named.tensor.count()};
}

}  // namespace

TEST_CASE("checkpoint: all element types, views and metadata come back", "[checkpoint]") {
  Fixture f;
  const NamedTensor block = f.named<float>("block", {3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<NamedTensor> saved{
      {"weights", block.tensor.rows(1, 3)},
      f.f64("optimizer/sum", {1e300, -0.1}),
      f.named<bf16>("half", {2}, {bf16(1.0f), bf16(-2.5f)}),
      f.named<std::int32_t>("state/position", {}, {1'000'000}),
      f.named<float>("empty", {0, 4}, {}),
  };
  const CheckpointFile file(f.save(saved, {{"step", "7"}}));
  CHECK(file.metadata() == Metadata{{"step", "7"}});
  CHECK(file.names() == std::vector<std::string>{"empty", "half", "optimizer/sum", "state/position", "weights"});
  CHECK(file.has("half"));
  CHECK_FALSE(file.has("hal"));
  CHECK(file.has_group("optimizer/"));
  CHECK_FALSE(file.has_group("optimizer/sums"));
  CHECK_FALSE(file.has_group("z"));
  CHECK(file.at("weights").shape == Shape{2, 2});
  CHECK_THAT(message_of<FileError>([&] { file.at("nothing"); }), ContainsSubstring("'nothing'"));

  const std::vector<NamedTensor> loaded{
      f.named<float>("weights", {2, 2}, {0, 0, 0, 0}),
      f.f64("optimizer/sum", {0, 0}),
      f.named<bf16>("half", {2}, {bf16(0.0f), bf16(0.0f)}),
      f.named<std::int32_t>("state/position", {}, {0}),
      f.named<float>("empty", {0, 4}, {}),
  };
  file.load(*f.backend, loaded);
  CHECK(values<float>(loaded[0]) == std::vector<float>{3, 4, 5, 6});
  CHECK(values<double>(loaded[1]) == std::vector<double>{1e300, -0.1});
  CHECK(values<bf16>(loaded[2])[1].bits == bf16(-2.5f).bits);
  CHECK(values<std::int32_t>(loaded[3]) == std::vector<std::int32_t>{1'000'000});
}

TEST_CASE("checkpoint: one error lists everything that differs, and nothing is written", "[checkpoint]") {
  Fixture f;
  const auto path =
      f.save({f.f32("same", {1, 2}), f.f32("longer", {1, 2, 3}), f.f64("double", {1}), f.f32("old", {1})});
  const std::string message =
      f.refusal(path, {f.f32("same", {8, 9}), f.f32("longer", {0, 0}), f.f32("double", {0}), f.f32("new", {0, 0})});
  CHECK_THAT(message, ContainsSubstring(path.string()) && ContainsSubstring("got 4 differences"));
  CHECK_THAT(message, ContainsSubstring("\n  missing: new f32 [2]"));
  CHECK_THAT(message, ContainsSubstring("\n  extra: old f32 [1]"));
  CHECK_THAT(message, ContainsSubstring("\n  different: longer must be f32 [2], got f32 [3]"));
  CHECK_THAT(message, ContainsSubstring("\n  different: double must be f32 [1], got f64 [1]"));
}

TEST_CASE("checkpoint: shapes of one count are not one shape", "[checkpoint]") {
  Fixture f;
  const auto path = f.save({f.named<float>("w", {2, 3}, {1, 2, 3, 4, 5, 6})});
  CHECK_THAT(f.refusal(path, {f.named<float>("w", {3, 2}, {0, 0, 0, 0, 0, 0})}),
             ContainsSubstring("got 1 difference\n") && ContainsSubstring("must be f32 [3, 2], got f32 [2, 3]"));
}

TEST_CASE("checkpoint: groups may be absent or ignored only where the rules say so", "[checkpoint]") {
  Fixture f;
  const NamedTensor w = f.f32("w", {1});
  const std::vector<NamedTensor> wanted{f.f32("w", {0}), f.f32("optimizer/w/a", {5}), f.f32("optimizer/w/b", {6})};
  LoadRules lenient;
  lenient.may_be_absent = {"optimizer/"};

  SECTION("a whole group is absent and keeps its values") {
    const auto path = f.save({w});
    CHECK_THAT(f.refusal(path, wanted),
               ContainsSubstring("missing: optimizer/w/a") && ContainsSubstring("missing: optimizer/w/b"));
    CheckpointFile(path).load(*f.backend, wanted, lenient);
    CHECK(values<float>(wanted[0]) == std::vector<float>{1});
    CHECK(values<float>(wanted[1]) == std::vector<float>{5});
  }
  SECTION("a part of a group is not") {
    const auto path = f.save({w, f.f32("optimizer/w/a", {1})});
    CHECK_THAT(f.refusal(path, wanted, lenient),
               ContainsSubstring("missing: optimizer/w/b") && !ContainsSubstring("optimizer/w/a"));
  }
  SECTION("a group nobody wants") {
    const auto path = f.save({w, f.f32("state/cache", {1}), f.f32("statement", {1})});
    LoadRules ignoring;
    ignoring.may_be_ignored = {"state/", "optimizer/"};
    CHECK_THAT(f.refusal(path, {f.f32("w", {0})}, ignoring),
               ContainsSubstring("extra: statement") && !ContainsSubstring("state/cache"));
    const auto clean = f.save({w, f.f32("state/cache", {1})});
    const NamedTensor loaded = f.f32("w", {0});
    CheckpointFile(clean).load(*f.backend, std::vector{loaded}, ignoring);
    CHECK(values<float>(loaded) == std::vector<float>{1});
  }
  SECTION("a group that may be ignored must still fit when it is wanted") {
    const auto path = f.save({w, f.f32("state/cache", {1, 2})});
    LoadRules ignoring;
    ignoring.may_be_ignored = {"state/"};
    CHECK_THAT(f.refusal(path, {f.f32("w", {0}), f.f32("state/cache", {0})}, ignoring),
               ContainsSubstring("different: state/cache"));
  }
}

TEST_CASE("checkpoint: f32 and f64 are converted when asked, and only when the values fit", "[checkpoint]") {
  Fixture f;
  const double infinity = std::numeric_limits<double>::infinity();
  LoadRules converting;
  converting.convert_floats = true;

  const auto narrow = f.save({f.f64("w", {0.1, -infinity, 1e-60}), f.f64("v", {1})});
  const std::vector<NamedTensor> floats{f.f32("w", {0, 0, 0}), f.f64("v", {0})};
  CHECK_THAT(f.refusal(narrow, floats), ContainsSubstring("w must be f32 [3], got f64 [3]"));
  CheckpointFile(narrow).load(*f.backend, floats, converting);
  CHECK(values<float>(floats[0]) == std::vector<float>{0.1f, static_cast<float>(-infinity), 0.0f});
  CHECK(values<double>(floats[1]) == std::vector<double>{1});

  // Longer than one chunk of the conversion.
  const std::int64_t count = (1 << 20) + 3;
  std::vector<float> many(count);
  for (std::int64_t i = 0; i < count; ++i) many[i] = static_cast<float>(i) / 3.0f;
  const auto wide = f.save({f.f32("w", many)});
  const NamedTensor doubles = f.f64("w", std::vector<double>(count));
  CheckpointFile(wide).load(*f.backend, std::vector{doubles}, converting);
  const bool equal = values<double>(doubles) == std::vector<double>(many.begin(), many.end());
  CHECK(equal);  // not the vectors, which would be printed

  const auto large = f.save({f.f64("w", {1, 1e39})});
  CHECK_THAT(f.refusal(large, {f.f32("w", {0, 0})}, converting),
             ContainsSubstring("w must fit f32, got 1e+39 at element 1"));
  const auto half = f.save({f.named<bf16>("w", {1}, {bf16(1.0f)})});
  CHECK_THAT(f.refusal(half, {f.f32("w", {0})}, converting), ContainsSubstring("w must be f32 [1], got bf16 [1]"));
}

TEST_CASE("checkpoint: wrong use is an error before anything happens", "[checkpoint]") {
  Fixture f;
  const auto path = f.save({f.f32("w", {1})});
  CHECK_THROWS_AS(f.save({f.f32("a", {1}), f.f32("a", {2})}), Error);
  CHECK_THROWS_AS(f.save({f.f32("", {1})}), Error);
  CHECK_THROWS_AS(f.save({{"a", Tensor()}}), Error);
  const Tensor elsewhere({1}, DType::f32, {DeviceKind::cuda, 0}, f.memory);
  CHECK_THROWS_AS(f.save({{"a", elsewhere}}), DeviceError);
  const CheckpointFile file(path);
  CHECK(file.names() == std::vector<std::string>{"w"});
  CHECK_THROWS_AS(file.load(*f.backend, std::vector{f.f32("w", {0}), f.f32("w", {0})}), Error);
  CHECK_THROWS_AS(file.load(*f.backend, std::vector<NamedTensor>{{"w", elsewhere}}), DeviceError);
  CHECK_THROWS_AS(save_checkpoint(f.folder / "no/x", *f.backend, std::vector{f.f32("w", {1})}, {}), FileError);
}

TEST_CASE("checkpoint: every flipped bit makes the load fail or leaves the tensors right", "[checkpoint]") {
  Fixture f;
  const std::string bytes = get_file(f.save({f.f32("w", {1, 2}), f.f32("v", {3})}, {{"step", "7"}}));
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto path = put_file(f.folder / "flipped", flipped);
    const std::vector<NamedTensor> wanted{f.f32("w", {0, 0}), f.f32("v", {0})};
    CAPTURE(bit / 8, bit % 8);
    try {
      const CheckpointFile file(path);
      file.load(*f.backend, wanted);
      REQUIRE(file.metadata().at("step") == "7");
      REQUIRE(values<float>(wanted[0]) == std::vector<float>{1, 2});
      REQUIRE(values<float>(wanted[1]) == std::vector<float>{3});
    } catch (const FileError&) {
      ++refused;
    }
  }
  CHECK(refused >= bytes.size() * 8 - 8 * std::strlen("engram.checksum"));
}

TEST_CASE("checkpoint: a run's folder, a checkpoint's folder and a file are all found", "[checkpoint]") {
  TemporaryFolder folder;
  const auto run = folder / "run";
  const auto newest = checkpoint_path(run, CheckpointKind::newest);
  const auto best = checkpoint_path(run, CheckpointKind::best);
  CHECK(newest == run / "checkpoint/model.safetensors");
  CHECK(best == run / "best/model.safetensors");
  const auto refused = [](const std::filesystem::path& path, CheckpointKind kind) {
    return message_of<FileError>([&] { find_checkpoint(path, kind); });
  };
  CHECK_THAT(refused(run, CheckpointKind::best),
             ContainsSubstring("got nothing there") && ContainsSubstring(run.string()));
  std::filesystem::create_directories(newest.parent_path());
  std::filesystem::create_directories(best.parent_path());
  CHECK_THAT(refused(run, CheckpointKind::best),
             ContainsSubstring("model.safetensors, best/model.safetensors, checkpoint/model.safetensors"));

  put_file(best, "");
  CHECK(find_checkpoint(run, CheckpointKind::best) == best);
  const std::string message = refused(run, CheckpointKind::newest);
  CHECK_THAT(message, ContainsSubstring("got none of model.safetensors, checkpoint/model.safetensors\n") &&
                          ContainsSubstring("its best weights are there: '" + best.string()));
  put_file(newest, "");
  CHECK(find_checkpoint(run, CheckpointKind::newest) == newest);
  CHECK(find_checkpoint(run, CheckpointKind::best) == best);
  std::filesystem::remove(best);
  CHECK(find_checkpoint(run, CheckpointKind::best) == newest);
  CHECK(find_checkpoint(newest.parent_path(), CheckpointKind::best) == newest);
  CHECK(find_checkpoint(newest, CheckpointKind::best) == newest);
}

}  // namespace engram::harness::checkpoint_test
