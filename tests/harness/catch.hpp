#pragma once
/// The test framework under one name: Catch2 version 2 (Debian 12) or 3.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
