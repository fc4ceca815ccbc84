#include "tests/apps/commands/reference_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_template.hpp"
#include "apps/terminal/wrapped_text.hpp"

namespace engram::harness {
namespace {

constexpr std::size_t kPageColumns = 120;

constexpr std::string_view kMadeAnew =
    "This page is written by the program: `engram_tests_apps \"write the pages of commands and keys\"` makes it anew, "
    "and a\ntest says when it is old.\n";

/// A key, the families that have it, and one of them.
struct PageKey {
  const ConfigKey* key;
  std::vector<ModelFamily> families;
};

/// The keys of a section, of all families that are given, in an order that is each family's own.
std::vector<PageKey> keys_of(std::string_view section, const std::vector<ModelFamily>& families) {
  std::vector<PageKey> all;
  for (const ModelFamily family : families) {
    std::size_t place = 0;  // behind the key before
    for (const ConfigKey& key : config_keys(family)) {
      if (key.section != section) continue;
      const auto same = std::ranges::find_if(all, [&](const PageKey& one) { return one.key->name == key.name; });
      if (same == all.end()) {
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(place), {&key, {family}});
        ++place;
      } else {
        same->families.push_back(family);
        place = static_cast<std::size_t>(same - all.begin()) + 1;
      }
    }
  }
  return all;
}

/// `a`, `b` of "a | b".
std::string as_code(const std::string& choices) {
  std::string all = "`";
  for (const char byte : choices) {
    if (byte == '|')
      all += "`, `";
    else if (byte != ' ')
      all += byte;
  }
  return all + "`";
}

/// The type, and what RunConfig::check() demands.
std::string values_cell(const ConfigKey& key, ModelFamily family) {
  const std::string values = allowed_values(key, whole_config(family));
  if (key.is_choice) return as_code(values);
  std::string type = key.rule.starts_with("an ") ? key.rule.substr(3) : key.rule;
  if (type.starts_with("a ")) type = type.substr(2);
  return values.empty() || type.find(values) != type.npos ? type : type + ", " + values;
}

std::string default_cell(const ConfigKey& key, ModelFamily family) {
  if (!key.example.empty()) return "required";
  if (key.full_name() == "optimizer.clip_kind") return "that of `kind`";
  RunConfig defaults;
  defaults.model.family = family;
  return "`" + key.write(defaults) + "`";
}

std::string families_text(const std::vector<ModelFamily>& families) {
  std::string all;
  for (const ModelFamily family : families) all += fmt::format("{}`{}`", all.empty() ? "" : ", ", name_of(family));
  return all;
}

std::string table_of_keys(const std::vector<PageKey>& keys, std::size_t families) {
  std::string table = "| key | default | values | meaning |\n|---|---|---|---|\n";
  for (const auto& [key, of] : keys) {
    std::string meaning(key->meaning);
    if (of.size() < families) meaning += " (only " + families_text(of) + ")";
    const char* fixed = key->on_resume == ConfigKey::OnResume::keep ? " \\*" : "";
    table += fmt::format("| `{}`{} | {} | {} | {} |\n", key->name, fixed, default_cell(*key, of.front()),
                         values_cell(*key, of.front()), meaning);
  }
  return table;
}

}  // namespace

