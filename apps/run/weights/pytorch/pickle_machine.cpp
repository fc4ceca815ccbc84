#include "apps/run/weights/pytorch/pickle_machine.hpp"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/run/weights/pytorch/pickle_callables.hpp"
#include "apps/run/weights/pytorch/pickle_calls.hpp"

namespace engram {
namespace {

constexpr std::size_t kLongestPickleName = 1000;
constexpr std::size_t kMostOperations = std::size_t{1} << 24;

class PickleMachine {
 public:
  PickleMachine(ByteReader& reader, PickleHeap& heap, PickleStorages& storages)
      : reader_(reader), heap_(heap), calls_(reader, storages) {}

  const PickleNode& run();

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    refuse_pytorch(reader_.where(), parts...);
  }
  PickleNode& push(PickleKind kind) {
    if (heap_.size() >= PickleHeap::kMostValues)
      refuse("a pickle must have at most ", PickleHeap::kMostValues, " values, got more");
    PickleNode& node = heap_.make(kind);
    stack_.push_back(&node);
    return node;
  }
  PickleNode* pop() {
    // What is below the last mark belongs to what began there.
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
      refuse("an operation must find what it takes, got none before byte ", reader_.at());
    PickleNode* const node = stack_.back();
    stack_.pop_back();
    return node;
  }
  PickleNode& top() {
    PickleNode* const node = pop();
    stack_.push_back(node);
    return *node;
  }
  /// All above the last mark, which goes too.
  std::vector<const PickleNode*> pop_marked() {
    if (marks_.empty()) refuse("an operation must find where its values begin, got no mark before byte ", reader_.at());
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const PickleNode*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void push_integer(std::int64_t value) { push(PickleKind::integer).integer = value; }
  void push_text(PickleKind kind, std::uint64_t bytes) {
    const std::string_view text = reader_.text(bytes);
    push(kind).text = text;
  }
  void push_long(std::uint64_t bytes);
  void push_tuple(std::size_t count);
  void append(std::vector<const PickleNode*> items);
  void set(std::vector<const PickleNode*> pairs);
  void name_callable(std::string_view module, std::string_view name);
  void call(bool with_keywords);
  void build();
  void remember(std::uint64_t key) { memo_[key] = &top(); }
  void recall(std::uint64_t key);

  bool number(unsigned char code);
  bool text_or_bytes(unsigned char code);
  bool container(unsigned char code);
  bool memory(unsigned char code);
  bool naming(unsigned char code);

  ByteReader& reader_;
  PickleHeap& heap_;
  PickleCalls calls_;
  std::vector<PickleNode*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleNode*> memo_;
};

void PickleMachine::push_long(std::uint64_t bytes) {
  const std::string_view text = reader_.text(bytes);
  if (text.size() > sizeof(std::int64_t)) {
    push(PickleKind::big_integer).text = text;
    return;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < text.size(); ++i) value |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  const auto unused = static_cast<unsigned>(8 * (sizeof value - text.size()));
  if (!text.empty()) value = std::bit_cast<std::uint64_t>(std::bit_cast<std::int64_t>(value << unused) >> unused);
  push_integer(std::bit_cast<std::int64_t>(value));
}

void PickleMachine::push_tuple(std::size_t count) {
  std::vector<const PickleNode*> items(count);
  for (std::size_t i = count; i-- > 0;) items[i] = pop();
  push(PickleKind::tuple).items = std::move(items);
}

void PickleMachine::append(std::vector<const PickleNode*> items) {
  PickleNode& list = top();
  if (list.kind != PickleKind::list)
    refuse("only a list may get elements, got something else before byte ", reader_.at());
  list.items.insert(list.items.end(), items.begin(), items.end());
}

void PickleMachine::set(std::vector<const PickleNode*> pairs) {
  PickleNode& mapping = top();
  if (mapping.kind != PickleKind::mapping || pairs.size() % 2 != 0)
    refuse("only a dictionary may get keys with values, got something else before byte ", reader_.at());
  mapping.items.insert(mapping.items.end(), pairs.begin(), pairs.end());
}

void PickleMachine::name_callable(std::string_view module, std::string_view name) {
  const std::ptrdiff_t row = find_pickle_callable(module, name);
  if (row < 0)
    refuse("must name nothing but what this program knows, got '", module.substr(0, kLongestPickleName), ".",
           name.substr(0, kLongestPickleName), "'\n  save the state dict alone: torch.save(model.state_dict(), FILE)");
  PickleNode& callable = push(PickleKind::callable);
  callable.integer = row;
  callable.text = known_pickle_callables()[static_cast<std::size_t>(row)].name;
}

void PickleMachine::call(bool with_keywords) {
  if (with_keywords) {
    const PickleNode* const keywords = pop();
    if (keywords->kind != PickleKind::mapping || !keywords->items.empty())
      refuse("a call must have no named arguments, got some before byte ", reader_.at());
  }
  const PickleNode* const arguments = pop();
  const PickleNode* const callable = pop();
  calls_.call(*callable, *arguments, push(PickleKind::none));
}

void PickleMachine::build() {
  const PickleNode* const state = pop();
  PickleNode& object = top();
  if (object.kind == PickleKind::record)
    object.state = state;
  else if (object.kind != PickleKind::mapping)  // of a mapping attributes, as a state dict has, tell nothing
    refuse("only an object may get attributes, got something else before byte ", reader_.at());
}

void PickleMachine::recall(std::uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) refuse("must recall what was remembered, got number ", key, " before byte ", reader_.at());
  stack_.push_back(found->second);
}

bool PickleMachine::number(unsigned char code) {
  switch (code) {
    case 'N':
      push(PickleKind::none);
      return true;
    case 0x88:
      push(PickleKind::boolean).integer = 1;
      return true;
    case 0x89:
      push(PickleKind::boolean).integer = 0;
      return true;
    case 'J':
      push_integer(reader_.number<std::int32_t>());
      return true;
    case 'K':
      push_integer(reader_.number<std::uint8_t>());
      return true;
    case 'M':
      push_integer(reader_.number<std::uint16_t>());
      return true;
    case 0x8a:
      push_long(reader_.number<std::uint8_t>());
      return true;
    case 0x8b:
      push_long(reader_.number<std::uint32_t>());
      return true;
    case 'G': {  // highest byte first
      const auto bits = reader_.number<std::uint64_t>();
      push(PickleKind::real).real = std::bit_cast<double>(__builtin_bswap64(bits));
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::text_or_bytes(unsigned char code) {
  switch (code) {
    case 'X':
      push_text(PickleKind::text, reader_.number<std::uint32_t>());
      return true;
    case 0x8c:
      push_text(PickleKind::text, reader_.number<std::uint8_t>());
      return true;
    case 0x8d:
      push_text(PickleKind::text, reader_.number<std::uint64_t>());
      return true;
    // What is text in Python 2.
    case 'T':
      push_text(PickleKind::text, reader_.number<std::uint32_t>());
      return true;
    case 'U':
      push_text(PickleKind::text, reader_.number<std::uint8_t>());
      return true;
    case 'B':
      push_text(PickleKind::bytes, reader_.number<std::uint32_t>());
      return true;
    case 'C':
      push_text(PickleKind::bytes, reader_.number<std::uint8_t>());
      return true;
    case 0x8e:
    case 0x96:
      push_text(PickleKind::bytes, reader_.number<std::uint64_t>());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::container(unsigned char code) {
  switch (code) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case ')':
      push_tuple(0);
      return true;
    case 0x85:
      push_tuple(1);
      return true;
    case 0x86:
      push_tuple(2);
      return true;
    case 0x87:
      push_tuple(3);
      return true;
    case 't': {
      std::vector<const PickleNode*> items = pop_marked();
      push(PickleKind::tuple).items = std::move(items);
      return true;
    }
    case ']':
    case 0x8f:
      push(PickleKind::list);
      return true;
    case 0x91: {
      std::vector<const PickleNode*> items = pop_marked();
      push(PickleKind::list).items = std::move(items);
      return true;
    }
    case '}':
      push(PickleKind::mapping);
      return true;
    case 'a': {
      const PickleNode* const item = pop();
      append({item});
      return true;
    }
    case 'e':
    case 0x90:
      append(pop_marked());
      return true;
    case 's': {
      const PickleNode* const value = pop();
      const PickleNode* const key = pop();
      set({key, value});
      return true;
    }
    case 'u':
      set(pop_marked());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::memory(unsigned char code) {
  switch (code) {
    case 'q':
      remember(reader_.number<std::uint8_t>());
      return true;
    case 'r':
      remember(reader_.number<std::uint32_t>());
      return true;
    case 0x94:
      remember(memo_.size());
      return true;
    case 'h':
      recall(reader_.number<std::uint8_t>());
      return true;
    case 'j':
      recall(reader_.number<std::uint32_t>());
      return true;
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      return true;
    case '1':
      pop_marked();
      return true;
    case '2':
      stack_.push_back(&top());
      return true;
    case 0x95:
      reader_.number<std::uint64_t>();
      return true;  // how long the frame is, which operations tell too
    default:
      return false;
  }
}

bool PickleMachine::naming(unsigned char code) {
  switch (code) {
    case 'c': {
      const std::string_view module = reader_.line(kLongestPickleName);
      name_callable(module, reader_.line(kLongestPickleName));
      return true;
    }
    case 0x93: {
      const PickleNode* const name = pop();
      const PickleNode* const module = pop();
      if (name->kind != PickleKind::text || module->kind != PickleKind::text)
        refuse("the name of a callable must be text, got something else before byte ", reader_.at());
      name_callable(module->text, name->text);
      return true;
    }
    case 'R':
    case 0x81:
      call(false);
      return true;
    case 0x92:
      call(true);
      return true;
    case 'b':
      build();
      return true;
    case 'Q': {
      const PickleNode* const id = pop();
      calls_.persistent(*id, push(PickleKind::none));
      return true;
    }
    default:
      return false;
  }
}

const PickleNode& PickleMachine::run() {
  if (reader_.number<std::uint8_t>() != 0x80)
    refuse("a pickle must be of protocol 2 to 5, got an older one, or none\n  pickle.dump(.., protocol=2) makes one");
  if (const auto protocol = reader_.number<std::uint8_t>(); protocol < 2 || protocol > 5)
    refuse("a pickle must be of protocol 2 to 5, got ", std::uint64_t{protocol});
  for (std::size_t done = 0;; ++done) {
    if (done == kMostOperations) refuse("a pickle must have at most ", kMostOperations, " operations, got more");
    const auto code = reader_.number<std::uint8_t>();
    if (code == '.') break;
    if (!number(code) && !text_or_bytes(code) && !container(code) && !memory(code) && !naming(code))
      refuse("must have operations of pickles of protocol 2 to 5, got ", fmt::format("0x{:02x}", code), " at byte ",
             reader_.at() - 1);
  }
  const PickleNode* const value = pop();
  if (!stack_.empty() || !marks_.empty()) refuse("a pickle must be one value, got more than one");
  return *value;
}

}  // namespace

const PickleNode& read_pickle(ByteReader& reader, PickleHeap& heap, PickleStorages& storages) {
  return PickleMachine(reader, heap, storages).run();
}

}  // namespace engram
