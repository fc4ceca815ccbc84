#pragma once
/// Subwords by given byte-pair codes (merge_list.hpp), as the released program of the product-key paper reads them:
/// words are what is between spaces, a subword "th@@" goes on with the next one, and one without "@@" ends its word. Id
/// 0 is what is unknown, 1 a line's end, and then come the subwords of a list.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/subword_model.hpp"
#include "apps/data/vocabulary/word_merger.hpp"

namespace engram::data {

class MergeCodes final : public SubwordModel {
 public:
  /// How the file in a data folder begins.
  static constexpr std::string_view kFormat = "engram merge codes 1\n";

  /// `limited`: a subword that the list lacks is taken apart again, as the two programs do where they are given a
  /// vocabulary; else it is unknown. Needs a subword in the list.
  MergeCodes(MergeList merges, const std::vector<CountedSubword>& list, bool limited);
  /// Reads what model() has. Throws FileError for what is damaged.
  static MergeCodes parse(std::string_view bytes, const std::filesystem::path& source);

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;

 private:
  WordMerger merger_;
  WordTable written_;  // the list's subwords; ids are kMarks higher
  bool limited_;
};

}  // namespace engram::data
