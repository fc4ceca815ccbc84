#include "apps/studies/comparisons/study_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <system_error>

#include "apps/data/files/read_file.hpp"
#include "apps/run/config/config_toml.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".study";

[[noreturn]] void refuse_entry(const TomlEntry& entry, std::string_view rule) {
  throw UsageError(text("study: ", entry.name, " must be ", rule, ", got ", entry.value, " (", entry.from, ")"));
}

std::string string_of(const TomlEntry& entry) {
  if (entry.kind != TomlEntry::Kind::string) refuse_entry(entry, "text in quotes");
  return entry.value;
}

template <class Number>
Number number_of(const TomlEntry& entry, std::string_view written, std::string_view rule) {
  Number number{};
  const char* const end = written.data() + written.size();
  const auto [parsed, error] = std::from_chars(written.data(), end, number);
  if (entry.kind != TomlEntry::Kind::other || error != std::errc() || parsed != end) refuse_entry(entry, rule);
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) refuse_entry(entry, rule);
  return number;
}

/// What stands between brackets and commas; a comma may be the last.
std::vector<std::string> list_of(const TomlEntry& entry, std::string_view rule) {
  const std::string& value = entry.value;
  if (entry.kind != TomlEntry::Kind::other || value.size() < 2 || value.front() != '[' || value.back() != ']')
    refuse_entry(entry, rule);
  std::vector<std::string> parts = split_list(std::string_view(value).substr(1, value.size() - 2), ',');
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

double number_within(const TomlEntry& entry, double least, double most, std::string_view rule) {
  const auto number = number_of<double>(entry, entry.value, rule);
  if (!(number > least && number <= most)) refuse_entry(entry, rule);
  return number;
}

void take_budgets(StudyPlan& plan, const TomlEntry& entry) {
  const std::string rule =
      text("a list of ", choices_text<Budget>(), ", each in quotes, with either tokens or arithmetic");
  for (std::string part : list_of(entry, rule)) {
    part.erase(std::remove(part.begin(), part.end(), '"'), part.end());
    const std::optional<Budget> budget = find_named<Budget>(part);
    if (!budget || plan.equal_in(*budget)) refuse_entry(entry, rule);
    plan.equal.push_back(*budget);
  }
  if (plan.equal_in(Budget::tokens) == plan.equal_in(Budget::arithmetic)) refuse_entry(entry, rule);
}

void take_rates(StudyPlan& plan, const TomlEntry& entry) {
  constexpr const char* kRule = "a list of numbers above 0, in ascending order: multiples of schedule.rate";
  for (const std::string& part : list_of(entry, kRule)) {
    plan.rates.push_back(number_of<double>(entry, part, kRule));
    if (!(plan.rates.back() > 0)) refuse_entry(entry, kRule);
  }
  if (plan.rates.empty() || std::ranges::adjacent_find(plan.rates, std::greater_equal<>()) != plan.rates.end())
    refuse_entry(entry, kRule);
}

void take_seeds(StudyPlan& plan, const TomlEntry& entry) {
  constexpr const char* kRule = "a list of two whole numbers or more, each once";
  for (const std::string& part : list_of(entry, kRule)) {
    plan.seeds.push_back(number_of<std::uint64_t>(entry, part, kRule));
    if (std::ranges::count(plan.seeds, plan.seeds.back()) > 1) refuse_entry(entry, kRule);
  }
  if (plan.seeds.size() < 2) refuse_entry(entry, kRule);
}

using Take = std::function<void(StudyPlan&, const TomlEntry&)>;

/// Of the section [study].
const std::map<std::string, Take>& study_keys() {
  static const std::map<std::string, Take> keys{
      {"title", [](StudyPlan& plan, const TomlEntry& entry) { plan.title = string_of(entry); }},
      {"config", [](StudyPlan& plan, const TomlEntry& entry) { plan.config = string_of(entry); }},
      {"equal", take_budgets},
      {"tolerance",
       [](StudyPlan& plan, const TomlEntry& entry) {
         plan.tolerance = number_within(entry, 0, 1, "a share above 0 and up to 1");
       }},
      {"rates", take_rates},
      {"trial_share",
       [](StudyPlan& plan, const TomlEntry& entry) {
         plan.trial_share = number_within(entry, 0, 1, "a share above 0 and up to 1");
       }},
      {"trial_seed",
       [](StudyPlan& plan, const TomlEntry& entry) {
         plan.trial_seed = number_of<std::uint64_t>(entry, entry.value, "a whole number");
       }},
      {"seeds", take_seeds},
      {"block",
       [](StudyPlan& plan, const TomlEntry& entry) {
         plan.block = number_of<std::int64_t>(entry, entry.value, "a whole number of tokens");
         if (plan.block < 1) refuse_entry(entry, "a whole number of tokens");
       }},
      {"confidence", [](StudyPlan& plan, const TomlEntry& entry) {
         plan.confidence = number_within(entry, 0, 0.9999, "a share above 0 and up to 0.9999");
       }}};
  return keys;
}

/// "NAME: overrides", as --variant of engram sweep has it.
std::string as_variant(const TomlEntry& entry) {
  const std::string overrides = string_of(entry);
  return overrides.empty() ? entry.name : entry.name + ":" + overrides;
}

/// In words, and between which variants. Names are looked up where all are known.
Claim as_claim(const TomlEntry& entry) {
  if (entry.name.find(':') != std::string::npos)
    throw UsageError(
        text("study: a claim must be in words without a colon, got '", entry.name, "' (", entry.from, ")"));
  const std::string order = string_of(entry);
  try {
    Claim claim = parse_claim(text(entry.name, ": loss: ", order));
    for (const Relation relation : claim.relations)
      if (relation == Relation::less_or_equal || relation == Relation::greater_or_equal) refuse_entry(entry, "strict");
    return claim;
  } catch (const UsageError&) {
    throw UsageError(
        text("study: a claim must be 'a < b' (the loss of a is lower), 'a > b' or 'a ~2% b' (perplexities ",
             "at most 2% apart), got '", order, "' (", entry.from, ")"));
  }
}

void check_study(const StudyPlan& plan, const std::string& source) {
  const auto refuse = [&source](const std::string& what) { throw UsageError(text("study: ", source, " ", what)); };
  for (const auto& [name, missing] : {std::pair{"title", plan.title.empty()},
                                      {"config", plan.config.empty()},
                                      {"equal", plan.equal.empty()},
                                      {"rates", plan.rates.empty()},
                                      {"seeds", plan.seeds.empty()}})
    if (missing) refuse(text("must have the key ", name, " in [study], got none"));
  if (plan.variants.size() < 2) refuse(text("must have two variants or more, got ", plan.variants.size()));
  if (plan.claims.empty()) refuse("must have a claim, got none");
  if (std::ranges::count(plan.seeds, plan.trial_seed) > 0)
    refuse(text("must have a trial_seed that is none of seeds, got ", plan.trial_seed));
  for (const Claim& claim : plan.claims)
    for (const std::string& name : claim.names)
      if (std::ranges::count(plan.variants, name, &SweepVariant::name) == 0)
        refuse(text("must have claims about its variants, got '", name, "' in '", claim.what, "'"));
}

std::vector<fs::path> shipped_studies() {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::recursive_directory_iterator at(share_folder() / "configs", error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == kEnding) all.push_back(at->path());
  std::ranges::sort(all);
  return all;
}

}  // namespace

