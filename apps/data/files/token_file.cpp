#include "apps/data/files/token_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "apps/data/files/little_endian.hpp"
#include "core/error.hpp"
#include "core/files/restarted.hpp"

namespace engram::data {
namespace {

static_assert(std::endian::native == std::endian::little, "mapped ids are read in the order of the machine's bytes");

constexpr std::string_view kMagic = "ENGRAMTK";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 56;
constexpr std::size_t kHashedHeaderBytes = 48;

[[noreturn]] void reject(const std::filesystem::path& path, std::string_view rule, std::string_view fact) {
  throw FileError(text("token file: '", path.string(), "' must ", rule, ", got ", fact,
                       "\n  the file is damaged or of another program; prepare the data again"));
}

[[noreturn]] void fail_to_read(const std::filesystem::path& path, int error) {
  throw FileError(text("token file: '", path.string(), "' must be a readable file, got '",
                       std::generic_category().message(error), "'"));
}

}  // namespace

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, std::int64_t vocabulary_size,
                                 std::uint64_t vocabulary_hash)
    : file_(path), vocabulary_size_(vocabulary_size), vocabulary_hash_(vocabulary_hash) {
  if (vocabulary_size < 1 || vocabulary_size > std::numeric_limits<std::int32_t>::max())
    throw UsageError(text("token file: the vocabulary size must be from 1 to 2147483647, got ", vocabulary_size));
  file_.append(std::string(kHeaderBytes, '\0'));
}

void TokenFileWriter::append(std::span<const std::int32_t> ids) {
  const int width = token_width(vocabulary_size_);
  std::string bytes;
  bytes.reserve(ids.size() * static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary_size_)
      throw UsageError(text("token file: an id must be from 0 to ", vocabulary_size_ - 1, ", got ", ids[i],
                            " at position ", count_ + static_cast<std::int64_t>(i), " of '", file_.path().string(),
                            "'"));
    put_number(bytes, static_cast<std::uint32_t>(ids[i]), width);
  }
  content_.add(bytes);
  file_.append(bytes);
  count_ += static_cast<std::int64_t>(ids.size());
}

void TokenFileWriter::flush() {
  if (std::exchange(complete_, true)) return;
  std::string header(kMagic);
  put_number(header, kVersion, 4);
  put_number(header, static_cast<std::uint64_t>(token_width(vocabulary_size_)), 4);
  put_number(header, static_cast<std::uint64_t>(vocabulary_size_), 8);
  put_number(header, static_cast<std::uint64_t>(count_), 8);
  put_number(header, vocabulary_hash_, 8);
  put_number(header, content_.value(), 8);
  put_number(header, hash_of(header), 8);
  file_.overwrite(0, header);
  file_.flush();
}

void TokenFileWriter::commit() {
  flush();
  file_.commit();
}

TokenFile::TokenFile(const std::filesystem::path& path) {
  // Non-blocking: opening a pipe would wait for its writer.
  const int descriptor = restarted([&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (descriptor < 0) fail_to_read(path, errno);
  struct stat status {};
  int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error == 0 && !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    reject(path, "be a regular file", "a device, pipe or socket");
  }
  // An empty file cannot be mapped; check() rejects it by its size.
  if (error == 0 && status.st_size > 0) {
    mapped_bytes_ = static_cast<std::size_t>(status.st_size);
    mapping_ = ::mmap(nullptr, mapped_bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping_ == MAP_FAILED) error = errno, mapping_ = nullptr;
  }
  ::close(descriptor);
  if (error != 0) fail_to_read(path, error);
  try {
    check(path, {static_cast<const char*>(mapping_), mapped_bytes_});
  } catch (...) {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
    throw;
  }
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      tokens_(std::exchange(other.tokens_, {})),
      vocabulary_size_(other.vocabulary_size_),
      vocabulary_hash_(other.vocabulary_hash_),
      content_hash_(other.content_hash_) {}

TokenFile::~TokenFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

void TokenFile::check(const std::filesystem::path& path, std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size()) || bytes.empty())
    reject(path, "begin with 'ENGRAMTK'", bytes.empty() ? "an empty file" : "a foreign file");
  if (bytes.size() < kHeaderBytes) reject(path, "have a header of 56 bytes", text("a file of ", bytes.size()));
  if (const std::uint64_t version = take_number(bytes, 8, 4); version != kVersion)
    reject(path, text("be of version ", kVersion), text("version ", version));
  if (take_number(bytes, kHashedHeaderBytes, 8) != hash_of(bytes.substr(0, kHashedHeaderBytes)))
    reject(path, "have a header with the hash that it states", "a header whose bytes have changed");

  const std::uint64_t vocabulary_size = take_number(bytes, 16, 8);
  if (vocabulary_size < 1 || vocabulary_size > std::numeric_limits<std::int32_t>::max())
    reject(path, "have a vocabulary size from 1 to 2147483647", text(vocabulary_size));
  vocabulary_size_ = static_cast<std::int64_t>(vocabulary_size);
  const int width = token_width(vocabulary_size_);
  if (const std::uint64_t stated = take_number(bytes, 12, 4); stated != static_cast<std::uint64_t>(width))
    reject(path, text("have ids of ", width, " bytes for a vocabulary of ", vocabulary_size_), text(stated));

  // Compared by division: a made-up count times the width may overflow.
  const std::uint64_t count = take_number(bytes, 24, 8);
  const std::string_view ids = bytes.substr(kHeaderBytes);
  if (count != ids.size() / static_cast<std::size_t>(width) || ids.size() % static_cast<std::size_t>(width) != 0)
    reject(path, text("hold the ", count, " ids of ", width, " bytes that its header states"),
           text(ids.size(), " bytes of ids"));
  vocabulary_hash_ = take_number(bytes, 32, 8);
  content_hash_ = take_number(bytes, 40, 8);
  if (hash_of(ids) != content_hash_) reject(path, "hold ids with the hash in its header", "ids that have changed");

  tokens_ = TokenView(ids.data(), width, static_cast<std::int64_t>(count));
  for (std::int64_t i = 0; i < tokens_.size(); ++i)
    if (tokens_[i] < 0 || tokens_[i] >= vocabulary_size_)
      reject(path, text("hold ids from 0 to ", vocabulary_size_ - 1), text(tokens_[i], " at position ", i));
}

}  // namespace engram::data
