#include "core/files/durable_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::durable_file_test {

namespace {

std::string write_error(const std::filesystem::path& path, std::string_view contents = "bytes") {
  return message_of<FileError>([&] { write_durably(path, contents); });
}

// Root may write anywhere; as nobody it meets the rules that others meet.
class WithoutRootRights {
 public:
  WithoutRootRights() : dropped_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~WithoutRootRights() {
    if (dropped_ && ::seteuid(0) != 0) std::abort();
  }
  bool holds() const { return ::geteuid() != 0; }

 private:
  bool dropped_;
};

// Longer files fail with "File too large" in the middle of a write, as on a disk that fills up.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit changed = before_;
    changed.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &changed);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("durable file: the new contents appear only at commit", "[durable_file]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x.txt", "old");
  DurableFile file(path);
  file.append("HEADnew");
  file.overwrite(0, "head");
  file.append(" contents");
  file.flush();
  CHECK(get_file(path) == "old");
  CHECK(get_file(folder / "x.txt.partial") == "headnew contents");
  file.commit();
  CHECK(get_file(path) == "headnew contents");
  CHECK_FALSE(std::filesystem::exists(folder / "x.txt.partial"));
}

TEST_CASE("durable file: an existing file is replaced by shorter contents, and by none", "[durable_file]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x", "long old contents");
  write_durably(path, "short");
  CHECK(get_file(path) == "short");
  write_durably(path, "");
  CHECK(std::filesystem::file_size(path) == 0);
}

TEST_CASE("durable file: pieces of all lengths pass the buffer in order", "[durable_file]") {
  TemporaryFolder folder;
  std::string expected;
  write_durably(folder / "x", [&](DurableFile& file) {
    for (const std::size_t length : {7u, 200'000u, 100'000u, 1u, 600'000u, 0u, 262'144u, 3u}) {
      const std::string piece(length, static_cast<char>('a' + length % 26));
      file.append(piece);
      expected += piece;
    }
    file.overwrite(250'000, "replaced");
    expected.replace(250'000, 8, "replaced");
  });
  CHECK(get_file(folder / "x") == expected);
}

TEST_CASE("durable file: an exception while writing leaves the old contents and no partial file", "[durable_file]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x", "old");
  const auto write = [](DurableFile& file) {
    file.append("half");
    file.flush();
    throw std::runtime_error("stop");
  };
  CHECK_THROWS_AS(write_durably(path, write), std::runtime_error);
  CHECK(get_file(path) == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "x.partial"));
}

TEST_CASE("durable file: what a killed writer left is taken over", "[durable_file]") {
  TemporaryFolder folder;
  put_file(folder / "x.partial", "a long rest of an earlier attempt");
  write_durably(folder / "x", "new");
  CHECK(get_file(folder / "x") == "new");
}

TEST_CASE("durable file: of two writers the second is refused and the first undisturbed", "[durable_file]") {
  TemporaryFolder folder;
  DurableFile first(folder / "x");
  first.append("first");
  CHECK_THAT(write_error(folder / "x"),
             ContainsSubstring("one writer at a time") && ContainsSubstring((folder / "x").string()));
  DurableFile moved = std::move(first);
  CHECK_THAT(write_error(folder / "x"), ContainsSubstring("one writer at a time"));
  moved.commit();
  CHECK(get_file(folder / "x") == "first");
  write_durably(folder / "x", "second");
  CHECK(get_file(folder / "x") == "second");
}

