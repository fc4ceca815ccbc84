/// apps/fetch.sh with data sets of its own, which lie in files or are served by this machine: nothing here needs a
/// network.

#include <stdlib.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>

#include "apps/data/data_set.hpp"
#include "core/error.hpp"
#include "core/files/crc32.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::fetch_test {
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

/// A zip archive of one file that is stored as it is.
std::string zip_of(const std::string& name, const std::string& bytes) {
  Crc32 crc;
  crc.add(std::as_bytes(std::span(bytes)));
  const auto number = [](std::uint64_t value, int size) {
    std::string written;
    for (int i = 0; i < size; ++i, value >>= 8) written += static_cast<char>(value);
    return written;
  };
  // Version, flags, method, time and date; then checksum, sizes and lengths.
  const std::string facts = number(10, 2) + number(0, 4) + number(0x21 << 16, 4) + number(crc.value(), 4) +
                            number(bytes.size(), 4) + number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
  const std::string local = "PK\3\4" + facts + name + bytes;
  const std::string entry = std::string("PK\1\2") + number(10, 2) + facts + number(0, 10) + number(0, 4) + name;
  return local + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) + number(entry.size(), 4) +
         number(local.size(), 4) + number(0, 2);
}

std::string sum_of(const fs::path& file, const std::string& kind) {
  const Said said = shell(kind + "sum '" + file.string() + "'");
  REQUIRE(said.code == 0);
  return kind + ":" + said.all.substr(0, said.all.find(' '));
}

/// A folder `host` that has an archive, and what the script makes of a table.
struct FetchFolder : TemporaryFolder {
  std::string text = small_text(6000);
  fs::path archive = *this / "host/corpus.zip";

  FetchFolder() {
    fs::create_directory(*this / "host");
    put_file(archive, zip_of("text", text));
  }
  std::string address(const std::string& name) const { return "file://" + (*this / "host" / name).string(); }
  /// One corpus, `small`, and one data set, `small-char`, with these addresses and facts.
  Said fetch(const std::string& addresses, const std::string& tokens = "- - - -", const std::string& check = "") const {
    const std::string facts =
        engram::text(fs::file_size(archive), " ", check.empty() ? sum_of(archive, "sha256") : check, " ");
    put_file(*this / "table", engram::text("# a comment\n\ndownload small corpus.zip ", facts, addresses,
                                           "\nmember small text ", text.size(), " -\ndata small-char small ", tokens,
                                           " --kind char --split 80,10,10 --text @text\n"));
    return call("small-char");
  }
  Said call(const std::string& arguments) const {
    return shell("bash '" ENGRAM_SOURCE_DIR "/apps/fetch.sh' " + arguments + " --table '" + (*this / "table").string() +
                 "' --to '" + (*this / "to").string() + "' --engram '" + program_of_build() + "'");
  }
  /// The same data set, which only a server of this machine has, that answers as `way` says (fetch_server.py).
  /// `before`: commands of the shell.
  Said serve(const std::string& way, const std::string& before = "") const {
    put_file(*this / "table",
             engram::text("download small corpus.zip ", fs::file_size(archive), " ", sum_of(archive, "sha256"),
                          " http://127.0.0.1:9/corpus.zip\nmember small text ", text.size(),
                          " -\ndata small-char small - - - - --kind char --split 80,10,10 --text @text\n"));
    put_file(*this / "call.sh",
             engram::text(before, "\nbash '", ENGRAM_SOURCE_DIR, "/apps/fetch.sh' small-char --from \"$1/", way,
                          "/\" --table '", (*this / "table").string(), "' --to '", (*this / "to").string(),
                          "' --engram '", program_of_build(), "'\n"));
    return shell("python3 '" ENGRAM_SOURCE_DIR "/tests/apps/fetch_server.py' '" + (*this / "host").string() +
                 "' \"bash '" + (*this / "call.sh").string() + "' {host}\"");
  }
  fs::path data() const { return *this / "to/small-char"; }
  fs::path download() const { return *this / "to/files/corpus.zip"; }
};

/// wget knows no file://.
bool has_tools() {
  const bool has = shell("command -v curl unzip flock").code == 0;
  if (!has) WARN("curl, unzip and flock must be installed to try apps/fetch.sh");
  return has;
}

