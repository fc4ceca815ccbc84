#include "apps/run/generation/text_writer.hpp"

#include <array>
#include <span>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "core/error.hpp"

namespace engram {

namespace {

data::TextReading joined(data::TextReading reading, std::optional<data::WordJoin> join) {
  if (join) reading.rules.join = *join;
  return reading;
}

/// The text of tokens behind another one (-1: none). Subwords may be cut inside a character: U+FFFD for its parts.
std::string decoded(const data::Vocabulary& vocabulary, std::span<const std::int32_t> tokens, std::int32_t before) {
  std::string bytes = vocabulary.decode(tokens, before);
  if (vocabulary.kind() != data::TokenKind::subword) return bytes;
  data::Utf8Pieces characters;
  std::string whole = characters.add(bytes);
  whole += characters.finish();
  return whole;
}

/// Characters are joined already.
data::WordJoin join_of(const data::TextReading& reading) {
  return reading.vocabulary.kind() == data::TokenKind::character ? data::WordJoin::spaces : reading.rules.join;
}

}  // namespace

TextWriter::TextWriter(TrainedModel& trained, data::UnseenWords unseen, std::optional<data::WordJoin> join)
    : TextWriter(trained.placed(), joined(trained.reading(unseen), join), TokenStream::window_of(trained.config()),
                 Names()) {}

TextWriter::TextWriter(const PlacedModel& placed, const data::TextReading& reading, std::int64_t window, Names names)
    : names_(std::move(names)), reading_(reading), joiner_(join_of(reading)), stream_(placed, window) {}

void TextWriter::reset() {
  joiner_ = data::WordJoiner(join_of(reading_));
  stream_.reset();
  unread_.clear();
  last_ = -1;
  written_ = 0;
}

std::vector<std::int32_t> TextWriter::separator(std::string_view part) const {
  const data::Vocabulary& vocabulary = reading_.vocabulary;
  if (const std::int32_t end = vocabulary.end_token(); end >= 0)
    return last_ == end ? std::vector<std::int32_t>{} : std::vector{end};
  const bool spaced = kind() != data::TokenKind::character || part.starts_with(' ') || vocabulary.find_unknown(" ");
  if (spaced) return {};
  std::vector<std::int32_t> space = vocabulary.encode(" ");
  if (space[0] == last_) space.clear();
  return space;
}

std::string TextWriter::read(const std::string& part, std::string_view what) {
  std::vector<std::int32_t> tokens = data::text_tokens(part, reading_, names_.command, what);
  std::string shown = data::shown_text(tokens, reading_);
  if (last_ < 0) {
    if (tokens.empty()) tokens.push_back(data::text_start_token(reading_));
    if (tokens.back() < 0)
      throw UsageError(text(
          names_.command, ": without a prompt the text begins after a newline, and the model knows none\n  ",
          names_.prompt, " gives a beginning",
          data::are_placeholders(reading_.vocabulary) ? "\n  " + data::placeholder_advice(reading_.vocabulary.size())
                                                      : ""));
  } else if (!tokens.empty()) {
    const std::vector<std::int32_t> before = separator(part);
    // One mark between two sentences is the end of the one and the beginning of the other.
    if (reading_.rules.sentences == data::SentenceMarks::between) tokens.erase(tokens.begin());
    joiner_.add(reading_.vocabulary.end_token() >= 0 ? "\n" : " ");
    tokens.insert(tokens.begin(), before.begin(), before.end());
  }
  if (tokens.empty()) return shown;
  unread_.insert(unread_.end(), tokens.begin(), tokens.end());
  last_ = tokens.back();
  shown = joiner_.add(shown);
  return shown + joiner_.finish();
}

std::string TextWriter::begin(std::span<const std::int32_t> tokens, std::int32_t start) {
  if (tokens.empty()) throw Error("text writer: a text must begin with at least one token");
  reset();
  if (start >= 0) unread_.push_back(start);
  unread_.insert(unread_.end(), tokens.begin(), tokens.end());
  last_ = tokens.back();
  const std::string shown = joiner_.add(decoded(reading_.vocabulary, tokens, -1));
  return shown + joiner_.finish();
}

std::string TextWriter::text_behind(std::span<const std::int32_t> before, std::span<const std::int32_t> tokens) const {
  data::WordJoiner joiner(join_of(reading_));
  joiner.add(decoded(reading_.vocabulary, before, -1));
  joiner.finish();
  const std::int32_t last = before.empty() ? -1 : before.back();
  const std::string shown = joiner.add(decoded(reading_.vocabulary, tokens, last));
  return shown + joiner.finish();
}

void TextWriter::write(std::int64_t length, const SamplingOptions& sampling, const Show& show,
                       const std::function<bool()>& stop) {
  if (last_ < 0) throw Error("text writer: the text must have a beginning");
  TokenSampler sampler(sampling);
  // A character may be of several subwords, and models may write half of one; bytes of characters stay as they are.
  data::Utf8Pieces characters;
  const bool whole = kind() == data::TokenKind::subword;
  const data::Vocabulary& vocabulary = reading_.vocabulary;
  for (std::int64_t i = 0; i < length && !(stop && stop()); ++i) {
    const std::span<const double> logits = stream_.append(std::exchange(unread_, {}));
    const std::array<std::int32_t, 1> token{sampler.pick(logits, written_++)};
    unread_.push_back(token[0]);
    const std::string bytes = vocabulary.decode(token, std::exchange(last_, token[0]));
    show(joiner_.add(whole ? characters.add(bytes) : bytes));
  }
  show(joiner_.add(characters.finish()));
  show(joiner_.finish());
}

}  // namespace engram
