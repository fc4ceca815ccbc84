/// Files without articles, of which subwords are made.

#include <array>
#include <cstdint>
#include <system_error>
#include <utility>

#include "apps/data/prepare/subword_texts.hpp"
#include "apps/data/text/streamed_text.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

/// Folders in a folder, but hidden ones; of a file 0.
std::int64_t folders_in(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return 0;
  std::int64_t count = 0;
  for (const fs::directory_entry& entry : list_folder(path))
    count += entry.is_directory(error) && !entry.path().filename().string().starts_with('.') ? 1 : 0;
  return count;
}

class PlainTexts final : public SubwordTexts {
 public:
  PlainTexts(StreamedText texts, std::vector<fs::path> given) : texts_(std::move(texts)), given_(std::move(given)) {}

  SplitSummary summary(std::size_t split) const override {
    const StreamedSplit& text = texts_.splits().at(split);
    return {.name = kSplitNames.at(split),
            .source = given_.at(given_.size() == 1 ? 0 : split).string(),
            .source_index = text.parts[0].source,
            .source_count = std::ssize(text.parts),
            .first_byte = text.parts[0].first_byte,
            .bytes = text.bytes,
            .end_appended = text.end_missing,
            .words = text.words};
  }

  std::vector<SourceFacts> sources() const override {
    std::vector<SourceFacts> facts;
    for (const StreamedSource& source : texts_.sources())
      facts.push_back({source.path.string(), source.bytes, source.hash});
    return facts;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const StreamedSource& source : texts_.sources())
      if (source.signed_utf8)
        notes.push_back(
            text("'", source.path.string(), "' begins with a byte order mark, which stays a part of the text"));
    for (const fs::path& path : given_)
      if (const std::int64_t inner = folders_in(path); inner > 0)
        notes.push_back(text(inner == 1 ? "a folder" : text(inner, " folders"), " in '", path.string(),
                             "' and what is in it was not read; --articles reads it"));
    return notes;
  }

  void read(std::size_t split, const std::function<void(std::string_view line)>& line, const std::function<void()>&,
            const ByteWatch& watch) const override {
    texts_.read_lines(split, line, watch);
  }

 private:
  StreamedText texts_;
  std::vector<fs::path> given_;
};

}  // namespace

std::unique_ptr<SubwordTexts> open_plain_texts(const PrepareOptions& options) {
  const std::vector<fs::path> paths = source_paths(options);
  if (paths.size() == 1)
    return std::make_unique<PlainTexts>(
        StreamedText(paths[0], options.split.value_or(kUsualPercentages), options.watch), paths);
  const std::array files{shards_of(paths[0]), shards_of(paths[1]), shards_of(paths[2])};
  return std::make_unique<PlainTexts>(StreamedText(files, options.watch), paths);
}

}  // namespace engram::data
