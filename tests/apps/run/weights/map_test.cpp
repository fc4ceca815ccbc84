/// `engram map`: run folders whose tables are in mapped files, and what uses them.

#include <cstring>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/training/session.hpp"
#include "apps/run/weights/mapped_run.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::map_test {
namespace {

using nlohmann::json;

constexpr const char* kFirstTable = "layers.0.memory.values.rows";

struct MapBench : RunFolder {
  MapBench() {
    run_training(memory_run(*this, "own"), never());
    run_training(memory_run(*this, "without", {"product_key.layers="}), never());
    map_run(*this / "own", CheckpointKind::newest, *this / "mapped");
  }
  std::string path(const std::string& name) const { return (*this / name).string(); }
  ProcessResult engram(Arguments arguments, const std::string& run, const Arguments& more = {}) const {
    arguments.push_back(path(run));
    arguments.insert(arguments.end(), {"--threads", "1"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_engram(arguments);
  }
  json evaluated(const std::string& run) const {
    const ProcessResult result =
        engram({"evaluate", "--json", "--data", data().string(), "--split", "test", "--exact"}, run);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  }
};

const MapBench& bench() {
  static const MapBench made;
  return made;
}

/// The loss of every token of the split `test`.
std::vector<double> losses(const std::filesystem::path& run, const data::DataSet& set) {
  Runtime runtime({}, 1);
  TrainedModel trained(run, CheckpointKind::newest, runtime);
  std::vector<double> found;
  evaluate_split(trained, set.split("test"), {},
                 {.found = [&found](std::int64_t, double nll) { found.push_back(nll); }});
  return found;
}

std::string file_name(const std::string& table) { return table + ".table"; }

std::vector<std::string> files_of(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder).string());
  std::ranges::sort(names);
  return names;
}

TEST_CASE("map: evaluation of the folder is that of the run, token by token", "[product-key]") {
  const RunFolder folder;
  const std::vector<std::string> overrides = GENERATE(
      std::vector<std::string>{"schedule.steps=6"},
      std::vector<std::string>{"schedule.steps=6", "product_key.value_dtype=bf16", "product_key.shared_values=true"},
      std::vector<std::string>{"schedule.steps=6", "product_key.value_width=9", "product_key.projection=true",
                               "optimizer.table_mode=deferred", "optimizer.table_epsilon=0"});
  CAPTURE(overrides);
  const bool shared = overrides.size() == 3 && overrides[2].find("shared") != std::string::npos;
  run_training(memory_run(folder, "run", overrides), never());
  std::int64_t heard = 0, of = 0;
  const MappedRun mapped = map_run(folder / "run", CheckpointKind::newest, folder / "mapped", {},
                                   [&](std::int64_t written, std::int64_t all) {
                                     heard = written;
                                     of = all;
                                   });
  CHECK(heard == of);
  CHECK((of > 0 && of < static_cast<std::int64_t>(mapped.bytes())));  // files have headers too
  CHECK(mapped.tables.size() == (shared ? 1 : 2));
  const data::DataSet set = data::DataSet::open(folder.data());
  const std::vector<double> before = losses(folder / "run", set);
  CHECK(before.size() > 100);
  CHECK(losses(folder / "mapped", set) == before);
}

TEST_CASE("map: models of the other families", "[product-key]") {
  const RunFolder folder;
  const std::string family = GENERATE(std::string("all_attention"), std::string("transformer_xl"));
  CAPTURE(family);
  TrainingRunOptions options = run_options(folder, "run");
  const std::string own = family == "all_attention" ? "memory_mode = \"transformer\"\ninner = 20\nmax_span = 24\n"
                                                    : "inner = 20\nmemory = 20\n";
  options.config = put_file(folder / "other.toml", "[model]\nfamily = \"" + family +
                                                       "\"\nlayers = 3\nwidth = 16\nheads = 2\n" + own +
                                                       R"([product_key]
layers = [2]
placement = "beside"
subkeys = 6
heads = 2
selected = 3
query_width = 8
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 5
[training]
batch = 4
block = 20
seed = 3
)");
  run_training(options, never());
  map_run(folder / "run", CheckpointKind::newest, folder / "mapped");
  const data::DataSet set = data::DataSet::open(folder.data());
  const std::vector<double> before = losses(folder / "run", set);
  CHECK(before.size() > 100);
  CHECK(losses(folder / "mapped", set) == before);
}

TEST_CASE("map: the folder has the run's parameters, tables apart, and nothing of its training", "[product-key]") {
  CHECK(files_of(bench() / "mapped") == std::vector<std::string>{"checkpoint/" + file_name(kFirstTable),
                                                                 "checkpoint/layers.2.memory.values.rows.table",
                                                                 "checkpoint/model.safetensors", "config.toml"});
  CHECK(get_file(bench() / "mapped" / "config.toml") == get_file(bench() / "own" / "config.toml"));
  const CheckpointFile run(find_checkpoint(bench() / "own", CheckpointKind::newest));
  const CheckpointFile file(find_checkpoint(bench() / "mapped", CheckpointKind::newest));
  std::vector<std::string> wanted;
  for (const std::string& name : run.names())
    if (!name.starts_with("optimizer/") && !name.starts_with("state/") && !name.ends_with(".values.rows"))
      wanted.push_back(name);
  CHECK(file.names() == wanted);
  for (const std::string& name : wanted) {
    const auto before = run.bytes(run.at(name)), after = file.bytes(file.at(name));
    CHECK(file.at(name).shape == run.at(name).shape);
    REQUIRE(before.size() == after.size());
    CHECK(std::memcmp(before.data(), after.data(), before.size()) == 0);
  }
  CHECK(file.metadata().at("engram.step") == "12");
  CHECK_FALSE(file.metadata().contains("engram.run"));
  const json tables = json::parse(file.metadata().at("engram.tables"));
  CHECK(tables.size() == 2);
  CHECK_THAT(tables.at(kFirstTable).get<std::string>(), ContainsSubstring("crc32:"));
}

TEST_CASE("map: a new model is the one that training would start", "[product-key]") {
  const RunFolder folder;
  const std::vector<std::string> overrides =
      GENERATE(std::vector<std::string>{},
               std::vector<std::string>{"product_key.value_dtype=bf16", "product_key.subkeys=120",
                                        "product_key.shared_values=true"},
               std::vector<std::string>{"product_key.value_init=zeros"});
  CAPTURE(overrides);
  const TrainingRunOptions options = memory_run(folder, "run", overrides);
  const data::DataSet set = data::DataSet::open(folder.data());
  const RunConfig config = resolved_config(load_run_config(options.config, overrides), set);
  std::vector<std::string> told;
  const MappedRun mapped =
      map_new_model(config, set, folder / "mapped", 2,
                    [&told](const std::string& name, const TableHeader&) { told.push_back(name); });
  Runtime runtime({}, 1, config.training.seed);
  TrainingSession session(config, set, runtime, DType::f32);
  REQUIRE(mapped.tables.size() == session.store.tables().size());
  for (std::size_t i = 0; i < mapped.tables.size(); ++i) {
    const Parameter& placed = *session.store.tables()[i];
    CHECK(told[i] == placed.name());
    const MappedTable table(mapped.tables[i].path, placed.shape(), placed.value().dtype());
    const auto row = static_cast<std::size_t>(table.header().row_bytes());
    const auto* in_file = static_cast<const std::byte*>(table.padded_rows().raw());
    const auto* in_memory = static_cast<const std::byte*>(placed.value().raw());
    bool equal = true;
    for (std::int64_t r = 0; r < table.header().rows; ++r)
      equal = equal &&
              std::memcmp(in_file + r * table.header().stride, in_memory + static_cast<std::size_t>(r) * row, row) == 0;
    CHECK(equal);
  }
  save_model(folder / "start" / "model.safetensors", session);
  const std::vector<double> before = losses(folder / "start", set);
  CHECK(before.size() > 100);
  CHECK(losses(folder / "mapped", set) == before);
}

TEST_CASE("map: folders say how text becomes words", "[product-key]") {
  const RunFolder folder(1500, 1, data::TokenKind::word);
  const TrainingRunOptions options = memory_run(folder, "run");
  const data::DataSet set = data::DataSet::open(folder.data());
  const RunConfig config = resolved_config(load_run_config(options.config, {}), set);
  map_new_model(config, set, folder / "new", 1, {});
  Runtime runtime({}, 1, config.training.seed);
  TrainingSession session(config, set, runtime, DType::f32);
  save_model(folder / "start" / "model.safetensors", session);
  map_run(folder / "start" / "model.safetensors", CheckpointKind::newest, folder / "mapped");
  for (const char* out : {"new", "mapped"})
    CHECK(CheckpointFile(find_checkpoint(folder / out, CheckpointKind::newest)).metadata().at("engram.text") ==
          set.text_rules().json_text());
}

TEST_CASE("map: evaluate, generate and memory use the files by themselves", "[product-key]") {
  json run = bench().evaluated("own"), mapped = bench().evaluated("mapped");
  CHECK(mapped.at("mapped_tables") == 2);
  CHECK(mapped.at("mapped_bytes") == 2 * (4096 + kMemorySlots * 64));
  CHECK_FALSE(run.contains("mapped_tables"));
  for (const char* key : {"nll", "bpc", "tokens", "step"}) CHECK(run.at(key) == mapped.at(key));
  const ProcessResult text = bench().engram({"evaluate", "--data", bench().data().string()}, "mapped");
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, ContainsSubstring("tables are mapped from 2 files, 0.00 GiB in all\n"));

