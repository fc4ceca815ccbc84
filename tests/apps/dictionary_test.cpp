/// apps/dictionary.sh with a dictionary of its own: entries stay whole and in order, and pages go to their splits.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "apps/data/data_set.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::dictionary_test {
namespace {

namespace fs = std::filesystem;

struct Said {
  int code = -1;
  std::string all;  ///< stdout and stderr
};

Said shell(const std::string& command) {
  Said said;
  std::FILE* const pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> piece{};
  while (const std::size_t read = std::fread(piece.data(), 1, piece.size(), pipe)) said.all.append(piece.data(), read);
  said.code = WEXITSTATUS(::pclose(pipe));
  return said;
}

/// An entry of a little more than 10,000 bytes when its lines are joined: two are a page.
std::string entry(const std::string& word) {
  std::string text = word + " \\" + word + "\\, n.\n";
  for (int i = 0; i < 100; ++i) {
    text += "   " + std::to_string(i % 10) + ". A thing of this kind, which is told in a line,\n";
    text += "      and in another one that goes on below it, to its end.\n      [1913 Webster]\n\n";
  }
  return text;
}

struct Dictionary : TemporaryFolder {
  explicit Dictionary(int pages) {
    std::string text = "00-database-short\n   A dictionary of the test\n\n";
    for (int page = 1; page <= pages; ++page)
      for (const char* which : {"a", "b"}) {
        // The real one begins with the letter A; a byte that is no ASCII is lost.
        std::string word = "word" + std::to_string(page) + which;
        if (page == 1 && which[0] == 'a')
          word =
              "A word1\xe9"
              "a";
        text += entry(word);
      }
    put_file(*this / "plain", text);
    REQUIRE(shell("gzip -c '" + (*this / "plain").string() + "' >'" + packed().string() + "'").code == 0);
  }
  fs::path packed() const { return *this / "gcide.dict.dz"; }
  Said call(const std::string& arguments) const {
    return shell("bash '" ENGRAM_SOURCE_DIR "/apps/dictionary.sh' " + arguments + " --to '" + (*this / "to").string() +
                 "' --engram '" + program_of_build() + "'");
  }
  Said make(const std::string& kind) const { return call(kind + " --from '" + packed().string() + "'"); }
  std::string text_of(const std::string& name) const { return get_file(*this / "to/files" / ("dictionary-" + name)); }
};

}  // namespace

TEST_CASE("dictionary: pages of whole entries in three splits", "[night]") {
  const Dictionary dictionary(67);
  const Said said = dictionary.make("characters articles");
  INFO(said.all);
  REQUIRE(said.code == 0);
  const std::string train = dictionary.text_of("train.txt"), valid = dictionary.text_of("valid.txt"),
                    test = dictionary.text_of("test.txt");
  // Pages 33 and 66, whole, and no other.
  CHECK(
      valid.starts_with("\nword33a \\word33a\\, n. 0. A thing of this kind, which is told in a line, and in another"));
  CHECK_THAT(valid,
             ContainsSubstring("\n\nword33b \\") && !ContainsSubstring("word32") && !ContainsSubstring("word34"));
  CHECK_THAT(test, ContainsSubstring("word66a") && ContainsSubstring("word66b") && !ContainsSubstring("word67"));
  CHECK_THAT(train, !ContainsSubstring("word33") && !ContainsSubstring("word66") && ContainsSubstring("word67b") &&
                        ContainsSubstring("word32b"));
  CHECK(train.starts_with("\nA word1a \\"));
  for (const std::string* all : {&train, &valid, &test})
    CHECK_THAT(*all, !ContainsSubstring("1913") && !ContainsSubstring("00-database") && !ContainsSubstring("  "));

  const data::DataSet characters = data::DataSet::open(dictionary / "to/dictionary-characters");
  CHECK(characters.split("valid").size() == static_cast<std::int64_t>(valid.size()));
  const data::DataSet articles = data::DataSet::open(dictionary / "to/dictionary-articles");
  CHECK(articles.articles("train").size() == 65);
  CHECK(articles.articles("valid").size() == 1);

  // The same again, of what is there.
  fs::remove(dictionary.packed());
  put_file(dictionary.packed(), "no archive");
  CHECK(dictionary.make("characters").code == 0);
  CHECK(data::DataSet::open(dictionary / "to/dictionary-characters").hash() == characters.hash());
}

TEST_CASE("dictionary: what is refused") {
  const Dictionary dictionary(3);
  CHECK_THAT(dictionary.make("characters").all, ContainsSubstring("must have 66 pages or more, got fewer"));
  CHECK_FALSE(fs::exists(dictionary / "to/files/dictionary-train.txt"));
  CHECK_THAT(dictionary.call("").all, ContainsSubstring("there must be a kind"));
  CHECK_THAT(dictionary.make("letters").all,
             ContainsSubstring("a kind must be one of") && ContainsSubstring("'letters'"));
  CHECK_THAT(dictionary.call("words --from none").all,
             ContainsSubstring("--from must name a file") && ContainsSubstring("'none'"));
  put_file(dictionary.packed(), "no archive");
  CHECK_THAT(dictionary.make("characters").all, ContainsSubstring("must be a packed dictionary"));
}

}  // namespace engram::harness::dictionary_test
