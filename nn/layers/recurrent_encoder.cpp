#include "nn/layers/recurrent_encoder.hpp"

#include "nn/layers/quasi_recurrent_layer.hpp"
#include "nn/layers/recurrent_layer.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

std::unique_ptr<EncoderLayer> make_encoder_layer(const RecurrentOptions& options, std::int64_t layer) {
  if (options.encoder == RecurrentCell::qrnn) return std::make_unique<QuasiRecurrentLayer>(options, layer);
  return std::make_unique<RecurrentLayer>(options, layer);
}

}  // namespace

RecurrentEncoder::RecurrentEncoder(const RecurrentOptions& options) {
  for (std::int64_t layer = 0; layer < options.layers; ++layer) layers_.push_back(make_encoder_layer(options, layer));
}

void RecurrentEncoder::visit(Visitor& visit) {
  // Models of one layer were there first: their tensors keep their names.
  if (layers_.size() == 1)
    layers_.front()->visit(visit);
  else
    visit("layers", layers_);
}

}  // namespace engram
