#include "apps/data/text/article_text.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/data/text/article_lines.hpp"
#include "apps/data/text/article_sentences.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/text_lines.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

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

  /// Without sentences: `lines` gets what the sink would get as text, and the sink no sentences.
  ArticleFileFacts read(ArticleLineSink* lines = nullptr) {
    line_sink_ = lines;
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
      if (line_sink_ != nullptr)
        line_sink_->add_line(content, std::ssize(line) + 1, count_words(content));
      else
        sentences_->add_line(content, lines_.number());
    }
    end_paragraph();
    // A blank file is an article, if an empty one.
    if (format_ == ArticleFormat::automatic) decide_format("");
    if (format_ == ArticleFormat::doc && in_article_)
      throw FileError(text("prepare: every <doc ...> must have its </doc>, got none at the end of '",
                           lines_.path().string(), "', ", lines_.place()));
    return {lines_.bytes(), lines_.hash(), lines_.replaced(), format_};
  }

 private:
  void decide_format(std::string_view first) {
    if (std::exchange(decided_, true)) return;
    if (format_ == ArticleFormat::automatic) format_ = format_of_first_line(first);
    if (line_sink_ == nullptr) begin_sentences();
    if (format_ == ArticleFormat::file) begin_article(name_);
  }

  void begin_sentences() {
    sentences_.emplace(rules_, format_, [this](ArticleSentence& sentence) { add_sentence(sentence); });
    words_.emplace(lower_, rules_.keep_numbers, sentences_->pretokenized());
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

  void end_paragraph() {
    if (sentences_) sentences_->end_paragraph();
  }

  void add_sentence(ArticleSentence& sentence) {
    if (std::ranges::find(sentence.words, kSentenceEnd) != sentence.words.end())
      throw FileError(text("prepare: the word ", kSentenceEnd,
                           " is the mark that follows every sentence, got it in the ",
                           sentences_->sentence_lines() ? "sentence" : "paragraph", " that begins in line ",
                           sentence.line, " of '", lines_.path().string(),
                           "'\n  take it out of the text; --sentence-lines has a sentence end at every line end"));
    words_->normalise(sentence.words);
    sink_.add_sentence(sentence.words);
  }

  TextLines lines_;
  std::string name_;
  const ArticleRules& rules_;
  ArticleFormat format_;
  bool lower_, decided_ = false, after_blank_ = true, in_article_ = false;
  ArticleSink& sink_;
  ArticleLineSink* line_sink_ = nullptr;
  std::int64_t articles_ = 0;
  std::string book_;
  std::optional<ArticleSentences> sentences_;  // once the format is known, as are
  std::optional<ArticleWords> words_;
};

}  // namespace

ArticleFileFacts read_articles(const fs::path& path, std::string_view name, const ArticleRules& rules, bool lower,
                               ArticleSink& sink) {
  return ArticleText(path, name, rules, lower, sink).read();
}

ArticleFileFacts read_article_lines(const fs::path& path, ArticleFormat format, ArticleLineSink& sink) {
  class Beginnings final : public ArticleSink {
   public:
    explicit Beginnings(ArticleLineSink& lines) : lines_(lines) {}
    void begin_article(std::string, bool) override { lines_.begin_article(); }
    void add_text(std::int64_t, std::int64_t) override {}
    void add_sentence(std::vector<std::string>&) override {}

   private:
    ArticleLineSink& lines_;
  };
  Beginnings beginnings(sink);
  const ArticleRules rules{.format = format};
  return ArticleText(path, "", rules, false, beginnings).read(&sink);
}

std::vector<NamedFile> article_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {{path, path.filename().string()}};
  std::vector<NamedFile> files;
  auto entries = list_folder<fs::recursive_directory_iterator>(path, error);
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
