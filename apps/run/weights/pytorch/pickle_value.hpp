#pragma once
/// What a pickle holds, as plain values: nothing of it is code.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace engram {

enum class PickleKind : std::uint8_t {
  none,
  boolean,      ///< integer: 0 or 1
  integer,      ///< integer
  big_integer,  ///< text: its bytes, lowest first, two's complement
  real,         ///< real
  text,         ///< text, as it stands in the file: not checked to be UTF-8
  bytes,        ///< text
  tuple,        ///< items
  list,         ///< items, also of sets
  mapping,      ///< items: key, value, key, value, ..
  callable,     ///< integer: its row in the table of what is known; text: its name
  storage,      ///< numbers beside the pickle: text: their key; integer: how many; items: {their type}
  tensor,       ///< items: {storage, sizes, strides or none}; integer: the first one's place in the storage
  record        ///< an object of a known class: text: the class's name; items: arguments; state
};

struct PickleNode {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text = {};
  std::vector<const PickleNode*> items = {};
  const PickleNode* state = nullptr;  ///< of a record, what its attributes are; null: none

  /// The last value of a key of a mapping, or of a record's state; null: there is none.
  const PickleNode* find(std::string_view key) const;
  /// Nothing for another kind; a boolean is no integer.
  std::optional<std::int64_t> as_integer() const;
  std::optional<std::string_view> as_text() const;
};

/// Owns nodes, which may refer to each other in circles.
class PickleHeap {
 public:
  /// The most values of a pickle. Each takes about a hundred bytes of memory, and at least one of the file.
  static constexpr std::size_t kMostValues = std::size_t{1} << 23;

  PickleNode& make(PickleKind kind) {
    nodes_.emplace_back();
    nodes_.back().kind = kind;
    return nodes_.back();
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::deque<PickleNode> nodes_;
};

}  // namespace engram
