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
/// print(), on a terminal with lines that it need not cut in the middle of a word. For what people read: reports and
/// notes, but nothing that they copy.
void print_report(std::string_view text);

}  // namespace engram
