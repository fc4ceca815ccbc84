/// Given byte-pair codes: what fastBPE and subword-nmt make of words with them, and what is refused. What is expected
/// of words was made by these programs.

#include <array>
#include <string>
#include <vector>

#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/merge_codes.hpp"
#include "apps/data/vocabulary/merged_counts.hpp"
#include "apps/data/vocabulary/subword_vocabulary.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "core/error.hpp"
#include "tests/apps/data/merge_texts.hpp"
#include "tests/apps/data/subword_texts.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::merge_codes_test {

using namespace engram::data;

namespace {

/// The subwords of a line, as the programs write them.
std::string cut(const WordMerger& merger, std::string_view line, const WordTable* allowed = nullptr) {
  std::string out;
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    merger.split(line.substr(begin, end - begin), allowed, pieces);
    for (const std::string& piece : pieces) out += (out.empty() ? "" : " ") + piece;
    begin = end + 1;
  }
  return out;
}

WordTable table_of(const std::vector<CountedSubword>& list) {
  WordTable table;
  for (const CountedSubword& subword : list) table.add(subword.written);
  return table;
}

MergeCodes codes(bool limited) {
  return {parse_merges(kFastCodes, "codes"), parse_subword_list(kSubwordList, "list", 0), limited};
}

}  // namespace

TEST_CASE("merges: words are cut as the programs cut them", "[data][product-key]") {
  const WordMerger fast(parse_merges(kFastCodes, "fast"));
  const WordMerger nmt2(parse_merges(kVersion2Codes, "nmt"));
  const WordMerger nmt1(parse_merges(kVersion1Codes, "nmt"));
  CHECK(fast.list().style == MergeStyle::fastbpe);
  CHECK(nmt2.list().style == MergeStyle::v0_2);
  CHECK(nmt1.list().style == MergeStyle::v0_1);
  constexpr std::string_view kText = "low lowest newest aaaaa aa a unlow widest l w slow \u00e9a new";
  constexpr std::string_view kCut =
      "low lowest new@@ est aa@@ aa@@ a a@@ a a un@@ low w@@ i@@ d@@ est l w s@@ low \u00e9@@ a ne@@ w";
  CHECK(cut(fast, kText) == kCut);
  CHECK(cut(nmt2, kText) == kCut);
  CHECK(cut(nmt1, kText) ==
        "low lowest new@@ est aa@@ aa@@ a aa a un@@ low w@@ i@@ d@@ est l w s@@ low \u00e9@@ a new");

  // What a given vocabulary lacks is taken apart.
  const WordTable all = table_of(parse_subword_list(kSubwordList, "list", 0));
  const WordTable frequent = table_of(parse_subword_list(kSubwordList, "list", 2));
  constexpr std::string_view kLimited =
      "low lo@@ w@@ est ne@@ w@@ est aa@@ aa@@ a a@@ a a u@@ n@@ low w@@ i@@ d@@ est l w s@@ low \u00e9@@ a ne@@ w";
  CHECK(cut(fast, kText, &all) == kLimited);
  CHECK(cut(nmt2, kText, &all) == kLimited);
  CHECK(cut(nmt2, "aaaaa aa", &frequent) == "a@@ a@@ a@@ a@@ a a@@ a");
  CHECK(cut(nmt1, "new aa unlow", &all) == "new aa u@@ n@@ low");
}

