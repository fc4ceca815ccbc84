#include "apps/run/weights/pytorch/zip_archive.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "apps/run/weights/pytorch/byte_reader.hpp"
#include "core/files/crc32.hpp"

namespace engram {
namespace {

constexpr std::uint32_t kLocalEntry = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50,
                        kDirectoryEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kDirectoryEntryBytes = 46,
                      kMostComment = 0xffff;
constexpr std::uint32_t kElsewhere = 0xffffffff;  // the number is in a field of 64 bits
constexpr std::uint16_t kManyElsewhere = 0xffff;

struct ZipDirectory {
  std::uint64_t entries = 0, begin = 0, size = 0;
  std::uint64_t end_record = 0;  // where what follows the directory begins
};

struct ZipEntry {
  std::string name;
  std::uint64_t size = 0, local = 0;
  std::uint32_t checksum = 0;
};

struct ZipExtent {
  std::uint64_t begin, end;
  std::span<const std::byte> data;
};
struct PlacedZipEntry {
  ZipEntry entry;
  ZipExtent extent;
};

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  ZipArchive::Members read();

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    refuse_pytorch(where_, parts...);
  }
  ByteReader from(std::uint64_t begin, std::string_view what) const {
    if (begin > file_.size())
      refuse(what, " must begin in the file of ", file_.size(), " bytes, got byte ", begin,
             "\n  the file was cut short or damaged");
    return {file_.subspan(static_cast<std::size_t>(begin)), where_ + ": " + std::string(what)};
  }
  std::uint64_t find_end() const;
  ZipDirectory find_directory() const;
  void read_end64(ZipDirectory& directory, std::uint64_t end) const;
  ZipEntry read_entry(ByteReader& reader) const;
  ZipExtent place(const ZipEntry& entry, const ZipDirectory& directory) const;

  std::span<const std::byte> file_;
  const std::string& where_;
};

// The comment at the end of an archive may have any bytes. The record is the last one that says how long it is rightly.
std::uint64_t ZipReader::find_end() const {
  if (file_.size() >= kEndBytes) {
    const std::size_t last = file_.size() - kEndBytes;
    for (std::size_t at = last + 1; at-- > last - std::min(last, kMostComment);) {
      ByteReader reader(file_.subspan(at), where_);
      if (reader.number<std::uint32_t>() != kDirectoryEnd) continue;
      reader.take(kEndBytes - 6);
      if (reader.number<std::uint16_t>() == last - at) return at;
    }
  }
  refuse("must end with the directory of a ZIP archive, got ", file_.size(),
         " bytes without one\n  the file was cut short or damaged");
}

void ZipReader::read_end64(ZipDirectory& directory, std::uint64_t end) const {
  ByteReader locator = from(end - kLocatorBytes, "the place of the directory");
  locator.take(8);
  const auto at = locator.number<std::uint64_t>();
  if (at > end - kLocatorBytes || end - kLocatorBytes - at < kEnd64Bytes)
    refuse("the end of the directory must lie before byte ", end - kLocatorBytes, ", got byte ", at);
  ByteReader reader = from(at, "the end of the directory");
  if (reader.number<std::uint32_t>() != kDirectoryEnd64) refuse("the directory must have an end at byte ", at);
  reader.take(20);
  const auto on_this_disk = reader.number<std::uint64_t>();
  directory.entries = reader.number<std::uint64_t>();
  directory.size = reader.number<std::uint64_t>();
  directory.begin = reader.number<std::uint64_t>();
  directory.end_record = at;
  if (on_this_disk != directory.entries) refuse("the archive must be in one file, got a part of one");
}

ZipDirectory ZipReader::find_directory() const {
  const std::uint64_t end = find_end();
  ByteReader reader = from(end, "the end of the directory");
  reader.take(4);
  const auto disk = reader.number<std::uint16_t>(), first_disk = reader.number<std::uint16_t>(),
             here = reader.number<std::uint16_t>(), entries = reader.number<std::uint16_t>();
  const auto size = reader.number<std::uint32_t>(), begin = reader.number<std::uint32_t>();
  if (disk != first_disk || here != entries) refuse("the archive must be in one file, got a part of one");
  ZipDirectory directory{.entries = entries, .begin = begin, .size = size, .end_record = end};
  const bool elsewhere = entries == kManyElsewhere || size == kElsewhere || begin == kElsewhere;
  if (elsewhere) {
    if (end < kLocatorBytes || from(end - kLocatorBytes, "the place").number<std::uint32_t>() != kEnd64Locator)
      refuse("a directory of this size must say where it ends, got nothing before byte ", end);
    read_end64(directory, end);
  }
  if (directory.begin > directory.end_record || directory.size > directory.end_record - directory.begin)
    refuse("the directory must lie before byte ", directory.end_record, ", got ", directory.size, " bytes from byte ",
           directory.begin, " on");
  if (directory.entries > directory.size / kDirectoryEntryBytes)
    refuse("a directory of ", directory.size, " bytes must have at most ", directory.size / kDirectoryEntryBytes,
           " members, got ", directory.entries);
  return directory;
}

