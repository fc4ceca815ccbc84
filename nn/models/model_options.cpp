#include "nn/models/model_options.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "nn/layers/vocabulary_clusters.hpp"
#include "nn/models/product_key_transformer.hpp"
#include "nn/models/recurrent.hpp"
#include "nn/models/transformer_xl.hpp"

namespace engram {
namespace {

// One answer of each family, for each question: of a new one the compiler asks for them.

const std::vector<std::int64_t> kNoCutoffs;
const std::vector<std::int64_t>& cutoffs_of(const AllAttentionOptions& options) { return options.cutoffs; }
const std::vector<std::int64_t>& cutoffs_of(const TransformerXlOptions& options) { return options.cutoffs; }
const std::vector<std::int64_t>& cutoffs_of(const ProductKeyTransformerOptions&) { return kNoCutoffs; }
const std::vector<std::int64_t>& cutoffs_of(const RecurrentOptions& options) { return options.cutoffs; }

const ProductKeyOptions kNoMemories;
const ProductKeyOptions* memories_of(const AllAttentionOptions& options) { return &options.memories; }
const ProductKeyOptions* memories_of(const TransformerXlOptions& options) { return &options.memories; }
const ProductKeyOptions* memories_of(const ProductKeyTransformerOptions& options) { return &options.memories; }
const ProductKeyOptions* memories_of(const RecurrentOptions&) { return nullptr; }

bool remembers_text(const AllAttentionOptions&) { return true; }
bool remembers_text(const TransformerXlOptions& options) { return options.memory > 0; }
bool remembers_text(const ProductKeyTransformerOptions&) { return false; }
bool remembers_text(const RecurrentOptions&) { return true; }

bool knows_articles(const AllAttentionOptions&) { return false; }
bool knows_articles(const TransformerXlOptions&) { return false; }
bool knows_articles(const ProductKeyTransformerOptions&) { return false; }
bool knows_articles(const RecurrentOptions&) { return true; }

bool has_segments(const AllAttentionOptions&) { return false; }
bool has_segments(const TransformerXlOptions&) { return true; }
bool has_segments(const ProductKeyTransformerOptions&) { return true; }
bool has_segments(const RecurrentOptions&) { return true; }

std::optional<std::int64_t> position_rows_of(const AllAttentionOptions&) { return std::nullopt; }
std::optional<std::int64_t> position_rows_of(const RecurrentOptions&) { return std::nullopt; }
std::optional<std::int64_t> position_rows_of(const ProductKeyTransformerOptions& options) {
  return options.position_rows;
}
std::optional<std::int64_t> position_rows_of(const TransformerXlOptions& options) {
  return options.positions == PositionKind::absolute_learned ? std::optional(options.position_rows) : std::nullopt;
}

/// Of a vocabulary that is not known yet.
void check_cutoffs(const AllAttentionOptions& options) { VocabularyClusters::check(options.cutoffs, 0, options.width); }
void check_cutoffs(const TransformerXlOptions& options) {
  VocabularyClusters::check(options.cutoffs, 0, options.token_width(), options.divisor);
}
void check_cutoffs(const ProductKeyTransformerOptions&) {}
void check_cutoffs(const RecurrentOptions& options) {
  if (options.cutoffs.empty()) return;
  VocabularyClusters::check(options.cutoffs, 0, std::min(options.vector_width(), options.hidden_width()),
                            options.divisor);
}

}  // namespace

std::int64_t ModelOptions::vocabulary() const {
  return with_own_options(*this, [](const auto& own) { return own.vocabulary; });
}
void ModelOptions::set_vocabulary(std::int64_t symbols) {
  with_own_options(*this, [symbols](auto& own) { own.vocabulary = symbols; });
}
const std::vector<std::int64_t>& ModelOptions::cutoffs() const {
  return with_own_options(*this, [](const auto& own) -> const std::vector<std::int64_t>& { return cutoffs_of(own); });
}
const ProductKeyOptions& ModelOptions::memories() const {
  const ProductKeyOptions* const own = with_own_options(*this, [](const auto& all) { return memories_of(all); });
  return own != nullptr ? *own : kNoMemories;
}
ProductKeyOptions& ModelOptions::memories() {
  const ProductKeyOptions* const own = with_own_options(*this, [](const auto& all) { return memories_of(all); });
  if (own == nullptr) throw Error(text("model: the family ", name_of(family), " has no product-key memories"));
  return const_cast<ProductKeyOptions&>(*own);  // a member of this
}
std::int64_t ModelOptions::layers() const {
  return with_own_options(*this, [](const auto& own) { return own.layers; });
}
std::int64_t ModelOptions::width() const {
  return with_own_options(*this, [](const auto& own) { return own.width; });
}
bool ModelOptions::remembers() const {
  return with_own_options(*this, [](const auto& own) { return remembers_text(own); });
}
bool ModelOptions::reads_articles(std::int64_t articles) const {
  return articles > 0 && with_own_options(*this, [](const auto& own) { return knows_articles(own); });
}

bool ModelOptions::reads_segments() const {
  return with_own_options(*this, [](const auto& own) { return has_segments(own); });
}
std::optional<std::int64_t> ModelOptions::position_rows() const {
  return with_own_options(*this, [](const auto& own) { return position_rows_of(own); });
}

void ModelOptions::check() const {
  with_own_options(*this, [](auto own) {
    if (own.vocabulary == 0) {
      check_cutoffs(own);
      own.vocabulary = cutoffs_of(own).empty() ? 1 : cutoffs_of(own).back() + 1;
    }
    own.check();
  });
}

void ModelOptions::check_dtype(DType dtype, std::string_view command) const {
  const ProductKeyOptions& tables = memories();
  if (dtype == DType::f64 && tables.any() && tables.value_dtype == DType::bf16)
    throw UsageError(text(command, ": --dtype must be f32 with product_key.value_dtype = bf16, got f64"));
}

std::unique_ptr<LanguageModel> make_model(const ModelOptions& options) {
  switch (options.family) {
    case ModelFamily::transformer_xl:
      return std::make_unique<TransformerXlModel>(options.transformer_xl);
    case ModelFamily::product_key:
      return std::make_unique<ProductKeyTransformer>(options.product_key);
    case ModelFamily::recurrent:
      return std::make_unique<RecurrentModel>(options.recurrent);
    case ModelFamily::all_attention:
      return std::make_unique<AllAttentionModel>(options.all_attention);
  }
  throw Error("model: the family must be one that there is");
}

AllAttentionModel* all_attention_of(LanguageModel& model) { return dynamic_cast<AllAttentionModel*>(&model); }
const AllAttentionModel* all_attention_of(const LanguageModel& model) {
  return dynamic_cast<const AllAttentionModel*>(&model);
}
const AllAttentionOptions& require_all_attention(const ModelOptions& options, std::string_view command) {
  if (options.family != ModelFamily::all_attention)
    throw UsageError(text(command, ": the model must be of family all_attention, which alone has adaptive spans and ",
                          "persistent slots, got ", name_of(options.family)));
  return options.all_attention;
}

}  // namespace engram
