/// Rows of tables: by ids, and by what a product-key memory selects.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

/// Two sets of three sub-keys: nine slots, of which the two best are taken.
constexpr std::int64_t kBest = 2;

OpExample product_key_lookup() {
  return {.name = "product_key_lookup",
          .source = "weighted_rows",
          .formula = "weights = softmax(product_key_top_k), y = weighted_rows: a whole lookup",
          .inputs = {drawn("query", {1, 4}), drawn("keys", {1, 2, 3, 2}), drawn("table", {9, 2})},
          .outputs = {"y", "ids"},
          .function = [](Inputs x) {
            const ProductKeySelection best = product_key_top_k(x[0], x[1], kBest);
            const Variable weights = reshape(softmax(best.scores), {1, kBest});
            const Tensor ids = best.ids.view({1, kBest});
            return Outputs{weighted_rows(x[2], ids, weights), x[0].tape().constant(ids)};
          }};
}

}  // namespace

std::vector<OpExample> lookup_examples() {
  return {
      product_key_lookup(),
      {.name = "embedding",
       .source = "embedding",
       .formula = "y[i] = row index[i] of the table: gather, and scatter-add backwards",
       .inputs = {drawn("table", {4, 2}), counts("index", {3}, {2, 0, 2})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{embedding(x[0], x[1].value())}; }},
      {.name = "product_key_top_k",
       .source = "product_key_top_k",
       .formula = "the 2 best of 9 slots: a slot's score is the sum of two sub-keys' scores",
       .inputs = {drawn("query", {1, 4}), drawn("keys", {1, 2, 3, 2})},
       .outputs = {"scores", "ids"},
       .function =
           [](Inputs x) {
             const ProductKeySelection best = product_key_top_k(x[0], x[1], kBest);
             return Outputs{best.scores, x[0].tape().constant(best.ids)};
           }},
      {.name = "weighted_rows",
       .source = "weighted_rows",
       .formula = "y[r] = sum over j of weights[r, j] table[ids[r, j]]",
       .inputs = {drawn("table", {4, 2}), row_ids("ids", {2, 2}, {3, 1, 1, 0}), drawn("weights", {2, 2})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{weighted_rows(x[0], x[1].value(), x[2])}; }},
  };
}

}  // namespace engram::tour
