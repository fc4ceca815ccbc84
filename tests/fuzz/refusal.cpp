/// What a reader says when it refuses, and the files that it gets.

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"
#include "core/message_text.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

namespace fs = std::filesystem;

/// A folder of this process, which goes with it. In memory where the system has such files.
class Scratch {
 public:
  Scratch() {
    const char* const given = std::getenv("ENGRAM_FUZZ_SCRATCH");
    const fs::path parent = given != nullptr ? fs::path(given) : fs::temp_directory_path();
    folder_ = parent / ("engram-fuzz." + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

}  // namespace

std::string unprintable(std::string_view message) {
  if (message.empty()) return "it is empty";
  if (message.size() > kLongestMessage) return "it has " + std::to_string(message.size()) + " bytes";
  if (const std::size_t at = data::find_invalid_utf8(message); at < message.size())
    return "it is no UTF-8 from byte " + std::to_string(at) + " on";
  for (const char byte : message)
    if ((static_cast<unsigned char>(byte) < ' ' && byte != '\n') || byte == 0x7f)
      return "it has the control character " + std::to_string(static_cast<int>(byte));
  return "";
}

bool refuses(const std::function<void()>& read) {
  try {
    read();
    return false;
  } catch (const Error& error) {
    if (const std::string fault = unprintable(error.what()); !fault.empty())
      throw std::logic_error("a message must be text for a terminal, but " + fault + ":\n" +
                             std::string(error.what()).substr(0, 1000));
    return true;
  }
}

fs::path scratch_folder() {
  static const Scratch scratch;
  return scratch.folder();
}

fs::path scratch_file(std::string_view bytes, std::string_view name) {
  const fs::path path = scratch_folder() / name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::system_error(errno, std::generic_category(), path.string());
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t written = ::write(file, left.data(), left.size());
    if (written <= 0) throw std::system_error(errno, std::generic_category(), path.string());
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(file);
  return path;
}

}  // namespace engram::fuzz