  const Arguments longer{"--length", "60", "--seed", "3"};
  const ProcessResult written = bench().engram({"generate"}, "own", longer);
  CHECK(written.exit_code == 0);
  CHECK(written.out.size() >= 60);
  CHECK(bench().engram({"generate"}, "mapped", longer).out == written.out);

  const Arguments usage{"memory", "--json", "--data", bench().data().string()};
  json before = json::parse(bench().engram(usage, "own").out), after = json::parse(bench().engram(usage, "mapped").out);
  before.erase("checkpoint");
  after.erase("checkpoint");
  CHECK(before == after);
}

TEST_CASE("map: the command, for a run and for a new model", "[product-key]") {
  const ProcessResult run = bench().engram({"map", "--best", "--json", "--out", bench().path("from-best")}, "own");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.err, ContainsSubstring(kFirstTable) && ContainsSubstring("144 x 16 f32, 0.00 GiB"));
  const json object = json::parse(run.out);
  CHECK(object.at("bytes") == 2 * (4096 + kMemorySlots * 64));
  CHECK(object.at("tables").at(0).at("row_stride") == 64);
  CHECK(std::filesystem::exists(object.at("checkpoint").get<std::string>()));

  const Arguments fresh{"map",   "--config",       bench().path("memory.toml"), "--data", bench().data().string(),
                        "--set", "training.seed=5"};
  Arguments first = fresh, second = fresh;
  first.insert(first.end(), {"--threads", "1", "--out", bench().path("new-1")});
  second.insert(second.end(), {"--threads", "2", "--out", bench().path("new-2")});
  const ProcessResult made = run_engram(first);
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK_THAT(made.out,
             ContainsSubstring(file_name(kFirstTable) + ": 144 x 16 f32") && ContainsSubstring("all other parameters"));
  REQUIRE(run_engram(second).exit_code == 0);
  for (const std::string& file : files_of(bench() / "new-1")) {
    CAPTURE(file);
    CHECK(get_file(bench() / "new-1" / file) == get_file(bench() / "new-2" / file));
  }
}

