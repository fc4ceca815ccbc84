#include "apps/run/weights/pytorch/token_list.hpp"

#include "apps/run/weights/pytorch/refusal.hpp"

namespace engram {
namespace {

std::vector<std::string_view> listed_tokens(const PytorchFile& file, const PickleNode& list) {
  std::vector<std::string_view> tokens;
  for (const PickleNode* item : list.items) {
    const auto token = item->as_text();
    if (!token) refuse_pytorch(file.where(), "idx2sym must have texts, got something else as number ", tokens.size());
    tokens.push_back(*token);
  }
  return tokens;
}

std::vector<std::string_view> numbered_tokens(const PytorchFile& file, const PickleNode& mapping) {
  const std::size_t count = mapping.items.size() / 2;
  std::vector<std::string_view> tokens(count);
  std::vector<bool> known(count);
  for (std::size_t i = 0; i < mapping.items.size(); i += 2) {
    const auto token = mapping.items[i]->as_text();
    const std::int64_t id = mapping.items[i + 1]->as_integer().value_or(-1);
    if (!token || id < 0 || id >= static_cast<std::int64_t>(count) || known[static_cast<std::size_t>(id)])
      refuse_pytorch(file.where(), "_dictionary must give ", count, " tokens the ids from 0 on, got the id ", id,
                     token ? " twice or for '" : "", token ? *token : "", token ? "'" : " for what is no text");
    known[static_cast<std::size_t>(id)] = true;
    tokens[static_cast<std::size_t>(id)] = *token;
  }
  return tokens;
}

}  // namespace

std::vector<std::string_view> read_token_list(const PytorchFile& file) {
  const PickleNode* root = &file.root();
  if (const PickleNode* vocabulary = root->find("vocab")) root = vocabulary;
  if (const PickleNode* list = root->find("idx2sym"); list != nullptr && list->kind == PickleKind::list)
    return listed_tokens(file, *list);
  if (const PickleNode* mapping = root->find("_dictionary"); mapping != nullptr && mapping->kind == PickleKind::mapping)
    return numbered_tokens(file, *mapping);
  refuse_pytorch(file.where(),
                 "must be a vocabulary with idx2sym, a corpus with one, or a corpus with a _dictionary, got none");
}

}  // namespace engram
