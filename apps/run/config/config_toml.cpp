#include "apps/run/config/config_toml.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "apps/run/config/printable.hpp"
#include "core/error.hpp"

// No other source includes it.
#define TOML_ENABLE_FORMATTERS 0
// Where there is no compiled parser, some of its assertions fail on texts that it goes on to refuse, like "[=]".
#define TOML_ASSERT(...) static_cast<void>(0)
#if __has_include(<toml++/toml.hpp>)
#include <toml++/toml.hpp>
#else
#include <toml++/toml.h>  // before 3.4
#endif

namespace engram {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view without_blanks(std::string_view part) {
  const std::size_t first = part.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? "" : part.substr(first, part.find_last_not_of(kBlanks) - first + 1);
}

/// A text and its places.
class PlacedText {
 public:
  PlacedText(std::string_view written, const std::string& source) : written_(written), source_(source) {
    begins_.push_back(0);
    for (std::size_t i = 0; i < written.size(); ++i)
      if (written[i] == '\n') begins_.push_back(i + 1);
  }

  std::string_view written() const { return written_; }
  std::string place(const toml::source_position& at) const {
    return text(source_, ", line ", at.line, ", column ", at.column);
  }
  std::size_t begin_of_line(const toml::source_position& at) const {
    return begins_[std::min<std::size_t>(at.line, begins_.size()) - 1];
  }
  std::string_view line(const toml::source_position& at) const {
    const std::size_t begin = begin_of_line(at);
    return written_.substr(begin, std::min(written_.find('\n', begin), written_.size()) - begin);
  }
  toml::source_position position(std::size_t offset) const {
    const auto line = std::upper_bound(begins_.begin(), begins_.end(), offset) - begins_.begin();
    toml::source_position at{static_cast<toml::source_index>(line), 1};
    for (std::size_t i = begin_of_line(at); i < offset; ++i) at.column += data::is_utf8_start(written_[i]) ? 1 : 0;
    return at;
  }
  /// In bytes; columns are characters.
  std::size_t offset(const toml::source_position& at) const {
    std::size_t i = begin_of_line(at);
    for (toml::source_index column = 1; column < at.column && i < written_.size(); ++column)
      for (++i; i < written_.size() && !data::is_utf8_start(written_[i]);) ++i;
    return i;
  }
  std::string_view region(const toml::source_region& region) const {
    const std::size_t begin = offset(region.begin);
    return written_.substr(begin, offset(region.end) - begin);
  }

 private:
  std::string_view written_;
  const std::string& source_;
  std::vector<std::size_t> begins_;
};

/// What is found by us: toml++ says of bytes that are no UTF-8 about where they are, and follows dotted keys by
/// recursion, which would end with the memory of the stack.
void check_bytes(const PlacedText& toml) {
  constexpr std::size_t kMostDots = 5000;
  const std::string_view written = toml.written();
  if (const std::size_t invalid = data::find_invalid_utf8(written); invalid < written.size()) {
    const toml::source_position at = toml.position(invalid);
    throw UsageError(text("config: the text must be UTF-8, got '", printable(without_blanks(toml.line(at))), "'\n  in ",
                          toml.place(at)));
  }
  std::size_t dots = 0;
  for (std::size_t i = 0; i < written.size(); ++i)
    if (written[i] == '.' && ++dots > kMostDots)
      throw UsageError(text("config: the text must have at most ", kMostDots, " dots, got one more\n  in ",
                            toml.place(toml.position(i)), "\n  keys are section.key"));
}

/// The key, as it is written, whose = is before `at`; none where it is something else.
std::optional<std::string_view> assigned_key(const PlacedText& toml, const toml::source_position& at) {
  const std::size_t begin = toml.begin_of_line(at);
  const std::string_view before = without_blanks(toml.written().substr(begin, toml.offset(at) - begin));
  if (!before.ends_with('=')) return std::nullopt;
  const std::string_view key = before.substr(0, before.size() - 1);
  return without_blanks(key.substr(key.find_last_of("{,") + 1));
}

/// The section that a line continues; "" at the top, and where that is not sure.
std::string section_of_line(const PlacedText& toml, const toml::source_position& at, std::string_view key) {
  try {
    // Whole lines are TOML by themselves, unless they end inside of an array.
    const toml::table before = toml::parse(toml.written().substr(0, toml.begin_of_line(at)));
    const auto last = std::max_element(before.begin(), before.end(), [](const auto& one, const auto& other) {
      return one.first.source().begin < other.first.source().begin;
    });
    const toml::table* section = last == before.end() ? nullptr : last->second.as_table();
    if (section != nullptr && section->contains(key)) return std::string(last->first.str());
  } catch (const toml::parse_error&) {  // then nobody can say
  }
  return "";
}

/// Throws if the error says that a section or a key is given again.
void refuse_repeated(const PlacedText& toml, const toml::parse_error& error) {
  if (error.description().find("cannot redefine existing") == std::string_view::npos) return;
  const toml::source_position at = error.source().begin;
  const std::string_view line = without_blanks(toml.line(at));
  std::string name;
  if (line.starts_with('[')) {
    name = without_blanks(line.substr(0, line.find('#')));
  } else if (const auto key = assigned_key(toml, at)) {
    const std::string section = section_of_line(toml, at, *key);
    name = text("'", section, section.empty() ? "" : ".", *key, "'");
  } else {
    return;
  }
  throw UsageError(text("config: ", printable(name), " must be given once, got it again\n  in ", toml.place(at)));
}

/// Whether a word that begins or ends at a byte of the line is in the place of a value, as overrides may have it.
bool is_bare_word(std::string_view line, std::size_t byte) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  const std::size_t equals = line.rfind('=', byte);
  if (equals == std::string_view::npos) return false;
  const std::size_t begin = line.find_first_not_of(kBlanks, equals + 1);
  if (begin == std::string_view::npos || kLetters.find(line[begin]) == std::string_view::npos) return false;
  const std::size_t end = std::min(line.find_first_of(", \t\r]}#", begin), line.size());
  return byte >= begin && byte <= end;
}