void check_refused(const ProcessResult& result, int code, const std::string& what) {
  INFO(result.err);
  CHECK(result.exit_code == code);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring(what));
}

TEST_CASE("map: what is refused", "[product-key]") {
  const std::string out = bench().path("refused"), data = bench().data().string();
  const std::string config = bench().path("memory.toml");
  check_refused(run_engram({"map", "--out", out}), 2, "there must be a run or --config, got none");
  check_refused(run_engram({"map", bench().path("own"), "--config", config, "--data", data, "--out", out}), 2,
                "a run or --config, got both");
  check_refused(run_engram({"map", "--config", config, "--out", out}), 2, "got --config alone");
  check_refused(run_engram({"map", bench().path("own"), "--data", data, "--out", out}), 2, "got --data alone");
  check_refused(run_engram({"map", bench().path("own"), "--out", out, "--set", "training.seed=1"}), 2,
                "stays as it was trained");
  check_refused(run_engram({"map", "--config", config, "--data", data, "--best", "--out", out}), 2, "got --config");
  check_refused(run_engram({"map", bench().path("own")}), 2, "--out");
  check_refused(bench().engram({"map", "--out", out}, "without"), 2, "must have tables");
  check_refused(bench().engram({"map", "--out", out}, "mapped"), 2, "are in mapped files already");
  check_refused(bench().engram({"map", "--out", bench().path("mapped")}, "own"), 2, "got one with a run in it");
  check_refused(bench().engram({"map", "--out", out}, "nothing"), 1, "nothing");
  CHECK_FALSE(std::filesystem::exists(out));
  const ProcessResult full = run_engram({"map", bench().path("own"), "--out", out}, {.largest_file = 6000});
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, ContainsSubstring(file_name(kFirstTable)));
  CHECK(files_of(out).empty());  // neither a table in part nor a checkpoint
}

