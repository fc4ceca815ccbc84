#pragma once
/// What makes subwords of text: a list of them, and the rule that cuts.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace engram::data {

/// What a token stands for.
struct Subword {
  enum class Role : std::uint8_t { text, byte, unknown, mark };  ///< mark: of the model's own, without a text
  Role role = Role::text;
  std::string bytes;        ///< of the text; U+FFFD for what is unknown
  bool joins_next = false;  ///< where words stand apart: the word goes on with the next subword
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;

  const std::string& model() const { return model_; }  ///< the bytes of the file
  std::int64_t size() const { return static_cast<std::int64_t>(subwords_.size()); }
  std::int32_t end_token() const { return end_token_; }  ///< ends a line
  /// The subword of an id in [0, size()).
  const Subword& operator[](std::int32_t id) const { return subwords_[static_cast<std::size_t>(id)]; }
  bool has_bytes() const { return has_bytes_; }    ///< every text can be written
  bool adds_space() const { return adds_space_; }  ///< the model puts a space before every line
  /// No subword has a space but at its beginning, and spaces stay as they are: a line and its words, each with the
  /// space before it, have the same subwords.
  bool splits_at_spaces() const { return splits_at_spaces_; }
  /// Subwords have no spaces: they are of words, between which there is one each. Then splits_at_spaces() is false.
  bool words_stand_apart() const { return words_stand_apart_; }

  /// Appends the ids of a UTF-8 text without line ends.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;

 protected:
  SubwordModel() = default;
  SubwordModel(const SubwordModel&) = default;
  SubwordModel(SubwordModel&&) = default;
  SubwordModel& operator=(const SubwordModel&) = default;
  SubwordModel& operator=(SubwordModel&&) = default;

  std::string model_;
  std::vector<Subword> subwords_;
  std::int32_t end_token_ = -1;
  bool has_bytes_ = false, adds_space_ = false, splits_at_spaces_ = false, words_stand_apart_ = false;
};

}  // namespace engram::data
