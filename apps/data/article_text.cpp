#include "apps/data/article_text.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/data/line_words.hpp"
#include "apps/data/penn_words.hpp"
#include "apps/data/sentences.hpp"
#include "apps/data/text_lines.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;
using Piece = LineWordReader::Piece;

constexpr std::string_view kBook = "_BOOK_TITLE_", kChapter = "CHAPTER";

/// Without white space at both ends.
std::string_view trimmed(std::string_view line) {
  LineWordReader reader(line);
  std::size_t begin = line.size(), end = line.size();
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next()) {
    if (piece != Piece::word) continue;
    begin = std::min(begin, reader.word_at());
    end = reader.word_at() + reader.word().size();
  }
  return line.substr(begin, end - begin);
}

bool is_doc_start(std::string_view line) { return line.starts_with("<doc ") || line == "<doc>"; }

/// The title of a line "= Title =" with one "=" on each side; nothing for other lines.
std::optional<std::string_view> wikitext_title(std::string_view line) {
  if (line.size() < 5 || !line.starts_with("= ") || !line.ends_with(" =")) return std::nullopt;
  const std::string_view title = trimmed(line.substr(2, line.size() - 4));
  if (title.empty() || title.starts_with("= ") || title.ends_with(" =") || title == "=") return std::nullopt;
  return title;
}

/// The value of an attribute of a line "<doc name="value" ...>"; empty if it has none.
std::string_view attribute(std::string_view line, std::string_view name) {
  const std::string opening = text(" ", name, "=\"");
  const std::size_t begin = line.find(opening);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = line.substr(begin + opening.size());
  return rest.substr(0, rest.find('"'));
}

class ArticleText {
 public:
  ArticleText(const fs::path& path, std::string_view name, const ArticleRules& rules, bool lower, ArticleSink& sink)
      : lines_(path), name_(name), rules_(rules), format_(rules.format), lower_(lower), sink_(sink) {}

  ArticleFileFacts read() {
    for (std::string line; lines_.next(line);) {
      const std::string_view content = trimmed(line);
      const bool after_blank = std::exchange(after_blank_, content.empty());
      if (content.empty()) {
        end_paragraph();
        continue;
      }
      decide_format(content);
      if (begins_or_ends_article(content, after_blank)) continue;
      if (!in_article_) refuse_text();
      sink_.add_text(std::ssize(line) + 1, count_words(content));
      add_line(content);
    }
    end_paragraph();
    // A blank file is an article, if an empty one.
    if (format_ == ArticleFormat::automatic) decide_format("");
    if (format_ == ArticleFormat::doc && in_article_)
      throw FileError(text("prepare: every <doc ...> must have its </doc>, got none at the end of '",
                           lines_.path().string(), "', ", lines_.place()));
    return {lines_.bytes(), lines_.hash(), lines_.replaced()};
  }

 private:
  void decide_format(std::string_view first) {
    if (std::exchange(decided_, true)) return;
    if (format_ == ArticleFormat::automatic)
      format_ = is_doc_start(first)        ? ArticleFormat::doc
                : wikitext_title(first)    ? ArticleFormat::wikitext
                : first.starts_with(kBook) ? ArticleFormat::cbt
                                           : ArticleFormat::file;
    if (format_ == ArticleFormat::file) begin_article(name_);
    pretokenized_ = rules_.pretokenized || format_ == ArticleFormat::cbt;
    sentence_lines_ = rules_.sentence_lines || format_ == ArticleFormat::cbt;
  }

  /// Whether the line is no text, or whether it is one that begins an article and has been read.
  bool begins_or_ends_article(std::string_view line, bool after_blank) {
    switch (format_) {
      case ArticleFormat::doc:
        return is_doc_line(line);
      case ArticleFormat::wikitext:
        // In a paragraph it is part of a formula.
        if (const auto title = wikitext_title(line); title && after_blank) begin_article(*title);
        return false;
      case ArticleFormat::cbt:
        if (line.starts_with(kBook)) {
          std::string_view title = trimmed(line.substr(kBook.size()));
          if (title.starts_with(':')) title = trimmed(title.substr(1));
          begin_article(title);
          return true;
        }
        if (in_article_ && rules_.chapters && line.starts_with(kChapter)) begin_article(book_, /*goes_on=*/true);
        return false;
      default:
        return false;
    }
  }

