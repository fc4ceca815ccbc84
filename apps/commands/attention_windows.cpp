#include "apps/commands/attention_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/blocks/segment_evaluation.hpp"
#include "apps/studies/attention/window_pictures.hpp"
#include "apps/studies/attention/window_study.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// Articles, or parts of a text without articles, that are read side by side; and the tokens of a part at least.
constexpr std::int64_t kArticleStreams = 64, kTextStreams = 10, kLeastPart = 2000;

std::int64_t checked_article(const data::ArticleSplit& split, std::int64_t article, const std::string& folder) {
  if (split.articles() == 0)
    throw UsageError(text("attention: --article is for data with articles, got '", folder,
                          "', which has none\n  engram prepare --kind word --articles makes such data"));
  if (article >= split.articles())
    throw UsageError(
        text("attention: --article must be below the number of articles read, ", split.articles(), ", got ", article));
  return article;
}

/// Its first tokens, and the articles that begin in them.
data::ArticleSplit first_tokens(const data::ArticleSplit& split, std::int64_t tokens) {
  const data::TokenView& all = split.tokens;
  if (tokens == 0 || tokens >= all.size()) return split;
  const auto end = std::ranges::lower_bound(split.starts, tokens);
  return {data::TokenView(all.data(), all.width(), tokens),
          split.starts.first(static_cast<std::size_t>(end - split.starts.begin())), split.start};
}

struct StudyMaker {
  TrainedModel& trained;
  Runtime& runtime;
  EvaluationWatch watch;

  WindowStudy made(WindowStudy::Rows rows) const {
    return {{dynamic_cast<RecurrentModel&>(trained.model()), runtime, trained.dtype()}, rows};
  }
  int block() const { return static_cast<int>(trained.config().training.block); }

  WindowStudy of_text(std::span<const std::int32_t> tokens, std::int64_t rows) const {
    WindowStudy study = made({.first = 0, .count = rows});
    study.read(tokens, block(), watch);
    return study;
  }

  WindowStudy of_split(const data::ArticleSplit& split, const AttentionWindowsReading& reading, std::int64_t article,
                       bool article_given) const {
    if (split.articles() == 0) {
      if (article_given) checked_article(split, article, reading.data);
      // The first part must have the rows that are shown, and nearly all positions full windows.
      const std::int64_t least = std::max(kLeastPart, reading.rows + 1);
      const auto streams = static_cast<int>(std::clamp<std::int64_t>(split.tokens.size() / least, 1, kTextStreams));
      WatchedPlan plan(std::make_unique<data::SegmentEvaluation>(split.tokens, block(), 0, streams), watch);
      WindowStudy study = made({.first = 0, .count = reading.rows});
      study.read(plan, streams);
      return study;
    }
    checked_article(split, article, reading.data);
    const auto streams = static_cast<int>(std::min(kArticleStreams, split.articles()));
    WatchedPlan plan(std::make_unique<data::ArticleEvaluation>(split, block(), streams), watch);
    WindowStudy study = made({.first = split.starts[static_cast<std::size_t>(article)],
                              .count = std::min(reading.rows, split.length(article))});
    study.read(plan, streams);
    return study;
  }
};

std::string table(const WindowStudy& study, const RecurrentOptions& model) {
  const WindowMeans& means = study.means();
  std::string lines = fmt::format("{}, window of {}: {} positions read, {} of them with a full window\n",
                                  name_of(model.readout), model.window, study.positions(), means.positions());
  if (means.positions() == 0) return lines;
  lines += fmt::format("\n{:>7} {:>12}\n", "offset", "mean weight");
  const std::vector<double> weights = means.weights();
  for (std::size_t column = 0; column < weights.size(); ++column)
    lines += fmt::format("{:>7} {:>12.4f}\n", means.offset(std::int64_t(column)), weights[column]);
  lines +=
      fmt::format("\nentropy      {:.4f} nats, of at most {:.4f}\nmean offset  {:.3f}\nnewest 1     {:.1f}%\n",
                  means.entropy(), std::log(double(model.window)), means.mean_offset(), 100 * means.newest_share(1));
  return lines + fmt::format("newest 5     {:.1f}%\n\n(means over positions with a full window; offset: {})\n",
                             100 * means.newest_share(5),
                             study.sees_itself() ? "0 is the word read there" : "-1 is the state before");
}

