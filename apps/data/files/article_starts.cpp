#include "apps/data/files/article_starts.hpp"

#include "apps/data/files/hash.hpp"
#include "apps/data/files/little_endian.hpp"
#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::string_view kStartsMagic = "ENGRAMAR";
constexpr std::uint32_t kStartsVersion = 1;
constexpr std::size_t kStartsHeaderBytes = 56, kHashedStartsBytes = 48, kStartBytes = 8;

/// What is wrong with starts; empty if nothing is.
std::string wrong_start(std::span<const std::int64_t> starts, std::int64_t tokens) {
  if (starts.empty()) return tokens == 0 ? "" : "no article";
  if (starts[0] != 0) return text("a first article at token ", starts[0]);
  for (std::size_t i = 1; i < starts.size(); ++i)
    if (starts[i] <= starts[i - 1])
      return text("article ", i, " at token ", starts[i], " after one at ", starts[i - 1]);
  return starts.back() < tokens ? "" : text("an article at token ", starts.back(), " of ", tokens);
}

constexpr std::string_view kRule = "articles must begin at token 0 and at growing places below the number of tokens";

}  // namespace

std::uint64_t hash_of_starts(std::span<const std::int64_t> starts) {
  Fnv1a64 hash;
  for (const std::int64_t start : starts) hash.add_number(static_cast<std::uint64_t>(start));
  return hash.value();
}

void require_article_starts(std::string_view where, std::span<const std::int64_t> starts, std::int64_t tokens) {
  if (const std::string wrong = wrong_start(starts, tokens); !wrong.empty())
    throw UsageError(text(where, ": ", kRule, ", got ", wrong));
}

std::string article_starts_bytes(std::span<const std::int64_t> starts, std::int64_t tokens, std::uint64_t tokens_hash) {
  require_article_starts("article file", starts, tokens);
  std::string bytes(kStartsMagic);
  put_number(bytes, kStartsVersion, 4);
  put_number(bytes, kStartBytes, 4);
  put_number(bytes, static_cast<std::uint64_t>(tokens), 8);
  put_number(bytes, starts.size(), 8);
  put_number(bytes, tokens_hash, 8);
  put_number(bytes, hash_of_starts(starts), 8);
  put_number(bytes, hash_of(bytes), 8);
  for (const std::int64_t start : starts) put_number(bytes, static_cast<std::uint64_t>(start), 8);
  return bytes;
}

std::vector<std::int64_t> read_article_starts(const std::filesystem::path& path, std::int64_t tokens,
                                              std::uint64_t tokens_hash) {
  const auto reject = [&path](std::string_view rule, std::string_view fact) {
    throw FileError(text("article file: '", path.string(), "' must ", rule, ", got ", fact,
                         "\n  the file is damaged or of another program; prepare the data again"));
  };
  const std::string bytes = read_bytes(path, Pipes::refused);
  const std::string_view view = bytes;
  if (bytes.empty() || view.substr(0, kStartsMagic.size()) != kStartsMagic.substr(0, bytes.size()))
    reject("begin with 'ENGRAMAR'", bytes.empty() ? "an empty file" : "a foreign file");
  if (bytes.size() < kStartsHeaderBytes) reject("have a header of 56 bytes", text("a file of ", bytes.size()));
  if (const std::uint64_t version = take_number(view, 8, 4); version != kStartsVersion)
    reject(text("be of version ", kStartsVersion), text("version ", version));
  if (take_number(view, kHashedStartsBytes, 8) != hash_of(view.substr(0, kHashedStartsBytes)))
    reject("have a header with the hash that it states", "a header whose bytes have changed");
  if (const std::uint64_t width = take_number(view, 12, 4); width != kStartBytes)
    reject(text("have starts of ", kStartBytes, " bytes"), text(width));
  if (const std::uint64_t stated = take_number(view, 16, 8); stated != static_cast<std::uint64_t>(tokens))
    reject(text("be of the ", tokens, " tokens of its split"), text(stated));
  if (const std::uint64_t stated = take_number(view, 32, 8); stated != tokens_hash)
    reject(text("be of the tokens beside it, ", hash_text(tokens_hash)), hash_text(stated));
  const std::size_t starts_bytes = bytes.size() - kStartsHeaderBytes;
  const std::uint64_t count = take_number(view, 24, 8);
  if (count != starts_bytes / kStartBytes || starts_bytes % kStartBytes != 0)
    reject(text("hold the ", count, " starts of ", kStartBytes, " bytes that its header states"),
           text(starts_bytes, " bytes of starts"));
  if (hash_of(view.substr(kStartsHeaderBytes)) != take_number(view, 40, 8))
    reject("hold starts with the hash in its header", "starts that have changed");
  std::vector<std::int64_t> starts;
  starts.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    starts.push_back(static_cast<std::int64_t>(take_number(view, kStartsHeaderBytes + i * kStartBytes, 8)));
  if (const std::string wrong = wrong_start(starts, tokens); !wrong.empty()) reject(text("say that ", kRule), wrong);
  return starts;
}

}  // namespace engram::data
