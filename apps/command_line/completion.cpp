#include "apps/command_line/completion.hpp"

#include <algorithm>
#include <utility>

namespace engram {

Offer offer_of(const OptionDescription& option) {
  if (!option.offered.empty()) return Offer::words;
  std::string name = option.value;
  std::erase_if(name, [](char byte) { return byte == '[' || byte == ']' || byte == '.'; });
  constexpr std::pair<std::string_view, Offer> kOffers[] = {
      {"FILE", Offer::files},     {"PATH", Offer::files},     {"RUN", Offer::files},
      {"WEIGHTS", Offer::files},  {"FOLDER", Offer::folders}, {"SWEEP", Offer::folders},
      {"CONFIG", Offer::configs}, {"KEY=VALUE", Offer::keys}, {"COMMAND", Offer::commands}};
  for (const auto& [value, offer] : kOffers)
    if (name == value) return offer;
  return Offer::nothing;
}

std::string short_meaning(std::string_view meaning) {
  constexpr std::size_t kMost = 60, kLongestSubject = 20;
  // "char: what the text is" begins with what the option is for, which alone would say nothing.
  const std::size_t subject = meaning.find(": ");
  const std::size_t begin = subject <= kLongestSubject ? subject + 2 : 0;
  std::size_t end = meaning.size();
  for (const std::string_view clause : {"; ", ": ", ". ", " (", " [", "\n"})
    end = std::min(end, meaning.find(clause, begin));
  if (end > kMost) end = std::min(end, meaning.rfind(' ', kMost));
  return std::string(meaning.substr(0, end));
}

}  // namespace engram
