#pragma once
/// FNV-1a, 64 bits: hash = (hash xor byte) * 1099511628211, starting from 14695981039346656037. It tells data sets,
/// vocabularies and damaged files apart. It is no defence against somebody who wants two files to look the same.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace engram::data {

class Fnv1a64 {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  /// Adds the eight bytes of a number, lowest first.
  void add_number(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) value_ = (value_ ^ (number >> shift & 0xff)) * 1099511628211u;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

inline std::uint64_t hash_of(std::string_view bytes) {
  Fnv1a64 hash;
  hash.add(bytes);
  return hash.value();
}

/// "fnv1a64:" and sixteen hexadecimal digits: the form in JSON, whose readers often keep numbers as doubles.
inline std::string hash_text(std::uint64_t hash) {
  std::string text = "fnv1a64:";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 0xf];
  return text;
}

/// The inverse of hash_text; nothing for any other text.
inline std::optional<std::uint64_t> parse_hash(std::string_view text) {
  std::uint64_t hash = 0;
  if (text.size() != 24) return std::nullopt;
  for (const char digit : text.substr(8)) hash = hash << 4 | std::string_view("0123456789abcdef").find(digit);
  // A wrong digit gives a hash whose text differs from the given one.
  return hash_text(hash) == text ? std::optional(hash) : std::nullopt;
}

}  // namespace engram::data
