#include "apps/run/weights/pytorch/pytorch_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "apps/run/weights/pytorch/refusal.hpp"
#include "apps/run/weights/pytorch/zip_archive.hpp"

namespace engram {
namespace {

constexpr std::string_view kArchiveBegin = "PK\x03\x04", kPickleFile = "data.pkl";
constexpr char kPickleBegin = '\x80';
constexpr std::size_t kHeaderLengthBytes = 8;
/// The number that the stream begins with, as bytes of a pickled integer.
constexpr std::string_view kStreamMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::int64_t kStreamVersion = 1001;

struct StorageKind {
  std::string_view name;
  std::size_t bytes;  // of a number
  std::optional<StoredFloat> kind;
};
constexpr auto kStorageKinds = std::to_array<StorageKind>({{"torch.DoubleStorage", 8, StoredFloat::f64},
                                                           {"torch.FloatStorage", 4, StoredFloat::f32},
                                                           {"torch.HalfStorage", 2, StoredFloat::f16},
                                                           {"torch.BFloat16Storage", 2, StoredFloat::bf16},
                                                           {"torch.LongStorage", 8, {}},
                                                           {"torch.IntStorage", 4, {}},
                                                           {"torch.ShortStorage", 2, {}},
                                                           {"torch.CharStorage", 1, {}},
                                                           {"torch.ByteStorage", 1, {}},
                                                           {"torch.BoolStorage", 1, {}}});

/// Of a storage of a pickle, whose type is one of the table of callables.
const StorageKind& kind_of(const PickleNode& storage) {
  return *std::ranges::find(kStorageKinds, storage.items[0]->text, &StorageKind::name);
}

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// Whether the pickle there is that of the stream's number: 80 02 8a 0a, and its ten bytes.
bool begins_as_stream(std::span<const std::byte> bytes) {
  return bytes.size() > 4 && begins_with(bytes.subspan(4), kStreamMagic);
}

/// Sizes or strides of a tensor; nothing for more than there may be, and for negative ones.
std::optional<std::vector<std::int64_t>> axes_of(const PickleNode& node) {
  std::vector<std::int64_t> axes;
  for (const PickleNode* item : node.items) {
    if (item->integer < 0 || axes.size() == Shape::kMaxRank) return std::nullopt;
    axes.push_back(item->integer);
  }
  return axes;
}

}  // namespace

bool begins_as_pytorch(std::span<const std::byte> file) {
  // A file of safetensors begins with the length of its header, whose lowest byte may be any, and the header's brace.
  if (file.size() > kHeaderLengthBytes && file[kHeaderLengthBytes] == std::byte{'{'}) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    if (length <= file.size() - kHeaderLengthBytes) return false;
  }
  return begins_with(file, kArchiveBegin) || begins_with(file, std::string_view(&kPickleBegin, 1));
}

PytorchFile::PytorchFile(const std::filesystem::path& path)
    : PytorchFile(map_file(path, "pytorch"), "'" + path.string() + "'") {}

PytorchFile::PytorchFile(MappedFile file, std::string where) : where_(std::move(where)), file_(std::move(file)) {
  if (begins_with(file_.bytes(), kArchiveBegin)) {
    read_archive();
    return;
  }
  ByteReader reader(file_.bytes(), where_);
  if (begins_as_stream(file_.bytes())) {
    read_stream(reader);
    return;
  }
  root_ = &read_pickle(reader, heap_, named_);
  if (!named_.empty()) refuse_pytorch(where_, "a pickle alone must hold no tensors, got some");
  if (reader.left() > 0)
    refuse_pytorch(where_, "a pickle must end with the file of ", file_.size, " bytes, got its end at byte ",
                   reader.at());
}

void PytorchFile::read_archive() {
  const ZipArchive archive(file_.bytes(), where_);
  std::string folder;
  const ZipArchive::Members& members = archive.members();
  const PickleNode* root = nullptr;
  for (const auto& [name, data] : members) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || std::string_view(name).substr(slash + 1) != kPickleFile) continue;
    if (root != nullptr) refuse_pytorch(where_, "must have one data.pkl, got two");
    folder = name.substr(0, slash + 1);
    ByteReader reader(data, where_ + ": '" + name + "'");
    root = &read_pickle(reader, heap_, named_);
    if (reader.left() > 0)
      refuse_pytorch(where_, "data.pkl must end with its pickle, got ", reader.left(), " bytes behind it");
  }
  if (root == nullptr)
    refuse_pytorch(where_, "must be an archive of torch.save, with a data.pkl, got another one of ", members.size(),
                   " members");
  if (const auto order = members.find(folder + "byteorder");
      order != members.end() && !begins_with(order->second, "little"))
    refuse_pytorch(where_, "must have numbers with the lowest byte first, got the other order");
  for (const auto& [key, storage] : named_) {
    const auto member = members.find(folder + "data/" + std::string(key));
    if (member == members.end()) refuse_pytorch(where_, "must have the storage '", key, "', got none");
    storages_[key] = member->second;
  }
  root_ = root;
}

