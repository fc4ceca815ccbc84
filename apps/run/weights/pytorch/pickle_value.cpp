#include "apps/run/weights/pytorch/pickle_value.hpp"

namespace engram {

const PickleNode* PickleNode::find(std::string_view key) const {
  const PickleNode& mapping = kind == PickleKind::record && state != nullptr ? *state : *this;
  if (mapping.kind != PickleKind::mapping) return nullptr;
  for (std::size_t at = mapping.items.size(); at >= 2; at -= 2)
    if (const PickleNode& found = *mapping.items[at - 2]; found.kind == PickleKind::text && found.text == key)
      return mapping.items[at - 1];
  return nullptr;
}

std::optional<std::int64_t> PickleNode::as_integer() const {
  return kind == PickleKind::integer ? std::optional(integer) : std::nullopt;
}

std::optional<std::string_view> PickleNode::as_text() const {
  return kind == PickleKind::text ? std::optional(text) : std::nullopt;
}

}  // namespace engram
