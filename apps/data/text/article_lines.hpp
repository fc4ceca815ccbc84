#pragma once
/// Lines of files of articles that are more than text: how articles begin and end in each format (article_rules.hpp).

#include <optional>
#include <string_view>

#include "apps/data/text/article_rules.hpp"

namespace engram::data {

/// What begins a book of the Children's Book Test, and a chapter of one.
inline constexpr std::string_view kBook = "_BOOK_TITLE_", kChapter = "CHAPTER";

/// Without white space at both ends.
std::string_view trimmed(std::string_view line);

/// Whether a trimmed line begins a document of the format doc.
bool is_doc_start(std::string_view line);

/// The title of a trimmed line "= Title =" with one "=" on each side; nothing for other lines.
std::optional<std::string_view> wikitext_title(std::string_view line);

/// The format of a text whose first line that is not blank is this one, trimmed.
ArticleFormat format_of_first_line(std::string_view line);

/// Whether a trimmed line says where articles begin or end and is no text of theirs.
bool is_mark_of_articles(ArticleFormat format, std::string_view line);

}  // namespace engram::data
