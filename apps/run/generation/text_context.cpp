#include "apps/run/generation/text_context.hpp"

#include <algorithm>
#include <span>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/files/token_view.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::vector<std::int32_t> copied(const data::TokenView& tokens, std::int64_t begin, std::int64_t end) {
  std::vector<std::int32_t> part(static_cast<std::size_t>(std::max<std::int64_t>(0, end - begin)));
  if (!part.empty()) tokens.copy(begin, std::ssize(part), part.data());
  return part;
}

/// Tokens from `begin` on, of those before `end`.
TextContext part_of(const data::TokenView& tokens, std::int64_t begin, std::int64_t end, std::int64_t length,
                    const ContextPlace& place) {
  const std::int64_t stop = std::min(end, begin + length);
  TextContext context;
  context.tokens = copied(tokens, begin, stop);
  context.reference = copied(tokens, stop, std::min(end, stop + place.reference));
  return context;
}

void require_at(std::int64_t at, std::int64_t size, std::string_view what) {
  if (at < 0 || at >= size)
    throw UsageError(text("generate: --at must be a position from 0 to ", size - 1, " in ", what, ", got ", at));
}

std::string counted(std::int64_t tokens) { return text(tokens, tokens == 1 ? " token" : " tokens"); }

}  // namespace

TextContext context_of(const data::DataSet& data, const ContextPlace& place, const RunConfig& config) {
  const data::ArticleSplit split(data, place.split);
  const std::int64_t length = place.length.value_or(kUsualContext);
  std::int64_t begin = place.at.value_or(0), end = split.tokens.size();
  if (place.article) {
    if (split.articles() == 0)
      throw UsageError(text("generate: --article needs data that know their articles, got '", data.folder().string(),
                            "', which do not\n  --at names a position instead"));
    if (*place.article < 0 || *place.article >= split.articles())
      throw UsageError(text("generate: --article must be from 0 to ", split.articles() - 1, " in ", place.split,
                            ", got ", *place.article));
    begin = split.starts[static_cast<std::size_t>(*place.article)];
    end = begin + split.length(*place.article);
  }
  require_at(begin, split.tokens.size(), place.split);
  TextContext context = part_of(split.tokens, begin, end, length, place);
  const std::int64_t read = std::ssize(context.tokens);
  context.place = place.article ? text(counted(read), " of article ", *place.article, " of ", place.split)
                                : text(counted(read), " of ", place.split, ", from ", begin, " on");
  // The last article that begins in the context.
  const auto behind = std::ranges::lower_bound(split.starts, begin + read);
  if (behind == split.starts.begin()) return context;
  const std::int64_t last = *std::prev(behind);
  if (last == begin || (last > begin && config.model.reads_articles(split.articles()))) {
    context.forgotten = static_cast<std::size_t>(last - begin);
    context.start = split.start;
  }
  return context;
}

TextContext context_of(const std::vector<std::int32_t>& tokens, std::string_view name, const ContextPlace& place) {
  const std::int64_t begin = place.at.value_or(0), size = std::ssize(tokens);
  if (size == 0) throw UsageError(text("generate: ", name, " must have at least one token, got none"));
  require_at(begin, size, name);
  TextContext context =
      part_of(data::TokenView(std::span<const std::int32_t>(tokens)), begin, size, place.length.value_or(size), place);
  context.place = text(counted(std::ssize(context.tokens)), " of ", name, ", from ", begin, " on");
  return context;
}

}  // namespace engram
