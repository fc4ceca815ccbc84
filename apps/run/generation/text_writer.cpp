#include "apps/run/generation/text_writer.hpp"

#include <array>
#include <span>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram {

TextWriter::TextWriter(TrainedModel& trained, data::UnseenWords unseen)
    : TextWriter(trained.placed(), trained.reading(unseen), TokenStream::window_of(trained.config()), Names()) {}

TextWriter::TextWriter(const PlacedModel& placed, const data::TextReading& reading, std::int64_t window, Names names)
    : names_(std::move(names)), reading_(reading), stream_(placed, window) {}

void TextWriter::reset() {
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
  const std::string shown = data::shown_text(tokens, reading_);
  if (last_ < 0) {
    if (tokens.empty()) tokens.push_back(data::text_start_token(reading_));
    if (tokens.back() < 0)
      throw UsageError(text(names_.command,
                            ": without a prompt the text begins after a newline, and the model knows none\n  ",
                            names_.prompt, " gives a beginning"));
  } else if (!tokens.empty()) {
    const std::vector<std::int32_t> before = separator(part);
    // One mark between two sentences is the end of the one and the beginning of the other.
    if (reading_.rules.sentences == data::SentenceMarks::between) tokens.erase(tokens.begin());
    tokens.insert(tokens.begin(), before.begin(), before.end());
  }
  if (tokens.empty()) return shown;
  unread_.insert(unread_.end(), tokens.begin(), tokens.end());
  last_ = tokens.back();
  return shown;
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
    show(whole ? characters.add(bytes) : bytes);
  }
  show(characters.finish());
}

}  // namespace engram
