#pragma once
/// Python's pickles, protocols 2 to 5, as plain values. Nothing is executed: of callables the names are known or
/// refused (pickle_callables.hpp), and a call makes a value. No recursion: nesting of any depth, and values that hold
/// themselves, take no stack.

#include <cstdint>
#include <map>
#include <string_view>

#include "apps/run/weights/pytorch/byte_reader.hpp"
#include "apps/run/weights/pytorch/pickle_value.hpp"

namespace engram {

/// The storages that a pickle names beside itself, by key.
using PickleStorages = std::map<std::string_view, const PickleNode*>;

/// The value of the pickle that begins where the reader stands, which then stands behind it. Texts refer to the
/// reader's bytes, nodes to the heap. Storages are added to `storages`. Throws FileError for an opcode of another
/// protocol, a callable, argument or persistent id that is not known, more than PickleHeap::kMostValues values, and
/// what is damaged or cut short.
const PickleNode& read_pickle(ByteReader& reader, PickleHeap& heap, PickleStorages& storages);

}  // namespace engram
