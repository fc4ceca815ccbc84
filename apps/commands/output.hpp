#pragma once
/// What every command does with its results: with --json one object on stdout and nothing else there, otherwise text
/// for people.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace engram {

/// Writes the object as one line to stdout. Bytes that are no UTF-8 become U+FFFD.
void print_json(const nlohmann::json& object);
/// Writes to stdout and hands it to the system. Throws FileError when it cannot be written: a full disk, for example.
void print(std::string_view text);

}  // namespace engram
