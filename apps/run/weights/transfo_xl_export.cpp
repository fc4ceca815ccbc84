#include "apps/run/weights/transfo_xl_export.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/weights/run_to_export.hpp"
#include "apps/run/weights/transfo_xl_cluster_order.hpp"
#include "apps/run/weights/transfo_xl_config.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr std::string_view kOriginalClass = "MemTransformerLM";
constexpr std::array<std::string_view, 4> kSettable{"memory", "memory_start", "visibility", "clamp"};

void check_settings(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const auto sets = [&setting](std::string_view key) { return setting.starts_with(text("model.", key, "=")); };
    if (std::ranges::none_of(kSettable, sets))
      throw UsageError(
          text("export: --set must be model.memory, model.memory_start, model.visibility or model.clamp "
               "with =VALUE, got '",
               setting, "'\n  nothing else can be changed without other weights"));
  }
}

/// Some parameters, one after the other, as one tensor.
TensorSource joined(const TransfoXlTensor& tensor, const std::vector<Tensor>& parts, Backend& backend) {
  std::size_t bytes = 0;
  for (const Tensor& part : parts) bytes += part.bytes();
  if (bytes != static_cast<std::size_t>(tensor.shape.count()) * size_of(parts.front().dtype()))
    throw Error(text("export: the parameters of ", tensor.name, " must be all of it, ", tensor.shape, ", got ", bytes,
                     " bytes"));
  const auto read = [parts, &backend](std::size_t offset, std::span<std::byte> to) {
    std::size_t begin = 0;  // of the part, in the whole
    for (const Tensor& part : parts) {
      const std::size_t from = std::max(offset, begin), until = std::min(offset + to.size(), begin + part.bytes());
      if (from < until)
        backend.copy(to.data() + (from - offset), static_cast<const std::byte*>(part.raw()) + (from - begin),
                     until - from, CopyKind::device_to_host);
      begin += part.bytes();
    }
  };
  return {tensor.name, parts.front().dtype(), tensor.shape, read};
}

/// w_m = 10000^(-2m / D), [transformer-xl 1.2].
template <class T>
std::vector<T> frequencies(std::int64_t width) {
  std::vector<T> values;
  for (std::int64_t m = 0; m < width / 2; ++m)
    values.push_back(static_cast<T>(std::pow(10000.0, -2.0 * static_cast<double>(m) / static_cast<double>(width))));
  return values;
}

/// Of what is exported, with the settings; `dtype` becomes that of its parameters.
RunConfig read_config(const TransfoXlExport& from, DType& dtype) {
  const auto [facts, file] = read_run_to_export(from.run, from.kind, from.out, ModelFamily::transformer_xl);
  dtype = facts.dtype;
  return parse_run_config(to_toml(facts.config), file, from.settings);
}

/// Those of the original program, whose layers have no copies of the biases that they share.
void take_original_names(std::vector<TensorSource>& sources) {
  std::erase_if(sources, [](const TensorSource& source) {
    return source.name.ends_with(".dec_attn.r_w_bias") || source.name.ends_with(".dec_attn.r_r_bias");
  });
  for (TensorSource& source : sources)
    if (source.name.starts_with(kTransfoXlPrefix)) source.name.erase(0, kTransfoXlPrefix.size());
}

}  // namespace

TransfoXlExported export_transfo_xl(const TransfoXlExport& from) {
  check_settings(from.settings);
  DType dtype = DType::f32;
  const RunConfig config = read_config(from, dtype);
  const TransformerXlOptions& options = config.model.transformer_xl;
  require_transfo_xl_class(options, from.program);
  const bool original = from.program == TransfoXlProgram::original;
  const std::vector<TransfoXlTensor> layout =
      transfo_xl_tensors(options, original ? ClusterOrder::reversed : ClusterOrder::natural);

  Runtime runtime;
  TrainedModel trained(from.run, from.kind, runtime, dtype);
  const auto parameters = named_tensors(trained.store());
  std::map<std::string, Tensor, std::less<>> by_name;
  for (const NamedTensor& parameter : parameters) by_name.emplace(parameter.name, parameter.tensor);
  std::map<std::string, std::vector<Tensor>, std::less<>> parts_of;
  std::vector<TensorSource> sources;
  std::size_t written_parameters = 0;
  for (const TransfoXlTensor& tensor : layout) {
    std::vector<Tensor>& parts = parts_of[tensor.name];
    if (!tensor.copy_of.empty()) parts = parts_of.at(tensor.copy_of);
    for (const std::string& name : tensor.parameters) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) throw Error(text("export: the model must have a parameter ", name, ", got none"));
      parts.push_back(found->second);
    }
    written_parameters += tensor.parameters.size();
    TensorSource source = joined(tensor, parts, runtime.backend());
    sources.push_back(tensor.rows_reversed ? with_rows_reversed(std::move(source)) : std::move(source));
  }
  if (written_parameters != parameters.size())
    throw Error(text("export: every one of ", parameters.size(), " parameters must have a place in the layout, got ",
                     written_parameters));
  const std::vector<float> narrow = frequencies<float>(options.width);
  const std::vector<double> wide = frequencies<double>(options.width);
  const void* const data = dtype == DType::f64 ? static_cast<const void*>(wide.data()) : narrow.data();
  sources.push_back(host_tensor(std::string(kTransfoXlFrequencies), dtype, {options.width / 2}, data));

  nlohmann::ordered_json written =
      transfo_xl_config_json({.options = options, .segment = config.training.block}, trained.vocabulary().end_token());
  if (original) {
    take_original_names(sources);
    written["architectures"] = {kOriginalClass};
  }
  TransfoXlExported exported{.config = from.out.parent_path() / "config.json", .tensors = sources.size()};
  make_folder("export", from.out.parent_path());
  write_safetensors(from.out, watched(std::move(sources), from.watch), {{"format", "pt"}});
  write_durably(exported.config, written.dump(2) + "\n");
  return exported;
}

}  // namespace engram
