#include "apps/run/training/sample.hpp"

#include <string_view>

#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/run/generation/text_writer.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/terminal/terminal.hpp"
#include "core/error.hpp"
#include "core/philox.hpp"

namespace engram {
namespace {

constexpr std::string_view kPromptKey = "training.sample_prompt";

/// At the start of a text. With the spans as they are now: those of a later step may be longer.
TextWriter sample_writer(TrainingSession& session) {
  const data::TextReading reading{.vocabulary = session.data.vocabulary(),
                                  .rules = session.data.text_rules(),
                                  .unseen = data::UnseenWords::error,
                                  .unseen_option = {}};
  return {session.placed(),
          reading,
          TokenStream::window_of(session.config),
          {.command = "training", .prompt = std::string(kPromptKey)}};
}

/// One for every step.
std::uint64_t sample_seed(std::uint64_t seed, std::int64_t step) {
  constexpr std::uint32_t kPurpose = 0x73616d70;  // apart from all other draws with the seed
  const auto at = static_cast<std::uint64_t>(step);
  const PhiloxBlock block =
      philox({{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), kPurpose, 0}},
             static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return (std::uint64_t{block.word[0]} << 32 | block.word[1]) >> 11;
}

/// Without what would move a cursor; `written` is UTF-8.
std::string one_line(std::string_view written) {
  std::string line;
  bool ends = false;  // line ends that stand together are one
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto byte = static_cast<unsigned char>(written[i]);
    const bool is_late_control = byte == 0xc2 && static_cast<unsigned char>(written[i + 1]) < 0xa0;
    const bool is_end = written[i] == '\n' || written[i] == '\r';
    if (is_end && !ends && !line.empty()) line += " / ";
    ends = is_end;
    if (is_end) continue;
    if (is_late_control) ++i;
    if (byte < ' ' || byte == 0x7f || is_late_control)
      line += ' ';
    else
      line += written[i];
  }
  return line;
}

/// As many characters from its beginning as there is room for.
std::string_view beginning(std::string_view line, std::int64_t columns) {
  std::size_t end = 0;
  for (std::size_t next = 0; next < line.size(); end = next) {
    for (++next; next < line.size() && !data::is_utf8_start(line[next]);) ++next;
    columns -= columns_of(line.substr(end, next - end));
    if (columns < 0) break;
  }
  return line.substr(0, end);
}

}  // namespace

void check_sample_prompt(TrainingSession& session) {
  sample_writer(session).read(session.config.training.sample_prompt, kPromptKey);
}

Sample write_sample(TrainingSession& session) {
  Sample sample{.seed = sample_seed(session.config.training.seed, session.trainer.steps())};
  session.with_judged_model([&] {
    TextWriter writer = sample_writer(session);
    sample.prompt = writer.read(session.config.training.sample_prompt, kPromptKey);
    writer.write(Sample::kLength, {.temperature = Sample::kTemperature, .seed = sample.seed},
                 [&sample](std::string_view piece) { sample.text += piece; });
  });
  return sample;
}

std::string sample_line(std::int64_t step, const Sample& sample, std::int64_t columns) {
  data::Utf8Pieces characters;
  std::string whole = characters.add(sample.prompt + sample.text);
  whole += characters.finish();
  const std::string line = text("step ", step, " sample: ", one_line(whole));
  if (columns_of(line) <= columns) return line;
  return std::string(beginning(line, columns - 3)) + "...";
}

}  // namespace engram
