#pragma once
/// What `engram papers` says: all papers, the rows of one, or those of some of its tables with their commands.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/papers/paper_list.hpp"

namespace engram {

struct PaperReport {
  const Paper* paper = nullptr;           ///< nullptr: all of them, in short
  std::vector<const PaperTable*> tables;  ///< of the paper, with commands; empty: all, without
};

/// In lines of 80 columns, but for names and commands that are longer by themselves.
std::string table_of(const PaperReport& report);
/// {"papers": [{"name", "title", "authors", "year", "tables": [..]}]}: the members of the lists, and with each row of a
/// config its "commands".
nlohmann::json json_of(const PaperReport& report);

}  // namespace engram
