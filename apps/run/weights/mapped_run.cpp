#include "apps/run/weights/mapped_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <system_error>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/model/runtime.hpp"
#include "autograd/drawn_values.hpp"
#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "nn/models/language_model.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// A model that has no memory yet: what there is to know about its tables.
struct UnplacedModel {
  std::unique_ptr<LanguageModel> model;
  ParameterStore store;
  std::vector<const Parameter*> tables;  // by name
  DType dtype;

  UnplacedModel(const RunConfig& config, DType of) : model(make_model(config.model)), dtype(of) {
    collect(*model, store);
    for (const auto& [name, parameter] : store.parameters())
      if (parameter->gradient_kind() == Gradient::rows) tables.push_back(parameter);
    if (tables.empty())
      throw UsageError(text("map: the model must have tables, got one of family ", name_of(config.model.family),
                            " without product-key memories"));
  }
  TableHeader header(const Parameter& table) const { return TableHeader::of(table.shape(), table.stored_dtype(dtype)); }
};

void prepare_folder(const fs::path& out, const UnplacedModel& of) {
  std::error_code error;
  const fs::path checkpoint = checkpoint_path(out, CheckpointKind::newest);
  if (fs::exists(checkpoint, error))
    throw UsageError(text("map: '", out.string(), "' must be a new folder, got one with a run in it"));
  require_own_folder("map", out, {"checkpoint", "config.toml"});
  make_folder("map", checkpoint.parent_path());
  std::uint64_t wanted = 0;
  for (const Parameter* table : of.tables) wanted += of.header(*table).file_bytes();
  // Where the system does not say, writing does.
  if (const fs::space_info space = fs::space(out, error); !error && space.available < wanted)
    throw FileError(text("map: the disk of '", out.string(), "' must have ", wanted, " bytes free for the tables, got ",
                         space.available, "\n  another --out, fewer slots or product_key.value_dtype=bf16"));
}

using AppendBytes = std::function<void(std::span<const std::byte>)>;
using WriteTable = std::function<void(const Parameter&, DType, const AppendBytes&)>;

MappedRun write_tables(const UnplacedModel& of, const fs::path& out, const TableNews& news, const TableWatch& watch,
                       const WriteTable& write) {
  MappedRun mapped{.checkpoint = checkpoint_path(out, CheckpointKind::newest), .tables = {}};
  std::int64_t written = 0, all = 0;
  for (const Parameter* table : of.tables)
    all += table->shape().count() * static_cast<std::int64_t>(size_of(of.header(*table).dtype));
  for (const Parameter* table : of.tables) {
    const TableHeader header = of.header(*table);
    if (news) news(table->name(), header);
    const fs::path path = table_path(mapped.checkpoint.parent_path(), table->name());
    TableWriter writer(path, table->shape(), header.dtype);
    write(*table, header.dtype, [&](std::span<const std::byte> bytes) {
      writer.append(bytes);
      written += std::ssize(bytes);
      if (watch) watch(written, all);
    });
    mapped.tables.push_back({path, writer.commit()});
  }
  return mapped;
}

/// What the checkpoint says about them.
std::string list_of(const UnplacedModel& of, const MappedRun& mapped) {
  nlohmann::json list;
  for (std::size_t i = 0; i < of.tables.size(); ++i)
    list[of.tables[i]->name()] = contents_text(mapped.tables[i].header.contents);
  return list.dump();
}

}  // namespace

std::uint64_t MappedRun::bytes() const {
  std::uint64_t sum = 0;
  for (const Table& table : tables) sum += table.header.file_bytes();
  return sum;
}

std::string described(const TableHeader& table) {
  return fmt::format("{} x {} {}, {:.2f} GiB", table.rows, table.width, name_of(table.dtype),
                     static_cast<double>(table.file_bytes()) / double(1 << 30));
}

std::string table_of(const MappedRun& mapped) {
  std::string lines;
  for (const auto& [path, header] : mapped.tables) lines += fmt::format("{}: {}\n", path.string(), described(header));
  return lines + fmt::format("{}: all other parameters\n", mapped.checkpoint.string());
}