TEST_CASE("merges: a long word is joined in a moment", "[data]") {
  const WordMerger merger(parse_merges("a a 2\naa aa 1\n", "fast"));
  std::vector<std::string> pieces;
  merger.split(std::string(400'001, 'a'), nullptr, pieces);
  CHECK(pieces.size() == 100'001);
  CHECK(pieces[0] == "aaaa@@");
  CHECK(pieces.back() == "a");
}

TEST_CASE("merges: what is no file of codes is named with its line", "[data]") {
  const auto error = [](std::string_view bytes) {
    return message_of<FileError>([&] { parse_merges(bytes, "the.codes"); });
  };
  CHECK_THAT(error(""), ContainsSubstring("'the.codes' must have a pair to join") && ContainsSubstring("got no pair"));
  CHECK_THAT(error("#version: 0.2\n"), ContainsSubstring("got no pair"));
  CHECK_THAT(error("a b 3\nc d\n"), ContainsSubstring("two subwords and a count in every line, got 'c d' in line 2"));
  CHECK_THAT(error("a b 3\nc d x\n"), ContainsSubstring("got 'c d x' in line 2"));
  CHECK_THAT(error("a b 3\nc d -4\n"), ContainsSubstring("got 'c d -4' in line 2"));
  CHECK_THAT(error("a b\nc d 4\n"), ContainsSubstring("two subwords in every line") && ContainsSubstring("in line 2"));
  CHECK_THAT(error("a b\n\nc d\n"), ContainsSubstring("got nothing in line 2"));
  CHECK_THAT(error("one\n"), ContainsSubstring("got 'one' in line 1"));
  CHECK_THAT(error("#version: 0.3\na b\n"), ContainsSubstring("version 0.1 or 0.2, got '#version: 0.3' in line 1"));
  CHECK_THAT(error("a b\nb c\na b\n"), ContainsSubstring("have every pair once, got 'a b' in line 3"));
  CHECK_THAT(error("a b 1\n\xc3( d 1\n"), ContainsSubstring("be UTF-8, got 0xc3 at byte 0 of the line in line 2"));
  CHECK_THAT(error("< /w>\n"), ContainsSubstring("not join a pair to </w>"));
  CHECK_THAT(error("a " + std::string(2000, 'b') + "\n"), ContainsSubstring("at most 1024 bytes, got a pair of 2001"));
  CHECK_THAT(error("the 5\nof 4\n"), ContainsSubstring("must have pairs to join, got a vocabulary"));
  CHECK(parse_merges("a b\n1 2\n", "x").merges.size() == 2);
  CHECK(parse_merges("a b 3\r\n", "x").merges.size() == 1);
}

TEST_CASE("merges: what is no vocabulary is named with its line", "[data]") {
  const auto error = [](std::string_view bytes, std::int64_t least = 0) {
    return message_of<FileError>([&] { parse_subword_list(bytes, "the.list", least); });
  };
  CHECK_THAT(error("the 5\nof\n"), ContainsSubstring("a subword and its count in every line, got 'of' in line 2"));
  CHECK_THAT(error("the\n"), ContainsSubstring("'the.list'") && ContainsSubstring("got 'the' in line 1"));
  CHECK_THAT(error("the 5 5\n"), ContainsSubstring("got 'the 5 5' in line 1"));
  CHECK_THAT(error("the many\n"), ContainsSubstring("got 'the many' in line 1"));
  CHECK_THAT(error("the 5\nthe 4\n"), ContainsSubstring("every subword once, got 'the 4' in line 2"));
  CHECK_THAT(error("the 5\n\xff 4\n"), ContainsSubstring("got 0xff at byte 0 of the line in line 2"));
  CHECK_THAT(error("the 5\n", 6), ContainsSubstring("count of at least 6, got none among 1"));
  CHECK_THAT(error(""), ContainsSubstring("got none among 0"));
}

TEST_CASE("merge codes: ids, text and files", "[data]") {
  const SubwordVocabulary open(codes(false), 1), limited(codes(true), 1);
  CHECK(open.size() == 10);
  CHECK(open.end_token() == 1);
  CHECK(open.hash() != limited.hash());
  using Ids = std::vector<std::int32_t>;
  // low is the list's first; new@@ is not in it, and the vocabulary that limits has ne@@ w@@ for it.
  CHECK(open.encode("low newest\n") == Ids{2, 0, 4, 1});
  CHECK(limited.encode("low newest\n") == Ids{2, 5, 6, 4, 1});
  CHECK(limited.encode("low \u00e9") == Ids{2, 0});
  CHECK(limited.decode(limited.encode("low newest\naaaaa a\n\nlow")) == "low newest\naaaaa a\n\nlow");
  CHECK(open.decode(open.encode("low newest a")) == "low \ufffd est a");
  // Spaces depend on the token before.
  CHECK(limited.decode(Ids{2}, 5) == "low");
  CHECK(limited.decode(Ids{2}, 2) == " low");
  CHECK(limited.decode(Ids{2}, 1) == "low");
  CHECK(limited.decode(Ids{2}, -1) == "low");

  SubwordEncoder encoder(limited.model());
  Ids ids;
  encoder.encode("low newest", ids);
  encoder.encode("low", ids);
  CHECK(encoder.altered() == 0);
  encoder.encode(" low  a", ids);
  CHECK(encoder.altered() == 1);
  CHECK(ids == Ids{2, 5, 6, 4, 2, 2, 8});

  for (const SubwordVocabulary& vocabulary : {open, limited}) {
    const Vocabulary either(vocabulary);
    const Vocabulary again = Vocabulary::parse(either.json_text(), "a checkpoint");
    CHECK(again.hash() == either.hash());
    CHECK(again.json_text() == either.json_text());
    CHECK(again.encode("low newest\n") == either.encode("low newest\n"));
  }
  for (const std::string_view form : {kVersion2Codes, kVersion1Codes}) {
    const MergeCodes made(parse_merges(form, "x"), parse_subword_list(kSubwordList, "x", 0), true);
    CHECK(MergeCodes::parse(made.model(), "x").model() == made.model());
  }
}

TEST_CASE("merge codes: a damaged file is refused, never read as another", "[data]") {
  const std::string good = codes(true).model();
  const auto error = [](const std::string& bytes) {
    return message_of<FileError>([&] { MergeCodes::parse(bytes, "vocabulary.model"); });
  };
  CHECK(error(good).empty());
  for (std::size_t size = 0; size + 1 < good.size(); size += 7) {
    const std::string cut_off = good.substr(0, size);
    // A list that ends after a line is another list: its hash tells.
    if (const std::string message = error(cut_off); message.empty())
      CHECK(MergeCodes::parse(cut_off, "x").model() != good);
    else
      CHECK_THAT(message, ContainsSubstring("'vocabulary.model' must"));
  }
  CHECK_THAT(error(good + "x\n"), ContainsSubstring("got 'x' in line 22"));
}

TEST_CASE("merged counts: the subwords of train, the most frequent first", "[data]") {
  const WordMerger merger(parse_merges(kFastCodes, "fast"));
  MergedCounts counts(merger);
  counts.add_line("low lowest newest aaaaa aa a unlow widest");
  counts.add_line("l w slow  \u00e9a new");
  std::string list;
  for (const CountedSubword& one : counts.list(1)) list += one.written + " " + std::to_string(one.count) + "\n";
  // "fastbpe getvocab" of the same text.
  CHECK(list ==
        "a 4\nlow 3\naa@@ 2\nest 2\nw 2\na@@ 1\nd@@ 1\ni@@ 1\nl 1\nlowest 1\nne@@ 1\nnew@@ 1\ns@@ 1\nun@@ 1\nw@@ 1\n"
        "\u00e9@@ 1\n");
  CHECK(counts.list(3).size() == 2);
}

TEST_CASE("merges: any text is cut into pieces that make it again", "[data]") {
  const WordMerger merger(parse_merges(kFastCodes, "fast"));
  std::vector<std::string> pieces;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::string word = random_unicode(seed, 100);
    std::erase_if(word, [](char byte) { return byte == ' ' || byte == '\n'; });
    merger.split(word, nullptr, pieces);
    std::string whole;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i + 1 < pieces.size()) {
        REQUIRE(pieces[i].ends_with("@@"));
        pieces[i].resize(pieces[i].size() - 2);
      }
      whole += pieces[i];
    }
    CHECK(whole == word);
  }
}

}  // namespace engram::harness::merge_codes_test
