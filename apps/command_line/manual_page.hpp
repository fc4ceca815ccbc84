#pragma once
/// Pages of manuals, as man shows them, from what a command line says of itself.

#include <string>
#include <utility>
#include <vector>

#include "apps/command_line/command_description.hpp"

namespace engram {

struct ManualSection {
  std::string title;                                         ///< "EXIT STATUS"
  std::vector<std::pair<std::string, std::string>> entries;  ///< what it is about, and what there is to say
};

/// The page of the program, in section 1, in roff with the macros man: name, synopsis, options, commands in their
/// groups, the end of its help, `sections`, and the pages of the commands. `version`: "0.1.0".
std::string manual_page(const CommandDescription& program, const std::string& version,
                        const std::vector<ManualSection>& sections);

/// That of one of its commands, whose name is "engram-train": the same but for `sections`.
std::string manual_page(const CommandDescription& program, const CommandDescription& command,
                        const std::string& version);

}  // namespace engram
