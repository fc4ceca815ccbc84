/// The files of a data folder, and what it is prepared from beside texts.

#include <span>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/little_endian.hpp"
#include "apps/data/files/token_file.hpp"
#include "apps/data/vocabulary/byte_pairs.hpp"
#include "apps/data/vocabulary/merge_codes.hpp"
#include "apps/data/vocabulary/merge_list.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "apps/data/vocabulary/word_list.hpp"
#include "apps/run/weights/import_vocabulary.hpp"
#include "core/error.hpp"
#include "tests/fuzz/checksums.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

using namespace data;

void use(const Vocabulary& vocabulary) {
  constexpr std::string_view kText = "In the beginning was the Word,\nand \xc3\xa4 \xe2\x96\x81 b\x01";
  vocabulary.find_unknown(kText);
  refuses([&] { vocabulary.decode(vocabulary.encode(kText)); });
  std::vector<std::int32_t> all;
  for (std::int32_t id = 0; id < std::min<std::int64_t>(vocabulary.size(), 64); ++id) all.push_back(id);
  vocabulary.decode(all);
  all.push_back(static_cast<std::int32_t>(vocabulary.size()));
  if (!refuses([&] { vocabulary.decode(all); })) throw std::logic_error("an id outside of the vocabulary has a text");
  const std::string written = vocabulary.json_text();
  if (Vocabulary::parse(written, "written").hash() != vocabulary.hash())
    throw std::logic_error("a vocabulary must be read as it was written");
}

}  // namespace

void read_token_file(std::string_view bytes) {
  const auto read = [](std::string_view file) {
    refuses([&] {
      const TokenFile tokens(scratch_file(file));
      std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.tokens().size()));
      tokens.tokens().copy(0, tokens.tokens().size(), ids.data());
      for (const std::int32_t id : ids)
        if (id < 0 || id >= tokens.vocabulary_size()) throw std::logic_error("an id is outside of the vocabulary");
    });
  };
  read(bytes);
  if (const std::string repaired = with_data_hashes(bytes); repaired != bytes) read(repaired);
}

void read_article_starts_file(std::string_view bytes) {
  const auto read = [](std::string_view file) {
    const std::uint64_t tokens = file.size() < 40 ? 0 : take_number(file, 16, 8);
    const std::uint64_t hash = file.size() < 40 ? 0 : take_number(file, 32, 8);
    refuses([&] {
      const std::vector<std::int64_t> starts =
          read_article_starts(scratch_file(file), static_cast<std::int64_t>(tokens), hash);
      require_article_starts("fuzz", starts, static_cast<std::int64_t>(tokens));
    });
  };
  read(bytes);
  if (const std::string repaired = with_data_hashes(bytes); repaired != bytes) read(repaired);
}

void read_data_facts(std::string_view bytes) {
  // The other files are as they were when there was a first data.json.
  static const std::filesystem::path folder = [] {
    const std::filesystem::path made = scratch_folder();
    const ByteVocabulary vocabulary = ByteVocabulary::collect(
        split_text({"text", std::string("ab\nba\nab\nab\nba\nab\nab\n")}, TextRule::any, Percentages{50, 25, 25}, true),
        VocabularyFrom::train);
    scratch_file(vocabulary.json_text(), kVocabularyFile);
    for (const std::string_view split : kSplitNames) {
      TokenFileWriter tokens(made / token_file_name(split), vocabulary.size(), vocabulary.hash());
      tokens.append(std::vector<std::int32_t>{1, 2, 0, 2, 1, 0, 1, 1, 0});
      tokens.commit();
    }
    return made;
  }();
  scratch_file(bytes, kDataFile);
  refuses([&] { read_text_rules(folder); });
  refuses([&] {
    const DataSet data = DataSet::open(folder);
    data.hash();
    for (const std::string_view split : kSplitNames) {
      data.articles(split);
      data.text_amount(split);
    }
    data.article_start_token();
  });
}

void read_vocabulary(std::string_view bytes) {
  refuses([&] { use(Vocabulary::parse(bytes, "vocabulary.json")); });
}

void read_merge_codes(std::string_view bytes) {
  constexpr std::string_view kText = "the quick brown fox the lazy dog";
  std::vector<std::int32_t> ids;
  refuses([&] { parse_subword_list(bytes, "codes.vocab", 2); });
  refuses([&] {
    MergeList merges = parse_merges(bytes, "codes");
    const MergeCodes codes(std::move(merges), {{"t@@", 3}, {"h@@", 2}, {"e", 7}, {"the", 3}}, true);
    codes.encode(kText, ids);
  });
  refuses([&] {
    const MergeCodes codes = MergeCodes::parse(bytes, "vocabulary.model");
    codes.encode(kText, ids);
    use(SubwordVocabulary(codes, 0));
  });
}

void read_sentencepiece_model(std::string_view bytes) {
  refuses([&] {
    BytePairs model(std::string(bytes), "spm.model");
    use(SubwordVocabulary(std::move(model), 0));
  });
}

void read_word_list_file(std::string_view bytes) {
  const std::filesystem::path path = scratch_file(bytes);
  for (const bool end_of_line : {false, true})
    refuses([&] {
      WordRules rules;
      rules.end_of_line = end_of_line;
      rules.sentences = end_of_line ? SentenceMarks::none : SentenceMarks::around;
      use(read_word_list(path, rules));
    });
  refuses([&] { read_subword_list(path, 1); });
  refuses([&] { use(read_import_vocabulary(path, 6)); });
}

}  // namespace engram::fuzz
