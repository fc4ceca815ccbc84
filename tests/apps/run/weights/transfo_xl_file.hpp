#pragma once
/// Files in the layout of Hugging Face's TransfoXLLMHeadModel, written name by name, and models read from checkpoints.

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/run/model/trained_model.hpp"
#include "apps/run/weights/transfo_xl_import.hpp"
#include "core/files/safetensors.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/gold_xl.hpp"

namespace engram::harness {

inline std::filesystem::path fixture_path(const std::string& name) {
  return std::filesystem::path(ENGRAM_SOURCE_DIR) / "tests/golden/transfo-xl" / name;
}

struct LayoutTensor {
  std::string name;
  Shape shape;
  std::vector<double> values;
};

/// Tensors that can be changed before they are written.
struct LayoutFile {
  std::vector<LayoutTensor> tensors;

  LayoutTensor& at(const std::string& name) {
    for (LayoutTensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    throw Error("test: no tensor " + name);
  }
  void drop(const std::string& name) {
    const LayoutTensor* const gone = &at(name);
    tensors.erase(tensors.begin() + (gone - tensors.data()));
  }
  void copy(const std::string& name, const std::string& from) {
    const LayoutTensor source = at(from);
    tensors.push_back({name, source.shape, source.values});
  }
  /// As F64.
  std::filesystem::path write(const std::filesystem::path& path) const {
    std::vector<TensorSource> sources;
    for (const auto& [name, shape, values] : tensors)
      sources.push_back(host_tensor(name, DType::f64, shape, values.data()));
    write_safetensors(path, sources, {{"format", "pt"}});
    return path;
  }
};

/// The gold model of [transformer-xl 12] under the names of section 10, by the numbers k of section 12 and with its
/// tied copies: nothing of the program's own mapping is used.
inline LayoutFile gold_file() {
  LayoutFile file;
  const auto add = [&file](int k, std::string name, Shape shape, double offset = 0) {
    file.tensors.push_back({std::move(name), shape, fill_g(k, shape.count(), offset)});
  };
  const std::int64_t words[] = {5, 3, 3}, widths[] = {8, 4, 2};
  for (int b = 0; b < 3; ++b) {
    add(b, text("transformer.word_emb.emb_layers.", b, ".weight"), {words[b], widths[b]});
    add(3 + b, text("transformer.word_emb.emb_projs.", b), {8, widths[b]});
    add(34 + b, text("crit.out_layers.", b, ".bias"), {words[b]});
  }
  for (int n = 0; n < 2; ++n) {
    const std::string layer = text("transformer.layers.", n, ".");
    const int first = 6 + 13 * n;
    add(first, layer + "dec_attn.qkv_net.weight", {18, 8});
    add(first + 1, layer + "dec_attn.r_net.weight", {6, 8});
    add(first + 2, layer + "dec_attn.o_net.weight", {8, 6});
    add(first + 3, layer + "dec_attn.r_w_bias", {2, 3});
    add(first + 4, layer + "dec_attn.r_r_bias", {2, 3});
    add(first + 5, layer + "dec_attn.layer_norm.weight", {8}, 1);
    add(first + 6, layer + "dec_attn.layer_norm.bias", {8});
    add(first + 7, layer + "pos_ff.CoreNet.0.weight", {10, 8});
    add(first + 8, layer + "pos_ff.CoreNet.0.bias", {10});
    add(first + 9, layer + "pos_ff.CoreNet.3.weight", {8, 10});
    add(first + 10, layer + "pos_ff.CoreNet.3.bias", {8});
    add(first + 11, layer + "pos_ff.layer_norm.weight", {8}, 1);
    add(first + 12, layer + "pos_ff.layer_norm.bias", {8});
  }
  add(32, "crit.cluster_weight", {2, 8});
  add(33, "crit.cluster_bias", {2});
  add(37, "crit.out_projs.0", {8, 8});
  for (int b = 0; b < 3; ++b) {
    file.copy(text("crit.out_layers.", b, ".weight"), text("transformer.word_emb.emb_layers.", b, ".weight"));
    if (b > 0) file.copy(text("crit.out_projs.", b), text("transformer.word_emb.emb_projs.", b));
  }
  return file;
}

/// What the tensors do not tell of the gold model in case E.
inline std::vector<std::string> gold_settings() {
  return {"mem_len=5", "clamp_len=4", "same_length=true", "pre_lnorm=false"};
}

/// The Transformer-XL of a checkpoint, in another dtype if need be, or with options that change no parameter.
inline std::unique_ptr<PlacedXl> placed_from(const std::filesystem::path& checkpoint, DType dtype,
                                             const std::function<void(TransformerXlOptions&)>& change = {}) {
  const CheckpointFile file(checkpoint);
  TransformerXlOptions options = read_facts(file).config.model.transformer_xl;
  if (change) change(options);
  auto placed = std::make_unique<PlacedXl>(options, dtype);
  file.load(placed->backend, named_tensors(placed->store),
            {.may_be_absent = {}, .may_be_ignored = {}, .convert_floats = true});
  placed->model.refresh(placed->backend);
  return placed;
}

}  // namespace engram::harness
