#include <algorithm>
#include <array>

#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

constexpr std::size_t kShort = 1 << 10, kMiddle = 1 << 13, kLong = 1 << 15;

constexpr auto kReaders = std::to_array<Reader>({
    {"argument_values", "values of options that have a form of their own", read_argument_values, kShort},
    {"arguments", "the words of a command line", read_arguments, kShort},
    {"article_starts", ".articles files of data", read_article_starts_file, kMiddle},
    {"article_texts", "files of articles", read_article_texts, kMiddle},
    {"cbt", "questions of the Children's Book Test", read_cbt_questions, kMiddle},
    {"checkpoint", "metadata of checkpoints", read_checkpoint_metadata, kMiddle},
    {"config", "configurations in TOML", read_config, kMiddle},
    {"data_facts", "data.json of data", read_data_facts, kMiddle},
    {"foreign_config", "config.json of Hugging Face's TransfoXL", read_foreign_config, kMiddle},
    {"merge_codes", "byte-pair codes and their subwords", read_merge_codes, kMiddle},
    {"metrics", "metrics.jsonl of runs", read_metrics_log, kMiddle},
    {"pickle", "pickles without a file around them", read_pickle_bytes, kMiddle},
    {"pytorch", "files of PyTorch, both forms", read_pytorch_file, kLong},
    {"requests", "HTTP of `engram watch`", read_requests, kMiddle},
    {"safetensors", "safetensors, Engram's and others'", read_safetensors_file, kLong},
    {"scores", "score files of `engram cbt`", read_scores, kMiddle},
    {"sentencepiece", "models of SentencePiece", read_sentencepiece_model, kLong},
    {"setting", "--set of a configuration", read_setting, kShort},
    {"study", "files of studies", read_study_file, kMiddle},
    {"sweep_table", "sweep.csv, runs.csv and claims on them", read_sweep_table, kMiddle},
    {"table", "tables in mapped files", read_table_file, kLong},
    {"texts", "plain texts, their words and sentences", read_texts, kMiddle},
    {"tokens", ".tokens files of data", read_token_file, kMiddle},
    {"vocabulary", "vocabulary.json", read_vocabulary, kMiddle},
    {"word_list", "lists of words and pickled vocabularies", read_word_list_file, kMiddle},
});

}  // namespace

std::span<const Reader> all_readers() { return kReaders; }

const Reader* find_reader(std::string_view name) {
  const auto found = std::ranges::find(kReaders, name, &Reader::name);
  return found == kReaders.end() ? nullptr : &*found;
}

}  // namespace engram::fuzz
