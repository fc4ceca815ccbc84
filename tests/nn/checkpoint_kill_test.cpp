// kill -9 at random moments of saving: the file is always one whole version, and never an older one than before.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "nn/checkpoint.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::checkpoint_kill_test {

namespace {

// Several chunks, so that most of the time of a save is spent with a part of the file written.
constexpr std::int64_t kCount = 600'000;

struct Model {
  std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu, 0});
  HeapAllocator memory{*backend};
  std::vector<NamedTensor> tensors{{"weights", Tensor({kCount}, DType::f32, backend->device(), memory)},
                                   {"state/version", Tensor({}, DType::i32, backend->device(), memory)}};

  void save(const std::filesystem::path& path, std::int32_t version) {
    std::fill_n(tensors[0].tensor.data<float>(), kCount, static_cast<float>(version));
    *tensors[1].tensor.data<std::int32_t>() = version;
    save_checkpoint(path, *backend, tensors, {{"version", std::to_string(version)}});
  }
  // The version in the file; -1 when its parts are of different versions. Throws when it cannot be loaded.
  std::int32_t load(const std::filesystem::path& path) {
    const CheckpointFile file(path);
    file.load(*backend, tensors);
    const std::int32_t version = *tensors[1].tensor.data<std::int32_t>();
    const float* weights = tensors[0].tensor.data<float>();
    const bool whole =
        file.metadata().at("version") == std::to_string(version) &&
        std::all_of(weights, weights + kCount, [&](float w) { return w == static_cast<float>(version); });
    return whole ? version : -1;
  }
};

// Returns only in the parent. The child saves one version after the other until it is killed.
pid_t start_saving(Model& model, const std::filesystem::path& path, std::int32_t version) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    for (;;) model.save(path, ++version);
  } catch (...) {
    ::_exit(1);
  }
}

}  // namespace

TEST_CASE("checkpoint: a hundred kills while saving never harm the file", "[checkpoint][slow]") {
  TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  Model model;
  // The moments are spread over the time that two saves take here.
  const auto begin = std::chrono::steady_clock::now();
  model.save(path, 1);
  const std::chrono::duration<double> save_time = std::chrono::steady_clock::now() - begin;
  std::mt19937 random(77);
  std::uniform_real_distribution<double> saves(0.0, 2.0);

  std::int32_t version = 1;
  int interrupted = 0;
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    const pid_t child = start_saving(model, path, version);
    REQUIRE(child > 0);
    std::this_thread::sleep_for(save_time * saves(random));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));  // it had not failed by itself
    if (std::filesystem::exists(path.string() + ".partial")) ++interrupted;
    const std::int32_t found = model.load(path);
    REQUIRE(found >= version);
    version = found;
  }
  // Saves were completed and saves were cut short; otherwise nothing was tested.
  CHECK(version > 1);
  CHECK(interrupted > 10);
  model.save(path, version + 1);
  CHECK(model.load(path) == version + 1);
  CHECK_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

}  // namespace engram::harness::checkpoint_kill_test
