#pragma once
/// Maps of several heads of one model side by side, with one scale of colours: what each gives to the context and to
/// persistent slots while the model reads a text. Figure 3 of Sukhbaatar et al.: "Augmenting Self-attention with
/// Persistent Memory" (2019).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/model/trained_model.hpp"
#include "apps/studies/attention/head_reading.hpp"
#include "apps/studies/attention/read_tokens.hpp"
#include "apps/studies/figures/figure.hpp"

namespace engram {

/// "1:2,3:s0": layer and head, both from 0; s before a head that sees slots only. Throws UsageError for what is none.
std::vector<HeadPlace> parse_heads(std::string_view written);

/// The weights of one query.
struct HeadMapRow {
  std::int64_t position = 0;
  std::vector<double> context;  ///< the nearest first
  std::vector<double> slots;
};
struct HeadMap {
  HeadPlace place;
  std::vector<HeadMapRow> rows;  ///< of the last queries, in their order
  double slot_share = 0;         ///< mean over them of the weight on slots
  double most = 0;               ///< the largest weight
};

struct HeadFigure {
  FigureStyle style;
  std::vector<HeadMap> heads;
  std::int64_t nearest = 1;  ///< distance of the first weight of a context
  bool by_ratio = true;      ///< the scale of colours; else from 0 on, for windows in which each place has its share
  ReadTokens tokens;
  std::string what;
};

/// Reads the text and keeps the last `rows` queries of each head. Throws UsageError for a head that the model does not
/// have, naming those it has, and as read_heads().
HeadFigure head_figure(TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                       const std::vector<HeadPlace>& heads, std::int64_t rows, const EvaluationWatch& watch = {});

/// A line for each head.
std::string table_of(const HeadFigure& figure);
/// Lines `layer,head,position,token,kind,index,weight`, head being "s0" for the first that sees slots only: kind
/// "context" with the distance as index, or "slot". Weights of 0 are left out.
std::string csv_of(const HeadFigure& figure);
nlohmann::json json_of(const HeadFigure& figure);
/// Columns for distances, the nearest rightmost, then slots; where there are more than a printer shows, each is the
/// largest weight of its neighbours. The scale is logarithmic, from 0.0001 to the largest weight; of recurrent
/// models it is linear, from 0 on.
std::string svg_of(const HeadFigure& figure);

}  // namespace engram
