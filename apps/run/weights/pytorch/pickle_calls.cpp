#include "apps/run/weights/pytorch/pickle_calls.hpp"

#include <algorithm>
#include <vector>

#include "apps/run/weights/pytorch/pickle_callables.hpp"

namespace engram {
namespace {

bool is_sequence(const PickleNode& node) { return node.kind == PickleKind::tuple || node.kind == PickleKind::list; }

PickleCall call_of(const PickleNode& callable) {
  return known_pickle_callables()[static_cast<std::size_t>(callable.integer)].call;
}

}  // namespace

void PickleCalls::refuse_arguments(const PickleNode& callable) const {
  refuse_pytorch(reader_.where(), "a call of ", callable.text,
                 " must have the arguments that PyTorch gives it, got others");
}

void PickleCalls::copy(PickleNode& to, const std::vector<const PickleNode*>& items) {
  copied_ += items.size();
  if (copied_ > reader_.at())
    refuse_pytorch(reader_.where(), "calls must have arguments of their own, got more copies than bytes before byte ",
                   reader_.at());
  to.items.insert(to.items.end(), items.begin(), items.end());
}

void PickleCalls::make_mapping(const PickleNode& callable, const PickleNode& arguments, PickleNode& made) {
  made.kind = PickleKind::mapping;
  if (arguments.items.empty()) return;
  const PickleNode& from = *arguments.items[0];
  if (arguments.items.size() != 1) refuse_arguments(callable);
  if (from.kind == PickleKind::mapping) {
    copy(made, from.items);
  } else if (is_sequence(from)) {
    for (const PickleNode* pair : from.items) {
      if (!is_sequence(*pair) || pair->items.size() != 2) refuse_arguments(callable);
      copy(made, pair->items);
    }
  } else {
    refuse_arguments(callable);
  }
}

void PickleCalls::make_sequence(const PickleNode& callable, const PickleNode& arguments, PickleNode& made) {
  made.kind = callable.text == "torch.Size" ? PickleKind::tuple : PickleKind::list;
  if (arguments.items.empty()) return;
  if (arguments.items.size() != 1 || !is_sequence(*arguments.items[0])) refuse_arguments(callable);
  copy(made, arguments.items[0]->items);
}

void PickleCalls::make_tensor(const PickleNode& callable, const PickleNode& arguments, PickleNode& made) const {
  const std::vector<const PickleNode*>& given = arguments.items;
  const bool simple = callable.text == "torch._utils._rebuild_tensor";
  const auto integers = [](const PickleNode& node) {
    return is_sequence(node) &&
           std::ranges::all_of(node.items, [](const PickleNode* item) { return item->kind == PickleKind::integer; });
  };
  if (given.size() < 4 || (simple ? given.size() > 4 : given.size() < 6 || given.size() > 7) ||
      given[0]->kind != PickleKind::storage || given[1]->kind != PickleKind::integer || !integers(*given[2]) ||
      !integers(*given[3]))
    refuse_arguments(callable);
  made.kind = PickleKind::tensor;
  made.integer = given[1]->integer;
  made.items = {given[0], given[2], given[3]};
}

void PickleCalls::call(const PickleNode& callable, const PickleNode& arguments, PickleNode& made) {
  if (callable.kind != PickleKind::callable)
    refuse_pytorch(reader_.where(), "a call must be one of a known class or function, got one of a value");
  if (arguments.kind != PickleKind::tuple) refuse_arguments(callable);
  switch (call_of(callable)) {
    case PickleCall::mapping:
      return make_mapping(callable, arguments, made);
    case PickleCall::sequence:
      return make_sequence(callable, arguments, made);
    case PickleCall::tensor:
      return make_tensor(callable, arguments, made);
    case PickleCall::parameter:
      if (arguments.items.empty() || arguments.items[0]->kind != PickleKind::tensor) refuse_arguments(callable);
      made = *arguments.items[0];
      return;
    case PickleCall::nothing:
      return;
    case PickleCall::storage_type:
      refuse_arguments(callable);
    case PickleCall::record:
      made.kind = PickleKind::record;
      made.text = callable.text;
      copy(made, arguments.items);
      return;
  }
}

void PickleCalls::persistent(const PickleNode& id, PickleNode& made) const {
  const std::vector<const PickleNode*>& parts = id.items;
  const std::string_view kind =
      id.kind == PickleKind::tuple && !parts.empty() ? parts[0]->as_text().value_or("") : std::string_view();
  // Older files have the source of a module's class here. It stays where it is.
  if (kind == "module" && parts.size() == 4 && parts[1]->kind == PickleKind::callable) {
    made = *parts[1];
    return;
  }
  const auto refuse = [this](const auto&... what) {
    refuse_pytorch(reader_.where(),
                   "a persistent id must be that of a storage, with its type, key, place and length, got ", what...);
  };
  if (kind != "storage" || parts.size() < 5 || parts.size() > 6) refuse("another one");
  const PickleNode& type = *parts[1];
  const std::int64_t numbers = parts[4]->as_integer().value_or(-1);
  if (type.kind != PickleKind::callable || call_of(type) != PickleCall::storage_type || !parts[2]->as_text())
    refuse("one of another type");
  if (numbers < 0) refuse("no length");
  if (parts.size() == 6 && parts[5]->kind != PickleKind::none) refuse("a part of a storage");
  made.kind = PickleKind::storage;
  made.text = parts[2]->text;
  made.integer = numbers;
  made.items = {&type};
  const auto [known, is_new] = storages_.emplace(made.text, &made);
  if (const PickleNode& before = *known->second;
      !is_new && (before.integer != numbers || before.items[0]->integer != type.integer))
    refuse("storage '", made.text, "' a second time, as another one");
}

}  // namespace engram
