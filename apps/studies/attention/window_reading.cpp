#include "apps/studies/attention/window_reading.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/blocks/segment_evaluation.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Articles, or parts of a text without articles, that are read side by side; and the tokens of a part at least.
constexpr std::int64_t kArticleStreams = 64, kTextStreams = 10, kLeastPart = 2000;

void check_article(const data::ArticleSplit& split, std::int64_t article, const std::string& folder) {
  if (split.articles() == 0)
    throw UsageError(text("attention: --article is for data with articles, got '", folder,
                          "', which has none\n  engram prepare --kind word --articles makes such data"));
  if (article >= split.articles())
    throw UsageError(
        text("attention: --article must be below the number of articles read, ", split.articles(), ", got ", article));
}

int block_of(const TrainedModel& trained) { return static_cast<int>(trained.config().training.block); }

WindowReport report_of(const WindowStudy& study, const TrainedModel& trained, std::string what) {
  const RecurrentOptions& model = trained.config().model.recurrent;
  std::vector<std::int32_t> ids;
  for (const WindowRow& row : study.rows()) ids.push_back(row.token);
  return {.readout = model.readout,
          .what = std::move(what),
          .positions = study.positions(),
          .means = study.means(),
          .rows = study.rows(),
          .tokens = ReadTokens(ids, trained.vocabulary()),
          .fills_up = model.attends() && model.missing == MissingPositions::zero};
}

}  // namespace

WindowReport read_windows(TrainedModel& trained, std::span<const std::int32_t> tokens, std::int64_t rows,
                          const EvaluationWatch& watch) {
  WindowStudy study(trained.placed_as<RecurrentModel>(), {.first = 0, .count = rows});
  study.read(tokens, block_of(trained), watch);
  return report_of(study, trained, "the text");
}

WindowReport read_windows(TrainedModel& trained, const data::DataSet& data, const WindowReading& reading,
                          const EvaluationWatch& watch) {
  const data::ArticleSplit split = data::ArticleSplit(data, reading.split).beginning(reading.tokens);
  const std::int64_t article = reading.article.value_or(0);
  if (reading.article || split.articles() > 0) check_article(split, article, reading.data);
  const auto read = [&](std::unique_ptr<data::EvaluationPlan> plan, int streams, WindowStudy::Rows rows) {
    WatchedPlan watched(std::move(plan), watch);
    WindowStudy study(trained.placed_as<RecurrentModel>(), rows);
    study.read(watched, streams);
    return study;
  };
  const int block = block_of(trained);
  if (split.articles() == 0) {
    // The first part must have the rows that are shown, and nearly all positions full windows.
    const std::int64_t least = std::max(kLeastPart, reading.rows + 1);
    const auto streams = static_cast<int>(std::clamp<std::int64_t>(split.tokens.size() / least, 1, kTextStreams));
    return report_of(read(std::make_unique<data::SegmentEvaluation>(split.tokens, block, 0, streams), streams,
                          {.first = 0, .count = reading.rows}),
                     trained, text("the start of ", reading.split));
  }
  const auto streams = static_cast<int>(std::min(kArticleStreams, split.articles()));
  return report_of(read(std::make_unique<data::ArticleEvaluation>(split, block, streams), streams,
                        {.first = split.starts[static_cast<std::size_t>(article)],
                         .count = std::min(reading.rows, split.length(article))}),
                   trained, text("article ", article, " of ", reading.split));
}

}  // namespace engram
