#pragma once
/// What a command line says of itself, as data: for pages of manuals and for completion by shells.

#include <string>
#include <vector>

namespace engram {

struct OptionDescription {
  std::vector<std::string> names;    ///< "-h", "--help"; empty: an argument without a name
  std::string value;                 ///< "FILE", "FILE...", "[WORD]" where it may be left out; empty: a flag
  std::string meaning;               ///< with its default in brackets
  std::vector<std::string> offered;  ///< words that the value may be, as far as they are known
  bool is_list = false;              ///< other values may follow the first
};

struct CommandDescription {
  std::string name;     ///< as it is typed; of the program, the program's
  std::string summary;  ///< one line
  std::string group;    ///< the title that it is listed under
  std::string footer;   ///< the end of its help
  /// What a usage line has behind the name: "RUN", "--out FOLDER", "[OPTIONS]".
  std::vector<std::string> usage;
  std::vector<OptionDescription> arguments, options;
  std::vector<CommandDescription> commands;
};

}  // namespace engram
