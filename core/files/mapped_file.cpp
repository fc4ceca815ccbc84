#include "core/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/files/restarted.hpp"

namespace engram {

// The descriptor is closed at once: a mapping stays valid without it.
MappedFile map_file(const std::filesystem::path& path, std::string_view reader) {
  struct Descriptor {
    int number;
    ~Descriptor() { ::close(number); }
  };
  const auto refuse = [&](const auto&... parts) {
    throw FileError(text(reader, ": '", path.string(), "': ", parts...));
  };
  const auto reason = [](int error) { return std::generic_category().message(error); };
  // Non-blocking: opening a pipe would wait for its writer.
  const int opened = restarted([&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (opened < 0) refuse("must be a readable file, got '", reason(errno), "'");
  const Descriptor descriptor{opened};
  struct stat status {};
  if (::fstat(opened, &status) != 0) refuse("must be a readable file, got '", reason(errno), "'");
  if (S_ISDIR(status.st_mode)) refuse("must be a file, got a folder");
  if (!S_ISREG(status.st_mode)) refuse("must be a regular file, got a device, pipe or socket");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened, 0);
  if (data == MAP_FAILED) refuse("must be mappable, got '", reason(errno), "' for ", size, " bytes");
  return {std::shared_ptr<const std::byte>(static_cast<const std::byte*>(data),
                                           [data, size](const std::byte*) { ::munmap(data, size); }),
          size};
}

}  // namespace engram
