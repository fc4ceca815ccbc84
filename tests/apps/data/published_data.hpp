#pragma once
/// Small data sets by the rules of published corpora, for tests.

#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "tests/apps/data/counted_tokens.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness {

inline data::PrepareOptions options_of(const TemporaryFolder& folder, std::string_view rules) {
  data::PrepareOptions options;
  data::set_named_rules(rules, options);
  options.out = folder / "data";
  return options;
}

inline data::PrepareOptions three_files(const TemporaryFolder& folder, std::string_view rules, std::string_view train,
                                        std::string_view valid, std::string_view test) {
  data::PrepareOptions options = options_of(folder, rules);
  options.train = put_file(folder / "train.txt", train);
  options.valid = put_file(folder / "valid.txt", valid);
  options.test = put_file(folder / "test.txt", test);
  return options;
}

inline TokenIds ids_of(const data::DataSet& data, std::string_view split) {
  TokenIds ids(static_cast<std::size_t>(data.split(split).size()));
  data.split(split).copy(0, data.split(split).size(), ids.data());
  return ids;
}

/// The words of a split, joined by spaces, marks as they are written in the vocabulary.
inline std::string words_of(const data::DataSet& data, std::string_view split) {
  std::string joined;
  for (const std::int32_t id : ids_of(data, split))
    joined += (joined.empty() ? "" : " ") + std::string(data.vocabulary().words()->word(id));
  return joined;
}

}  // namespace engram::harness
