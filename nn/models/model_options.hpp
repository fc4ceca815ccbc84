#pragma once
/// The model of a run: its family and the options of that family. Section [model] of a configuration.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/names.hpp"
#include "nn/layers/recurrent_options.hpp"
#include "nn/models/all_attention.hpp"
#include "nn/models/all_attention_options.hpp"
#include "nn/models/language_model.hpp"
#include "nn/models/product_key_transformer_options.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

enum class ModelFamily : std::uint8_t {
  all_attention,   ///< docs/guide/all-attention.md
  transformer_xl,  ///< docs/guide/transformer-xl.md
  product_key,     ///< docs/guide/product-key.md
  recurrent        ///< docs/guide/key-value-predict.md
};
constexpr auto names_of(ModelFamily) {
  return std::to_array<Named<ModelFamily>>({{ModelFamily::all_attention, "all_attention"},
                                            {ModelFamily::transformer_xl, "transformer_xl"},
                                            {ModelFamily::product_key, "product_key"},
                                            {ModelFamily::recurrent, "recurrent"}});
}
inline constexpr auto kModelFamilies = [] {
  constexpr auto kNames = names_of(ModelFamily{});
  std::array<ModelFamily, kNames.size()> families{};
  for (std::size_t i = 0; i < kNames.size(); ++i) families[i] = kNames[i].value;
  return families;
}();

struct ModelOptions {
  ModelFamily family = ModelFamily::all_attention;
  AllAttentionOptions all_attention;         ///< the keys of [model] where the family is all_attention
  TransformerXlOptions transformer_xl;       ///< where it is transformer_xl
  ProductKeyTransformerOptions product_key;  ///< where it is product_key
  RecurrentOptions recurrent;                ///< where it is recurrent

  std::int64_t vocabulary() const;  ///< symbols; 0: not known yet
  void set_vocabulary(std::int64_t symbols);
  /// Of the vocabulary's clusters; empty: none, as of every model of the family product_key.
  const std::vector<std::int64_t>& cutoffs() const;
  std::int64_t layers() const;
  /// Of the product-key memories; those of the family recurrent, which has none, are never any.
  const ProductKeyOptions& memories() const;
  /// Throws Error for the family recurrent.
  ProductKeyOptions& memories();
  /// Numbers in a hidden state.
  std::int64_t width() const;
  /// Whether anything is kept of earlier blocks. Where nothing is, every block is read from nothing.
  bool remembers() const;
  /// Whether training and evaluation read a text as segments, which lie one behind the other. Else blocks are cuts in
  /// streams over which windows slide, and borders move from pass to pass.
  bool reads_segments() const;
  /// The longest block that there are learned positions for; none: any.
  std::optional<std::int64_t> position_rows() const;
  /// Whether data of so many articles are read article by article, each from nothing; else as one text.
  bool reads_articles(std::int64_t articles) const;

  /// Throws UsageError naming the option and its value. The vocabulary may still be 0.
  void check() const;
  /// Throws UsageError, naming the command, where tables are stored as bf16, which goes with f32, and dtype is f64.
  void check_dtype(DType dtype, std::string_view command) const;
};

/// Calls `use` with the options of the model's own family.
template <class Options, class Use>
decltype(auto) with_own_options(Options& model, Use&& use) {
  switch (model.family) {
    case ModelFamily::transformer_xl:
      return std::forward<Use>(use)(model.transformer_xl);
    case ModelFamily::product_key:
      return std::forward<Use>(use)(model.product_key);
    case ModelFamily::recurrent:
      return std::forward<Use>(use)(model.recurrent);
    case ModelFamily::all_attention:
      return std::forward<Use>(use)(model.all_attention);
  }
  throw Error("model: the family must be one that there is");
}

/// The model without memory (ParameterStore::place). Throws UsageError when the options are not valid.
std::unique_ptr<LanguageModel> make_model(const ModelOptions& options);

/// The model, where it is of the all-attention family; nullptr where it is not.
AllAttentionModel* all_attention_of(LanguageModel& model);
const AllAttentionModel* all_attention_of(const LanguageModel& model);
/// Options of the all-attention family, for what only it has. Throws UsageError saying that `command` is for it.
const AllAttentionOptions& require_all_attention(const ModelOptions& options, std::string_view command);

}  // namespace engram
