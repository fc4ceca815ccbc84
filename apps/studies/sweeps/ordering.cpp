#include "apps/studies/sweeps/ordering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "apps/studies/sweeps/sweep_plan.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

[[noreturn]] void refuse(std::string_view written, std::string_view what) {
  throw UsageError(text("orderings: a claim must be 'WHAT: COLUMN: variant > variant > ...' with <, <=, >, >= or ~5%, ",
                        "blanks around every sign, got ", what, " in '", written, "'"));
}

std::optional<double> number_of(std::string_view written) {
  double number = 0;
  const char* const end = written.data() + written.size();
  const auto [parsed, error] = std::from_chars(written.data(), end, number);
  if (error != std::errc() || parsed != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<Relation> relation_of(std::string_view sign) {
  if (sign == "<") return Relation::less;
  if (sign == "<=") return Relation::less_or_equal;
  if (sign == ">") return Relation::greater;
  if (sign == ">=") return Relation::greater_or_equal;
  return std::nullopt;
}

std::string_view sign_of(Relation relation) {
  switch (relation) {
    case Relation::less:
      return "<";
    case Relation::less_or_equal:
      return "<=";
    case Relation::greater:
      return ">";
    case Relation::greater_or_equal:
      return ">=";
  }
  return "";
}

bool is(double left, Relation relation, double right) {
  switch (relation) {
    case Relation::less:
      return left < right;
    case Relation::less_or_equal:
      return left <= right;
    case Relation::greater:
      return left > right;
    case Relation::greater_or_equal:
      return left >= right;
  }
  return false;
}

/// The sign between two names.
void add_sign(Claim& claim, std::string_view sign, std::string_view written) {
  if (const std::optional<Relation> relation = relation_of(sign)) {
    claim.relations.push_back(*relation);
    return;
  }
  if (!sign.starts_with('~') || !sign.ends_with('%')) refuse(written, text("'", sign, "'"));
  const std::optional<double> percent = number_of(sign.substr(1, sign.size() - 2));
  if (!percent || *percent < 0) refuse(written, text("'", sign, "'"));
  if (claim.difference && *claim.difference != *percent / 100) refuse(written, "two different percentages");
  claim.difference = *percent / 100;
}

/// The row of a variant.
const std::vector<std::string>& row_of(const CsvTable& sweep, const std::string& name) {
  const std::size_t column = sweep.column("variant");
  std::string names;
  for (const std::vector<std::string>& row : sweep.rows) {
    if (column < row.size() && row[column] == name) return row;
    if (column < row.size()) names += text(names.empty() ? "" : ", ", row[column]);
  }
  throw UsageError(text("orderings: a variant must be one of the sweep (", names, "), got '", name, "'"));
}

std::size_t column_of(const CsvTable& sweep, const std::string& name) {
  const std::size_t column = sweep.column(name);
  if (column < sweep.names.size()) return column;
  std::string names;
  for (const std::string& one : sweep.names) names += text(names.empty() ? "" : ", ", one);
  throw UsageError(text("orderings: a column must be one of sweep.csv (", names, "), got '", name, "'"));
}

/// Extremes over seeds have columns of their own; a table of one seed lacks them.
std::optional<Spread> figure_of(const CsvTable& sweep, const std::vector<std::string>& row, const std::string& column) {
  const auto read = [&](std::size_t place) -> std::optional<double> {
    if (row[place].empty()) return std::nullopt;
    if (const std::optional<double> number = number_of(row[place])) return number;
    throw UsageError(text("orderings: ", column, " of a variant must be one number, got '", row[place], "'"));
  };
  const std::optional<double> mean = read(column_of(sweep, column));
  if (!mean) return std::nullopt;
  Spread spread{.mean = *mean, .least = *mean, .most = *mean};
  const std::size_t least = sweep.column(column + "_least"), most = sweep.column(column + "_most");
  if (least < row.size()) spread.least = read(least).value_or(*mean);
  if (most < row.size()) spread.most = read(most).value_or(*mean);
  return spread;
}

void judge_relations(JudgedClaim& judged, bool several) {
  bool all = true, every_seed = true;
  for (std::size_t i = 0; i < judged.claim.relations.size(); ++i) {
    const Relation relation = judged.claim.relations[i];
    const Spread &left = *judged.figures[i], &right = *judged.figures[i + 1];
    judged.broken.push_back(!is(left.mean, relation, right.mean));
    if (judged.broken.back()) all = false;
    const bool rises = relation == Relation::less || relation == Relation::less_or_equal;
    if (!is(rises ? left.most : left.least, relation, rises ? right.least : right.most)) every_seed = false;
  }
  judged.verdict = all ? Verdict::holds : Verdict::fails;
  if (several && all) judged.every_seed = every_seed;
}

void judge_likeness(JudgedClaim& judged, bool several) {
  const auto within = [&](auto smallest, auto largest) {
    double low = INFINITY, high = -INFINITY;
    for (const std::optional<Spread>& figure : judged.figures) {
      low = std::min(low, (*figure).*smallest);
      high = std::max(high, (*figure).*largest);
    }
    // Of figures around 0 no share says how much alike they are: they are if they are equal.
    return high - low <= *judged.claim.difference * std::abs(low);
  };
  const bool holds = within(&Spread::mean, &Spread::mean);
  judged.verdict = holds ? Verdict::holds : Verdict::fails;
  if (several && holds) judged.every_seed = within(&Spread::least, &Spread::most);
}

std::string figures_text(const JudgedClaim& judged) {
  const Claim& claim = judged.claim;
  std::string line;
  for (std::size_t i = 0; i < claim.names.size(); ++i) {
    if (i > 0 && claim.difference) line += fmt::format(" ~{:g}% ", *claim.difference * 100);
    if (i > 0 && !claim.difference) {
      const bool broken = i <= judged.broken.size() && judged.broken[i - 1];
      line += fmt::format(" {}{} ", broken ? "not " : "", sign_of(claim.relations[i - 1]));
    }
    line += claim.names[i];
    line += judged.figures[i] ? fmt::format(" {:.4f}", judged.figures[i]->mean) : " -";
  }
  return line;
}

}  // namespace

Claim parse_claim(std::string_view written) {
  const std::vector<std::string> parts = split_list(written, ':');
  if (parts.size() != 3) refuse(written, text(parts.size(), " parts between colons"));
  Claim claim{.what = parts[0], .column = parts[1], .names = {}, .relations = {}, .difference = {}};
  if (claim.what.empty() || claim.column.empty()) refuse(written, "an empty part");
  std::istringstream words(parts[2]);
  bool name_is_due = true;
  for (std::string word; words >> word; name_is_due = !name_is_due) {
    if (name_is_due)
      claim.names.push_back(word);
    else
      add_sign(claim, word, written);
  }
  if (name_is_due) refuse(written, "no variant at the end");
  if (claim.names.size() < 2) refuse(written, "one variant");
  if (claim.difference && !claim.relations.empty()) refuse(written, "~ beside other signs");
  return claim;
}

JudgedClaim judge(const Claim& claim, const CsvTable& sweep) {
  JudgedClaim judged{.claim = claim, .figures = {}, .broken = {}, .every_seed = {}, .reason = {}};
  const bool several = sweep.column(claim.column + "_least") < sweep.names.size();
  const std::size_t state = column_of(sweep, "state");
  column_of(sweep, claim.column);
  for (const std::string& name : claim.names) {
    const std::vector<std::string>& row = row_of(sweep, name);
    judged.figures.push_back(figure_of(sweep, row, claim.column));
    if (!judged.reason.empty()) continue;
    if (row[state] != name_of(RunOutcome::done))
      judged.reason = text("'", name, "' is: ", row[state]);
    else if (!judged.figures.back())
      judged.reason = text("'", name, "' has no ", claim.column);
  }
  if (!judged.reason.empty()) return judged;
  if (claim.difference)
    judge_likeness(judged, several);
  else
    judge_relations(judged, several);
  return judged;
}

std::string table_of(const std::vector<JudgedClaim>& claims) {
  std::string lines;
  for (const JudgedClaim& judged : claims) {
    lines += fmt::format("{:<14}  {}\n                {}: {}\n", name_of(judged.verdict), judged.claim.what,
                         judged.claim.column, figures_text(judged));
    if (judged.every_seed)
      lines += fmt::format("                {}\n", *judged.every_seed ? "with every seed"
                                                   : judged.claim.difference
                                                       ? "in the mean; not whichever seeds are put side by side"
                                                       : "in the mean; ranges of seeds overlap");
    if (!judged.reason.empty()) lines += fmt::format("                {}\n", judged.reason);
  }
  const auto held = std::ranges::count(claims, Verdict::holds, &JudgedClaim::verdict);
  return lines + fmt::format("{} of {} hold\n", held, claims.size());
}

nlohmann::json json_of(const std::vector<JudgedClaim>& claims) {
  using nlohmann::json;
  json list = json::array();
  for (const JudgedClaim& judged : claims) {
    json figures = json::array();
    for (std::size_t i = 0; i < judged.figures.size(); ++i) {
      const std::optional<Spread>& figure = judged.figures[i];
      figures.push_back({{"variant", judged.claim.names[i]},
                         {"mean", figure ? json(figure->mean) : json()},
                         {"least", figure ? json(figure->least) : json()},
                         {"most", figure ? json(figure->most) : json()}});
    }
    list.push_back({{"claim", judged.claim.what},
                    {"column", judged.claim.column},
                    {"verdict", name_of(judged.verdict)},
                    {"every_seed", judged.every_seed ? json(*judged.every_seed) : json()},
                    {"reason", judged.reason},
                    {"figures", std::move(figures)}});
  }
  return {{"claims", std::move(list)}, {"hold", std::ranges::count(claims, Verdict::holds, &JudgedClaim::verdict)}};
}

}  // namespace engram
