#include "apps/data/prepare/named_rules.hpp"

#include <array>
#include <string>

#include "core/error.hpp"

namespace engram::data {
namespace {

/// What a name stands for: the members of PrepareOptions that are rules.
struct Rules {
  std::string_view name;
  TokenKind kind = TokenKind::character;
  TextRule rule = TextRule::any;
  bool exact_bytes = false;
  bool drop_newlines = false;
  VocabularyFrom vocabulary_from = VocabularyFrom::train;
  ByteOrder byte_order = ByteOrder::seen;
  WordRules words{};
  std::optional<WordJoin> join{};
};

Rules characters(std::string_view name, TextRule rule, bool drop_newlines) {
  return {.name = name,
          .rule = rule,
          .exact_bytes = !drop_newlines,
          .drop_newlines = drop_newlines,
          .vocabulary_from = VocabularyFrom::all,
          .byte_order = ByteOrder::count};
}

/// `join`: what made the words of the published text.
Rules words(std::string_view name, const WordRules& rules, WordJoin join) {
  return {.name = name, .kind = TokenKind::word, .words = rules, .join = join};
}

std::array<Rules, 7> all_rules() {
  return {characters("enwik8", TextRule::enwik8, true),
          characters("enwik8-bytes", TextRule::enwik8, false),
          characters("text8", TextRule::text8, true),
          words("wikitext-103", {.ties = TieOrder::first, .end_first = true}, WordJoin::wikitext),
          words("lm1b", {.unseen = UnseenWords::unk, .sentences = SentenceMarks::around}, WordJoin::moses),
          words("lm1b-sentences", {.unseen = UnseenWords::unk, .sentences = SentenceMarks::between}, WordJoin::moses),
          words("ptb", {.ties = TieOrder::first, .end_first = true, .count_all = true, .lower = true}, WordJoin::penn)};
}

bool are_of(const Rules& rules, const PrepareOptions& options) {
  return rules.kind == options.kind && rules.rule == options.rule && rules.exact_bytes == options.exact_bytes &&
         rules.drop_newlines == options.drop_newlines && rules.vocabulary_from == options.vocabulary_from &&
         rules.byte_order == options.byte_order && rules.words == options.words;
}

}  // namespace

void set_named_rules(std::string_view name, PrepareOptions& options) {
  std::string names;
  for (const Rules& rules : all_rules()) {
    names += text(names.empty() ? "" : ", ", rules.name);
    if (rules.name != name) continue;
    options.kind = rules.kind;
    options.rule = rules.rule;
    options.exact_bytes = rules.exact_bytes;
    options.drop_newlines = rules.drop_newlines;
    options.vocabulary_from = rules.vocabulary_from;
    options.byte_order = rules.byte_order;
    options.words = rules.words;
    options.join = rules.join;
    return;
  }
  throw UsageError(text("prepare: --rules must be one of ", names, ", got '", name, "'"));
}

std::string_view named_rules(const PrepareOptions& options) {
  for (const Rules& rules : all_rules())
    if (are_of(rules, options)) return rules.name;
  return "";
}

}  // namespace engram::data
