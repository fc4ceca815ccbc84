/// Which configuration a run on a card begins with, and goes on with.

#include "apps/run/training/start_config.hpp"

#include "apps/data/text/corpus.hpp"
#include "apps/run/config/card_defaults.hpp"
#include "tests/harness/catch.hpp"

namespace engram::start_config_test {
namespace {

constexpr const char* kFile = R"([model]
family = "recurrent"
vocabulary = 9000
width = 12
[optimizer]
kind = "adam"
[schedule]
steps = 100
rate = 0.001
)";

data::Vocabulary any_vocabulary() {
  const data::Corpus corpus =
      data::splits_of_files({{{"a", "ab\nba\n"}, {"b", "a\n"}, {"c", "b\n"}}}, data::TextRule::any, false);
  return data::ByteVocabulary::collect(corpus, data::VocabularyFrom::train);
}

std::int64_t logits_memory(const std::optional<CheckpointFacts>& before, DeviceKind device,
                           std::vector<std::string> overrides = {}) {
  const StartConfigOptions options{.config = "file.toml",
                                   .out = {},
                                   .overrides = std::move(overrides),
                                   .steps = std::nullopt,
                                   .device = device,
                                   .dtype = DType::f32};
  return start_config(options, before, std::nullopt, kFile).model.recurrent.logits_memory;
}

TEST_CASE("start config: what a card chose stays where the run goes on with its file, on any device") {
  CHECK(logits_memory(std::nullopt, DeviceKind::cuda) == kCardLogitsMemory);
  CHECK(logits_memory(std::nullopt, DeviceKind::cpu) != kCardLogitsMemory);
  CheckpointFacts before{.config = {}, .vocabulary = any_vocabulary(), .mapped_tables = {}};
  before.config.model.family = ModelFamily::recurrent;
  before.config.model.recurrent.logits_memory = kCardLogitsMemory;
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    CHECK(logits_memory(before, device) == kCardLogitsMemory);
    CHECK(logits_memory(before, device, {"model.logits_memory=7"}) == 7);
  }
  // And one that a CPU began with its own, on a card.
  before.config.model.recurrent.logits_memory = 32;
  CHECK(logits_memory(before, DeviceKind::cuda) == 32);
}

}  // namespace
}  // namespace engram::start_config_test
