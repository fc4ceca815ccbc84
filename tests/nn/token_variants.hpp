#pragma once
/// Both ends of a model alone, of any kind, with random parameters: on a device, and in the words of the executable
/// definition.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/layers/token_io.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/adaptive_tokens.hpp"

namespace engram::harness {

/// Named as in a model.
struct BothEnds final : Module {
  std::unique_ptr<TokenIo> tokens;
  explicit BothEnds(const TokenIoOptions& options) : tokens(make_token_io(options)) {}
  void visit(Visitor& visit) override {
    visit("embedding", tokens->input());
    visit("output", tokens->output());
  }
};

using Values = std::map<std::string, reference::Array64>;

struct TokenBench {
  TokenIoOptions options;
  DType dtype;
  Backend& backend;
  HeapAllocator heap{backend};
  Step step{backend, heap, 7};
  ParameterStore store;
  BothEnds ends;
  TokenPartition partition;

  TokenBench(TokenIoOptions which, Backend& device, DType type = DType::f64)
      : options(std::move(which)), dtype(type), backend(device), ends(options) {
    collect(ends, store);
    store.place(backend, dtype, 5);
  }
  TokenIo& tokens() { return *ends.tokens; }

  Tensor ids(std::span<const std::int32_t> values, Shape shape) {
    Tensor tensor = step.empty(shape, DType::i32);
    backend.copy(tensor.raw(), values.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  }
  void write(const Tensor& to, const reference::Array64& values) {
    dispatch_float(to.dtype(), "test", [&]<class T>() {
      const std::vector<T> host(values.data.begin(), values.data.end());
      backend.copy(to.raw(), host.data(), to.bytes(), CopyKind::host_to_device);
    });
  }
  Tensor tensor(const reference::Array64& values) {
    Tensor made(Shape(std::span<const std::int64_t>(values.shape)), dtype, backend.device(), heap);
    write(made, values);
    return made;
  }
  void set(const Values& values) {
    for (const auto& [name, parameter] : store.parameters()) write(parameter->value(), values.at(name));
  }
  /// Targets are of the last positions of every stream, as many in each.
  TokenBatch batch(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets, std::int64_t streams,
                   bool padded = false) {
    const auto count = static_cast<std::int64_t>(inputs.size());
    TokenBatch block{.inputs = ids(inputs, {streams, count / streams}),
                     .targets = targets.empty() ? Tensor() : ids(targets, {static_cast<std::int64_t>(targets.size())}),
                     .partition = nullptr,
                     .lists = {}};
    if (tokens().clusters() == nullptr) return block;
    partition.assign(*tokens().clusters(), inputs, targets, padded);
    block.partition = &partition;
    block.lists = ids(partition.values(), {static_cast<std::int64_t>(partition.values().size())});
    return block;
  }
  /// The losses of every row, in the order of the positions.
  std::vector<double> row_losses(const std::pmr::vector<LossPart>& parts, std::size_t rows) {
    std::vector<double> sums(rows);
    for (const LossPart& part : parts) {
      const reference::Array64 losses = to_host(backend, part.row_loss);
      const std::size_t count = part.rows ? part.rows->size() : rows;
      for (std::size_t i = 0; i < count; ++i)
        sums.at(part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i) += losses.data.at(i);
    }
    return sums;
  }
};

/// Numbers for every parameter, of a deviation that keeps the softmax away from its corners.
inline Values random_values(const ParameterStore& store, std::uint64_t seed, double factor = 0.5) {
  reference::RandomArrays random(seed);
  Values values;
  for (const auto& [name, parameter] : store.parameters())
    values[name] = random.array(PlacedModel::shape_of(*parameter), factor);
  return values;
}

/// Rows [begin, end) of a matrix or a vector.
inline reference::Array64 rows_of(const reference::Array64& whole, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = whole.rank() == 2 ? whole.axis(1) : 1;
  std::vector<std::int64_t> shape = whole.shape;
  shape[0] = end - begin;
  return {std::move(shape), {whole.data.begin() + begin * width, whole.data.begin() + end * width}};
}

/// The definition with these parameters: what is tied, is shared, or is absent is found by the names alone.
inline reference::AdaptiveTokens definition_of(const TokenIoOptions& options, const Values& values) {
  const auto given = [&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? reference::Array64{} : found->second;
  };
  const auto or_else = [](reference::Array64 first, const reference::Array64& second) {
    return first.given() ? std::move(first) : second;
  };
  reference::AdaptiveTokens defined{.cutoffs = options.cutoffs,
                                    .tables = {},
                                    .projections = {},
                                    .out_tables = {},
                                    .out_projections = {},
                                    .biases = {},
                                    .cluster_weight = given("output.cluster_head.weight"),
                                    .cluster_bias = given("output.cluster_head.bias"),
                                    .natural_order = options.cluster_order == ClusterOrder::natural};
  for (std::size_t i = 0; i <= options.cutoffs.size(); ++i) {
    const std::int64_t begin = i == 0 ? 0 : options.cutoffs[i - 1];
    const std::int64_t end = i == options.cutoffs.size() ? options.vocabulary : options.cutoffs[i];
    const std::string in = text("embedding.clusters.", i, "."), out = text("output.clusters.", i, ".");
    const reference::Array64 one = given("embedding.table");
    const reference::Array64 table = one.given() ? rows_of(one, begin, end) : values.at(in + "table");
    const reference::Array64 projection = or_else(given("embedding.projection"), given(in + "projection"));
    defined.tables.push_back(table);
    defined.projections.push_back(projection);
    defined.out_tables.push_back(or_else(or_else(given(out + "table"), given("output.table")), table));
    defined.out_projections.push_back(
        or_else(or_else(given(out + "projection"), given("output.projection")), projection));
    defined.biases.push_back(or_else(given(out + "bias"), given("output.bias")));
  }
  return defined;
}

struct TokenVariant {
  const char* name;
  TokenIoOptions options;
};

/// Kinds of both ends that the Transformer-XL family has, at small size: 17 words, at most four clusters.
inline std::vector<TokenVariant> token_variants() {
  const auto natural = ClusterOrder::natural;
  const std::vector<std::int64_t> three{5, 11}, four{4, 9, 13};
  std::vector<TokenVariant> all{
      {"divisor 1", {.vocabulary = 17, .width = 8, .cutoffs = three, .divisor = 1, .cluster_order = natural}},
      {"divisor 1, projected",
       {.vocabulary = 17, .width = 8, .embedding_width = 5, .cutoffs = three, .divisor = 1, .cluster_order = natural}},
      {"divisor 2", {.vocabulary = 17, .width = 8, .cutoffs = four, .divisor = 2, .cluster_order = natural}},
      {"divisor 2, wider than the model",
       {.vocabulary = 17, .width = 6, .embedding_width = 9, .cutoffs = three, .divisor = 2, .cluster_order = natural}},
      {"divisor 4", {.vocabulary = 17, .width = 16, .cutoffs = three, .divisor = 4, .cluster_order = natural}},
      {"plain", {.vocabulary = 17, .width = 8, .cutoffs = {}, .tie_plain = true}},
      {"plain, projected", {.vocabulary = 17, .width = 8, .embedding_width = 5, .cutoffs = {}, .tie_plain = true}},
  };
  const std::size_t kinds = all.size();
  const auto add = [&](const char* name, std::size_t kind, auto&& change) {
    all.push_back({name, all[kind].options});
    change(all.back().options);
  };
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    add("own tables", kind, [](TokenIoOptions& options) { options.tie_tables = false; });
    add("own projections", kind, [](TokenIoOptions& options) { options.tie_projections = false; });
    add("first projection untied", kind, [](TokenIoOptions& options) { options.untied_projections = {0}; });
    if (all[kind].options.cutoffs.empty()) continue;
    add("reversed", kind, [](TokenIoOptions& options) { options.cluster_order = ClusterOrder::reversed; });
    add("same width not projected", kind, [](TokenIoOptions& options) { options.project_same_width = false; });
    add("same width not projected, nothing tied", kind, [](TokenIoOptions& options) {
      options.project_same_width = false;
      options.tie_tables = options.tie_projections = false;
    });
  }
  return all;
}

}  // namespace engram::harness
