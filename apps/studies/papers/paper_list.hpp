#pragma once
/// Every table, row and figure of the papers: the configuration that makes it here, or why there is none. The lists are
/// the JSON files beside this source, from which `engram papers` and docs/reference/papers.md are made.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

struct PaperRow {
  std::string row;                     ///< what the paper calls it
  std::string parameters;              ///< as printed: "39M", "0.46B"; empty: none are printed
  std::vector<std::string> published;  ///< one for each column of the table; "-": none, "?": not in our copy
  std::string config;                  ///< below apps/configs, without ".toml"; empty: none
  std::vector<std::string> set;        ///< keys that differ from the config: "section.key=value"
  std::int64_t counted = 0;            ///< parameters of the config, of recurrent models without the input's table
  bool stand_in = false;               ///< settings were not published; the size is right
  std::string data;                    ///< name in apps/data_sets.txt; empty: the table's
  std::string options;                 ///< of `engram evaluate`; empty: the table's
  std::string ours;                    ///< a figure that was measured with Engram, at the size that the table says
  std::string deviates;                ///< why `counted` is not what the paper prints
  std::string remark;
  std::string left_out;  ///< why there is no config; "cited": a model of others
};

struct PaperTable {
  std::string table;                 ///< "table 1", "figure 2 (a)"
  std::string title;                 ///< what it is about
  std::vector<std::string> columns;  ///< of what is published
  std::string data;                  ///< name in apps/data_sets.txt; "DATA": one's own; empty: none is needed
  std::string split;                 ///< that is measured
  std::string options;               ///< of `engram evaluate`
  std::vector<std::string> measure;  ///< other commands, of RUN and DATA
  std::string script;                ///< below apps/configs: the study scaled down
  std::string note;
  std::string ours;   ///< what was measured, at which size
  std::string where;  ///< in docs/measurements/, with a heading
  std::vector<PaperRow> rows;
};

struct Paper {
  std::string name;  ///< that of its family's configs: "all-attention"
  std::string title, authors;
  std::int64_t year = 0;
  std::string guide;  ///< its page in docs/guide/
  std::string note;
  std::vector<PaperTable> tables;
};

/// Reads a list. Throws Error for a member that is none, or is missing.
Paper parse_paper(std::string_view json);

/// All papers.
const std::vector<Paper>& all_papers();

/// The paper of this name. Throws UsageError naming those that there are.
const Paper& paper_named(std::string_view name);

/// The tables of a paper whose names are `wanted`, or "table" and `wanted`, or "figure" and `wanted`; if there are none
/// those that begin so. Throws UsageError naming those that there are.
std::vector<const PaperTable*> tables_named(const Paper& paper, std::string_view wanted);

/// The commands that make a row: data, training, evaluation. Nothing for a row without a config.
std::vector<std::string> commands_of(const PaperTable& table, const PaperRow& row);

}  // namespace engram
