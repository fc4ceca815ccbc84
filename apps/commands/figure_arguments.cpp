#include "apps/commands/figure_arguments.hpp"

#include <algorithm>
#include <optional>

#include "apps/commands/output_file.hpp"
#include "apps/studies/sweeps/sweep_plan.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Options that only some kinds have.
struct KindOption {
  const char* name;
  std::vector<FigureKind> kinds;
};
std::vector<KindOption> kind_options() {
  using enum FigureKind;
  const std::vector<FigureKind> plots{curves, sweep, offsets}, models{heads, offsets};
  std::vector<KindOption> all{{"--metric", {curves, sweep}},
                              {"--x", {curves, sweep}},
                              {"--spread", {curves, sweep}},
                              {"--smooth", {curves}},
                              {"--by", {sweep}},
                              {"--where", {curves, sweep}},
                              {"--label", {sweep}},
                              {"--bars", {sweep}},
                              {"--heads", {heads}},
                              {"--rows", {heads}},
                              {"--name", {curves, offsets}}};
  for (const char* const name : {"--x-label", "--y-label", "--log", "--y-range"}) all.push_back({name, plots});
  for (const char* const name :
       {"--text", "--file", "--oov", "--data", "--split", "--tokens", "--best", "--device", "--dtype", "--threads"})
    all.push_back({name, models});
  return all;
}

std::string kinds_text(const std::vector<FigureKind>& kinds) {
  std::string list;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    list += text(i == 0 ? "" : i + 1 < kinds.size() ? ", " : " and ", name_of(kinds[i]));
  return list;
}

}  // namespace

double parse_paper_length(std::string_view written, std::string_view option) {
  constexpr double kPointsOfMillimetre = 72 / 25.4, kLeast = 20, kMost = 2000;
  std::string_view number = written;
  const bool points = number.ends_with("pt");
  if (points || number.ends_with("mm")) number.remove_suffix(2);
  const std::optional<double> value = number_in(std::string(number));
  const double millimetres = value.value_or(0) / (points ? kPointsOfMillimetre : 1);
  if (!value || millimetres < kLeast || millimetres > kMost)
    throw UsageError(
        text("figure: ", option, " must be a length from 20 to 2000 mm, such as 88mm or 250pt, got '", written, "'"));
  return millimetres * kPointsOfMillimetre;
}

void FigureArguments::add_to(Command& command) {
  command_ = &command;
  command.add_option("kind", kind_, "curves, sweep, heads or offsets")->required()->value_name("KIND");
  command
      .add_option(
          "runs", runs,
          "curves: folders of runs and of sweeps; sweep: the folder of one; heads: a run, or a checkpoint file; "
          "offsets: several")
      ->required()
      ->value_name("RUN");
  command.add_option("--out", output.svg, "the drawing, as SVG")->required()->value_name("FILE");
  command.add_option("--csv", output.csv, "write what is drawn to this file");
  output.add_json(command);
  add_choices(command);
  read.add_to(command);
  model.add_options(command);
  add_looks(command);
}