nlohmann::json json_of(const MappedRun& mapped) {
  nlohmann::json tables = nlohmann::json::array();
  for (const auto& [path, header] : mapped.tables)
    tables.push_back({{"file", path.string()},
                      {"rows", header.rows},
                      {"width", header.width},
                      {"dtype", name_of(header.dtype)},
                      {"row_stride", header.stride},
                      {"bytes", header.file_bytes()}});
  return {{"checkpoint", mapped.checkpoint.string()}, {"bytes", mapped.bytes()}, {"tables", tables}};
}

MappedRun map_run(const fs::path& run_or_checkpoint, CheckpointKind kind, const fs::path& out, const TableNews& news,
                  const TableWatch& watch) {
  const CheckpointFile file(find_checkpoint(run_or_checkpoint, kind));
  const CheckpointFacts facts = read_facts(file);
  if (!facts.mapped_tables.empty())
    throw UsageError(text("map: a run must have its tables in its checkpoint, got '", file.path().string(),
                          "', whose tables are in mapped files already"));
  const UnplacedModel model(facts.config, facts.dtype);
  for (const Parameter* table : model.tables) {
    const StoredTensor& stored = file.at(table->name());
    const TableHeader wanted = model.header(*table);
    if (stored.dtype != wanted.dtype || stored.shape != wanted.shape())
      throw FileError(text("map: '", file.path().string(), "' must hold ", table->name(), " as its model has it, ",
                           wanted.dtype, " ", wanted.shape(), ", got ", stored.dtype, " ", stored.shape));
  }
  prepare_folder(out, model);
  const WriteTable copy = [&file](const Parameter& table, DType, const AppendBytes& append) {
    const std::span<const std::byte> bytes = file.bytes(file.at(table.name()));
    for (std::size_t begin = 0; begin < bytes.size(); begin += TensorSource::kChunkBytes)
      append(bytes.subspan(begin, std::min(TensorSource::kChunkBytes, bytes.size() - begin)));
  };
  const MappedRun mapped = write_tables(model, out, news, watch, copy);

  std::vector<TensorSource> others;
  for (const std::string& name : file.names()) {
    const bool table = std::ranges::any_of(model.tables, [&](const Parameter* one) { return one->name() == name; });
    if (table || !is_parameter_name(name)) continue;
    const StoredTensor& stored = file.at(name);
    others.push_back(host_tensor(name, stored.dtype, stored.shape, file.bytes(stored).data()));
  }
  Metadata metadata = file.metadata();
  metadata.erase(std::string(metadata_keys::kRun));
  metadata.insert_or_assign(std::string(metadata_keys::kTables), list_of(model, mapped));
  write_durably(out / "config.toml", to_toml(facts.config));
  write_safetensors(mapped.checkpoint, others, metadata);
  return mapped;
}

MappedRun map_new_model(const RunConfig& config, const data::DataSet& data, const fs::path& out, int threads,
                        const TableNews& news, const TableWatch& watch) {
  Runtime runtime(Device{}, threads, config.training.seed);  // before the model, whose memory it has
  UnplacedModel model(config, DType::f32);
  prepare_folder(out, model);
  const WriteTable draw = [&](const Parameter& table, DType dtype, const AppendBytes& append) {
    draw_values(table.initializer(), dtype, table.shape().count(), table.columns(), config.training.seed, table.name(),
                runtime.backend().threads(),
                [&append](std::int64_t, std::span<const std::byte> values) { append(values); });
  };
  const MappedRun mapped = write_tables(model, out, news, watch, draw);
  model.store.place(runtime.backend(), model.dtype, config.training.seed, mapped.checkpoint.parent_path());
  Metadata metadata = model_metadata(config, data, 0);
  metadata.emplace(metadata_keys::kTables, list_of(model, mapped));
  write_durably(out / "config.toml", to_toml(config));
  save_checkpoint(mapped.checkpoint, runtime.backend(), named_tensors(model.store), metadata);
  return mapped;
}

}  // namespace engram
