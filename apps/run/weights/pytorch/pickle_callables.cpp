#include "apps/run/weights/pytorch/pickle_callables.hpp"

#include <algorithm>
#include <array>

namespace engram {
namespace {

constexpr auto kCallables = std::to_array<PickleCallable>({
    {"collections.OrderedDict", PickleCall::mapping},
    {"collections.Counter", PickleCall::mapping},
    {"builtins.set", PickleCall::sequence},
    {"builtins.frozenset", PickleCall::sequence},
    {"__builtin__.set", PickleCall::sequence},
    {"__builtin__.frozenset", PickleCall::sequence},
    {"torch.Size", PickleCall::sequence},
    {"torch._utils._rebuild_tensor", PickleCall::tensor},
    {"torch._utils._rebuild_tensor_v2", PickleCall::tensor},
    {"torch._utils._rebuild_parameter", PickleCall::parameter},
    {"torch.DoubleStorage", PickleCall::storage_type},
    {"torch.FloatStorage", PickleCall::storage_type},
    {"torch.HalfStorage", PickleCall::storage_type},
    {"torch.BFloat16Storage", PickleCall::storage_type},
    {"torch.LongStorage", PickleCall::storage_type},
    {"torch.IntStorage", PickleCall::storage_type},
    {"torch.ShortStorage", PickleCall::storage_type},
    {"torch.CharStorage", PickleCall::storage_type},
    {"torch.ByteStorage", PickleCall::storage_type},
    {"torch.BoolStorage", PickleCall::storage_type},
    // A member of every module that PyTorch before 1.4 saved.
    {"torch.nn.backends.thnn._get_thnn_function_backend", PickleCall::nothing},
    {"torch.device", PickleCall::record},
    {"torch.nn.modules.activation.ReLU", PickleCall::record},
    {"torch.nn.modules.container.ModuleList", PickleCall::record},
    {"torch.nn.modules.container.ParameterList", PickleCall::record},
    {"torch.nn.modules.container.Sequential", PickleCall::record},
    {"torch.nn.modules.dropout.Dropout", PickleCall::record},
    {"torch.nn.modules.linear.Linear", PickleCall::record},
    {"torch.nn.modules.normalization.LayerNorm", PickleCall::record},
    {"torch.nn.modules.sparse.Embedding", PickleCall::record},
    {"torch.nn.parallel.data_parallel.DataParallel", PickleCall::record},
    // Modules, vocabularies and texts of the released Transformer-XL.
    {"mem_transformer.AdaptiveEmbedding", PickleCall::record},
    {"mem_transformer.DecoderLayer", PickleCall::record},
    {"mem_transformer.MemTransformerLM", PickleCall::record},
    {"mem_transformer.MultiHeadAttn", PickleCall::record},
    {"mem_transformer.PositionalEmbedding", PickleCall::record},
    {"mem_transformer.PositionwiseFF", PickleCall::record},
    {"mem_transformer.RelLearnableDecoderLayer", PickleCall::record},
    {"mem_transformer.RelLearnableMultiHeadAttn", PickleCall::record},
    {"mem_transformer.RelPartialLearnableDecoderLayer", PickleCall::record},
    {"mem_transformer.RelPartialLearnableMultiHeadAttn", PickleCall::record},
    {"proj_adaptive_softmax.ProjectedAdaptiveLogSoftmax", PickleCall::record},
    {"utils.proj_adaptive_softmax.ProjectedAdaptiveLogSoftmax", PickleCall::record},
    {"utils.data_parallel.BalancedDataParallel", PickleCall::record},
    {"data_utils.Corpus", PickleCall::record},
    {"utils.vocabulary.Vocab", PickleCall::record},
    {"vocabulary.Vocab", PickleCall::record},
    // The texts of the released adaptive-span program.
    {"data.Corpus", PickleCall::record},
    {"data.Dictionary", PickleCall::record},
    // What stands beside the words in vocabularies that Hugging Face's class saved.
    {"argparse.Namespace", PickleCall::record},
    {"re._compile", PickleCall::record},
    {"sacremoses.normalize.MosesPunctNormalizer", PickleCall::record},
    {"sacremoses.tokenize.MosesDetokenizer", PickleCall::record},
    {"sacremoses.tokenize.MosesTokenizer", PickleCall::record},
    {"transformers.tokenization_utils.Trie", PickleCall::record},
    // Arrays of NumPy, of which nothing is read.
    {"_codecs.encode", PickleCall::record},
    {"numpy.core.multiarray._reconstruct", PickleCall::record},
    {"numpy.core.multiarray.scalar", PickleCall::record},
    {"numpy._core.multiarray._reconstruct", PickleCall::record},
    {"numpy._core.multiarray.scalar", PickleCall::record},
    {"numpy.dtype", PickleCall::record},
    {"numpy.ndarray", PickleCall::record},
});

}  // namespace

std::span<const PickleCallable> known_pickle_callables() { return kCallables; }

std::ptrdiff_t find_pickle_callable(std::string_view module, std::string_view name) {
  const auto found = std::ranges::find_if(kCallables, [&](const PickleCallable& row) {
    return row.name.size() == module.size() + 1 + name.size() && row.name.starts_with(module) &&
           row.name[module.size()] == '.' && row.name.ends_with(name);
  });
  return found == kCallables.end() ? -1 : found - kCallables.begin();
}

}  // namespace engram
