#include "apps/run/weights/foreign_weights.hpp"

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/weights/pytorch/module_state.hpp"
#include "core/error.hpp"
#include "core/files/mapped_file.hpp"
#include "core/files/safetensors.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_own(const fs::path& path) {
  throw UsageError(text("import: '", path.string(), "' must be weights of another program, got ",
                        "Engram's own\n  they need no import: engram evaluate, generate and export take them as they "
                        "are"));
}

void require_foreign_path(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  for (const CheckpointKind kind : {CheckpointKind::newest, CheckpointKind::best})
    if (fs::exists(checkpoint_path(path, kind), ignored)) refuse_own(path);
}

ForeignWeights from_safetensors(const fs::path& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path, HalfFloats::listed);
  if (file->metadata().contains(metadata_keys::kFormat)) refuse_own(path);
  ForeignWeights weights{.path = path, .tensors = {}, .metadata = file->metadata(), .file = file};
  for (const auto& [name, stored] : file->tensors())
    weights.tensors.emplace(name, ForeignTensor::dense(stored.shape, stored_float(*file, name), file->bytes(stored)));
  return weights;
}

}  // namespace

ForeignWeights read_foreign_weights(const fs::path& path) {
  require_foreign_path(path);
  // What cannot be mapped is refused by the reader of safetensors, in its words.
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || !begins_as_pytorch(map_file(path, "import").bytes()))
    return from_safetensors(path);
  const auto file = std::make_shared<const PytorchFile>(path);
  ModuleState state = read_module_state(*file);
  return {.path = path, .tensors = std::move(state.tensors), .module = state.module, .file = file};
}

std::int64_t first_difference(const ForeignTensor& a, const ForeignTensor& b) {
  constexpr std::int64_t kChunk = 1 << 14;
  if (!a.kind || !b.kind) return -1;
  const std::int64_t count = a.shape.count();
  std::vector<std::uint64_t> left, right;  // of doubles, which hold all of them exactly
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const auto size = static_cast<std::size_t>(std::min(kChunk, count - begin));
    left.resize(size);
    right.resize(size);
    a.read(static_cast<std::size_t>(begin), DType::f64, std::as_writable_bytes(std::span(left)));
    b.read(static_cast<std::size_t>(begin), DType::f64, std::as_writable_bytes(std::span(right)));
    const auto [at, unused] = std::ranges::mismatch(left, right);
    if (at != left.end()) return begin + (at - left.begin());
  }
  return -1;
}

TensorSource parameter_source(std::string name, DType dtype, const Shape& shape, const ForeignTensor& from,
                              std::size_t first) {
  return {std::move(name), dtype, shape, [from, first, dtype](std::size_t offset, std::span<std::byte> to) {
            from.read(first + offset / size_of(dtype), dtype, to);
          }};
}

}  // namespace engram
