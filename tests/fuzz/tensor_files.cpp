/// Files of tensors: safetensors, PyTorch's in both forms, tables in mapped files.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "apps/run/weights/foreign_weights.hpp"
#include "apps/run/weights/pytorch/module_state.hpp"
#include "apps/run/weights/pytorch/pickle_machine.hpp"
#include "apps/run/weights/pytorch/pytorch_file.hpp"
#include "apps/run/weights/pytorch/token_list.hpp"
#include "core/files/crc32.hpp"
#include "core/files/mapped_table.hpp"
#include "core/files/safetensors.hpp"
#include "tests/fuzz/checksums.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

namespace fs = std::filesystem;

/// Every byte is looked at: what is said to be there must be.
std::uint32_t sum_of(std::span<const std::byte> bytes) {
  Crc32 sum;
  sum.add(bytes);
  return sum.value();
}

void read_tensors(const fs::path& path) {
  for (const HalfFloats half_floats : {HalfFloats::refused, HalfFloats::listed})
    refuses([&] {
      const SafetensorsFile file(path, half_floats);
      for (const auto& [name, tensor] : file.tensors()) sum_of(file.bytes(tensor));
    });
}

void read_weights(const fs::path& path) {
  refuses([&] {
    const ForeignWeights weights = read_foreign_weights(path);
    std::vector<std::byte> numbers;
    for (const auto& [name, tensor] : weights.tensors) {
      if (!tensor.kind) continue;
      const std::int64_t count = tensor.shape.count();
      const auto some = static_cast<std::size_t>(std::min<std::int64_t>(count, 256));
      numbers.resize(some * 8);
      tensor.read(0, DType::f64, numbers);
      tensor.read(static_cast<std::size_t>(count) - some, DType::f64, numbers);
    }
  });
}

void read_pytorch(const fs::path& path) {
  read_weights(path);
  refuses([&] { read_token_list(PytorchFile(path)); });
}

}  // namespace

void read_safetensors_file(std::string_view bytes) {
  read_tensors(scratch_file(bytes));
  const std::string repaired = with_safetensors_checksum(bytes);
  const fs::path path = scratch_file(repaired);
  if (repaired != bytes) read_tensors(path);
  read_weights(path);
}

void read_pytorch_file(std::string_view bytes) {
  read_pytorch(scratch_file(bytes));
  if (const std::string repaired = with_zip_checksums(bytes); repaired != bytes) read_pytorch(scratch_file(repaired));
}

void read_pickle_bytes(std::string_view bytes) {
  refuses([&] {
    ByteReader reader(std::as_bytes(std::span(bytes)), "'input'");
    PickleHeap heap;
    PickleStorages storages;
    const PickleNode& root = read_pickle(reader, heap, storages);
    root.find("idx2sym");
    root.as_integer();
    root.as_text();
  });
  read_pytorch(scratch_file(bytes));
}

void read_table_file(std::string_view bytes) {
  const auto read = [](std::string_view file) {
    refuses([&] {
      const fs::path path = scratch_file(file);
      const TableHeader header = TableHeader::parse(file.substr(0, kTableHeaderBytes), file.size(), path);
      const MappedTable table(path, header.shape(), header.dtype);
      sum_of(std::as_bytes(std::span(static_cast<const std::byte*>(table.padded_rows().raw()),
                                     static_cast<std::size_t>(header.rows * header.stride))));
      if (header.bytes() != file.substr(0, kTableHeaderBytes))
        throw std::logic_error("a header must be written as it was");
    });
    refuses([&] { MappedTable(scratch_folder() / "input", Shape{64, 16}, DType::f32); });
  };
  read(bytes);
  if (const std::string repaired = with_table_checksum(bytes); repaired != bytes) read(repaired);
}

}  // namespace engram::fuzz
