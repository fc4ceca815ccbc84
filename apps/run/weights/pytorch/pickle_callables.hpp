#pragma once
/// What a pickle may name, and what becomes of it when the pickle calls it. Nothing is looked up or run: a row says
/// which plain value a call gives. What is in no row is refused by its name.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace engram {

enum class PickleCall : std::uint8_t {
  mapping,       ///< an OrderedDict or a Counter: the mapping or the list of pairs that it is given
  sequence,      ///< a set or a torch.Size: the elements of what it is given
  tensor,        ///< torch._utils._rebuild_tensor (3 arguments) and _rebuild_tensor_v2 (6 or 7)
  parameter,     ///< torch._utils._rebuild_parameter: the tensor that it is given
  storage_type,  ///< torch.FloatStorage and the like, which are only named
  nothing,       ///< None
  record         ///< a class whose objects are kept as their arguments and attributes
};

struct PickleCallable {
  std::string_view name;  ///< module.name
  PickleCall call;
};

/// All of them.
std::span<const PickleCallable> known_pickle_callables();
/// The row of "<module>.<name>"; -1: none.
std::ptrdiff_t find_pickle_callable(std::string_view module, std::string_view name);

}  // namespace engram