TEST_CASE("fetch: a data set is downloaded, checked, unpacked and prepared; what is there is used") {
  if (!has_tools()) return;
  const FetchFolder folder;
  const Said first = folder.fetch(folder.address("corpus.zip"));
  INFO(first.all);
  REQUIRE(first.code == 0);
  const data::DataSet data = data::DataSet::open(folder.data());
  CHECK(data.split("train").size() + data.split("valid").size() + data.split("test").size() >= 6000);
  CHECK_THAT(first.all, ContainsSubstring(text(folder.data().string(), ": a vocabulary of ", data.vocabulary().size(),
                                               ", ", data.split("train").size(), " tokens in train, ")));

  // Nothing is fetched again, not even where nothing is left of it but the text.
  fs::remove_all(folder / "host");
  const std::string before = get_file(folder.data() / "train.tokens");
  CHECK_THAT(folder.call("small-char").all, ContainsSubstring("small-char is there."));
  fs::remove_all(folder.data());
  fs::remove(folder.download());
  CHECK(folder.call("small-char").code == 0);
  CHECK(get_file(folder.data() / "train.tokens") == before);
}

TEST_CASE("fetch: a download that was cut off goes on, and one that was fetched by hand is used") {
  if (!has_tools()) return;
  const FetchFolder folder;
  const std::string whole = get_file(folder.archive);
  fs::create_directories(folder.download().parent_path());
  put_file(folder.download().string() + ".partial", whole.substr(0, 1000));
  CHECK(folder.fetch(folder.address("corpus.zip")).code == 0);
  CHECK(get_file(folder.download()) == whole);

  const FetchFolder offline;
  fs::create_directories(offline.download().parent_path());
  put_file(offline.download(), whole);
  CHECK(offline.fetch("http://127.0.0.1:9/corpus.zip").code == 0);
}

bool has_server() {
  if (!has_tools()) return false;
  const bool has = shell("command -v python3").code == 0;
  if (!has) WARN("python3 must be installed to try apps/fetch.sh with a server");
  return has;
}

TEST_CASE("fetch: a copy of one's own is tried first; a link that breaks and breaks again gets it all") {
  if (!has_server()) return;
  for (const char* way : {"plain", "cut"}) {
    const FetchFolder folder;
    const Said said = folder.serve(way);
    INFO(said.all);
    CHECK(said.code == 0);
    CHECK(get_file(folder.download()) == get_file(folder.archive));
    CHECK(fs::exists(folder.data() / "data.json"));
  }
  // A server that can only begin anew, and breaks off at the same place: no way on, and what there is stays.
  const FetchFolder folder;
  const Said said = folder.serve("once");
  CHECK(said.code == 1);
  CHECK_THAT(said.all, ContainsSubstring("broke after 2000 bytes") && ContainsSubstring("put it here"));
  CHECK(fs::file_size(folder.download().string() + ".partial") == 2000);
  CHECK(folder.serve("ranges").code == 0);
}

TEST_CASE("fetch: pages of proxies are not taken for archives, and a wrong beginning is fetched again") {
  if (!has_server()) return;
  const FetchFolder folder;
  const Said page = folder.serve("page");
  CHECK(page.code == 1);
  CHECK_THAT(page.all, ContainsSubstring("a page of HTML, as of a proxy"));
  CHECK_FALSE(fs::exists(folder.download()));
  CHECK_THAT(folder.serve("refused").all, ContainsSubstring("503"));
  CHECK_FALSE(fs::exists(folder.download().string() + ".partial"));
  put_file(folder.download().string() + ".partial", std::string(1000, 'x'));
  const Said said = folder.serve("ranges");
  CHECK(said.code == 0);
  CHECK_THAT(said.all, ContainsSubstring("must have sha256:"));
}

TEST_CASE("fetch: a full disk is said, and what there is of a download is kept") {
  if (!has_server()) return;
  const FetchFolder folder;
  // No file may grow beyond 2 KiB: writing fails there as on a full disk.
  const Said said = folder.serve("ranges", "trap '' XFSZ\nulimit -f 2");
  CHECK(said.code == 1);
  CHECK_THAT(said.all,
             ContainsSubstring("could not be written, is the disk full?") && !ContainsSubstring("put it here"));
  CHECK(fs::file_size(folder.download().string() + ".partial") > 0);
  CHECK(folder.serve("ranges").code == 0);
}

