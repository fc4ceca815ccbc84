#include "apps/data/text/article_lines.hpp"

#include <algorithm>

#include "apps/data/text/line_words.hpp"

namespace engram::data {

std::string_view trimmed(std::string_view line) {
  using Found = LineWordReader::Piece;
  LineWordReader reader(line);
  std::size_t begin = line.size(), end = line.size();
  for (Found piece = reader.next(); piece != Found::text_end; piece = reader.next()) {
    if (piece != Found::word) continue;
    begin = std::min(begin, reader.word_at());
    end = reader.word_at() + reader.word().size();
  }
  return line.substr(begin, end - begin);
}

bool is_doc_start(std::string_view line) { return line.starts_with("<doc ") || line == "<doc>"; }

std::optional<std::string_view> wikitext_title(std::string_view line) {
  if (line.size() < 5 || !line.starts_with("= ") || !line.ends_with(" =")) return std::nullopt;
  const std::string_view title = trimmed(line.substr(2, line.size() - 4));
  if (title.empty() || title.starts_with("= ") || title.ends_with(" =") || title == "=") return std::nullopt;
  return title;
}

ArticleFormat format_of_first_line(std::string_view line) {
  return is_doc_start(line)        ? ArticleFormat::doc
         : wikitext_title(line)    ? ArticleFormat::wikitext
         : line.starts_with(kBook) ? ArticleFormat::cbt
                                   : ArticleFormat::file;
}

bool is_mark_of_articles(ArticleFormat format, std::string_view line) {
  if (format == ArticleFormat::doc) return is_doc_start(line) || line == "</doc>";
  return format == ArticleFormat::cbt && line.starts_with(kBook);
}

}  // namespace engram::data
