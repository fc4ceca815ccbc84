#pragma once
/// The tensors of Hugging Face's TransfoXLLMHeadModel and the parameters of a TransformerXlModel that they hold
/// ([transformer-xl 10]). Both store linear maps [out, in], so nothing is transposed.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

/// The frequencies of the sinusoids, [D / 2]: a buffer of that class, not a parameter.
inline constexpr std::string_view kTransfoXlFrequencies = "transformer.pos_emb.inv_freq";

/// Whose layout it is. The original PyTorch program has the same tensors, their names without kTransfoXlPrefix.
enum class TransfoXlProgram : std::uint8_t { hugging_face, original };
inline constexpr std::string_view kTransfoXlPrefix = "transformer.";

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

/// require_transfo_xl() for a model that is to be that program's: the message has also every option that has the
/// program remember or see something else, and the settings with which a model is written all the same. Both see all
/// there is or as many positions as they remember. Hugging Face's class starts with zeros; the original program with
/// nothing, and all of its layers share their biases.
void require_transfo_xl_class(const TransformerXlOptions& options,
                              TransfoXlProgram program = TransfoXlProgram::hugging_face);

}  // namespace engram