TEST_CASE("map: a mapped run can be neither trained nor read otherwise than it is", "[product-key]") {
  const std::string data = bench().data().string();
  check_refused(run_engram({"train", "--resume", "--data", data, "--out", bench().path("mapped")}), 2,
                "in mapped files that are only read");
  check_refused(
      run_engram({"train", "--config", bench().path("memory.toml"), "--data", data, "--out", bench().path("mapped")}),
      2, "got one with a run in it");
  check_refused(bench().engram({"evaluate", "--dtype", "f64", "--data", data}, "mapped"), 1,
                "must hold the model's table, f64 [144, 16], got f32 [144, 16]");
  for (const Device& device : other_devices())
    check_refused(bench().engram({"evaluate", "--device", text(device), "--data", data}, "mapped"), 1,
                  "tables in mapped files are read on the CPU");
}

TEST_CASE("map: tables that are not the checkpoint's are refused", "[product-key]") {
  const RunFolder folder;
  run_training(memory_run(folder, "run", {"schedule.steps=4"}), never());
  map_run(folder / "run", CheckpointKind::newest, folder / "mapped");
  run_training(memory_run(folder, "other", {"schedule.steps=5"}), never());
  map_run(folder / "other", CheckpointKind::newest, folder / "other-mapped");
  const auto table = folder / "mapped" / "checkpoint" / file_name(kFirstTable);
  const std::string own = get_file(table);
  const auto opened = [&] {
    return message_of<FileError>([&] {
      Runtime runtime({}, 1);
      TrainedModel(folder / "mapped", CheckpointKind::newest, runtime);
    });
  };
  CHECK(opened().empty());
  put_file(table, get_file(folder / "other-mapped" / "checkpoint" / file_name(kFirstTable)));
  CHECK_THAT(opened(), ContainsSubstring(table.string()) && ContainsSubstring("must hold the table crc32:") &&
                           ContainsSubstring(", got crc32:"));
  put_file(table, own.substr(0, own.size() - 64));
  CHECK_THAT(opened(), ContainsSubstring(table.string()) && ContainsSubstring("got a file of"));
  std::filesystem::remove(table);
  CHECK_THAT(opened(), ContainsSubstring(table.string()) && ContainsSubstring("must be a readable file"));
  put_file(table, own);
  CHECK(opened().empty());

  const CheckpointFile file(find_checkpoint(folder / "mapped", CheckpointKind::newest));
  const auto list = [&](const std::string& tables) {
    const auto changed = folder / "mapped" / "checkpoint" / "model.safetensors";
    Metadata metadata = file.metadata();
    metadata["engram.tables"] = tables;
    std::vector<TensorSource> tensors;
    for (const std::string& name : file.names())
      tensors.push_back(host_tensor(name, file.at(name).dtype, file.at(name).shape, file.bytes(file.at(name)).data()));
    write_safetensors(changed, tensors, metadata);
    return opened();
  };
  CHECK_THAT(list("nonsense"), ContainsSubstring("engram.tables") && ContainsSubstring("nonsense"));
  CHECK_THAT(list(R"({"layers.0.memory.values.rows":"crc32:xyz"})"), ContainsSubstring("crc32:xyz"));
  CHECK_THAT(list(R"({"layers.7.memory.values.rows":"crc32:00000000"})"),
             ContainsSubstring("got none named layers.0.memory"));
}

}  // namespace
}  // namespace engram::harness::map_test
