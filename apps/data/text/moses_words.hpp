#pragma once
/// Words of English text as the tokenizer of the Moses toolkit makes them ([product-key 6]), which papers prepare news
/// with. One rule after the other over a line:
///
///   white space     runs of it are one space; other control characters below U+0020 are left out
///   other marks     whatever is no letter, no digit and none of . ' ` , - stands apart
///   hyphens         stay, or between letters and digits become the word "@-@" (MosesRules::hyphens)
///   dots            two or more in a row are one word
///   commas          stand apart but between numbers ("5,300")
///   apostrophes     begin the second half of a contraction ("it 's", "1990 's"), and stand apart at other places
///   full stops      stand apart at the end of a word, but behind a word with another dot and a letter in it ("U.S."),
///   a
///                   prefix ("Mr."), a prefix of numbers before one ("No. 5"), and before a word in lower case; the
///                   line's last one always
///
/// Letters and digits are those of Unicode 14.0 (letter_classes.hpp).

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

namespace engram::data {

/// Abbreviations, without their full stops, behind which one does not end a sentence.
struct MosesPrefixes {
  std::set<std::string, std::less<>> always;
  std::set<std::string, std::less<>> before_numbers;  ///< such as "No"
  friend bool operator==(const MosesPrefixes&, const MosesPrefixes&) = default;
};

/// Those that are used where no file of them is given.
MosesPrefixes usual_moses_prefixes();
/// Reads a file as Moses has them: a prefix a line; behind those of numbers "#NUMERIC_ONLY#"; lines that begin with "#"
/// are no prefixes. Throws FileError naming file and line for what is no UTF-8 and for a prefix with white space in it,
/// and for a file without prefixes.
MosesPrefixes read_moses_prefixes(const std::filesystem::path& path);

struct MosesRules {
  bool escape = false;   ///< & | < > ' " [ ] become &amp; &#124; &lt; &gt; &apos; &quot; &#91; &#93;
  bool hyphens = false;  ///< hyphens between letters and digits are split off ("aggressive")
  MosesPrefixes prefixes = usual_moses_prefixes();
  friend bool operator==(const MosesRules&, const MosesRules&) = default;
};

/// The object "tokenizer" of data.json.
nlohmann::ordered_json json_of(const MosesRules& rules);
/// Rules as json_of() writes them. Throws nlohmann's exceptions, and UsageError for another program's, for objects of
/// another form.
MosesRules moses_rules_of(const nlohmann::json& json);

class MosesTokenizer {
 public:
  explicit MosesTokenizer(MosesRules rules) : rules_(std::move(rules)) {}
  /// The words of a UTF-8 line without its end, one space between two.
  std::string words(std::string_view line) const;

 private:
  std::u32string with_full_stops(std::u32string_view line) const;
  bool keeps_full_stop(std::u32string_view before, std::u32string_view next) const;

  MosesRules rules_;
};

}  // namespace engram::data
