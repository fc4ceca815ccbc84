#include "apps/run/weights/foreign_program.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace engram {
namespace {

/// A name that has this in it is a program's.
struct Sign {
  std::string_view part, program;
};
// The names of Hugging Face's class have those of Transformer-XL's own program in them, so they come first.
constexpr Sign kSigns[] = {
    {"transformer.layers.0.dec_attn.", kTransfoXlProgram},   {"transformer.word_emb.", kTransfoXlProgram},
    {"layers.0.dec_attn.", kTransformerXlProgram},           {"word_emb.emb_layers.", kTransformerXlProgram},
    {"layers.0.attn.proj_query.", kAdaptiveSpanProgram},     {"._mask.current_val", kAdaptiveSpanProgram},
    {"layers.0.attn.attn.persistent_", kAdaptiveSpanProgram}};

bool is_of_adaptive_spans(std::string_view program) { return program == kAdaptiveSpanProgram; }

}  // namespace

std::optional<std::string_view> program_of(const ForeignWeights& weights) {
  for (const Sign& sign : kSigns)
    if (std::ranges::any_of(weights.tensors,
                            [&sign](const auto& tensor) { return tensor.first.find(sign.part) != std::string::npos; }))
      return sign.program;
  return std::nullopt;
}

void require_program(const ForeignWeights& weights, std::string_view program) {
  const std::optional<std::string_view> found = program_of(weights);
  if (!found || is_of_adaptive_spans(*found) == is_of_adaptive_spans(program)) return;
  throw UsageError(text("import: --from must name the program whose tensors '", weights.path.string(),
                        "' has, got another one\n  this looks like ", *found, ": use --from ", *found));
}

}  // namespace engram
