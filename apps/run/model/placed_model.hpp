#pragma once
/// A model on a device, with all that is needed to run it.

#include <concepts>
#include <cstdint>
#include <map>
#include <utility>

#include "apps/run/model/runtime.hpp"
#include "core/dtype.hpp"
#include "nn/models/language_model.hpp"

namespace engram {

/// What goes together wherever a model reads tokens. The model's parameters have memory on the runtime's device, and
/// what it knows of them on the host is up to date (LanguageModel::refresh).
template <class Model>
struct Placed {
  Model& model;
  Runtime& runtime;
  DType dtype;  ///< of the parameters

  /// This, where it does not matter which family the model is of.
  operator Placed<LanguageModel>() const requires(!std::same_as<Model, LanguageModel>) {
    return {model, runtime, dtype};
  }

  /// LanguageModel::training_past of so many streams.
  ModelPast training_past(std::int64_t streams) const {
    return model.training_past(runtime.backend(), runtime.memory(), streams, dtype);
  }
  /// LanguageModel::frozen_past of so many streams.
  ModelPast frozen_past(std::int64_t streams, std::int64_t longest_block) const {
    return model.frozen_past(runtime.backend(), runtime.memory(), streams, dtype, longest_block);
  }
};
using PlacedModel = Placed<LanguageModel>;

/// Pasts for frozen weights, one for each number of streams, and for each piece of them where they are read in pieces,
/// made when it is first asked for.
class FrozenPasts {
 public:
  FrozenPasts(const PlacedModel& placed, std::int64_t longest_block) : placed_(placed), longest_block_(longest_block) {}

  /// The past of so many streams, as it was left; valid as long as this.
  ModelPast& operator()(std::int64_t streams) { return (*this)(0, streams); }
  ModelPast& operator()(std::int64_t piece, std::int64_t streams) {
    const auto found = pasts_.find({piece, streams});
    if (found != pasts_.end()) return found->second;
    return pasts_.emplace(std::pair(piece, streams), placed_.frozen_past(streams, longest_block_)).first->second;
  }

 private:
  PlacedModel placed_;
  std::int64_t longest_block_;
  std::map<std::pair<std::int64_t, std::int64_t>, ModelPast> pasts_;  // by piece and streams
};

}  // namespace engram
