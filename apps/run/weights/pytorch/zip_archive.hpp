#pragma once
/// ZIP archives as torch.save writes them: members that are stored as they are, without compression, so that a member
/// is a part of the file and no member is larger than it. Archives of over 4 GiB (ZIP64) are read too.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace engram {

class ZipArchive {
 public:
  using Members = std::map<std::string, std::span<const std::byte>, std::less<>>;

  /// `file`: all of it, which must outlive this; `where` names it in messages. Reads all of it once, for the checksums.
  /// Throws FileError for what is no archive or cut short; for a member that is compressed, encrypted, a symbolic link,
  /// in another file or named twice; for one that lies outside of the file, in the directory or in another member; and
  /// for a wrong checksum.
  ZipArchive(std::span<const std::byte> file, const std::string& where);

  const Members& members() const { return members_; }

 private:
  Members members_;
};

}  // namespace engram
