#include "apps/data/prepare/folder_writer.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/text/corpus.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/list_folder.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

bool is_ours(const std::string& name) {
  const auto matches = [&name](std::string_view own) { return name == own || name == text(own, ".partial"); };
  return matches(kDataFile) || matches(kVocabularyFile) || matches(kModelFile) ||
         std::any_of(kSplitNames.begin(), kSplitNames.end(), [&](std::string_view split) {
           return matches(token_file_name(split)) || matches(article_file_name(split));
         });
}

/// Makes the folder, or makes sure that nothing but an older data set and hidden files are in it. A folder of a
/// preparation that was killed has no data.json, but only files with our names.
fs::path own_folder(fs::path folder) {
  if (folder.empty()) throw UsageError("prepare: --out must name the data folder, got nothing");
  std::error_code error = make_durable_folder(folder);
  fs::directory_iterator entries;
  if (!error) entries = list_folder(folder, error);
  if (error)
    throw FileError(text("prepare: '", folder.string(), "' must be a folder that can be made or read, got '",
                         error.message(), "'"));
  std::string foreign;
  for (const fs::directory_entry& entry : entries)
    if (const std::string name = entry.path().filename().string(); !is_ours(name) && !name.starts_with('.'))
      foreign = name;
  if (foreign.empty()) return folder;
  if (fs::exists(folder / kDataFile)) {
    read_json(folder / kDataFile, kDataFormat, kDataVersion);
    return folder;
  }
  throw FileError(text("prepare: '", folder.string(), "' must be a new, an empty or a data folder, got one with '",
                       foreign, "' in it", "\n  name another folder with --out"));
}

}  // namespace

FolderWriter::FolderWriter(std::filesystem::path folder, const Vocabulary& vocabulary)
    : folder_(own_folder(std::move(folder))),
      vocabulary_size_(vocabulary.size()),
      vocabulary_hash_(vocabulary.hash()),
      vocabulary_file_(folder_ / kVocabularyFile) {
  vocabulary_file_.append(vocabulary.folder_json_text());
  vocabulary_file_.flush();
  if (const SubwordVocabulary* const subwords = vocabulary.subwords()) {
    model_file_.emplace(folder_ / kModelFile);
    model_file_->append(subwords->model().model());
    model_file_->flush();
  }
}

TokenFileWriter& FolderWriter::begin_split() {
  if (!splits_.empty()) splits_.back().flush();
  const fs::path path = folder_ / token_file_name(kSplitNames.at(splits_.size()));
  return splits_.emplace_back(path, vocabulary_size_, vocabulary_hash_);
}

void FolderWriter::put_articles(std::span<const std::int64_t> starts) {
  TokenFileWriter& split = splits_.back();
  const std::string bytes = article_starts_bytes(starts, split.count(), split.content_hash());
  article_files_.emplace_back(folder_ / article_file_name(kSplitNames.at(splits_.size() - 1))).append(bytes);
}

void FolderWriter::commit(std::string_view data_json) {
  for (TokenFileWriter& split : splits_) split.flush();
  for (DurableFile& articles : article_files_) articles.flush();
  DurableFile data_file(folder_ / kDataFile);
  data_file.append(data_json);
  data_file.flush();

  vocabulary_file_.commit();
  std::error_code ignored;
  if (model_file_)
    model_file_->commit();
  else
    fs::remove(folder_ / kModelFile, ignored);  // of an older data set
  for (TokenFileWriter& split : splits_) split.commit();
  for (DurableFile& articles : article_files_) articles.commit();
  if (article_files_.empty())
    for (const std::string_view split : kSplitNames) fs::remove(folder_ / article_file_name(split), ignored);
  data_file.commit();
}

}  // namespace engram::data