[[noreturn]] void refuse_text(const PlacedText& toml, const toml::parse_error& error) {
  refuse_repeated(toml, error);
  const toml::source_position at = error.source().begin;
  const std::string_view line = toml.line(at);
  std::string_view reason = error.description();
  constexpr std::string_view kBegin = "Error while parsing ";
  if (reason.starts_with(kBegin)) reason.remove_prefix(kBegin.size());
  const bool is_word = is_bare_word(line, toml.offset(at) - toml.begin_of_line(at));
  throw UsageError(text("config: the text must be TOML, got '", printable(without_blanks(line)), "' (",
                        printable(reason), ")\n  in ", toml.place(at),
                        is_word ? "\n  names are written in quotes, true and false without and in small letters" : ""));
}

/// Where a decimal integer begins that ends there and is too large for toml++.
std::optional<std::size_t> begin_of_large_integer(std::string_view written, std::size_t end) {
  constexpr std::size_t kDigitsOfLargest = 19;
  const std::size_t other = written.substr(0, end).find_last_not_of("0123456789_");
  const std::size_t begin = other == std::string_view::npos ? 0 : other + 1;
  return end - begin < kDigitsOfLargest ? std::nullopt : std::optional(begin);
}

/// One integer may be larger than those of toml++, as training.seed may be: toml++ is given another number of as many
/// characters for it.
toml::table parsed(const PlacedText& toml) {
  try {
    return toml::parse(toml.written());
  } catch (const toml::parse_error& error) {
    const std::size_t end = toml.offset(error.source().begin);
    const std::optional<std::size_t> begin = begin_of_large_integer(toml.written(), end);
    if (!begin) refuse_text(toml, error);
    std::string readable(toml.written());
    readable.replace(*begin, end - *begin, "0." + std::string(end - *begin - 2, '0'));
    try {
      return toml::parse(readable);
    } catch (const toml::parse_error& later) {
      refuse_text(toml, error.source().begin < later.source().begin ? later : error);
    }
  }
}

std::string value_text(const PlacedText& toml, const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return '"' + node.as_string()->get() + '"';
    case toml::node_type::integer:
      return text(node.as_integer()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    case toml::node_type::table:
      return "{...}";
    case toml::node_type::array: {
      std::string list;
      for (const toml::node& element : *node.as_array()) list += (list.empty() ? "" : ", ") + value_text(toml, element);
      return '[' + list + ']';
    }
    default: {  // floating-point numbers exactly as they are written, dates and times
      std::string written(toml.region(node.source()));
      std::erase(written, '_');
      return written;
    }
  }
}

}  // namespace

std::vector<TomlEntry> read_toml(std::string_view written, const std::string& source) {
  if (written.starts_with(data::kByteOrderMark)) written.remove_prefix(data::kByteOrderMark.size());
  const PlacedText toml(written, source);
  check_bytes(toml);
  const toml::table all = parsed(toml);
  std::vector<std::pair<toml::source_position, TomlEntry>> found;
  const auto add = [&](std::string_view section, const toml::key& key, const toml::node& node) {
    using Kind = TomlEntry::Kind;
    TomlEntry entry{.section = std::string(section), .name = std::string(key.str()), .value = {}, .from = {}};
    entry.from = toml.place(key.source().begin);
    entry.kind = node.is_table() ? Kind::table : node.is_string() ? Kind::string : Kind::other;
    if (entry.kind != Kind::table) entry.value = node.is_string() ? node.as_string()->get() : value_text(toml, node);
    found.emplace_back(key.source().begin, std::move(entry));
  };
  for (const auto& [key, node] : all) {
    add("", key, node);
    if (!node.is_table()) continue;
    for (const auto& [inner_key, inner] : *node.as_table()) add(key.str(), inner_key, inner);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<TomlEntry> entries;
  for (auto& [place, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace engram
