#pragma once
/// Integers in a JSON that somebody else wrote.

#include <nlohmann/json_fwd.hpp>

namespace engram {

/// An integer, std::int64_t or std::uint64_t. Throws nlohmann::json::type_error for what is none: a number with a point
/// or an exponent, or one that the type cannot have. The library's get<>() casts whatever number there is, and a cast
/// of 1e47 to an integer is undefined.
template <class Integer>
Integer integer_of(const nlohmann::json& value);

}  // namespace engram
