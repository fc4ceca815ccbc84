#pragma once
/// The test framework under one name: Catch2 version 2 (Debian 12) or 3 (Debian 13), with the names of version 3.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>

namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& part) { return Contains(part); }
}  // namespace Catch::Matchers
#endif

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
