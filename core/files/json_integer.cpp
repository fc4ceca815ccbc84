#include "core/files/json_integer.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "core/files/json.hpp"

namespace engram {

template <class Integer>
Integer integer_of(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  }
#if NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR >= 11
  const std::string got = value.is_number() ? value.dump() : value.type_name();
  throw nlohmann::json::type_error::create(302, "type must be an integer of 64 bits, but is " + got, &value);
#else
  // What is no such reference is said in the library's words.
  if (value.is_string()) value.get_ref<const bool&>();
  value.get_ref<const std::string&>();
  return {};
#endif
}

template std::int64_t integer_of(const nlohmann::json& value);
template std::uint64_t integer_of(const nlohmann::json& value);

}  // namespace engram
