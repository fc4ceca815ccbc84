#pragma once
/// Readers of what others wrote, each with one function that reads any bytes. Two programs call them: engram_fuzz,
/// which libFuzzer feeds (run.sh), and a test case of every day, which reads the files of corpus/ (corpus_test.cpp).
///
/// What such a function may do with bad bytes is to refuse them: an Error with a message for people. Whatever else
/// comes of them is a finding: another exception, a report of a sanitizer, much more memory or time than the bytes are
/// worth, a message that no terminal should get.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace engram::fuzz {

struct Reader {
  std::string_view name;   ///< also of its folder in corpus/
  std::string_view reads;  ///< for people: what the bytes are
  void (*read)(std::string_view bytes);
  std::size_t most_bytes;  ///< the longest input that is tried
};

/// All of them, by name.
std::span<const Reader> all_readers();
/// nullptr: there is none of this name.
const Reader* find_reader(std::string_view name);

/// Whether `read` refuses, by an Error whose message is checked. Throws std::logic_error for a message that is no text
/// for a terminal (unprintable() below) and passes on whatever is no Error.
bool refuses(const std::function<void()>& read);

/// What is wrong with a message: it is empty, longer than kLongestMessage (core/message_text.hpp), no UTF-8, or has a
/// control character other than a line end. Empty: nothing.
std::string unprintable(std::string_view message);

/// A file of these bytes in a folder of this process that goes with it; the one of this name before is overwritten.
std::filesystem::path scratch_file(std::string_view bytes, std::string_view name = "input");
std::filesystem::path scratch_folder();

// One function for each reader, in the sources beside this.
void read_safetensors_file(std::string_view bytes);
void read_checkpoint_metadata(std::string_view bytes);
void read_pytorch_file(std::string_view bytes);
void read_pickle_bytes(std::string_view bytes);
void read_table_file(std::string_view bytes);
void read_token_file(std::string_view bytes);
void read_article_starts_file(std::string_view bytes);
void read_data_facts(std::string_view bytes);
void read_vocabulary(std::string_view bytes);
void read_merge_codes(std::string_view bytes);
void read_sentencepiece_model(std::string_view bytes);
void read_word_list_file(std::string_view bytes);
void read_texts(std::string_view bytes);
void read_article_texts(std::string_view bytes);
void read_cbt_questions(std::string_view bytes);
void read_scores(std::string_view bytes);
void read_config(std::string_view bytes);
void read_setting(std::string_view bytes);
void read_study_file(std::string_view bytes);
void read_metrics_log(std::string_view bytes);
void read_sweep_table(std::string_view bytes);
void read_foreign_config(std::string_view bytes);
void read_arguments(std::string_view bytes);
void read_argument_values(std::string_view bytes);
void read_requests(std::string_view bytes);

}  // namespace engram::fuzz