nlohmann::json as_json(const WindowStudy& study, const RecurrentOptions& model) {
  const WindowMeans& means = study.means();
  nlohmann::json object{{"readout", name_of(model.readout)},
                        {"window", model.window},
                        {"positions", study.positions()},
                        {"full_windows", means.positions()},
                        {"offsets", nlohmann::json::array()}};
  for (std::int64_t column = 0; column < means.window(); ++column) object["offsets"].push_back(means.offset(column));
  for (const char* key : {"mean_weights", "entropy_nats", "mean_offset", "newest_1", "newest_5"}) object[key] = nullptr;
  if (means.positions() > 0)
    object.update({{"mean_weights", means.weights()},
                   {"entropy_nats", means.entropy()},
                   {"mean_offset", means.mean_offset()},
                   {"newest_1", means.newest_share(1)},
                   {"newest_5", means.newest_share(5)}});
  return object;
}

void write_files(const WindowStudy& study, const TrainedModel& trained, const AttentionWindowsArguments& arguments,
                 const AttentionWindowsReading& reading, const std::string& what) {
  const RecurrentOptions& model = trained.config().model.recurrent;
  std::vector<std::int32_t> ids;
  for (const WindowRow& row : study.rows()) ids.push_back(row.token);
  const ReadTokens tokens(ids, trained.vocabulary());
  const ShownWindows shown{.rows = study.rows(),
                           .tokens = tokens,
                           .means = study.means(),
                           .fills_up = model.attends() && model.missing == MissingPositions::zero};
  if (!reading.csv.empty()) write_durably(reading.csv, windows_csv(shown));
  if (!reading.svg.empty())
    write_durably(reading.svg,
                  windows_svg(shown, fmt::format("{}, window of {}: {}", name_of(model.readout), model.window, what)));
  if (!arguments.mean_csv.empty()) write_durably(arguments.mean_csv, window_means_csv(study.means()));
  if (!arguments.mean_svg.empty())
    write_durably(
        arguments.mean_svg,
        window_means_svg(study.means(), fmt::format("{}, window of {}: mean of {} positions", name_of(model.readout),
                                                    model.window, study.means().positions())));
}

}  // namespace

void AttentionWindowsArguments::add_to(Command& command, Option* data) {
  command_ = &command;
  const std::string only = "recurrent: ";
  command.add_option("--article", article, only + "which article of the split --csv and --svg show, the first being 0")
      ->needs(data)
      ->non_negative()
      ->capture_default_str();
  command.add_option("--mean-csv", mean_csv, only + "write the mean weights by offset to this file");
  command.add_option("--mean-svg", mean_svg, only + "draw them");
}

void AttentionWindowsArguments::refuse_given(std::string_view other) const {
  for (const char* option : {"--article", "--mean-csv", "--mean-svg"})
    if (command_->count(option) > 0)
      throw UsageError(text("attention: ", option, " is for models of the family recurrent, got ", other));
}

void show_attention_windows(OpenedModel& opened, const AttentionWindowsArguments& arguments,
                            std::span<const std::int32_t> text_tokens, const AttentionWindowsReading& reading,
                            WorkProgress& progress) {
  TrainedModel& trained = opened.trained;
  const StudyMaker study{trained, opened.runtime, progress.watch()};
  const auto report = [&](const WindowStudy& read, const std::string& what) {
    progress.end();
    write_files(read, trained, arguments, reading, what);
    const RecurrentOptions& model = trained.config().model.recurrent;
    if (reading.json) return print_json(as_json(read, model));
    print(table(read, model));
  };
  if (reading.data.empty()) return report(study.of_text(text_tokens, reading.rows), "the text");
  const data::DataSet data = opened.open_data(reading.data);
  const data::ArticleSplit split = first_tokens({data, reading.split}, reading.tokens);
  const bool articles = split.articles() > 0;
  report(study.of_split(split, reading, arguments.article, arguments.article_given()),
         articles ? fmt::format("article {} of {}", arguments.article, reading.split)
                  : fmt::format("the start of {}", reading.split));
}

}  // namespace engram