bool StudyPlan::equal_in(Budget budget) const { return std::ranges::count(equal, budget) > 0; }

StudyPlan parse_study(std::string_view written, const std::string& source) {
  StudyPlan plan;
  std::vector<std::string> variants;
  for (const TomlEntry& entry : read_toml(written, source)) {
    if (entry.kind == TomlEntry::Kind::table && entry.section.empty()) {
      if (entry.name != "study" && entry.name != "variants" && entry.name != "claims")
        throw UsageError(
            text("study: a section must be [study], [variants] or [claims], got ", entry.name, " (", entry.from, ")"));
    } else if (entry.section == "variants") {
      variants.push_back(as_variant(entry));
    } else if (entry.section == "claims") {
      plan.claims.push_back(as_claim(entry));
    } else {
      const auto key = study_keys().find(entry.name);
      if (entry.section != "study" || key == study_keys().end()) {
        std::string names;
        for (const auto& [name, take] : study_keys()) names += text(names.empty() ? "" : ", ", name);
        throw UsageError(
            text("study: a key of [study] must be one of ", names, ", got ", entry.name, " (", entry.from, ")"));
      }
      key->second(plan, entry);
    }
  }
  if (!variants.empty()) plan.variants = plan_variants({}, variants, {});
  check_study(plan, source);
  return plan;
}

fs::path find_study(const fs::path& named) {
  std::error_code error;
  if (fs::exists(named, error)) return named;
  std::string names;
  for (const fs::path& one : shipped_studies()) {
    const std::string name = one.stem().string();
    if (named == name || named.filename() == one.filename()) return one;
    names += text(names.empty() ? "" : ", ", name);
  }
  throw FileError(text("study: '", named.string(), "' must be a file or a study that comes with the program (",
                       names.empty() ? "there are none" : names, "), got neither"));
}

StudyPlan read_study(const fs::path& named) {
  const fs::path file = find_study(named);
  StudyPlan plan = parse_study(data::read_bytes(file), text("'", file.string(), "'"));
  plan.name = file.stem().string();
  return plan;
}

}  // namespace engram
