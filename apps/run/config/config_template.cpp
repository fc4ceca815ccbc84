#include "apps/run/config/config_template.hpp"

#include <algorithm>
#include <string_view>

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kTemplateColumns = 100;

/// Lines of a comment.
std::string comment(const std::string& said) {
  std::string lines;
  for (const std::string& line : wrapped_text(said, kTemplateColumns - 2)) lines += "# " + line + "\n";
  return lines;
}

/// What RunConfig::check() demands of a number, in its own words ("from 1 to 4096"), which it says of one that nothing
/// allows; empty: all that can be written may be.
std::string range_rule(const ConfigKey& key, const RunConfig& config) {
  constexpr std::string_view kSays = " must be ", kGot = ", got ";
  for (const std::string_view wrong : {"-9223372036854775807", "9223372036854775807", "-1e300", "1e300"}) {
    RunConfig changed = config;
    if (!key.read(changed, wrong)) continue;
    try {
      changed.check();
    } catch (const UsageError& error) {
      const std::string said = error.what();
      const std::size_t start = said.find(kSays), end = said.find(kGot, start);
      if (start != std::string::npos && end != std::string::npos)
        return said.substr(start + kSays.size(), end - start - kSays.size());
    }
  }
  return {};
}

std::string key_meaning(const ConfigKey& key, const RunConfig& whole) {
  std::string said(key.meaning);
  const std::string range = allowed_values(key, whole);
  if (!range.empty() && said.find(range) == std::string::npos) said += text(key.is_choice ? ": " : "; ", range);
  if (!key.example.empty()) said += " (no default)";
  return said;
}

}  // namespace

RunConfig whole_config(ModelFamily family) {
  std::vector<std::string> memory;
  if (family != ModelFamily::recurrent) memory.emplace_back("product_key.count=1");
  // Its layers have no feed-forward sublayer that a memory could be in the place of.
  if (family == ModelFamily::all_attention) memory.emplace_back("product_key.placement=after");
  return parse_run_config(config_help(family), "the keys' examples", memory);
}

std::string allowed_values(const ConfigKey& key, const RunConfig& whole) {
  if (key.is_choice) return choices_of(key);
  // What a list may hold depends on other keys.
  return key.is_list || key.is_names || key.is_text ? "" : range_rule(key, whole);
}

std::string config_template(ModelFamily family) {
  const RunConfig whole = whole_config(family);
  std::string all = comment(
      text("A small model of family ", name_of(family),
           " and a short run, on any data of 40,000 characters or more. Every key is here, with its default where it "
           "has one; "
           "engram train --config FILE --data FOLDER --out FOLDER trains what is in a file. Lines that begin with # "
           "are comments."));
  std::string_view section;
  for (const ConfigKey& key : config_keys(family)) {
    if (key.section != section) {
      all += text("\n[", key.section, "]\n");
      if (key.section == "product_key")
        all += comment(
            "Memories are for models that want them: with the # of all keys of this section taken away the model has "
            "one.");
    }
    section = key.section;
    // A way of clipping that is written down would be refused with most kinds of optimisers.
    const bool is_comment = key.section == "product_key" || key.full_name() == "optimizer.clip_kind";
    all += text("\n", comment(key_meaning(key, whole)), is_comment ? "#" : "", key.name, " = ", key.write(whole), "\n");
  }
  return all;
}

}  // namespace engram
