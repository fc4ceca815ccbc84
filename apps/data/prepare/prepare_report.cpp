#include "apps/data/prepare/prepare_report.hpp"

#include <fmt/format.h>

#include "apps/data/files/hash.hpp"
#include "core/files/json.hpp"

namespace engram::data {

std::string table_of(const PrepareSummary& summary) {
  const bool words = summary.kind == TokenKind::word, subwords = summary.kind == TokenKind::subword;
  const auto more = [&](std::string_view cell) {
    return words ? fmt::format(" {:>10}", cell) : subwords ? fmt::format(" {:>12}", cell) : std::string();
  };
  const bool articles = summary.splits[0].articles > 0;
  std::string lines = fmt::format("{:<6} {:>12} {:>12}{}  {}\n", "split", "bytes", "tokens",
                                  more(articles ? "articles"
                                       : words  ? "line ends"
                                                : "words"),
                                  "source");
  for (const SplitSummary& split : summary.splits)
    lines += fmt::format("{:<6} {:>12} {:>12}{}  {}\n", split.name, split.bytes, split.tokens,
                         more(std::to_string(articles ? split.articles
                                             : words  ? split.end_tokens
                                                      : split.words)),
                         split.source);
  return lines;
}

nlohmann::json json_of(const PrepareSummary& summary) {
  nlohmann::json splits = nlohmann::json::object();
  for (const SplitSummary& split : summary.splits) {
    nlohmann::json one{{"source", split.source},
                       {"bytes", split.bytes},
                       {"stripped", split.stripped},
                       {"end_appended", split.end_appended},
                       {"newlines_dropped", split.newlines_dropped},
                       {"tokens", split.tokens},
                       {"words", split.words},
                       {"hash", hash_text(split.content_hash)}};
    if (summary.kind == TokenKind::word) {
      one["end_tokens"] = split.end_tokens;
      one["unknown"] = split.unknown;
      one["certain_marks"] = split.certain_marks;
    }
    if (split.articles > 0) {
      one["articles"] = split.articles;
      one["coverage"] = split.coverage();
    }
    if (summary.kind == TokenKind::subword) one.update({{"unknown", split.unknown}, {"altered", split.altered}});
    splits[std::string(split.name)] = std::move(one);
  }
  return {{"kind", name_of(summary.kind)},
          {"vocabulary", summary.vocabulary_size},
          {"vocabulary_hash", hash_text(summary.vocabulary_hash)},
          {"splits", splits},
          {"notes", summary.notes}};
}

}  // namespace engram::data