void FigureArguments::add_choices(Command& command) {
  const std::string curves = "curves: ", sweep = "sweep: ";
  command
      .add_option("--metric", metrics_,
                  "curves: a number of metrics.jsonl (valid_bpc, train_gradient_norm); sweep: a column of runs.csv; "
                  "several, with commas between them, make panels [the score of validations]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->value_name("METRIC");
  command.add_option("--x", x_,
                     "curves: steps, tokens, seconds or hours [steps]; sweep: a key, a column of runs.csv or variant "
                     "[the key that varies]");
  command.add_option("--by", by_, sweep + "a series for each value of this key; several with commas [what it takes]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->value_name("KEY");
  command
      .add_option("--where", where_, "curves, sweep: only runs with this value of a key; may be given several times")
      ->allow_extra_args(false)
      ->value_name("KEY=VALUE");
  command.add_option("--label", label_, sweep + "beside each point: a key, variant or none [where x is a column]");
  command.add_flag("--bars", bars_, sweep + "bars where x has numbers, too");
  command.add_option("--spread", spread_, "curves, sweep: of seeds: range, std (of a sample) or none")
      ->capture_default_str();
  command
      .add_option("--smooth", smooth_, curves + "each point is the mean of so many reports around it, an odd number")
      ->positive()
      ->capture_default_str();
  command.add_option("--heads", heads,
                     "heads: layer and head of each map, from 0 on: 1:2,3:0; s before slots' own: 1:s0. Of a split "
                     "1,024 tokens are read unless --tokens says otherwise");
  command.add_option("--rows", rows, "heads: queries that are shown, the last ones of what is read")
      ->positive()
      ->capture_default_str();
  command.add_option("--name", names_,
                     "curves, offsets: names for the legend, in their order: a,b,c; curves of one "
                     "name are seeds of one line");
}

void FigureArguments::add_looks(Command& command) {
  command.add_option("--title", title_, "a title above the panels [none]")->value_name("TEXT");
  command.add_option("--x-label", x_label_, "below the x axis, instead of what is drawn")->value_name("TEXT");
  command.add_option("--y-label", y_label_, "beside the y axes")->value_name("TEXT");
  command.add_option("--log", log_, "logarithmic axes: x, y or xy")->one_of({"x", "y", "xy"});
  command.add_option("--y-range", y_range_, "ends of the y axes: LEAST,MOST")->value_name("RANGE");
  command.add_option("--width", width_, "of the whole, in mm or pt: 88mm, 250pt")
      ->capture_default_str()
      ->value_name("LENGTH");
  command.add_option("--height", height_, "of a row of panels; of maps, of the cells [what suits the width]")
      ->value_name("LENGTH");
  command.add_option("--font", font_, "size of the letters in points")->within(4, 40)->capture_default_str();
  command.add_option("--columns", columns_, "panels side by side [4 at most]")->positive();
  command.add_flag("--plain", plain_, "leave out the line below that says what is drawn; it is printed all the same");
}

void FigureArguments::refuse_given(FigureKind kind) const {
  for (const auto& [option, kinds] : kind_options())
    if (command_->count(option) > 0 && std::ranges::find(kinds, kind) == kinds.end())
      throw UsageError(text("figure: ", option, " is for ", kinds_text(kinds), ", got ", name_of(kind)));
}

FigureKind FigureArguments::kind() const {
  const auto kind = parse_named<FigureKind>("figure: KIND", kind_);
  refuse_given(kind);
  if ((kind == FigureKind::sweep || kind == FigureKind::heads) && runs.size() != 1)
    throw UsageError(text("figure: ", name_of(kind), " must have one folder, got ", runs.size()));
  if (kind == FigureKind::heads && heads.empty())
    throw UsageError("figure: heads must have --heads, such as --heads 0:0,1:1, got none");
  if (kind == FigureKind::heads || kind == FigureKind::offsets) read.check();
  check_output_file("figure: --out", output.svg, {kSvgBeginning});
  check_output_file("figure: --csv", output.csv, {"panel,series,x,", "layer,head,position,"});
  return kind;
}

FigureStyle FigureArguments::style() const {
  FigureStyle style;
  style.page.width = parse_paper_length(width_, "--width");
  if (!height_.empty()) style.page.height = parse_paper_length(height_, "--height");
  style.page.font = font_;
  style.page.columns = static_cast<std::size_t>(columns_);
  style.page.title = title_;
  style.plain = plain_;
  style.log_x = log_.find('x') != std::string::npos;
  style.log_y = log_.find('y') != std::string::npos;
  style.x_label = x_label_;
  style.y_label = y_label_;
  if (y_range_.empty()) return style;
  const std::vector<std::string> ends = split_list(y_range_, ',');
  const auto least = number_in(ends.front()), most = number_in(ends.back());
  if (ends.size() != 2 || !least || !most || !(*least < *most) || (style.log_y && !(*least > 0)))
    throw UsageError(text("figure: --y-range must be two numbers, the lower first", style.log_y ? ", above 0" : "",
                          ", got '", y_range_, "'"));
  style.y_range = {*least, *most};
  return style;
}

std::vector<std::string> FigureArguments::names() const {
  return names_.empty() ? std::vector<std::string>() : split_list(names_, ',');
}

std::vector<KeyValue> FigureArguments::wanted() const {
  std::vector<KeyValue> all;
  for (const std::string& written : where_) {
    const std::size_t equals = written.find('=');
    if (equals == written.npos || equals == 0)
      throw UsageError(text("figure: --where must be KEY=VALUE, got '", written, "'"));
    all.emplace_back(written.substr(0, equals), written.substr(equals + 1));
  }
  return all;
}

CurveRequest FigureArguments::curves() const {
  if (smooth_ % 2 == 0)
    throw UsageError(
        text("figure: --smooth must be an odd number, so that as many reports lie on both sides, got ", smooth_));
  return {.runs = find_figure_runs(runs, names(), wanted()),
          .metrics = metrics_,
          .axis = x_.empty() ? CurveAxis::steps : parse_named<CurveAxis>("figure: --x of curves", x_),
          .smooth = smooth_,
          .spread = spread()};
}

SweepFigureRequest FigureArguments::sweep() const {
  return {
      .metrics = metrics_, .x = x_, .by = by_, .where = wanted(), .label = label_, .bars = bars_, .spread = spread()};
}

}  // namespace engram
