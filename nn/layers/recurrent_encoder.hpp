#pragma once
/// The layers of a recurrent encoder, each reading what the one below makes. [key-value-predict 1.0, 1.10].

#include <memory>
#include <vector>

#include "nn/layers/encoder_layer.hpp"
#include "nn/layers/recurrent_options.hpp"

namespace engram {

/// Parameters: those of its one layer; of several, layers.i with those of each, from 0.
class RecurrentEncoder final : public Module {
 public:
  explicit RecurrentEncoder(const RecurrentOptions& options);

  EncoderLayer& operator[](std::int64_t layer) { return *layers_[static_cast<std::size_t>(layer)]; }
  void visit(Visitor& visit) override;

 private:
  std::vector<std::unique_ptr<EncoderLayer>> layers_;
};

}  // namespace engram
