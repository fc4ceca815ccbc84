#include "apps/run/weights/transfo_xl_module.hpp"

#include <cstddef>
#include <string_view>

#include "core/files/json.hpp"

namespace engram {
namespace {

/// The module of that name inside of another one; null: there is none.
const PickleNode* inner_module(const PickleNode* module, std::string_view name) {
  const PickleNode* const modules = module != nullptr ? module->find("_modules") : nullptr;
  return modules != nullptr ? modules->find(name) : nullptr;
}

void copy_attribute(nlohmann::json& config, const char* key, const PickleNode* module, std::string_view attribute) {
  const PickleNode* const value = module != nullptr ? module->find(attribute) : nullptr;
  if (value == nullptr) return;
  if (value->kind == PickleKind::integer)
    config[key] = value->integer;
  else if (value->kind == PickleKind::boolean)
    config[key] = value->integer != 0;
  else if (value->kind == PickleKind::real)
    config[key] = value->real;
}

}  // namespace

nlohmann::json transfo_xl_config_of(const PickleNode& module) {
  nlohmann::json config = nlohmann::json::object();
  for (const char* key : {"attn_type", "clamp_len", "d_embed", "d_head", "d_model", "mem_len", "n_head", "n_layer",
                          "same_length", "sample_softmax", "tgt_len"})
    copy_attribute(config, key, &module, key);
  copy_attribute(config, "vocab_size", &module, "n_token");
  copy_attribute(config, "dropout", inner_module(&module, "drop"), "p");
  const PickleNode* const attention = inner_module(inner_module(inner_module(&module, "layers"), "0"), "dec_attn");
  copy_attribute(config, "pre_lnorm", attention, "pre_lnorm");
  copy_attribute(config, "dropatt", inner_module(attention, "dropatt"), "p");
  const PickleNode* const words = inner_module(&module, "word_emb");
  copy_attribute(config, "div_val", words, "div_val");
  // The module's own list ends with the vocabulary's size.
  if (const PickleNode* ends = words != nullptr ? words->find("cutoffs") : nullptr;
      ends != nullptr && ends->kind == PickleKind::list && !ends->items.empty()) {
    nlohmann::json& cutoffs = config["cutoffs"] = nlohmann::json::array();
    for (std::size_t i = 0; i + 1 < ends->items.size(); ++i) cutoffs.push_back(ends->items[i]->integer);
  }
  return config;
}

}  // namespace engram
