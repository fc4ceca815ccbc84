#include "apps/command_line/value_names.hpp"

#include <utility>

namespace engram {

std::string value_name(std::string_view names, ValueKind kind) {
  if (!names.starts_with('-')) {
    std::string capitals(names);
    for (char& letter : capitals)
      if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    return capitals;
  }
  if (kind == ValueKind::integer) return "N";
  if (kind == ValueKind::integers) return "N,N,...";
  if (kind == ValueKind::number) return "X";
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"--bpe-model", "FILE"}, {"--claim", "CLAIM"},    {"--config", "CONFIG"},   {"--config-json", "FILE"},
      {"--csv", "FILE"},       {"--data", "FOLDER"},    {"--device", "DEVICE"},   {"--dtype", "TYPE"},
      {"--file", "FILE"},      {"--filter", "TEXT"},    {"--lengths", "N,N,..."}, {"--mean-csv", "FILE"},
      {"--mean-svg", "FILE"},  {"--name", "NAMES"},     {"--out", "FOLDER"},      {"--per-token", "FILE"},
      {"--prompt", "TEXT"},    {"--questions", "FILE"}, {"--ratios", "X,X,..."},  {"--seeds", "N,N,..."},
      {"--split", "SPLIT"},    {"--svg", "FILE"},       {"--text", "TEXT"},       {"--word-list", "FILE"}};
  for (const auto& [option, name] : kNames)
    if (option == names) return std::string(name);
  return "WORD";
}

}  // namespace engram
