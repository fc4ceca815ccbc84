#pragma once
/// What a trained model writes after some beginnings, for people to read.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/trained_model.hpp"

namespace engram {

struct TextSample {
  std::string prompt;   ///< as the model reads it
  std::string likely;   ///< always the likeliest token
  std::string sampled;  ///< at kSampleTemperature, seed 1
};
inline constexpr double kSampleTemperature = 0.8;

/// What becomes of what a model does not know: only vocabularies of words have something for it.
data::UnseenWords unseen_words(const TrainedModel& trained);
/// Beginnings from three places of a split, each from after a line end on, if there is one near.
std::vector<std::string> prompts_of(const data::DataSet& data, std::string_view split);
/// What the model writes after each, so many tokens. What it does not know of a prompt is replaced, if it has a word
/// for that; a prompt that it cannot read at all is left out.
std::vector<TextSample> write_samples(TrainedModel& trained, const std::vector<std::string>& prompts,
                                      std::int64_t length, const EvaluationWatch& watch = {});

}  // namespace engram
