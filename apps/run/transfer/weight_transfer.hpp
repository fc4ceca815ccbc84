#pragma once
/// Starts a model with the weights of another one, as far as they fit, and says what came of each tensor.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/run/config/config_review.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/transfer/symbol_match.hpp"
#include "apps/run/transfer/weight_source.hpp"
#include "autograd/parameter_store.hpp"

namespace engram {

struct WeightTransfer {
  std::string checkpoint;  ///< the source's file
  std::string identity;    ///< WeightSource::identity()
  std::int64_t step = 0;   ///< of the source
  bool averaged = false;   ///< its weights are means over updates

  struct Tensor {
    std::string name;
    std::int64_t taken = 0, numbers = 0;  ///< of its numbers so many were taken
    std::string before;                   ///< the shape that did not fit; empty: the source has none of the name
  };
  std::vector<Tensor> tensors;          ///< of the model now, by name
  std::vector<std::string> left;        ///< tensors of the source that nothing was taken from, by name
  SymbolMatch symbols;                  ///< of both vocabularies
  std::int64_t vectors = 0;             ///< symbols whose vector was taken
  bool placeholders = false;            ///< the source's symbols have no names: none is in any text
  std::vector<ConfigDifference> model;  ///< keys of the model that are not the source's

  std::int64_t taken_numbers() const;
  std::int64_t all_numbers() const;
};

/// Fills what fits of a placed store, which holds the model's start values; what does not fit keeps them. `now`, with a
/// known vocabulary, is the store's configuration. Throws UsageError when the families differ or nothing fits, and
/// FileError when the source does not fit its own configuration, or holds numbers that the store's dtype does not.
WeightTransfer transfer_weights(const WeightSource& source, const RunConfig& now, const data::Vocabulary& vocabulary,
                                ParameterStore& store, Runtime& runtime);

}  // namespace engram
