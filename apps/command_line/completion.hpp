#pragma once
/// Scripts that let a shell complete the command line of a program, from what the program says of itself.

#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/command_description.hpp"

namespace engram {

/// What a shell offers for a value.
enum class Offer : unsigned char {
  nothing,  ///< a number, or words that nobody knows
  words,    ///< those of OptionDescription::offered
  files,    ///< and folders
  folders,
  configs,   ///< those that come with the program, and files
  keys,      ///< of a configuration, with = behind them
  commands,  ///< of the program
};
Offer offer_of(const OptionDescription& option);

/// Scripts that a shell reads: bash and zsh with `source`, or from the folder of their completions; fish from its own.
/// `keys`: those of configurations, "model.width". What configurations there are they ask the program that is typed.
std::string bash_completion(const CommandDescription& program, const std::vector<std::string>& keys);
std::string zsh_completion(const CommandDescription& program, const std::vector<std::string>& keys);
std::string fish_completion(const CommandDescription& program, const std::vector<std::string>& keys);

/// The beginning of a meaning that fits beside a word: up to its first clause, 60 characters at most.
std::string short_meaning(std::string_view meaning);

}  // namespace engram
