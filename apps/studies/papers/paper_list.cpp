#include "apps/studies/papers/paper_list.hpp"

#include <algorithm>
#include <utility>

#include "apps/studies/papers/paper_assets.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// The members of an object; what nobody asked for in the end is an error.
class ListMembers {
 public:
  ListMembers(const nlohmann::json& object, std::string where) : object_(&object), where_(std::move(where)) {
    if (!object.is_object()) throw Error(text("papers: ", where_, " must be an object, got ", object.type_name()));
  }
  template <class T>
  T required(const char* name) {
    if (!object_->contains(name)) throw Error(text("papers: ", where_, " must have '", name, "', got none"));
    return optional<T>(name);
  }
  template <class T>
  T optional(const char* name, T otherwise = {}) {
    asked_.emplace_back(name);
    const auto found = object_->find(name);
    if (found == object_->end()) return otherwise;
    try {
      return found->get<T>();
    } catch (const nlohmann::json::exception& error) {
      throw Error(text("papers: '", name, "' of ", where_, " is of another type: ", error.what()));
    }
  }
  void done() const {
    for (const auto& [name, value] : object_->items())
      if (std::ranges::find(asked_, name) == asked_.end())
        throw Error(text("papers: '", name, "' of ", where_, " must be a known member, got another"));
  }

 private:
  const nlohmann::json* object_;
  std::string where_;
  std::vector<std::string> asked_;
};

using Words = std::vector<std::string>;

PaperRow paper_row(const nlohmann::json& object, const std::string& where) {
  ListMembers members(object, "a row of " + where);
  PaperRow row{.row = members.required<std::string>("row"),
               .parameters = members.optional<std::string>("parameters"),
               .published = members.optional<Words>("published"),
               .config = members.optional<std::string>("config"),
               .set = members.optional<Words>("set"),
               .counted = members.optional<std::int64_t>("counted"),
               .stand_in = members.optional<bool>("stand_in"),
               .data = members.optional<std::string>("data"),
               .options = members.optional<std::string>("options"),
               .ours = members.optional<std::string>("ours"),
               .deviates = members.optional<std::string>("deviates"),
               .remark = members.optional<std::string>("remark"),
               .left_out = members.optional<std::string>("left_out")};
  members.done();
  if (row.config.empty() == row.left_out.empty())
    throw Error(text("papers: '", row.row, "' of ", where, " must have either 'config' or 'left_out', got ",
                     row.config.empty() ? "neither" : "both"));
  return row;
}

PaperTable paper_table(const nlohmann::json& object, const std::string& paper) {
  ListMembers members(object, "a table of " + paper);
  PaperTable table{.table = members.required<std::string>("table"),
                   .title = members.required<std::string>("title"),
                   .columns = members.optional<Words>("columns"),
                   .data = members.optional<std::string>("data"),
                   .split = members.optional<std::string>("split", "test"),
                   .options = members.optional<std::string>("options"),
                   .measure = members.optional<Words>("measure"),
                   .script = members.optional<std::string>("script"),
                   .note = members.optional<std::string>("note"),
                   .ours = members.optional<std::string>("ours"),
                   .where = members.optional<std::string>("where"),
                   .rows = {}};
  const std::string where = table.table + " of " + paper;
  for (const nlohmann::json& row : members.required<nlohmann::json>("rows")) {
    table.rows.push_back(paper_row(row, where));
    const std::size_t published = table.rows.back().published.size();
    if (published != 0 && published != table.columns.size())
      throw Error(text("papers: '", table.rows.back().row, "' of ", where, " must have ", table.columns.size(),
                       " published numbers or none, got ", published));
  }
  members.done();
  return table;
}

/// Whether the name is `wanted`, with or without its kind before it.
bool is_called_table(const std::string& name, std::string_view wanted, bool begins) {
  for (const std::string_view kind : {"", "table ", "figure "}) {
    const std::string whole = std::string(kind) + std::string(wanted);
    if (begins ? name.starts_with(whole) : name == whole) return true;
  }
  return false;
}

/// Where a row's run goes: "runs/papers/CONFIG", with what differs from the config behind it.
std::string paper_run_folder(const PaperRow& row) {
  std::string folder = "runs/papers/" + row.config;
  for (const std::string& setting : row.set) {
    std::string ending = setting.substr(setting.find('.') + 1);
    std::ranges::replace(ending, '=', '-');
    folder += '-' + ending;
  }
  return folder;
}

}  // namespace

Paper parse_paper(std::string_view json) {
  Paper paper;
  try {
    const nlohmann::json object = nlohmann::json::parse(json);
    ListMembers members(object, "a paper");
    paper = {.name = members.required<std::string>("name"),
             .title = members.required<std::string>("title"),
             .authors = members.required<std::string>("authors"),
             .year = members.required<std::int64_t>("year"),
             .guide = members.required<std::string>("guide"),
             .note = members.optional<std::string>("note"),
             .tables = {}};
    for (const nlohmann::json& table : members.required<nlohmann::json>("tables"))
      paper.tables.push_back(paper_table(table, paper.name));
    members.done();
  } catch (const nlohmann::json::exception& error) {
    throw Error(text("papers: a list must be JSON, got another text: ", error.what()));
  }
  return paper;
}

const std::vector<Paper>& all_papers() {
  static const std::vector<Paper> papers{parse_paper(all_attention_paper()), parse_paper(transformer_xl_paper()),
                                         parse_paper(product_key_paper()), parse_paper(key_value_predict_paper())};
  return papers;
}

const Paper& paper_named(std::string_view name) {
  std::string known;
  for (const Paper& paper : all_papers()) {
    if (paper.name == name) return paper;
    known += (known.empty() ? "" : ", ") + paper.name;
  }
  throw UsageError(text("papers: the paper must be one of ", known, ", got '", name, "'"));
}

std::vector<const PaperTable*> tables_named(const Paper& paper, std::string_view wanted) {
  std::vector<const PaperTable*> found;
  for (const bool begins : {false, true}) {
    for (const PaperTable& table : paper.tables)
      if (is_called_table(table.table, wanted, begins)) found.push_back(&table);
    if (!found.empty() && !wanted.empty()) return found;
    found.clear();
  }
  std::string known;
  for (const PaperTable& table : paper.tables) known += "\n  " + table.table;
  throw UsageError(
      text("papers: --table must be a table or figure of ", paper.name, ", got '", wanted, "'; there are", known));
}

std::vector<std::string> commands_of(const PaperTable& table, const PaperRow& row) {
  const std::string& name = row.data.empty() ? table.data : row.data;
  if (row.config.empty() || name.empty()) return {};
  const std::string data = name == "DATA" ? name : "runs/data/" + name, run = paper_run_folder(row);
  std::vector<std::string> commands;
  if (name != "DATA") commands.push_back("bash apps/fetch.sh " + name);
  std::string train = "engram train --config apps/configs/" + row.config + ".toml";
  if (!row.set.empty()) train += " --set";
  for (const std::string& setting : row.set) train += " " + setting;
  commands.push_back(train + " --data " + data + " --out " + run);
  const std::string& options = row.options.empty() ? table.options : row.options;
  if (!options.empty() || table.measure.empty())
    commands.push_back("engram evaluate " + run + " --data " + data + " --split " + table.split +
                       (options.empty() ? "" : " ") + options);
  return commands;
}

}  // namespace engram