ZipEntry ZipReader::read_entry(ByteReader& reader) const {
  if (reader.number<std::uint32_t>() != kDirectoryEntry)
    refuse("the directory must have a member at its byte ", reader.at() - 4, ", got something else");
  const auto made_by = reader.number<std::uint16_t>();
  reader.take(2);
  const auto flags = reader.number<std::uint16_t>(), method = reader.number<std::uint16_t>();
  reader.take(4);
  ZipEntry entry;
  entry.checksum = reader.number<std::uint32_t>();
  std::uint64_t packed = reader.number<std::uint32_t>();
  entry.size = reader.number<std::uint32_t>();
  const auto name_bytes = reader.number<std::uint16_t>(), extra_bytes = reader.number<std::uint16_t>(),
             comment_bytes = reader.number<std::uint16_t>(), disk = reader.number<std::uint16_t>();
  reader.take(2);
  const auto attributes = reader.number<std::uint32_t>();
  entry.local = reader.number<std::uint32_t>();
  entry.name = reader.text(name_bytes);
  ByteReader extra(reader.take(extra_bytes), where_ + ": '" + entry.name + "'");
  reader.take(comment_bytes);
  while (extra.left() >= 4) {
    const auto kind = extra.number<std::uint16_t>(), bytes = extra.number<std::uint16_t>();
    ByteReader field(extra.take(bytes), extra.where());
    if (kind != 1) continue;  // 1: the sizes that need 64 bits, those alone, in this order
    if (entry.size == kElsewhere) entry.size = field.number<std::uint64_t>();
    if (packed == kElsewhere) packed = field.number<std::uint64_t>();
    if (entry.local == kElsewhere) entry.local = field.number<std::uint64_t>();
  }
  const auto refuse_entry = [&](const auto&... parts) { refuse("'", entry.name, "' must be ", parts...); };
  if ((flags & 1) != 0) refuse_entry("readable without a password, got an encrypted member");
  if (method != 0)
    refuse_entry("stored as it is, as torch.save does, got compression of method ", std::uint64_t{method});
  if (packed != entry.size) refuse_entry("as large as it is stored, ", packed, " bytes, got ", entry.size);
  if (disk != 0) refuse_entry("in this file, got one in another part of the archive");
  constexpr std::uint32_t kUnix = 3, kKindOfFile = 0170000, kSymbolicLink = 0120000;
  if (made_by >> 8 == kUnix && (attributes >> 16 & kKindOfFile) == kSymbolicLink)
    refuse_entry("a file, got a symbolic link");
  return entry;
}

ZipExtent ZipReader::place(const ZipEntry& entry, const ZipDirectory& directory) const {
  const auto outside = [&](std::uint64_t bytes, std::uint64_t at) {
    refuse("'", entry.name, "' must lie before the directory, which begins at byte ", directory.begin, ", got ", bytes,
           " bytes from byte ", at, " on");
  };
  if (entry.local >= directory.begin) outside(entry.size, entry.local);
  ByteReader local = from(entry.local, entry.name);
  if (local.number<std::uint32_t>() != kLocalEntry)
    refuse("'", entry.name, "' must begin at byte ", entry.local, ", got something else there");
  local.take(4);
  const auto method = local.number<std::uint16_t>();
  local.take(16);
  const auto name_bytes = local.number<std::uint16_t>(), extra_bytes = local.number<std::uint16_t>();
  if (const std::string_view name = local.text(name_bytes); name != entry.name || method != 0)
    refuse("'", entry.name, "' must be the same member in the directory and in its place, got another one");
  local.take(extra_bytes);
  const std::uint64_t begin = entry.local + local.at();
  if (begin > directory.begin || entry.size > directory.begin - begin) outside(entry.size, begin);
  return {entry.local, begin + entry.size,
          file_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(entry.size))};
}

ZipArchive::Members ZipReader::read() {
  const ZipDirectory directory = find_directory();
  ByteReader reader(file_.subspan(static_cast<std::size_t>(directory.begin), static_cast<std::size_t>(directory.size)),
                    where_ + ": the directory");
  std::vector<PlacedZipEntry> all;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    ZipEntry entry = read_entry(reader);
    const ZipExtent extent = place(entry, directory);
    all.push_back({std::move(entry), extent});
  }
  std::ranges::sort(all, {}, [](const PlacedZipEntry& placed) { return placed.extent.begin; });
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].extent.begin < all[i - 1].extent.end)
      refuse("its members must not overlap, got '", all[i - 1].entry.name, "' and '", all[i].entry.name, "' that do");
  ZipArchive::Members members;
  for (const auto& [entry, extent] : all) {  // which lie beside each other: every byte is read once
    if (!members.emplace(entry.name, extent.data).second)
      refuse("its members must have names of their own, got '", entry.name, "' twice");
    Crc32 crc;
    crc.add(extent.data);
    if (crc.value() != entry.checksum)
      refuse("'", entry.name, "' must have the checksum of the directory, got another one",
             "\n  the file was damaged after it was written; take another copy of it");
  }
  return members;
}

}  // namespace

ZipArchive::ZipArchive(std::span<const std::byte> file, const std::string& where)
    : members_(ZipReader(file, where).read()) {}

}  // namespace engram
