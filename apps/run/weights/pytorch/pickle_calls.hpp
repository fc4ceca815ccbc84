#pragma once
/// What the calls and the persistent ids of a pickle stand for, as values.

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "apps/run/weights/pytorch/byte_reader.hpp"
#include "apps/run/weights/pytorch/pickle_value.hpp"

namespace engram {

class PickleCalls {
 public:
  /// `reader`: where the pickle is read. Both must outlive this.
  PickleCalls(const ByteReader& reader, std::map<std::string_view, const PickleNode*>& storages)
      : reader_(reader), storages_(storages) {}

  /// `made` becomes what the callable gives for its arguments. Throws FileError for what is no callable, and for
  /// arguments of another number or kind. All calls together copy at most as many values as bytes have been read: a
  /// pickle that calls with the same long list again and again takes no more memory than others of its length.
  void call(const PickleNode& callable, const PickleNode& arguments, PickleNode& made);
  /// `made` becomes the storage that the id names, or the class of a module. Throws FileError for another id, and for a
  /// storage that was named before with another type or length.
  void persistent(const PickleNode& id, PickleNode& made) const;

 private:
  [[noreturn]] void refuse_arguments(const PickleNode& callable) const;
  void make_mapping(const PickleNode& callable, const PickleNode& arguments, PickleNode& made);
  void make_sequence(const PickleNode& callable, const PickleNode& arguments, PickleNode& made);
  void make_tensor(const PickleNode& callable, const PickleNode& arguments, PickleNode& made) const;

  void copy(PickleNode& to, const std::vector<const PickleNode*>& items);

  const ByteReader& reader_;
  std::map<std::string_view, const PickleNode*>& storages_;
  std::size_t copied_ = 0;
};

}  // namespace engram