void PytorchFile::read_stream(ByteReader& reader) {
  PickleStorages none;
  const PickleNode& magic = read_pickle(reader, heap_, none);
  if (magic.kind != PickleKind::big_integer || magic.text != kStreamMagic)
    refuse_pytorch(where_, "must begin with the number of torch.save, got another one");
  const PickleNode& version = read_pickle(reader, heap_, none);
  if (version.as_integer() != kStreamVersion)
    refuse_pytorch(where_, "must be of version ", kStreamVersion, ", got another one");
  const PickleNode& system = read_pickle(reader, heap_, none);
  if (const PickleNode* little = system.find("little_endian"); little != nullptr && little->integer != 1)
    refuse_pytorch(where_, "must have numbers with the lowest byte first, got the other order");
  root_ = &read_pickle(reader, heap_, named_);
  const PickleNode& keys = read_pickle(reader, heap_, none);
  if (keys.kind != PickleKind::list || keys.items.size() != named_.size())
    refuse_pytorch(where_, "must have a list of its ", named_.size(), " storages, got another one");
  for (const PickleNode* key : keys.items) {
    const auto named = named_.find(key->as_text().value_or(""));
    if (named == named_.end() || storages_.contains(named->first))
      refuse_pytorch(where_, "must have every storage once, got '", key->text, "'");
    const auto numbers = reader.number<std::int64_t>();
    if (numbers != named->second->integer)
      refuse_pytorch(where_, "storage '", key->text, "' must have ", named->second->integer, " numbers, got ", numbers);
    const std::size_t width = kind_of(*named->second).bytes;
    if (static_cast<std::uint64_t>(numbers) > reader.left() / width)
      refuse_pytorch(where_, "storage '", key->text, "' must have ", numbers, " numbers of ", width, " bytes, got ",
                     reader.left(), " bytes\n  the file was cut short or damaged");
    storages_[named->first] = reader.take(static_cast<std::uint64_t>(numbers) * width);
  }
  if (reader.left() > 0)
    refuse_pytorch(where_, "must end with its storages, got ", reader.left(), " bytes behind them");
}

std::span<const std::byte> PytorchFile::storage(const PickleNode& storage) const {
  const std::span<const std::byte> bytes = storages_.at(storage.text);
  if (const std::size_t width = kind_of(storage).bytes;
      static_cast<std::uint64_t>(storage.integer) != bytes.size() / width || bytes.size() % width != 0)
    refuse_pytorch(where_, "storage '", storage.text, "' must have ", storage.integer, " numbers of ", width,
                   " bytes, got ", bytes.size(), " bytes");
  return bytes;
}

ForeignTensor PytorchFile::tensor(const PickleNode& node, std::string_view name) const {
  const auto sizes = axes_of(*node.items[1]), strides = axes_of(*node.items[2]);
  if (!sizes || !strides || sizes->size() != strides->size())
    refuse_pytorch(where_, name, " must have up to ", Shape::kMaxRank, " axes with a size and a stride from 0 on, got ",
                   node.items[1]->items.size(), " sizes, ", node.items[2]->items.size(), " strides");
  const PickleNode& stored = *node.items[0];
  ForeignTensor tensor{.kind = kind_of(stored).kind, .stored = storage(stored), .first = node.integer};
  // The last element's place, which may not be outside, nor be counted beyond what a number holds. A tensor that
  // repeats elements could be far larger than the file.
  std::int64_t count = 1, beside_zeros = 1, last = node.integer;
  bool inside = last >= 0;
  for (std::size_t axis = 0; axis < sizes->size() && inside; ++axis) {
    const std::int64_t size = (*sizes)[axis], stride = (*strides)[axis];
    tensor.strides[axis] = stride;
    std::int64_t way = 0;
    if (size == 0) count = 0;
    inside =
        !__builtin_mul_overflow(beside_zeros, std::max<std::int64_t>(size, 1), &beside_zeros) &&
        beside_zeros <= Shape::kMostElements &&
        (size == 0 || (!__builtin_mul_overflow(size - 1, stride, &way) && !__builtin_add_overflow(last, way, &last)));
  }
  if (!inside || (count > 0 && (last >= stored.integer || beside_zeros > stored.integer)))
    refuse_pytorch(where_, name, " must lie in its storage of ", stored.integer, " numbers, got other elements");
  tensor.shape = Shape(std::span<const std::int64_t>(*sizes));
  return tensor;
}

}  // namespace engram
