#pragma once
/// In which order a file of Transformer-XL weights has the slots of the vocabulary's clusters.
///
/// With K cut-offs the head's softmax is over the n words of cluster 0 and K slots, one for each tail cluster:
///
///   z = (W_0 y_0 + b_0, G y_0 + g)      G = crit.cluster_weight [K, E], g = crit.cluster_bias [K]
///   ln p(w) = ln softmax(z)[w]          w in cluster 0
///   ln p(w) = ln softmax(z)[n + slot(b)] + ln softmax(W_b y_b + b_b)[w - c_b]      w in cluster b = 1 .. K
///
/// Natural order, slot(b) = b - 1: Hugging Face's class, which takes column n + b - 1, and the original TensorFlow
/// program. Reversed order, slot(b) = K - b: the original PyTorch program, which takes column -b, the b-th from the
/// end.
///
/// The K slots are the rows of G and the elements of g, and nothing else has an axis of slots: tables, projections and
/// biases of clusters are numbered by b under both rules. A softmax of permuted columns is the permuted softmax. So the
/// rows of G and the elements of g in the opposite order, under the other rule, are the same model, and all other
/// tensors stay. With K < 2 both rules are one.

#include <string>
#include <vector>

#include "core/files/safetensors.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {

/// What weights tell of the program that they are from. The numbers themselves tell nothing: under either rule they are
/// a model.
struct TransfoXlOrigin {
  /// Tensors are named as in the original PyTorch program, without the "transformer." of Hugging Face's class.
  bool original_names = false;
  /// All layers share the biases u and v of positions, as they always do in the original PyTorch program.
  bool tied_position_biases = false;
  std::vector<std::string> architectures = {};  ///< of config.json: classes of the model
  std::string model_type = {};                  ///< of config.json
};

struct ClusterOrderFound {
  ClusterOrder order = ClusterOrder::natural;
  bool decided = true;    ///< false: nothing tells it, and it is taken as natural
  std::string note = {};  ///< what was taken and why, for people; empty: there was nothing to decide
};

/// By the first of these that is there: names of the original PyTorch program with shared biases (reversed); names of
/// Hugging Face's class with biases of each layer's own (natural); the class or the type that config.json names.
ClusterOrderFound cluster_order_by_origin(const TransfoXlOrigin& origin);

/// The tensor with its first axis in the opposite order.
TensorSource with_rows_reversed(TensorSource source);

}  // namespace engram
