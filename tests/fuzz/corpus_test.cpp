/// Every file of corpus/ is read as by engram_fuzz: real files, those that fuzzing kept of what it made of them, and
/// those that showed a fault of a reader once. The sanitizers watch it with all other tests.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/message_text.hpp"
#include "tests/fuzz/reader.hpp"
#include "tests/harness/catch.hpp"

namespace engram::fuzz::corpus_test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("fuzz: readers refuse or read every file of the corpus", "[fuzz]") {
  const fs::path corpus = fs::path(ENGRAM_SOURCE_DIR) / "tests/fuzz/corpus";
  std::set<std::string> folders;
  for (const fs::directory_entry& folder : fs::directory_iterator(corpus)) folders.insert(folder.path().filename());
  for (const Reader& reader : all_readers()) {
    INFO(reader.name);
    CHECK(folders.erase(std::string(reader.name)) == 1);
    std::size_t files = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(corpus / reader.name)) {
      ++files;
      INFO(entry.path());
      CHECK_NOTHROW(reader.read(bytes_of(entry.path())));
    }
    CHECK(files > 0);
    CHECK_NOTHROW(reader.read(""));
  }
  CHECK(folders.empty());
}

TEST_CASE("fuzz: what is no refusal is a finding", "[fuzz]") {
  CHECK(find_reader("tokens") != nullptr);
  CHECK(find_reader("none") == nullptr);
  CHECK_FALSE(refuses([] {}));
  CHECK(refuses([] { throw FileError("file: it must be there, got none\n  make it"); }));
  CHECK_THROWS_AS(refuses([] { throw std::out_of_range("index"); }), std::out_of_range);
  CHECK(unprintable("a message").empty());
  CHECK_FALSE(unprintable("").empty());
  CHECK_FALSE(unprintable("a\x1b[2J").empty());
  CHECK_FALSE(unprintable("a\xff").empty());
  CHECK_FALSE(unprintable(std::string(kLongestMessage + 1, 'a')).empty());
}

}  // namespace
}  // namespace engram::fuzz::corpus_test