std::string page_of_command(const std::string& command) {
  static const std::map<std::string, std::string> pages{
      {"prepare", "prepare.md"},
      {"configs", "command-line.md#configurations-by-name"},
      {"keys", "keys.md"},
      {"count", "studies.md#count"},
      {"papers", "papers.md"},
      {"train", "training.md"},
      {"sweep", "studies.md#sweep"},
      {"orderings", "studies.md#orderings"},
      {"study", "study.md"},
      {"evaluate", "evaluation.md"},
      {"generate", "generation.md"},
      {"cbt", "evaluation.md#cbt"},
      {"map", "tables.md#tables-in-mapped-files"},
      {"import", "../guide/interop.md"},
      {"export", "../guide/interop.md"},
      {"spans", "studies.md#spans"},
      {"attention", "studies.md#attention"},
      {"memory", "../guide/product-key.md#how-a-memory-is-used"},
      {"gradients", "studies.md#gradients"},
      {"lengths", "../guide/transformer-xl.md#attention-length"},
      {"recl", "../guide/transformer-xl.md#relative-effective-context-length"},
      {"tape", "../guide/tape.md"},
      {"figure", "../guide/figures.md"},
      {"report", "studies.md#report"},
      {"watch", "studies.md#watch"},
      {"bench", "studies.md#bench"},
      {"completion", "../guide/installing.md#completion-and-man"},
      {"manual", "../guide/installing.md#completion-and-man"}};
  return pages.at(command);
}

std::string commands_page() {
  constexpr std::size_t kColumns = 100;
  CommandLine program("engram", "Engram: language models with memory", "0");
  add_all_commands(program.commands());
  std::string page =
      "# Commands and their options\n\n"
      "What `engram --help` and `engram help COMMAND` print, for those who read here. What is in brackets at the end "
      "is "
      "the\ndefault. What all commands have in common is on [command-line.md](command-line.md).\n\n" +
      std::string(kMadeAnew) + "\n```\n" + program.help(kColumns) + "```\n\n";
  std::string links = "Options of";
  for (const std::string& name : program.names()) links += fmt::format(" [{0}](#{0}),", name);
  links.back() = '.';
  for (const std::string& line : wrapped_text(links, kPageColumns)) page += line + "\n";
  for (const std::string& name : program.names()) {
    const std::string where = page_of_command(name);
    const std::string file = where.substr(0, where.find('#'));
    page += fmt::format("\n## {}\n\nMore of it: [{}]({}).\n\n```\n{}```\n", name, file.substr(file.rfind('/') + 1),
                        where, program.help(kColumns, name));
  }
  return page;
}

std::string keys_page() {
  const std::vector<ModelFamily> all(kModelFamilies.begin(), kModelFamilies.end());
  std::string page =
      "# Keys of a configuration\n\n"
      "A configuration is a TOML file of these sections; `--set section.key=value` changes one key. "
      "[training.md](training.md)\nsays how the file is read, and [own-model.md](../guide/own-model.md) how to begin "
      "one. `engram keys FAMILY` lists the\nsame in the terminal, and `engram keys --toml FAMILY` writes a file that "
      "can be trained.\n\n" +
      std::string(kMadeAnew) +
      "\n- Keys with \\* stay as they were when a run is continued: another value would be another model. The others "
      "may "
      "change.\n- Keys that are `required` have no default; `engram keys FAMILY` shows a value for a small model.\n"
      "- Where the values of a key depend on another one, they are those for that small model: \"a divisor of width "
      "120\".\n  What holds for another model, the error says that refuses a value.\n\n"
      "Contents: ";
  std::string sections;
  std::string contents;
  const auto add = [&](const std::string& title, const std::string& anchor, std::string_view section,
                       const std::vector<ModelFamily>& families) {
    const std::vector<PageKey> keys = keys_of(section, families);
    std::size_t most = 0;  // families that have the section
    for (const PageKey& key : keys) most = std::max(most, key.families.size());
    contents += fmt::format("{}[{}](#{})", contents.empty() ? "" : ",\n", title, anchor);
    sections += fmt::format("\n## {}\n\n", title);
    if (most < families.size()) sections += "Of models of " + families_text(keys.front().families) + ".\n\n";
    sections += table_of_keys(keys, most);
  };
  for (const ModelFamily family : all) {
    const std::string name(name_of(family));
    add("model of " + name, "model-of-" + name, "model", {family});
  }
  for (const char* section : {"product_key", "optimizer", "schedule", "training"}) add(section, section, section, all);
  return page + contents + ".\n" + sections;
}

}  // namespace engram::harness
