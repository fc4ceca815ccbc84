#pragma once
/// What `engram attention` says of a Transformer-XL and of the Transformer with product-key memory: attention by
/// distance, with a picture as that of Dai et al. (2019), appendix, with a row for every head.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/attention/distance_study.hpp"

namespace engram {

struct DistanceReport {
  std::vector<HeadDistances> heads;
  std::int64_t queries = 0;
  std::string term{};       ///< of the scores, the letter that --term gives it; empty: all of them
  std::int64_t window = 0;  ///< tokens that are read from nothing each time; 0: one stream with its memory
};

/// A line for every head.
std::string table_of(const DistanceReport& report);
/// Lines `layer,head,distance,probability`, distance 0 being the query's own position. Probabilities of 0 are left out.
std::string csv_of(const DistanceReport& report);
nlohmann::json json_of(const DistanceReport& report);
/// A heat map: a row for each head, columns for distances from 0 on. Wide maps show the mean of neighbouring distances
/// in one cell. Throws UsageError without distances.
std::string svg_of(const DistanceReport& report);

}  // namespace engram
