#pragma once
/// The tensors of Hugging Face's TransfoXLLMHeadModel and the parameters of a TransformerXlModel that they hold
/// ([transformer-xl 10]). Both store linear maps [out, in], so nothing is transposed.

#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

/// The frequencies of the sinusoids, [D / 2]: a buffer of that class, not a parameter.
inline constexpr std::string_view kTransfoXlFrequencies = "transformer.pos_emb.inv_freq";

struct TransfoXlTensor {
  std::string name;
  Shape shape;
  /// Parameters of the model whose elements, one parameter after the other, are those of the tensor.
  std::vector<std::string> parameters;
  /// Where the tensor is tied: the tensor of the layout that it repeats. Then it has no parameters of its own, and a
  /// file may leave it out.
  std::string copy_of;
  /// The tensor's first row is the parameter's last one, and so on: its slots of clusters are in the other order than
  /// the model's (transfo_xl_cluster_order.hpp).
  bool rows_reversed = false;
};

/// All tensors of the layout but the frequencies, tied copies after what they repeat. Every parameter of the model is
/// in one of them. `file_order`: of the slots of clusters in the file; that class has them in natural order. Throws as
/// require_transfo_xl() does.
std::vector<TransfoXlTensor> transfo_xl_tensors(const TransformerXlOptions& options,
                                                ClusterOrder file_order = ClusterOrder::natural);

/// Throws one UsageError that names every option for whose weights the layout has no place, or one for options that
/// are not valid.
void require_transfo_xl(const TransformerXlOptions& options);

/// require_transfo_xl() for a model that is to be that class's: the message has also every option that has that class
/// remember or see something else, as it starts with zeros and sees all there is or as many positions as it remembers,
/// and the settings with which a model is written all the same.
void require_transfo_xl_class(const TransformerXlOptions& options);

}  // namespace engram
