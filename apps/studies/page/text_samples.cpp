#include "apps/studies/page/text_samples.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "apps/run/generation/text_writer.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::int64_t kPrompts = 3, kLongestSearch = 400;

/// The first token behind a line end, from `from` on; `from` where none is near.
std::int64_t line_behind(const data::TokenView& tokens, const data::Vocabulary& vocabulary, std::int64_t from) {
  if (from == 0) return 0;
  for (std::int64_t at = from; at < std::min(tokens.size(), from + kLongestSearch); ++at) {
    if (tokens[at] == vocabulary.end_token()) return at + 1;
    const std::string text = vocabulary.decode(std::array{tokens[at]});
    if (text.ends_with('\n')) return at + 1;
  }
  return from;
}

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

data::UnseenWords unseen_words(const TrainedModel& trained) {
  return trained.vocabulary().kind() == data::TokenKind::word ? data::UnseenWords::unk : data::UnseenWords::error;
}

std::vector<std::string> prompts_of(const data::DataSet& data, std::string_view split) {
  const data::TokenView tokens = data.split(split);
  const std::int64_t length = data.kind() == data::TokenKind::character ? 60 : 16;
  std::vector<std::string> prompts;
  for (std::int64_t i = 0; i < kPrompts; ++i) {
    const std::int64_t from = line_behind(tokens, data.vocabulary(), tokens.size() * i / kPrompts);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(length, tokens.size() - from)));
    if (ids.empty()) continue;
    tokens.copy(from, std::ssize(ids), ids.data());
    std::string prompt = without_end(data.vocabulary().decode(ids));
    // A line is enough; more of it than an end would only be the end of a text.
    if (const std::size_t end = prompt.rfind('\n'); end != std::string::npos && end > 0)
      prompt = without_end(prompt.substr(0, end));
    if (!prompt.empty() && std::ranges::find(prompts, prompt) == prompts.end()) prompts.push_back(prompt);
  }
  return prompts;
}

std::vector<TextSample> write_samples(TrainedModel& trained, const std::vector<std::string>& prompts,
                                      std::int64_t length, const EvaluationWatch& watch) {
  std::vector<TextSample> samples;
  std::int64_t written = 0;
  const std::int64_t all = std::ssize(prompts) * 2 * length;
  TextWriter writer(trained, unseen_words(trained));
  for (const std::string& prompt : prompts) {
    TextSample sample;
    const auto write = [&](double temperature) {
      std::string text;
      writer.reset();
      sample.prompt = writer.read(prompt, "the prompt");
      writer.write(
          length, {.temperature = temperature}, [&text](std::string_view piece) { text += piece; },
          [&] {
            if (watch) watch(++written, all);
            return false;
          });
      return text;
    };
    try {
      sample.likely = write(0);
      sample.sampled = write(kSampleTemperature);
    } catch (const UsageError&) {
      continue;  // a character that it does not know, of a text given by --text
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace engram
