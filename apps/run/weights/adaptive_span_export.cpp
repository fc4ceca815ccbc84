#include "apps/run/weights/adaptive_span_export.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/weights/adaptive_span_names.hpp"
#include "apps/run/weights/foreign_weights.hpp"
#include "apps/run/weights/run_to_export.hpp"
#include "core/error.hpp"
#include "core/files/safetensors.hpp"

namespace engram {
namespace {

void require_adaptive_span_program(const AllAttentionOptions& options) {
  std::string found;
  const auto require = [&found](bool good, std::string_view rule) {
    if (!good) found += text("\n  ", rule);
  };
  const MemoryMode mode = options.memory_mode;
  require(mode == MemoryMode::all || mode == MemoryMode::transformer,
          text("model.memory_mode must be all or transformer, got ", name_of(mode)));
  require(options.span != SpanKind::dynamic, text("model.span must be adaptive or fixed, got ", name_of(options.span)));
  require(options.mask_offset == 0, text("model.mask_offset must be 0, got ", options.mask_offset));
  require(options.pad == Pad::attend_zero,
          text("model.pad must be ", name_of(Pad::attend_zero), ", got ", name_of(options.pad)));
  require(options.position_values == PositionValues::none,
          text("model.position_values must be none, got ", name_of(options.position_values)));
  require(options.cutoffs.empty() || options.tie_tables == options.tie_projections,
          text("model.tie_tables and model.tie_projections must be both true or both false, got ", options.tie_tables,
               " and ", options.tie_projections));
  require(!options.memories.any(), "product_key.layers must be [], got some: that program has no such memories");
  if (!found.empty())
    throw UsageError(
        text("adaptive-span: the program must have a place for all of the model, got options that it has "
             "none for",
             found, "\n  only a model that is trained so can be exported"));
}

/// What the mask of every layer is made from, 1 - S .. 0, as that program keeps it beside the spans.
std::vector<double> mask_template(std::int64_t span) {
  std::vector<double> values;
  for (std::int64_t x = 1 - span; x <= 0; ++x) values.push_back(static_cast<double>(x));
  return values;
}

/// The elements of a parameter, as the tensor of the file has them.
TensorSource stored_source(const ForeignLayoutTensor& stored, AdaptiveSpanView view, DType dtype, const Shape& shape,
                           std::span<const std::byte> values) {
  const ForeignTensor own =
      ForeignTensor::dense(shape, dtype == DType::f64 ? StoredFloat::f64 : StoredFloat::f32, values);
  return parameter_source(stored.name, dtype, stored.shape, stored_as(view, own), 0);
}

}  // namespace

std::size_t export_adaptive_span(const AdaptiveSpanExport& from) {
  const CheckpointFacts facts = read_run_to_export(from.run, from.kind, from.out, ModelFamily::all_attention).facts;
  const AllAttentionOptions& options = facts.config.model.all_attention;
  const DType dtype = facts.dtype;
  require_adaptive_span_program(options);
  Runtime runtime;
  TrainedModel trained(from.run, from.kind, runtime, dtype);
  std::map<std::string, std::pair<Shape, std::vector<std::byte>>, std::less<>> values;
  for (const NamedTensor& parameter : named_tensors(trained.store())) {
    auto& [shape, bytes] = values[parameter.name];
    shape = parameter.tensor.shape();
    bytes.resize(parameter.tensor.bytes());
    runtime.backend().copy(bytes.data(), parameter.tensor.raw(), bytes.size(), CopyKind::device_to_host);
  }
  runtime.backend().synchronize();
  std::map<std::string, const AdaptiveSpanTensor*, std::less<>> originals;
  const std::vector<AdaptiveSpanTensor> layout = adaptive_span_tensors(options);
  const std::vector<double> distances = mask_template(options.max_span);
  const ForeignTensor mask =
      ForeignTensor::dense({options.max_span}, StoredFloat::f64, std::as_bytes(std::span(distances)));
  std::vector<TensorSource> sources;
  for (const AdaptiveSpanTensor& tensor : layout) {
    originals.emplace(tensor.stored.name, &tensor);
    const AdaptiveSpanTensor& source = tensor.parameter.empty() ? *originals.at(tensor.stored.copy_of) : tensor;
    const auto& [shape, bytes] = values.at(source.parameter);
    sources.push_back(stored_source(tensor.stored, source.view, dtype, shape, bytes));
    if (const std::string buffer = adaptive_span_buffer(tensor.stored.name); !buffer.empty())
      sources.push_back(parameter_source(buffer, dtype, mask.shape, mask, 0));
  }
  make_folder("export", from.out.parent_path());
  const std::size_t count = sources.size();
  write_safetensors(from.out, watched(std::move(sources), from.watch), {{"format", "pt"}});
  return count;
}

}  // namespace engram
