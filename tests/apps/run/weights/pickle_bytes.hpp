#pragma once
/// Pickles and ZIP archives byte by byte, for files that no program of good will writes.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/crc32.hpp"

namespace engram::harness {

/// A number, lowest byte first.
template <class Number>
std::string bytes_of(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Operations of a pickle.
namespace pickled {
inline std::string whole(const std::string& operations) { return "\x80\x02" + operations + "."; }
inline std::string text(std::string_view value) {
  return "X" + bytes_of(static_cast<std::uint32_t>(value.size())) + std::string(value);
}
inline std::string integer(std::int64_t value) { return "\x8a\x08" + bytes_of(value); }
inline std::string name(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(std::initializer_list<std::string> items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}
inline std::string storage(const std::string& key, std::int64_t numbers, const std::string& type = "FloatStorage") {
  return tuple({text("storage"), name("torch", type), text(key), text("cpu"), integer(numbers)}) + "Q";
}
inline std::string tensor(const std::string& storage, std::int64_t first, const std::string& sizes,
                          const std::string& strides) {
  return name("torch._utils", "_rebuild_tensor_v2") +
         tuple({storage, integer(first), sizes, strides, "\x89", name("collections", "OrderedDict") + ")R"}) + "R";
}
inline std::string mapping(const std::string& key, const std::string& value) { return "}" + text(key) + value + "s"; }
}  // namespace pickled

/// A member of an archive, as it says of itself.
struct ZipMember {
  std::string name, data;
  std::uint16_t method = 0, flags = 0, made_by = 0;
  std::uint32_t attributes = 0;
  /// What the directory says in the place of the truth; -1: the truth.
  std::int64_t stated_size = -1, stated_packed = -1, stated_place = -1;
};

inline std::string zip_of(const std::vector<ZipMember>& members) {
  std::string file, directory;
  for (const ZipMember& member : members) {
    Crc32 crc;
    crc.add(std::as_bytes(std::span(member.data)));
    const auto size = static_cast<std::uint32_t>(member.data.size());
    const auto stated = [](std::int64_t value, std::size_t truth) {
      return bytes_of(static_cast<std::uint32_t>(value < 0 ? static_cast<std::int64_t>(truth) : value));
    };
    const std::string kind = bytes_of(member.flags) + bytes_of(member.method) + bytes_of(std::uint32_t{0}),
                      name_bytes = bytes_of(static_cast<std::uint16_t>(member.name.size()));
    directory += "PK\x01\x02" + bytes_of(member.made_by) + bytes_of(std::uint16_t{20}) + kind + bytes_of(crc.value()) +
                 stated(member.stated_packed, size) + stated(member.stated_size, size) + name_bytes +
                 std::string(8, '\0') + bytes_of(member.attributes) + stated(member.stated_place, file.size()) +
                 member.name;
    file += "PK\x03\x04" + bytes_of(std::uint16_t{20}) + kind + bytes_of(crc.value()) + bytes_of(size) +
            bytes_of(size) + name_bytes + std::string(2, '\0') + member.name + member.data;
  }
  const auto count = bytes_of(static_cast<std::uint16_t>(members.size()));
  return file + directory + "PK\x05\x06" + std::string(4, '\0') + count + count +
         bytes_of(static_cast<std::uint32_t>(directory.size())) + bytes_of(static_cast<std::uint32_t>(file.size())) +
         std::string(2, '\0');
}

/// A file of PyTorch's newer form.
inline std::string archive_of(const std::string& pickle,
                              std::vector<std::pair<std::string, std::string>> storages = {}) {
  std::vector<ZipMember> members{{.name = "a/data.pkl", .data = pickle}};
  for (auto& [key, data] : storages) members.push_back({.name = "a/data/" + key, .data = std::move(data)});
  return zip_of(members);
}

}  // namespace engram::harness