TEST_CASE("durable file: symbolic links stay, and what they lead to is replaced", "[durable_file]") {
  namespace fs = std::filesystem;
  TemporaryFolder folder;
  fs::create_directory(folder / "far");
  fs::create_symlink("far/x", folder / "near");
  fs::create_symlink(folder / "near", folder / "nearer");
  for (const std::string contents : {"made", "replaced"}) {
    write_durably(folder / "nearer", contents);
    CHECK((fs::is_symlink(folder / "near") && fs::is_symlink(folder / "nearer")));
    CHECK(fs::is_regular_file(fs::symlink_status(folder / "far/x")));
    CHECK(get_file(folder / "far/x") == contents);
  }
  {
    DurableFile first(folder / "near");
    CHECK_THAT(write_error(folder / "far/x"), ContainsSubstring("must have one writer at a time"));
  }
  CHECK(get_file(folder / "far/x") == "replaced");
  fs::create_symlink("circle", folder / "circle");
  CHECK_THAT(write_error(folder / "circle"), ContainsSubstring("Too many levels of symbolic links"));
  fs::create_symlink("/dev/null", folder / "null");
  CHECK_THAT(write_error(folder / "null"), ContainsSubstring("must be a regular file, got a device"));
  CHECK(fs::is_symlink(folder / "null"));
  // As /dev/stdout where output goes into a file, which would lose what is printed.
  const int open_file = ::open((folder / "far/x").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(open_file >= 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(open_file), folder / "opened");
  CHECK_THAT(write_error(folder / "opened"), ContainsSubstring("must be the path of a file, got one of an open file"));
  ::close(open_file);
  CHECK(get_file(folder / "far/x") == "replaced");
}

TEST_CASE("durable file: errors name the path, the reason and what to do", "[durable_file]") {
  TemporaryFolder folder;
  SECTION("missing folder") {
    const std::string message = write_error(folder / "no/x.txt");
    CHECK_THAT(message,
               ContainsSubstring((folder / "no/x.txt").string()) && ContainsSubstring("No such file or directory"));
    CHECK_THAT(message, ContainsSubstring("the folder '" + (folder / "no").string() + "' does not exist"));
  }
  SECTION("a file where a folder should be") {
    put_file(folder / "file", "");
    CHECK_THAT(write_error(folder / "file/x.txt"), ContainsSubstring("Not a directory"));
  }
  SECTION("the path is a folder") {
    std::filesystem::create_directory(folder / "sub");
    CHECK_THAT(write_error(folder / "sub"), ContainsSubstring("Is a directory") && ContainsSubstring("name a file"));
    CHECK_FALSE(std::filesystem::exists(folder / "sub.partial"));
  }
  SECTION("the path is a pipe, which stays one") {
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK_THAT(write_error(folder / "pipe"), ContainsSubstring("must be a regular file"));
    CHECK(std::filesystem::is_fifo(folder / "pipe"));
  }
  SECTION("the name is too long") {
    CHECK_THAT(write_error(folder / std::string(300, 'x')), ContainsSubstring("File name too long"));
  }
}

TEST_CASE("durable file: no permission leaves the old contents", "[durable_file]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x", "old");
  ::chmod(folder.path().c_str(), 0555);
  {
    const WithoutRootRights rights;
    if (rights.holds())
      CHECK_THAT(write_error(path),
                 ContainsSubstring("Permission denied") && ContainsSubstring("no permission to write in the folder"));
  }
  ::chmod(folder.path().c_str(), 0755);
  CHECK(get_file(path) == "old");
}

TEST_CASE("durable file: a device that is always full is reported", "[durable_file]") {
  const int descriptor = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // not every container has it
  const auto write = [&](std::size_t bytes) {
    BufferedOutput output(descriptor, "/runs/a/model");
    output.append(std::string(bytes, 'x'));
    output.flush();
  };
  for (const std::size_t bytes : {1u, 1'000'000u}) {
    const std::string message = message_of<FileError>([&] { write(bytes); });
    CHECK_THAT(message, ContainsSubstring("/runs/a/model") && ContainsSubstring("No space left on device") &&
                            ContainsSubstring("from write") && ContainsSubstring("the disk is full"));
  }
  ::close(descriptor);
}

TEST_CASE("durable file: a write that fails in the middle leaves the old contents and no partial file",
          "[durable_file]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x", "old");
  const std::string contents(1'000'000, 'n');
  std::string message;
  {
    const FileSizeLimit limit(600'000);
    message = write_error(path, contents);
  }
  CHECK_THAT(message, ContainsSubstring("File too large") && ContainsSubstring(path.string()));
  CHECK(get_file(path) == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "x.partial"));
  write_durably(path, contents);
  CHECK(get_file(path) == contents);
}

TEST_CASE("durable file: a name that may not be on the disk is an error", "[durable_file]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x", "old");
  DurableFile file(path);
  file.append("new");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);  // so that the folder cannot be opened
  const std::string message = message_of<FileError>([&file] { file.commit(); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_THAT(message, ContainsSubstring("is written, but its new name must be on the disk") &&
                          ContainsSubstring("Too many open files"));
  CHECK(get_file(path) == "new");
}

TEST_CASE("durable folder: it is made with those that it lies in, and a file in its place is an error",
          "[durable_file]") {
  TemporaryFolder folder;
  CHECK_FALSE(make_durable_folder(folder / "a/b/c"));
  CHECK(std::filesystem::is_directory(folder / "a/b/c"));
  CHECK_FALSE(make_durable_folder(folder / "a/b/c"));
  CHECK_FALSE(make_durable_folder(folder / "a/d/"));
  CHECK(std::filesystem::is_directory(folder / "a/d"));
  put_file(folder / "x", "");
  CHECK(make_durable_folder(folder / "x") == std::errc::not_a_directory);
  CHECK(make_durable_folder(folder / "x/y"));
}

}  // namespace engram::harness::durable_file_test
