/// Vocabularies of which a part is the same: which vectors a model begins with then.

#include "apps/run/transfer/symbol_match.hpp"

#include <algorithm>

#include "apps/data/vocabulary/merge_codes.hpp"
#include "apps/data/vocabulary/merge_list.hpp"
#include "apps/data/vocabulary/subword_counts.hpp"
#include "apps/run/transfer/transfer_report.hpp"
#include "core/error.hpp"
#include "tests/apps/run/transfer/transfer_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::symbol_transfer_test {
namespace {

data::Vocabulary words(const std::vector<std::string>& list, bool line_ends = false, data::WordMarks marks = {}) {
  data::WordTable table;
  for (const std::string& word : list) table.add(word);
  return data::WordVocabulary(std::move(table), line_ends, 0, std::move(marks));
}

TEST_CASE("symbols are matched by what they stand for") {
  const SymbolMatch match = match_symbols(words({"a", "b", "<eos>", "<unk>", "c"}, true),
                                          words({"c", "d", "</s>", "UNK", "a"}, true, {"</s>", "UNK"}));
  CHECK(match.before_of == std::vector<std::int64_t>{4, -1, 2, 3, 0});
  CHECK(match.shared == 4);
  CHECK(match.before == 5);
  CHECK(match.same_kind);
  const RunFolder characters;
  const SymbolMatch other = match_symbols(words({"a", "b"}), data::DataSet::open(characters.data()).vocabulary());
  CHECK_FALSE(other.same_kind);
  CHECK(other.shared == 0);
}

data::Vocabulary learned_subwords(const std::string& of_words, std::int64_t size) {
  data::SubwordCounts counts;
  for (int i = 0; i < 40; ++i) counts.add_line(of_words);
  return data::SubwordVocabulary(data::BytePairs(data::BytePairs::learn(counts, size), "learned"), 0);
}

TEST_CASE("subwords are matched by their text and role, in vocabularies of different sizes") {
  const data::Vocabulary before = learned_subwords("stone river under", 275),
                         now = learned_subwords("stone river green stones", 278);
  const SymbolMatch match = match_symbols(before, now);
  CHECK(match.same_kind);
  CHECK(match.shared >= 258);  // all bytes, the end of a line, the unknown one
  CHECK(match.shared < std::min(before.size(), now.size()));
  CHECK(match.before_of.at(static_cast<std::size_t>(now.end_token())) == before.end_token());
  const data::SubwordModel &of_before = before.subwords()->model(), &of_now = now.subwords()->model();
  std::int64_t shared = 0;
  for (std::int32_t id = 0; id < now.size(); ++id) {
    const std::int64_t old = match.before_of[static_cast<std::size_t>(id)];
    if (old < 0) continue;
    ++shared;
    CAPTURE(id, old);
    CHECK(of_before[static_cast<std::int32_t>(old)].bytes == of_now[id].bytes);
    CHECK(of_before[static_cast<std::int32_t>(old)].role == of_now[id].role);
  }
  CHECK(shared == match.shared);
  CHECK(match_symbols(now, now).shared == now.size());
}

/// A vocabulary of given codes, with these subwords in their order.
data::Vocabulary of_codes(const std::vector<data::CountedSubword>& list) {
  return data::SubwordVocabulary(data::MergeCodes(data::parse_merges("t h 3\nth e</w> 2\n", "codes"), list, false), 0);
}

TEST_CASE("subwords of given codes: one that ends a word is not one that goes on") {
  const SymbolMatch match =
      match_symbols(of_codes({{"th", 9}, {"th@@", 8}, {"the", 7}}), of_codes({{"th@@", 9}, {"the", 8}, {"th", 7}}));
  // The unknown one and the end of a line come first.
  CHECK(match.before_of == std::vector<std::int64_t>{0, 1, 3, 4, 2});
  CHECK(match.shared == 5);
}

/// Rows of a table by the text of their symbols.
std::map<std::string, std::vector<double>> rows_by_symbol(const Values& values, const std::string& name,
                                                          const data::Vocabulary& vocabulary) {
  const std::vector<double>& all = values.at(name);
  const std::size_t width = all.size() / static_cast<std::size_t>(vocabulary.size());
  std::map<std::string, std::vector<double>> rows;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(id) * width);
    rows[vocabulary.decode(std::vector{id})] = std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

TEST_CASE("shared symbols keep their rows, new ones start as the model's own, in every family") {
  const RunFolder folder;
  const auto other_data = make_data(folder / "other", other_text(6000));
  const std::vector<std::vector<std::string>> tables{
      {"embedding.weight", "output.weight", "output.bias"},
      {"embedding.table", "output.bias"},
      {"embedding.table", "output.bias"},
      {"embedding.weight", "output.weight", "output.bias", "readout.keys", "readout.values"}};
  std::size_t family = 0;
  for (const std::string& toml : small_configs_of_families()) {
    CAPTURE(toml);
    SmallModel source(toml, folder.data());
    const Values before = source.train(3).values();
    SmallModel next(toml, other_data);
    const Values fresh = next.values();
    const WeightTransfer transfer = next.begin_with(source.save(folder / "source/model.safetensors"));
    const Values now = next.values();
    for (const std::string& table : tables[family++]) {
      const auto rows = rows_by_symbol(now, table, next.data.vocabulary());
      const auto rows_before = rows_by_symbol(before, table, source.data.vocabulary());
      const auto rows_fresh = rows_by_symbol(fresh, table, next.data.vocabulary());
      for (const auto& [symbol, row] : rows) {
        CAPTURE(table, symbol);
        CHECK(row == (rows_before.contains(symbol) ? rows_before : rows_fresh).at(symbol));
      }
      CHECK(rows.contains("z"));
      CHECK_FALSE(rows_before.contains("z"));
    }
    CHECK(transfer.symbols.shared == next.data.vocabulary().size() - 2);
    CHECK(transfer.vectors == transfer.symbols.shared);
    CHECK_THAT(table_of(transfer, 80),
               ContainsSubstring(text("vocabulary: ", transfer.vectors, " of ", transfer.symbols.now(),
                                      " symbols keep their vectors, 2 are new, 2 of the ", transfer.symbols.before)));
  }
}

/// Words by falling count: every text has its own order.
std::string counted_words(const std::vector<std::string>& by_count) {
  std::string all;
  for (int line = 0; line < 300; ++line)
    for (std::size_t i = 0; i < by_count.size(); ++i)
      if (line % static_cast<int>(i + 1) == 0) all += by_count[i] + (i == 0 ? "\n" : " ");
  return all;
}

TEST_CASE("in clusters a symbol keeps its vector where it stays in its cluster") {
  const TemporaryFolder folder;
  const auto first = make_data(folder / "first", counted_words({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}),
                               data::TokenKind::word);
  // c is rare now, h frequent; k is new.
  const auto second = make_data(folder / "second", counted_words({"a", "b", "h", "d", "e", "f", "g", "c", "i", "k"}),
                                data::TokenKind::word);
  for (const std::string divisor : {"2", "1"}) {
    const std::vector<std::string> overrides{"model.cutoffs=[4,7]", "model.divisor=" + divisor, "training.batch=2"};
    SmallModel source(small_xl_config(), first, overrides);
    const Values before = source.train(2).values();
    SmallModel next(small_xl_config(), second, overrides);
    const Values fresh = next.values();
    const WeightTransfer transfer = next.begin_with(source.save(folder / "source/model.safetensors"));
    const Values now = next.values();
    const data::Vocabulary &words_before = source.data.vocabulary(), &words_now = next.data.vocabulary();
    const auto cluster_of = [](std::int64_t id) { return id < 4 ? 0 : id < 7 ? 1 : 2; };
    constexpr std::int64_t kFirst[] = {0, 4, 7};
    std::int64_t kept = 0;
    for (std::int32_t id = 0; id < words_now.size(); ++id) {
      const std::string word(words_now.words()->word(id));
      const std::int32_t old = words_before.words()->id_of(word);
      const int cluster = cluster_of(id);
      const bool keeps = old >= 0 && (divisor == "1" || cluster_of(old) == cluster);
      kept += keeps ? 1 : 0;
      CAPTURE(divisor, word, id, old);
      const std::string bias = text("output.clusters.", cluster, ".bias");
      const auto place = static_cast<std::size_t>(id - kFirst[cluster]);
      if (keeps)
        CHECK(now.at(bias)[place] == before.at(text("output.clusters.", cluster_of(old), ".bias"))
                                         .at(static_cast<std::size_t>(old - kFirst[cluster_of(old)])));
      else
        CHECK(now.at(bias)[place] == fresh.at(bias)[place]);
      const std::string table = divisor == "1" ? "embedding.table" : text("embedding.clusters.", cluster, ".table");
      const std::size_t width = divisor == "1" ? 16 : 16u >> cluster;
      const std::size_t row = divisor == "1" ? static_cast<std::size_t>(id) : place;
      const std::size_t old_row = divisor == "1"
                                      ? static_cast<std::size_t>(std::max(old, 0))
                                      : static_cast<std::size_t>(std::max<std::int64_t>(0, old - kFirst[cluster]));
      for (std::size_t i = 0; i < width; ++i)
        CHECK(now.at(table)[row * width + i] ==
              (keeps ? before.at(table)[old_row * width + i] : fresh.at(table)[row * width + i]));
    }
    CHECK(transfer.vectors == kept);
    if (divisor == "2") {
      CHECK(kept < transfer.symbols.shared);
      CHECK_THAT(table_of(transfer, 80), ContainsSubstring(", 2 start anew in"));
    }
    CHECK(now.at("output.cluster_head.weight") == before.at("output.cluster_head.weight"));
  }
}

TEST_CASE("the clusters' slots are turned where their order is another, and what was tied can be taken apart") {
  const TemporaryFolder folder;
  const auto data = make_data(folder / "data", counted_words({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}),
                              data::TokenKind::word);
  const std::vector<std::string> overrides{"model.cutoffs=[4,7]", "model.divisor=2", "training.batch=2"};
  SmallModel source(small_xl_config(), data, overrides);
  const Values before = source.train(2).values();
  std::vector<std::string> changed = overrides;
  for (const char* key : {"model.cluster_order=reversed", "model.tie_tables=false", "model.tie_projections=false"})
    changed.emplace_back(key);
  SmallModel next(small_xl_config(), data, changed);
  const WeightTransfer transfer = next.begin_with(source.save(folder / "source/model.safetensors"));
  const Values now = next.values();
  CHECK(transfer.taken_numbers() == transfer.all_numbers());
  const std::vector<double>&bias = now.at("output.cluster_head.bias"),
        &bias_before = before.at("output.cluster_head.bias");
  CHECK(bias == std::vector<double>(bias_before.rbegin(), bias_before.rend()));
  CHECK(now.at("output.clusters.1.table") == before.at("embedding.clusters.1.table"));
  CHECK(now.at("output.clusters.2.projection") == before.at("embedding.clusters.2.projection"));
  // The same model, written otherwise.
  const std::vector<double> losses{source.session.validate().nll(), next.session.validate().nll()};
  CHECK(losses[0] == Approx(losses[1]).epsilon(1e-6));
}

}  // namespace
}  // namespace engram::harness::symbol_transfer_test