TEST_CASE("fetch: a wrong download is named and not used; another address may have the right one") {
  if (!has_tools()) return;
  const FetchFolder folder;
  put_file(folder / "host/page.html", "<html>Gone.</html>");
  std::string damaged = get_file(folder.archive);
  damaged[100] ^= 1;
  put_file(folder / "host/damaged.zip", damaged);

  const Said wrong = folder.fetch(folder.address("page.html") + " " + folder.address("damaged.zip"));
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.all, ContainsSubstring(text("'corpus.zip' from ", folder.address("page.html"), " must have ",
                                               damaged.size(), " bytes, got 18 (a page of HTML")));
  CHECK_THAT(wrong.all,
             ContainsSubstring(text("'corpus.zip' from ", folder.address("damaged.zip"), " must have sha256:")));
  CHECK(get_file(folder.download().string() + ".wrong") == damaged);
  CHECK_FALSE(fs::exists(folder.download()));
  CHECK_FALSE(fs::exists(folder.data()));

  for (const char* kind : {"sha1", "md5"})
    CHECK(folder.fetch(folder.address("damaged.zip"), "- - - -", sum_of(folder.archive, kind)).code == 1);
  CHECK(folder
            .fetch(folder.address("damaged.zip") + " " + folder.address("corpus.zip"), "- - - -",
                   sum_of(folder.archive, "md5"))
            .code == 0);
}

TEST_CASE("fetch: what a person put in the place of a file is neither used nor replaced when it is wrong") {
  if (!has_tools()) return;
  const FetchFolder folder;
  fs::create_directories(folder.download().parent_path());
  put_file(folder.download(), "mine");
  const Said said = folder.fetch(folder.address("corpus.zip"));
  CHECK(said.code == 1);
  CHECK_THAT(said.all, ContainsSubstring("bytes, got 4; it is not used, and what lies there is not replaced"));
  CHECK(get_file(folder.download()) == "mine");
}

TEST_CASE("fetch: without a network it says what to fetch and where to put it") {
  if (!has_tools()) return;
  const FetchFolder folder;
  const Said said = folder.fetch("http://127.0.0.1:9/corpus.zip " + folder.address("missing"));
  CHECK(said.code == 1);
  CHECK_THAT(said.all,
             ContainsSubstring("Where there is a network, fetch\n  http://127.0.0.1:9/corpus.zip\n  file://"));
  CHECK_THAT(said.all, ContainsSubstring(text("  (", fs::file_size(folder.archive), " bytes, sha256:")));
  CHECK_THAT(said.all, ContainsSubstring("put it here\n  " + folder.download().string() + "\n"));
}

TEST_CASE("fetch: data that come to other numbers of tokens than published are not used") {
  if (!has_tools()) return;
  const FetchFolder folder;
  const Said wrong = folder.fetch(folder.address("corpus.zip"), "- 4800 - -");
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.all, ContainsSubstring("must have train of 4800 tokens, got "));
  CHECK_FALSE(fs::exists(folder.data()));
  const std::string vocabulary = "must have a vocabulary of 300 tokens, got ";
  const Said other = folder.fetch(folder.address("corpus.zip"), "300 - - -");
  CHECK_THAT(other.all, ContainsSubstring(vocabulary));
  const std::size_t at = other.all.find(vocabulary) + vocabulary.size();
  const std::string found = other.all.substr(at, other.all.find(';', at) - at);
  CHECK(folder.fetch(folder.address("corpus.zip"), found + " - - -").code == 0);
}

TEST_CASE("fetch: wrong arguments are one message") {
  const FetchFolder folder;
  put_file(folder / "table", "data small-char small - - - - --kind char\n");
  CHECK_THAT(folder.call("enwik").all, ContainsSubstring("fetch: a name must be one of small-char, got 'enwik'"));
  CHECK(folder.call("enwik").code == 2);
  CHECK(folder.call("--other").code == 2);
  CHECK_THAT(
      folder.call("small-char --from somewhere").all,
      ContainsSubstring("--from must be an address such as http://host/folder, without blanks, got 'somewhere'"));
  CHECK(folder.call("--help").code == 0);
  put_file(folder / "table", "dta small\n");
  CHECK_THAT(folder.call("a").all, ContainsSubstring("a line must begin with download, member or data, got 'dta'"));
}

TEST_CASE("fetch: the list of data sets names them all, with addresses and checks, in 80 columns") {
  const Said said = shell("bash '" ENGRAM_SOURCE_DIR "/apps/fetch.sh'");
  CHECK(said.code == 0);
  const std::string page = get_file(fs::path(ENGRAM_SOURCE_DIR) / "docs/guide/data.md");
  for (const char* name : {"enwik8", "text8", "wikitext-103", "ptb", "lm1b", "cbt"}) {
    CHECK_THAT(said.all, ContainsSubstring("\n" + std::string(name) + " "));
    CHECK_THAT(page, ContainsSubstring("`" + std::string(name) + "`"));
  }
  for (std::size_t at = 0, end = 0; (end = said.all.find('\n', at)) != std::string::npos; at = end + 1)
    CHECK(end - at <= 80);
}

}  // namespace
}  // namespace engram::harness::fetch_test