  bool is_doc_line(std::string_view line) {
    const bool starts = is_doc_start(line);
    if (!starts && line != "</doc>") return false;
    if (starts == in_article_)
      throw FileError(text("prepare: lines <doc ...> and </doc> must pair, got '", line, "' ",
                           starts ? "inside a document" : "outside one", " in ", lines_.place()));
    if (starts) {
      const std::string_view title = attribute(line, "title"), id = attribute(line, "id");
      begin_article(!title.empty() ? title : id);
    } else {
      end_paragraph();
      in_article_ = false;
    }
    return true;
  }

  void begin_article(std::string_view title, bool goes_on = false) {
    end_paragraph();
    ++articles_;
    in_article_ = true;
    book_ = title.empty() ? text(name_, "#", articles_) : std::string(title);
    sink_.begin_article(book_, goes_on);
  }

  [[noreturn]] void refuse_text() const {
    const std::string_view opening = format_ == ArticleFormat::doc        ? "a line <doc ...>"
                                     : format_ == ArticleFormat::wikitext ? "a line ' = Title = '"
                                                                          : "a line that begins with _BOOK_TITLE_";
    throw FileError(text("prepare: a file of the format ", name_of(format_), " must have ", opening,
                         " before its text, got text before it in ", lines_.place(),
                         "\n  --format says how articles begin; with --format file all of a file is one"));
  }

  void add_line(std::string_view line) {
    if (sentence_lines_) return add_sentence(line, lines_.number());
    if (paragraph_.empty())
      paragraph_line_ = lines_.number();
    else
      paragraph_ += ' ';
    paragraph_ += line;
    // The lines of a plain text may be broken anywhere; those of the others are paragraphs.
    if (format_ != ArticleFormat::file) end_paragraph();
  }

  void end_paragraph() {
    if (paragraph_.empty()) return;
    split_sentences(paragraph_, [this](std::string_view sentence) { add_sentence(sentence, paragraph_line_); });
    paragraph_.clear();
  }

  void add_sentence(std::string_view sentence, std::int64_t line) {
    words_.clear();
    if (pretokenized_) {
      LineWordReader reader(sentence);
      for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
        if (piece == Piece::word) words_.emplace_back(reader.word());
    } else {
      split_penn_words(sentence, [this](std::string_view word) { words_.emplace_back(word); });
    }
    if (std::ranges::find(words_, kSentenceEnd) != words_.end())
      throw FileError(text(
          "prepare: the word ", kSentenceEnd, " is the mark that follows every sentence, got it in the ",
          sentence_lines_ ? "sentence" : "paragraph", " that begins in line ", line, " of '", lines_.path().string(),
          "'\n  take it out of the text; --sentence-lines has a sentence end ", "at every line end"));
    ArticleWords(lower_, rules_.keep_numbers, pretokenized_).normalise(words_);
    sink_.add_sentence(words_);
  }

  TextLines lines_;
  std::string name_;
  const ArticleRules& rules_;
  ArticleFormat format_;
  bool lower_, decided_ = false, after_blank_ = true, in_article_ = false, pretokenized_ = false,
               sentence_lines_ = false;
  ArticleSink& sink_;
  std::int64_t articles_ = 0, paragraph_line_ = 0;
  std::string book_, paragraph_;
  std::vector<std::string> words_;
};

}  // namespace

ArticleFileFacts read_articles(const fs::path& path, std::string_view name, const ArticleRules& rules, bool lower,
                               ArticleSink& sink) {
  return ArticleText(path, name, rules, lower, sink).read();
}

std::vector<NamedFile> article_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {{path, path.filename().string()}};
  std::vector<NamedFile> files;
  fs::recursive_directory_iterator entries(path, error);
  while (!error && entries != fs::recursive_directory_iterator()) {
    const bool hidden = entries->path().filename().string().starts_with('.');
    if (hidden && entries->is_directory(error))
      entries.disable_recursion_pending();
    else if (!hidden && entries->is_regular_file(error))
      files.push_back({entries->path(), entries->path().lexically_relative(path).generic_string()});
    entries.increment(error);
  }
  if (error)
    throw FileError(
        text("prepare: '", path.string(), "' must be a folder that can be read, got '", error.message(), "'"));
  std::ranges::sort(files, {}, &NamedFile::name);
  if (files.empty())
    throw FileError(text("prepare: a folder of articles must have a file in it, got none in '", path.string(), "'"));
  return files;
}

}  // namespace engram::data
