#pragma once
/// Attention by distance for people: as a table for other programs, and as the picture of Dai et al. (2019), appendix,
/// with a row for every head.

#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/attention/distance_study.hpp"

namespace engram {

/// Lines `layer,head,distance,probability`, distance 0 being the query's own position. Probabilities of 0 are left out.
std::string distances_csv(const std::vector<HeadDistances>& heads);
/// A heat map: a row for each head, columns for distances from 0 on. Wide maps show the mean of neighbouring distances
/// in one cell. Throws UsageError without distances.
std::string distances_svg(const std::vector<HeadDistances>& heads, std::string_view title);

}  // namespace engram
