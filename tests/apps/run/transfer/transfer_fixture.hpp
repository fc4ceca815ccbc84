#pragma once
/// Small models over small texts, one of which begins with the weights of another.

#include <map>
#include <string>
#include <vector>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/transfer/weight_transfer.hpp"
#include "core/host_copy.hpp"
#include "tests/apps/run/run_fixture.hpp"

namespace engram::harness {

/// A data folder of its own beside others.
inline std::filesystem::path make_data(const std::filesystem::path& folder, const std::string& text,
                                       data::TokenKind kind = data::TokenKind::character) {
  std::filesystem::create_directories(folder);
  data::PrepareOptions options;
  options.kind = kind;
  options.text = put_file(folder / "text", text);
  options.out = folder / "data";
  data::prepare(options);
  return options.out;
}

/// small_text() with other letters: no f and no r, but z and y.
inline std::string other_text(std::int64_t length) {
  std::string text = small_text(length, 5);
  for (char& byte : text) byte = byte == 'f' ? 'z' : byte == 'r' ? 'y' : byte;
  return text;
}

using Values = std::map<std::string, std::vector<double>>;

/// A model at step 0 and its text.
struct SmallModel {
  data::DataSet data;
  Runtime runtime{{}, 1};
  TrainingSession session;

  SmallModel(const std::string& toml, const std::filesystem::path& folder, std::vector<std::string> overrides = {},
             DType dtype = DType::f32)
      : data(data::DataSet::open(folder)),
        session(resolved_config(parse_run_config(toml, "test", overrides), data), data, runtime, dtype) {
    session.model->refresh(runtime.backend());
  }
  Values values() {
    Values found;
    for (const auto& [name, parameter] : session.store.parameters())
      found[name] = host_doubles(runtime.backend(), parameter->value());
    return found;
  }
  SmallModel& train(int steps) {
    for (int i = 0; i < steps; ++i) session.step();
    return *this;
  }
  std::filesystem::path save(const std::filesystem::path& path) {
    save_model(path, session);
    return path;
  }
  WeightTransfer begin_with(const std::filesystem::path& from) {
    WeightTransfer transfer =
        transfer_weights(WeightSource(from), session.config, data.vocabulary(), session.store, runtime);
    session.model->refresh(runtime.backend());
    return transfer;
  }
};

/// Configurations of every family, with every kind of part that begins with other weights by a rule of its own.
inline std::string small_xl_config() {
  return R"([model]
family = "transformer_xl"
layers = 2
width = 16
heads = 2
inner = 24
memory = 24
init_deviation = 0.2
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 24
[training]
batch = 4
block = 20
validate_blocks = 2
seed = 11
)";
}

inline std::string small_memory_config() {
  return R"([model]
family = "product_key"
layers = 3
width = 16
heads = 2
position_rows = 24
[product_key]
layers = [1, 3]
subkeys = 6
heads = 2
selected = 3
query_width = 8
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 12
[training]
batch = 4
block = 20
validate_blocks = 2
seed = 11
)";
}

inline std::string small_recurrent_config() {
  return R"([model]
family = "recurrent"
embedding_width = 8
width = 24
readout = "recurrent_memory"
window = 4
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
decay = "none"
steps = 50
[training]
batch = 4
block = 12
validate_blocks = 2
seed = 11
)";
}

inline std::vector<std::string> small_configs_of_families() {
  return {small_config(), small_xl_config(), small_memory_config(), small_recurrent_config()};
}

}  // namespace engram::harness
