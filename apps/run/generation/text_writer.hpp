#pragma once
/// A text that a person and a model write together: the person's parts are read, the model writes on, and what was read
/// and written is what both go on from.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/word_joiner.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/run/generation/token_sampler.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/model/trained_model.hpp"

namespace engram {

class TextWriter {
 public:
  /// Gets text as soon as it is complete: pieces of any length.
  using Show = std::function<void(std::string_view text)>;

  /// For messages: the command, and what gives it a prompt.
  struct Names {
    std::string command = "generate", prompt = "--prompt TEXT";
  };

  /// At the start of a text. `unseen`: what becomes of words that the model does not know; `join`: how words are shown,
  /// where it is not as the model's data say. The model must outlive this.
  TextWriter(TrainedModel& trained, data::UnseenWords unseen, std::optional<data::WordJoin> join = std::nullopt);
  /// With a model whose parameters do not change meanwhile. `reading`: how it reads texts; what that refers to must
  /// outlive this too. `window` as TokenStream has it.
  TextWriter(const PlacedModel& placed, const data::TextReading& reading, std::int64_t window, Names names);

  /// Forgets everything that was read and written.
  void reset();
  /// Goes on with a person's part, and returns it as the model reads it, words joined (data::WordJoiner). The first
  /// part of a text is its beginning; an empty one makes the text begin as a line does. Every later part begins a line:
  /// where the model knows line ends (or ends of sentences) and the text has none there, one is put before it, else,
  /// between characters, a space. An empty later part changes nothing. Throws UsageError, beginning with the command's
  /// name and `what`, for what the model does not know; all is as before then.
  std::string read(const std::string& part, std::string_view what);
  /// Begins a text with tokens, at least one. `start`: what the model reads before them; -1: nothing. Returns their
  /// text.
  std::string begin(std::span<const std::int32_t> tokens, std::int32_t start = -1);
  /// The text of tokens that follow those, as it is shown; changes nothing.
  std::string text_behind(std::span<const std::int32_t> before, std::span<const std::int32_t> tokens) const;
  /// Lets the model write so many tokens, chosen by `sampling`; token number n since the start of the text depends on
  /// the seed and n. `stop` is asked before each. A text must have been begun.
  void write(std::int64_t length, const SamplingOptions& sampling, const Show& show,
             const std::function<bool()>& stop = {});

  /// What tokens are.
  data::TokenKind kind() const { return reading_.vocabulary.kind(); }

 private:
  /// What is put between the text so far and a part that is not its first.
  std::vector<std::int32_t> separator(std::string_view part) const;

  Names names_;
  data::TextReading reading_;
  data::WordJoiner joiner_;
  TokenStream stream_;
  std::vector<std::int32_t> unread_;  // tokens of the text that the model has not read
  std::int32_t last_ = -1;            // token of the text; -1: it has none
  std::uint64_t written_ = 0;         // tokens that the model wrote
};

}  // namespace engram
