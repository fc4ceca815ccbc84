#include "apps/data/vocabulary/byte_pairs.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "apps/data/vocabulary/model_lengths.hpp"
#include "core/error.hpp"

#ifdef ENGRAM_HAVE_SENTENCEPIECE

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

namespace engram::data {
namespace {

using sentencepiece::SentencePieceProcessor;
using sentencepiece::SentencePieceTrainer;

constexpr std::string_view kSpaceMark = "\u2581";  // the library's
constexpr std::int64_t kBytes = 256, kMarks = 2;

/// Gives the library a line "word, tab, count" for each word.
class CountedWords final : public sentencepiece::SentenceIterator {
 public:
  explicit CountedWords(const SubwordCounts& counts) : counts_(counts) { write(); }

  bool done() const override { return at_ == counts_.size(); }
  void Next() override {
    ++at_;
    write();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void write() {
    if (!done()) line_ = text(counts_.word(at_), "\t", counts_.count(at_));
  }

  const SubwordCounts& counts_;
  std::int64_t at_ = 0;
  std::string line_;
};

void require_success(const sentencepiece::util::Status& status, std::string_view what) {
  if (!status.ok()) throw Error(text("byte pairs: SentencePiece could not ", what, ", it says: ", status.ToString()));
}

std::string train(const SubwordCounts& counts, std::int64_t vocabulary_size) {
  CountedWords words(counts);
  std::string model;
  // Text must come back from its subwords as it was: nothing is normalised, and every letter has a subword or bytes.
  const std::unordered_map<std::string, std::string> settings{{"model_type", "bpe"},
                                                              {"input_format", "tsv"},
                                                              {"vocab_size", text(vocabulary_size)},
                                                              {"hard_vocab_limit", "false"},
                                                              {"character_coverage", "1.0"},
                                                              {"byte_fallback", "true"},
                                                              {"normalization_rule_name", "identity"},
                                                              {"add_dummy_prefix", "false"},
                                                              {"remove_extra_whitespaces", "false"},
                                                              {"unk_id", "0"},
                                                              {"eos_id", "1"},
                                                              {"bos_id", "-1"},
                                                              {"pad_id", "-1"},
                                                              {"eos_piece", "<eos>"},
                                                              {"num_threads", "1"},
                                                              {"minloglevel", "2"}};
  require_success(SentencePieceTrainer::Train(settings, &words, &model), "learn");
  return model;
}

/// The byte that the library names "<0x0A>".
std::size_t byte_of(const std::string& name) {
  unsigned byte = 256;
  if (name.size() == 6) std::from_chars(name.data() + 3, name.data() + 5, byte, 16);
  return byte;
}

Subword subword_of(const SentencePieceProcessor& processor, int id) {
  using Role = Subword::Role;
  if (processor.IsUnknown(id)) return {Role::unknown, "\ufffd"};
  if (processor.IsControl(id)) return {Role::mark, {}};
  std::string bytes = processor.IdToPiece(id);
  if (processor.IsByte(id)) return {Role::byte, std::string(1, static_cast<char>(byte_of(bytes)))};
  for (std::size_t at = bytes.find(kSpaceMark); at != std::string::npos; at = bytes.find(kSpaceMark, at))
    bytes.replace(at, kSpaceMark.size(), " ");
  return {Role::text, std::move(bytes)};
}

}  // namespace

std::string BytePairs::learn(const SubwordCounts& counts, std::int64_t vocabulary_size, std::string_view advice) {
  if (counts.size() == 0)
    throw UsageError("byte pairs: the text must have letters to learn from, got none\n  give a longer training text");
  const std::int64_t letters = counts.letters(), least = letters + kBytes + kMarks;
  if (vocabulary_size < least)
    throw UsageError(text("prepare: --vocabulary must be at least ", least, " for this text (", letters,
                          " different characters, ", kBytes, " bytes and ", kMarks, " marks), got ", vocabulary_size));
  // Every pair that is joined makes a word shorter, so there are no more of them than bytes. The library takes 32 bits,
  // and long for numbers that no text reaches.
  std::int64_t reachable = least;
  for (std::int64_t i = 0; i < counts.size(); ++i) reachable += std::ssize(counts.word(i));
  reachable = std::min<std::int64_t>(reachable, std::numeric_limits<std::int32_t>::max());
  std::string model = train(counts, std::min(vocabulary_size, reachable));
  if (const std::int64_t most = BytePairs(model, "the model learned").size(); most < vocabulary_size)
    throw UsageError(text("prepare: --vocabulary must be at most ", most,
                          " for this text, which has no more pairs of letters to join, got ", vocabulary_size, advice));
  return model;
}

BytePairs::BytePairs(std::string model, const std::filesystem::path& source) {
  model_ = std::move(model);
  const auto reject = [&source](std::string_view rule, std::string_view fact) {
    throw FileError(text("byte pairs: '", source.string(), "' must ", rule, ", got ", fact));
  };
  auto processor = std::make_shared<SentencePieceProcessor>();
  if (model_.empty()) reject("be a model of SentencePiece", "an empty file");
  if (!lengths_fit(model_)) reject("be a model of SentencePiece", "one with a length beyond its end");
  std::string refused;
  try {
    if (const auto status = processor->LoadFromSerializedProto(model_); !status.ok()) refused = status.ToString();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    refused = error.what();  // its tries throw: of a piece that begins with a byte of zero, say
  }
  if (!refused.empty()) reject("be a model of SentencePiece", text("one that it refuses: ", refused));
  end_token_ = processor->eos_id();
  byte_tokens_.assign(kBytes, -1);
  bool inner_space = false;
  for (int id = 0; id < processor->GetPieceSize(); ++id) {
    const Subword& subword = subwords_.emplace_back(subword_of(*processor, id));
    if (subword.role == Subword::Role::byte) byte_tokens_[static_cast<unsigned char>(subword.bytes[0])] = id;
    if (subword.role == Subword::Role::text) inner_space |= subword.bytes.find(' ', 1) != std::string::npos;
  }
  if (end_token_ < 0) reject("have a subword that ends a sentence", "a model without one");
  has_bytes_ = std::ranges::count(byte_tokens_, -1) == 0;
  processor_ = std::move(processor);

  const auto decoded = [this](std::string_view written) {
    std::vector<std::int32_t> ids;
    encode_unmarked(written, ids);
    std::string bytes;
    for (const std::int32_t id : ids) bytes += (*this)[id].bytes;
    return bytes;
  };
  adds_space_ = decoded("a").starts_with(' ');
  splits_at_spaces_ = !inner_space && !adds_space_ && decoded(" a  a ") == " a  a ";
}

void BytePairs::encode_unmarked(std::string_view text_bytes, std::vector<std::int32_t>& ids) const {
  if (text_bytes.empty()) return;
  std::vector<int> found;
  require_success(processor_->Encode(text_bytes, &found), "encode a text");
  ids.insert(ids.end(), found.begin(), found.end());
}

void BytePairs::encode(std::string_view text_bytes, std::vector<std::int32_t>& ids) const {
  // The mark would come back as a space, so where a text has it it is written in bytes.
  while (has_bytes_) {
    const std::size_t mark = text_bytes.find(kSpaceMark);
    if (mark == std::string_view::npos) break;
    encode_unmarked(text_bytes.substr(0, mark), ids);
    for (const char byte : kSpaceMark) ids.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
    text_bytes.remove_prefix(mark + kSpaceMark.size());
  }
  encode_unmarked(text_bytes, ids);
}

}  // namespace engram::data

#else

namespace sentencepiece {
class SentencePieceProcessor {};
}  // namespace sentencepiece

namespace engram::data {
namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "byte pairs: this program was built without SentencePiece and has none\n  build it where libsentencepiece-dev is "
      "installed");
}

}  // namespace

std::string BytePairs::learn(const SubwordCounts&, std::int64_t, std::string_view) { refuse(); }
BytePairs::BytePairs(std::string, const std::filesystem::path&) { refuse(); }
void BytePairs::encode(std::string_view, std::vector<std::int32_t>&) const { refuse(); }
void BytePairs::encode_unmarked(std::string_view, std::vector<std::int32_t>&) const { refuse(); }

}  // namespace engram::data

#endif
