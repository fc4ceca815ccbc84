#pragma once
/// Articles in words, and small runs of recurrent models over them.

#include <sstream>

#include "apps/data/prepare/prepare.hpp"
#include "core/error.hpp"
#include "tests/apps/run/run_fixture.hpp"

namespace engram::harness {

/// Articles of lines of words, of very different lengths, one after the other in the format doc.
inline std::string small_articles(int articles, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  std::string all;
  for (int i = 0; i < articles; ++i) {
    const std::int64_t length = 20 + random.below(400);
    all += text("<doc id=\"", i, "\">\n", spelled(small_text(length, seed * 100 + static_cast<std::uint64_t>(i))),
                "\n</doc>\n");
  }
  return all;
}

/// A folder with a data set `data` of articles, and one of the same words without them, `flat`.
struct ArticleFolder : TemporaryFolder {
  explicit ArticleFolder(int articles = 14) {
    for (const auto& [name, count, seed] : {std::tuple{"train", articles, 1}, {"valid", 5, 2}, {"test", 6, 3}}) {
      const std::string all = small_articles(count, static_cast<std::uint64_t>(seed));
      put_file(*this / name, all);
      std::string words;
      std::istringstream lines(all);
      for (std::string line; std::getline(lines, line);)
        if (line.find("doc") == std::string::npos) words += line + "\n";
      put_file(*this / text(name, ".flat"), words);
    }
    data::PrepareOptions options;
    options.kind = data::TokenKind::word;
    options.articles = data::ArticleRules{.format = data::ArticleFormat::doc, .pretokenized = true};
    options.train = *this / "train";
    options.valid = *this / "valid";
    options.test = *this / "test";
    options.out = *this / "data";
    data::prepare(options);
    data::PrepareOptions flat;
    flat.kind = data::TokenKind::word;
    flat.train = *this / "train.flat";
    flat.valid = *this / "valid.flat";
    flat.test = *this / "test.flat";
    flat.out = *this / "flat";
    data::prepare(flat);
  }
  std::filesystem::path data() const { return *this / "data"; }
  std::filesystem::path flat() const { return *this / "flat"; }
};

/// A model of a few thousand parameters: the key, the value and what predicts, of a window of 5.
inline std::string recurrent_config() {
  return R"([model]
family = "recurrent"
embedding_width = 8
width = 24
[optimizer]
kind = "adam"
clip = 5
[schedule]
rate = 0.01
decay = "none"
steps = 50
[training]
batch = 4
block = 12
validate_every = 9
validate_blocks = 3
report_every = 1
checkpoint_every = 25
seed = 11
)";
}

inline TrainingRunOptions recurrent_run(const ArticleFolder& folder, const std::string& out,
                                        std::vector<std::string> overrides = {}) {
  TrainingRunOptions options;
  options.config = put_file(folder / "recurrent.toml", recurrent_config());
  options.data = folder.data();
  options.out = folder / out;
  options.threads = 1;
  options.overrides = std::move(overrides);
  return options;
}

/// Keys of the kinds of models that runs are tried with.
inline std::vector<std::vector<std::string>> recurrent_kinds() {
  return {
      {"model.readout=key_value_predict", "model.window=3"},
      {"model.readout=n_gram", "model.parts=4"},
      {"model.readout=recurrent_memory", "model.window=4"},
      {"model.encoder=hornn_gated", "model.order=3", "model.readout=identity", "model.output_map=true"},
      {"model.layers=2", "model.inner_width=10", "model.readout=identity", "model.cutoffs=[3, 6]", "model.divisor=2"},
      {"model.encoder=qrnn", "model.layers=2", "model.inner_taps=1", "model.readout=attention",
       "model.embedding_width=24", "model.tie_tables=true"}};
}

/// Every kind of dropout.
inline std::vector<std::string> recurrent_dropout() {
  return {"model.word_dropout=0.1",   "model.input_dropout=0.2",  "model.layer_dropout=0.2",
          "model.output_dropout=0.2", "model.weight_dropout=0.3", "model.dropout_over_time=true"};
}

}  // namespace engram::harness
