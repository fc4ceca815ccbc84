#include "nn/models/all_attention_options.hpp"

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {
namespace {

void require(bool valid, std::string_view option, std::string_view rule, auto value) {
  if (!valid) throw UsageError(text("model: ", option, " must be ", rule, ", got ", value));
}

template <class Enum, std::size_t kCount>
Enum parse_one(std::string_view option, std::string_view name, const Enum (&values)[kCount]) {
  std::string names;
  for (const Enum value : values) {
    if (name_of(value) == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name_of(value));
  }
  throw UsageError(text("model: ", option, " must be one of ", names, ", got '", name, "'"));
}

}  // namespace

void AllAttentionOptions::check() const {
  require(vocabulary >= 1, "vocabulary", "at least 1", vocabulary);
  require(layers >= 1, "layers", "at least 1", layers);
  require(width >= 1, "width", "at least 1", width);
  require(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  const bool feed_forward = memory_mode == MemoryMode::transformer;
  require(feed_forward ? inner >= 1 : inner == 0, "inner",
          feed_forward ? "at least 1 for memory_mode transformer" : "0 unless memory_mode is transformer", inner);
  const bool persistent = memory_mode == MemoryMode::all;
  require(persistent ? slots >= 1 : slots == 0, "slots",
          persistent ? "at least 1 for memory_mode all (use memory_mode none for 0)" : "0 unless memory_mode is all",
          slots);
  require(max_span >= 1 && max_span <= std::numeric_limits<std::int32_t>::max() / 4, "max_span", "at least 1",
          max_span);
  require(ramp >= 1 && ramp <= 1 << 20, "ramp", "at least 1", ramp);
  require(span_init >= 0 && span_init <= 1, "span_init", "in [0, 1]", span_init);
  require(mask_offset == 0 || mask_offset == 1, "mask_offset", "0 or 1", mask_offset);
  require(dropout >= 0 && dropout < 1, "dropout", "in [0, 1)", dropout);
  require(embedding_dropout >= 0 && embedding_dropout < 1, "embedding_dropout", "in [0, 1)", embedding_dropout);
  VocabularyClusters::check(cutoffs, vocabulary, width);
  require(attention_memory >= 0 && attention_memory <= std::int64_t{1} << 40, "attention_memory", "at least 0",
          attention_memory);
}

std::string_view name_of(MemoryMode mode) {
  return mode == MemoryMode::all ? "all" : mode == MemoryMode::none ? "none" : "transformer";
}
std::string_view name_of(Pad pad) { return pad == Pad::mask ? "mask" : "attend_zero"; }
std::string_view name_of(RampGradient mode) {
  return mode == RampGradient::inclusive ? "inclusive" : mode == RampGradient::right ? "right" : "open";
}

MemoryMode parse_memory_mode(std::string_view name) {
  constexpr MemoryMode kModes[] = {MemoryMode::all, MemoryMode::none, MemoryMode::transformer};
  return parse_one("memory_mode", name, kModes);
}
Pad parse_pad(std::string_view name) {
  constexpr Pad kPads[] = {Pad::attend_zero, Pad::mask};
  return parse_one("pad", name, kPads);
}
RampGradient parse_ramp_gradient(std::string_view name) {
  constexpr RampGradient kModes[] = {RampGradient::inclusive, RampGradient::right, RampGradient::open};
  return parse_one("ramp_gradient", name, kModes);
}

}  // namespace engram
