#include "apps/studies/figures/figure_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "apps/terminal/edit_distance.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

constexpr std::array<Words, 27> kWords{{{"nll", "loss, nats a token"},
                                        {"bpc", "bits per character"},
                                        {"bits", "loss, bits a token"},
                                        {"ppl", "perplexity"},
                                        {"ppl_bpe", "perplexity of subwords"},
                                        {"ppl_no_eol", "perplexity without line ends"},
                                        {"learning_rate", "learning rate"},
                                        {"gradient_norm", "gradient norm"},
                                        {"tensors_above_clip", "tensors above the clip, share"},
                                        {"tokens_per_second", "tokens a second"},
                                        {"inference_tokens_per_second", "tokens read a second"},
                                        {"inference_words_per_second", "words read a second"},
                                        {"cache_shortfalls", "blocks with a cache that was too short"},
                                        {"span_mean", "mean span, positions"},
                                        {"span_longest", "longest span, positions"},
                                        {"parameters", "parameters"},
                                        {"steps", "steps"},
                                        {"tokens", "tokens"},
                                        {"best_step", "step of the best checkpoint"},
                                        {"mean_span_positions", "mean span, positions"},
                                        {"released_mean_span_positions", "mean span as released, positions"},
                                        {"memory_usage", "slots that are read, share"},
                                        {"memory_top_usage", "slots that are ever the best, share"},
                                        {"memory_kl", "KL from even use, nats"},
                                        {"vocabulary", "symbols of the vocabulary"},
                                        {"seconds", "seconds of training"},
                                        {"hours", "hours of training"}}};

std::string with_blanks(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

}  // namespace

std::string metric_words(std::string_view metric) {
  constexpr std::array<Words, 5> kSplits{{{"best_valid_", ", valid (best checkpoint)"},
                                          {"best_test_", ", test (best checkpoint)"},
                                          {"valid_", ", valid"},
                                          {"test_", ", test"},
                                          {"train_", ", training"}}};
  std::string_view of;
  for (const auto& [prefix, words] : kSplits)
    if (of.empty() && metric.starts_with(prefix)) {
      metric.remove_prefix(prefix.size());
      of = words;
    }
  for (const auto& [name, words] : kWords)
    if (name == metric) return text(words, of);
  return with_blanks(metric) + std::string(of);
}

std::string key_words(std::string_view key) { return with_blanks(key.substr(key.rfind('.') + 1)); }

std::string listed_names(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kColumns = 76;
  std::string all(what);
  all += ':';
  for (std::size_t i = 0; i < names.size(); ++i) all += " " + names[i] + (i + 1 < names.size() ? "," : "");
  std::string lines;
  for (const std::string& line : wrapped_text(all, kColumns)) lines += "\n  " + line;
  return lines;
}

std::string unknown_name(std::string_view given, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = given.size() + 1;
  for (const std::string& one : known)
    // A key may be named without its section.
    for (const std::string_view name : {std::string_view(one), std::string_view(one).substr(one.rfind('.') + 1)})
      if (const std::size_t distance = edit_distance(given, name); is_near(given, name) && distance < least) {
        nearest = one;
        least = distance;
      }
  return text(", got '", given, "'", nearest.empty() ? "" : text("; the nearest is '", nearest, "'"),
              listed_names("there are", known));
}

}  // namespace engram
