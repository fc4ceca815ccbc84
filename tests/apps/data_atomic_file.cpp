#include <unistd.h>

#include "apps/data/atomic_file.hpp"
#include "core/error.hpp"
#include "tests/apps/data_folder.hpp"
#include "tests/harness/catch.hpp"

using namespace engram;
using namespace engram::data;
using Catch::Matchers::Contains;

TEST_CASE("atomic file: the new contents appear only at commit", "[data]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x.txt", "old");
  {
    AtomicFile file(path);
    file.append("HEADnew");
    file.overwrite(0, "head");
    file.append(" contents");
    file.flush();
    CHECK(get_file(path) == "old");
    CHECK(get_file(folder / "x.txt.partial") == "headnew contents");
    file.commit();
    CHECK(get_file(path) == "headnew contents");
  }
  CHECK(get_file(path) == "headnew contents");
  CHECK_FALSE(std::filesystem::exists(folder / "x.txt.partial"));
}

TEST_CASE("atomic file: long contents pass the buffer in order", "[data]") {
  TemporaryFolder folder;
  std::string expected;
  write_atomically(folder / "x", [&](AtomicFile& file) {
    for (const std::size_t length : {7u, 200'000u, 100'000u, 1u, 600'000u, 3u}) {
      const std::string piece(length, static_cast<char>('a' + length % 26));
      file.append(piece);
      expected += piece;
    }
  });
  CHECK(get_file(folder / "x") == expected);
}

TEST_CASE("atomic file: an exception while writing leaves the old contents and no partial file", "[data]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "x", "old");
  CHECK_THROWS_AS(write_atomically(path,
                                   [](AtomicFile& file) {
                                     file.append("half");
                                     throw std::runtime_error("stop");
                                   }),
                  std::runtime_error);
  CHECK(get_file(path) == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "x.partial"));
}

TEST_CASE("atomic file: a partial file that a killed writer left is replaced", "[data]") {
  TemporaryFolder folder;
  put_file(folder / "x.partial", "a long rest of an earlier attempt");
  write_atomically(folder / "x", "new");
  CHECK(get_file(folder / "x") == "new");
}

TEST_CASE("atomic file: errors name the path, the reason and what to do", "[data]") {
  TemporaryFolder folder;
  const auto write_to = [](const std::filesystem::path& path) {
    return message_of<FileError>([&] { write_atomically(path, "bytes"); });
  };
  SECTION("missing folder") {
    const std::string message = write_to(folder / "no/x.txt");
    CHECK_THAT(message, Contains((folder / "no/x.txt").string()) && Contains("No such file or directory"));
    CHECK_THAT(message, Contains("the folder '" + (folder / "no").string() + "' does not exist"));
  }
  SECTION("a file where a folder should be") {
    put_file(folder / "file", "");
    CHECK_THAT(write_to(folder / "file/x.txt"), Contains("Not a directory"));
  }
  SECTION("the path is a folder") {
    std::filesystem::create_directory(folder / "sub");
    CHECK_THAT(write_to(folder / "sub"), Contains("Is a directory") && Contains("from rename"));
    CHECK_FALSE(std::filesystem::exists(folder / "sub.partial"));
  }
  SECTION("full disk") {
    if (!std::filesystem::exists("/dev/full")) return;
    put_file(folder / "x", "old");
    std::filesystem::create_symlink("/dev/full", folder / "x.partial");
    const std::string message = write_to(folder / "x");
    CHECK_THAT(message, Contains("No space left on device") && Contains("from write") && Contains("the disk is full"));
    CHECK(get_file(folder / "x") == "old");
    CHECK_FALSE(std::filesystem::is_symlink(folder / "x.partial"));
  }
  SECTION("no permission") {
    std::filesystem::permissions(folder.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec |
                                     std::filesystem::perms::others_read | std::filesystem::perms::others_exec);
    // Permissions do not bind root, so act as nobody for a moment.
    constexpr uid_t kNobody = 65534;
    const bool root = ::geteuid() == 0;
    if (root && ::seteuid(kNobody) != 0) {
      WARN("skipped: root that cannot act as another user");
      return;
    }
    const std::string message = write_to(folder / "x");
    if (root) REQUIRE(::seteuid(0) == 0);
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
    CHECK_THAT(message, Contains("Permission denied") && Contains("no permission to write in the folder"));
  }
}
