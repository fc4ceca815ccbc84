#include "apps/run/weights/pytorch/module_state.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/run/weights/pytorch/refusal.hpp"

namespace engram {
namespace {

constexpr std::string_view kCardsPrefix = "module.";
constexpr auto kStateKeys = std::to_array<std::string_view>({"model", "state_dict", "model_state_dict"});

bool is_module(const PickleNode& node) {
  return node.kind == PickleKind::record && node.find("_parameters") != nullptr && node.find("_modules") != nullptr;
}

/// Whether all that it holds are tensors with names.
bool is_state(const PickleNode& node) {
  if (node.kind != PickleKind::mapping || node.items.empty()) return false;
  for (std::size_t i = 0; i < node.items.size(); i += 2)
    if (node.items[i]->kind != PickleKind::text || node.items[i + 1]->kind != PickleKind::tensor) return false;
  return true;
}

class ModuleWalk {
 public:
  ModuleWalk(const PytorchFile& file, ModuleState& state) : file_(file), state_(state) {}

  // Modules that hold themselves, or hold each other in many ways, would have names without end.
  void walk(const PickleNode& root) {
    std::vector<std::pair<const PickleNode*, std::string>> open{{&root, ""}};
    for (std::size_t seen = 0; !open.empty(); ++seen) {
      // No structured binding: Clang 14 does not capture one.
      const PickleNode* const module = open.back().first;
      const std::string prefix = std::move(open.back().second);
      open.pop_back();
      if (!is_module(*module))
        refuse_pytorch(file_.where(), "'", prefix, "' must be a module of PyTorch, got something else");
      if (seen + open.size() > kMostModules || prefix.size() > kLongestPrefix) refuse_circles();
      take(*module, "_parameters", prefix);
      take(*module, "_buffers", prefix);
      each(*module->find("_modules"), [&](const std::string_view name, const PickleNode& value) {
        if (value.kind != PickleKind::none) open.emplace_back(&value, prefix + std::string(name) + ".");
      });
    }
  }

 private:
  static constexpr std::size_t kLongestPrefix = 1000, kMostModules = 100'000;

  [[noreturn]] void refuse_circles() const {
    refuse_pytorch(file_.where(), "modules must hold each other like boxes, up to ", kMostModules,
                   " of them, got some that hold themselves, or more");
  }
  template <class Visit>
  void each(const PickleNode& mapping, const Visit& visit) const {
    if (mapping.kind != PickleKind::mapping) return;
    for (std::size_t i = 0; i < mapping.items.size(); i += 2)
      if (const auto name = mapping.items[i]->as_text()) visit(*name, *mapping.items[i + 1]);
  }
  void take(const PickleNode& module, std::string_view which, const std::string& prefix) {
    const PickleNode* const members = module.find(which);
    if (members == nullptr) return;
    each(*members, [&](const std::string_view name, const PickleNode& value) {
      if (++taken_ > file_.values()) refuse_circles();
      std::string full = prefix + std::string(name);
      if (value.kind == PickleKind::tensor) {
        ForeignTensor tensor = file_.tensor(value, full);
        state_.tensors.insert_or_assign(std::move(full), tensor);
      }
    });
  }

  const PytorchFile& file_;
  ModuleState& state_;
  std::size_t taken_ = 0;
};

void leave_out_prefix(std::map<std::string, ForeignTensor, std::less<>>& tensors) {
  if (!std::ranges::all_of(tensors, [](const auto& entry) { return entry.first.starts_with(kCardsPrefix); })) return;
  std::map<std::string, ForeignTensor, std::less<>> renamed;
  for (auto& [name, tensor] : tensors) renamed.emplace(name.substr(kCardsPrefix.size()), tensor);
  tensors = std::move(renamed);
}

}  // namespace

ModuleState read_module_state(const PytorchFile& file) {
  ModuleState state;
  const PickleNode* root = &file.root();
  if (root->kind == PickleKind::mapping && !is_state(*root))
    for (const std::string_view key : kStateKeys)
      if (const PickleNode* inner = root->find(key); inner != nullptr) {
        root = inner;
        break;
      }
  if (is_module(*root)) {
    const PickleNode* const inner = root->find("_modules")->find("module");
    state.module = inner != nullptr && is_module(*inner) ? inner : root;  // of a model on several cards
    ModuleWalk(file, state).walk(*state.module);
  } else if (is_state(*root)) {
    for (std::size_t i = 0; i < root->items.size(); i += 2)
      state.tensors.insert_or_assign(std::string(root->items[i]->text),
                                     file.tensor(*root->items[i + 1], root->items[i]->text));
  } else {
    refuse_pytorch(file.where(),
                   "must be a model, its state dict, or a dictionary with one of these as 'model', 'state_dict' or "
                   "'model_state_dict', got something else");
  }
  leave_out_prefix(state.tensors);
  return state;
}

}  // namespace engram
