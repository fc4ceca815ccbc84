/// What ranks share: buckets of gradients, the state of optimisers, checkpoints.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "nn/checkpoint.hpp"
#include "nn/optim/gradient_exchange.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/harness/thread_ranks.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::ranks_test {
namespace {

/// Parameters of several layers and groups; one has many chunks, one is a single number, one is empty.
struct Layers : Bench {
  ParameterStore store;
  std::vector<std::unique_ptr<Parameter>> parameters;

  Layers() {
    const Initializer normal{Initializer::Kind::normal, 1};
    const auto add = [&](const char* name, Shape shape, const char* group = "weights") {
      parameters.push_back(std::make_unique<Parameter>(shape, normal, group));
      store.add(name, *parameters.back());
    };
    add("embedding.weight", {300, 150});
    add("layers.0.inner", {50, 70});
    add("layers.0.outer", {70, 501});
    add("layers.1.inner", {1});
    add("layers.1.none", {0, 4});
    add("layers.10.inner", {33000});
    add("layers.10.span", {6}, "spans");
    store.place(*backend, DType::f32, 5);
  }
};

constexpr std::int64_t kSmallBuckets = 1000;

TEST_CASE("ranks: every number of a block is in one rank's part of one bucket, at borders of chunks", "[ranks]") {
  const Layers layers;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    const std::vector<Bucket> buckets = make_buckets(layers.store, ranks, kSmallBuckets);
    // One rank has nothing to send; else each part of the model is one, but for the layer of a single number.
    CHECK(buckets.size() == (ranks == 1 ? 2 : 4));
    for (std::size_t g = 0; g < layers.store.groups().size(); ++g) {
      const ParameterGroup& group = layers.store.groups()[g];
      std::int64_t end = 0, chunk = 0;
      for (const Bucket& bucket : buckets) {
        if (bucket.group != g) continue;
        CHECK(bucket.begin == end);
        CHECK(bucket.first_chunk == chunk);
        std::int64_t longest = 0;
        for (int q = 0; q < ranks; ++q) {
          REQUIRE(bucket.begin_of(q) <= bucket.end_of(q));
          const SegmentRange part = segments_in(group.segments, bucket.begin_of(q), bucket.end_of(q));
          CHECK(chunks_of(part.segments) == bucket.chunk_end_of(q) - bucket.first_chunk_of(q));
          for (std::size_t s = 0; s < part.segments.size(); ++s) {
            const Segment& whole = group.segments[part.first + s];
            if (part.segments[s].count > 0)
              CHECK((part.segments[s].offset + bucket.begin_of(q) - whole.offset) % kSegmentChunk == 0);
          }
          longest = std::max(longest, bucket.end_of(q) - bucket.begin_of(q));
        }
        CHECK(longest <= (bucket.end - bucket.begin) / ranks + kSegmentChunk);
        end = bucket.end;
        chunk = bucket.chunk_ends.back();
      }
      CHECK(end == group.values.count());
      CHECK(chunk == chunks_of(group.segments));
    }
  }
}

/// By the definition: neighbours in pairs, level by level.
float tree_sum(std::vector<float> parts) {
  while (parts.size() > 1) {
    std::vector<float> next;
    for (std::size_t i = 0; i < parts.size(); i += 2)
      next.push_back(i + 1 < parts.size() ? parts[i] + parts[i + 1] : parts[i]);
    parts = next;
  }
  return parts[0];
}

TEST_CASE("ranks: gradients become the sum by a tree, each on the rank that updates it", "[ranks]") {
  for (const int count : {2, 3, 5, 8}) {
    std::vector<std::vector<float>> before(static_cast<std::size_t>(count)), after(before);
    std::vector<Bucket> buckets;
    std::vector<std::int64_t> sent(static_cast<std::size_t>(count));
    run_ranks(count, [&](Communicator& ranks) {
      const auto own = static_cast<std::size_t>(ranks.rank());
      Layers layers;
      const Tensor& block = layers.store.groups().back().gradients;  // the weights
      const std::vector<Bucket> mine = make_buckets(layers.store, count, kSmallBuckets);
      if (ranks.leads()) buckets = mine;
      reference::RandomArrays random(own + 1);
      layers.write(block, random.array({block.count()}, 1e4));
      before[own].assign(block.data<float>(), block.data<float>() + block.count());
      GradientExchange exchange(layers.store, mine, ranks);
      for (std::size_t b = mine.size(); b-- > 0;) exchange.start(layers.step, b);
      exchange.advance();
      exchange.finish(layers.step);
      after[own].assign(block.data<float>(), block.data<float>() + block.count());
      sent[own] = exchange.costs().bytes_sent;
    });
    std::int64_t wrong = 0;
    const std::size_t group = buckets.back().group;
    for (const Bucket& bucket : buckets) {
      if (bucket.group != group) continue;
      for (int q = 0; q < count; ++q)
        for (std::int64_t i = bucket.begin_of(q); i < bucket.end_of(q); ++i) {
          std::vector<float> parts;
          for (const auto& one : before) parts.push_back(one[static_cast<std::size_t>(i)]);
          wrong += after[static_cast<std::size_t>(q)][static_cast<std::size_t>(i)] != tree_sum(parts) ? 1 : 0;
        }
    }
    CHECK(wrong == 0);
    // Everybody sends all but the own part.
    std::int64_t all = 0;
    for (const Bucket& bucket : buckets) all += (bucket.end - bucket.begin) * 4;
    CHECK(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}) == all * (count - 1));
  }
}

OptimizerOptions options_of(OptimizerKind kind) {
  OptimizerOptions options;
  options.kind = kind;
  options.clip = 1;
  options.momentum = 0.9;
  options.nesterov = true;
  options.clip_kind = kind == OptimizerKind::adagrad ? ClipKind::per_tensor_step : ClipKind::global;
  return options;
}

/// Some updates with gradients that are the same on every rank. Returns the values, and saves the state.
std::vector<float> updated(Layers& layers, OptimizerKind kind, Communicator& ranks, const std::filesystem::path& file,
                           std::int64_t* state_numbers = nullptr) {
  const auto optimizer =
      make_optimizer(options_of(kind), layers.store, layers.step, {.ranks = &ranks, .bucket_bytes = kSmallBuckets});
  for (std::uint64_t update = 0; update < 3; ++update) {
    for (ParameterGroup& group : layers.store.groups())
      for (std::size_t i = 0; i < group.parameters.size(); ++i) {
        reference::RandomArrays random(update * 100 + i);
        const Tensor& gradient = group.parameters[i]->gradient();
        layers.write(gradient, random.array({gradient.count()}, 0.1));
      }
    layers.step.begin({.step = update, .learning_rate = 0.1});
    optimizer->update(layers.step);
  }
  std::vector<NamedTensor> state;
  optimizer->visit_state([&](const std::string& name, const Tensor& held, const std::optional<Division>& division) {
    state.push_back({"optimizer/" + name, held, division});
    if (state_numbers != nullptr && held) *state_numbers += held.count();
  });
  save_checkpoint(file, *layers.backend, state, {}, {.only_finite = true}, ranks);
  std::vector<float> values;
  for (const ParameterGroup& group : layers.store.groups())
    values.insert(values.end(), group.values.data<float>(), group.values.data<float>() + group.values.count());
  return values;
}

TEST_CASE("ranks: updates and the file of the state have the bits of one rank, which holds all of it", "[ranks]") {
  const TemporaryFolder folder;
  for (const OptimizerKind kind : {OptimizerKind::adagrad, OptimizerKind::adam, OptimizerKind::sgd}) {
    CAPTURE(name_of(kind));
    OneRank one;
    Layers alone;
    std::int64_t whole = 0;
    const std::vector<float> wanted = updated(alone, kind, one, folder / "one", &whole);
    for (const int count : {2, 3, 4}) {
      CAPTURE(count);
      std::vector<char> equal(static_cast<std::size_t>(count));
      std::vector<std::int64_t> held(static_cast<std::size_t>(count));
      run_ranks(count, [&](Communicator& ranks) {
        const auto own = static_cast<std::size_t>(ranks.rank());
        Layers layers;
        equal[own] = updated(layers, kind, ranks, folder / "several", &held[own]) == wanted ? 1 : 0;
      });
      CHECK(std::ranges::count(equal, 1) == count);
      CHECK(get_file(folder / "several") == get_file(folder / "one"));
      CHECK(std::accumulate(held.begin(), held.end(), std::int64_t{0}) == whole);
      CHECK(*std::ranges::max_element(held) < whole / count + 5 * kSegmentChunk);
    }
  }
}

TEST_CASE("ranks: a shared tensor comes back from a file, each rank's part", "[ranks][checkpoint]") {
  const TemporaryFolder folder;
  Bench bench;
  reference::RandomArrays random(3);
  const Tensor whole = bench.tensor(random.array({4, 7}), DType::f32);
  const std::vector<NamedTensor> saved{{"optimizer/x", whole}};
  save_checkpoint(folder / "file", *bench.backend, saved, {});
  const std::vector<std::int64_t> ends{5, 5, 28};
  for (const int rank : {0, 1, 2}) {
    const Division division{.shape = {4, 7}, .dtype = DType::f32, .ends = ends};
    const std::int64_t count = division.end(rank) - division.begin(rank);
    const Tensor part = count > 0 ? bench.tensor(reference::constant(0, {count}), DType::f32) : Tensor();
    const std::vector<NamedTensor> wanted{{"optimizer/x", part, division}};
    CheckpointFile(folder / "file").load(*bench.backend, wanted, {}, rank);
    if (count > 0)
      CHECK(std::equal(part.data<float>(), part.data<float>() + count, whole.data<float>() + division.begin(rank)));
  }
}

/// Two tables, and a parameter of another kind.
struct Tables : Bench {
  ParameterStore store;
  Parameter first{{40, 16}, Initializer{Initializer::Kind::normal, 1}, Gradient::rows};
  Parameter second{{300, 24}, Initializer{Initializer::Kind::uniform, 1}, Gradient::rows, DType::bf16};
  Parameter weight{{5, 3}, Initializer{Initializer::Kind::normal, 1}};

  explicit Tables(Communicator& ranks) {
    store.add("first", first);
    store.add("second", second);
    store.add("weight", weight);
    store.place(*backend, DType::f32, 5, {}, &ranks);
  }
};

OptimizerOptions table_options(TableMode mode) {
  OptimizerOptions options;
  options.kind = OptimizerKind::adam;
  options.clip_kind = ClipKind::global;
  options.tables.mode = mode;
  options.tables.epsilon = 0;
  return options;
}

/// What a rank holds of tables and of their state, in bytes: for every element, and for every row.
struct HeldBytes {
  std::size_t elements = 0, rows = 0;
  bool operator==(const HeldBytes&) const = default;
};

/// Saves tables and state, and reads them into others.
HeldBytes save_and_load_tables(Communicator& ranks, const std::filesystem::path& file,
                               const std::filesystem::path& of_one) {
  Tables tables(ranks);
  const auto optimizer =
      make_optimizer(table_options(TableMode::deferred), tables.store, tables.step, {.ranks = &ranks});
  HeldBytes held;
  std::vector<NamedTensor> all;
  for (const auto& [name, parameter] : tables.store.parameters()) {
    all.push_back({name, parameter->value(), parameter->division()});
    if (parameter->gradient_kind() == Gradient::rows) held.elements += parameter->value().bytes();
  }
  optimizer->tables()->visit_state(
      [&](const std::string& name, const Tensor& tensor, const std::optional<Division>& division) {
        all.push_back({"optimizer/" + name, tensor, division});
        (name.ends_with("moment") ? held.elements : held.rows) += tensor.bytes();
      });
  save_checkpoint(file, *tables.backend, all, {}, {.only_finite = true}, ranks);
  std::vector<std::vector<double>> before;
  for (const NamedTensor& entry : all) before.push_back(tables.read(entry.tensor).data);
  for (const Parameter* const table : tables.store.tables()) {
    Tensor values = table->value();
    kernels::fill(tables.step, values, 7);
  }
  CheckpointFile(of_one).load(*tables.backend, all, {}, ranks.rank());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (tables.read(all[i].tensor).data != before[i]) throw Error("tables: " + all[i].name + " came back otherwise");
  return held;
}

TEST_CASE("ranks: each draws, holds and saves its columns of tables, and reads them from the file of one",
          "[ranks][checkpoint]") {
  const TemporaryFolder folder;
  const std::filesystem::path of_one = folder / "one";
  OneRank one;
  const HeldBytes whole = save_and_load_tables(one, of_one, of_one);
  for (const int count : {2, 4, 8}) {
    CAPTURE(count);
    std::vector<HeldBytes> held(static_cast<std::size_t>(count));
    run_ranks(count, [&](Communicator& ranks) {
      held[static_cast<std::size_t>(ranks.rank())] = save_and_load_tables(ranks, folder / "several", of_one);
    });
    CHECK(get_file(folder / "several") == get_file(of_one));
    const HeldBytes share{whole.elements / static_cast<std::size_t>(count), whole.rows};
    CHECK(std::ranges::count(held, share) == count);
  }
}

/// What each of three ranks throws when it saves a large tensor that they share, and one that all have, of which some
/// number is not finite. Then it saves others.
std::vector<std::string> refused_saves(const std::filesystem::path& file, std::int64_t bad_shared, bool bad_whole) {
  std::vector<std::string> messages(3);
  run_ranks(3, [&](Communicator& ranks) {
    Bench bench;
    const std::int64_t each = 300'000;  // more than a chunk
    const auto own = static_cast<std::int64_t>(ranks.rank());
    reference::Array64 numbers = reference::constant(1, {each}), other = reference::constant(2, {each});
    if (bad_shared >= 0 && bad_shared / each == own)
      numbers.data[static_cast<std::size_t>(bad_shared % each)] = INFINITY;
    // Before the other one in the file.
    if (bad_whole) other.data[7] = NAN;
    const auto save = [&](const reference::Array64& part, const reference::Array64& whole) {
      const std::vector<NamedTensor> tensors{
          {"a", bench.tensor(whole, DType::f32)},
          {"optimizer/x", bench.tensor(part, DType::f32),
           Division{.shape = {3 * each}, .dtype = DType::f32, .ends = {each, 2 * each, 3 * each}}}};
      save_checkpoint(file, *bench.backend, tensors, {}, {.only_finite = true}, ranks);
    };
    try {
      save(numbers, other);
    } catch (const NotFiniteError& error) {
      messages[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
    // All are at the same place.
    if (ranks.any(ranks.rank() == 1)) save(reference::constant(3, {each}), reference::constant(4, {each}));
  });
  CHECK(CheckpointFile(file).has("optimizer/x"));
  return messages;
}

TEST_CASE("ranks: numbers that a file refuses are one error on all, and the next one is written", "[ranks]") {
  const TemporaryFolder folder;
  const auto said = [](const char* name) {
    return std::vector<std::string>(3,
                                    text("save_checkpoint: every number must be finite, got others in '", name, "'"));
  };
  CHECK(refused_saves(folder / "file", -1, true) == said("a"));
  // In the last chunk, when most has been gathered, and in the first one.
  CHECK(refused_saves(folder / "file", 899'999, false) == said("optimizer/x"));
  CHECK(refused_saves(folder / "file", 0, false) == said("optimizer/x"));
  CHECK(refused_saves(folder / "file", 500'000, true) == said("a"));
}

TEST_CASE("ranks: a file that rank 0 cannot write is one error on all, and the next one is written", "[ranks]") {
  const TemporaryFolder folder;
  std::vector<std::string> messages(3);
  run_ranks(3, [&](Communicator& ranks) {
    Bench bench;
    // Several chunks of the file, each of several ranks.
    const std::int64_t count = 700'000;
    const std::int64_t own = ranks.rank() == 1 ? 100'000 : 300'000;
    const Tensor part = bench.tensor(reference::constant(ranks.rank(), {own}), DType::f32);
    const std::vector<NamedTensor> shared{
        {"optimizer/x", part, Division{.shape = {count}, .dtype = DType::f32, .ends = {300'000, 400'000, count}}}};
    try {
      save_checkpoint(folder / "missing" / "file", *bench.backend, shared, {}, {}, ranks);
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
    save_checkpoint(folder / "file", *bench.backend, shared, {}, {}, ranks);
  });
  CHECK_THAT(messages[0], ContainsSubstring("missing"));
  CHECK(messages[1] == messages[0]);
  CHECK(messages[2] == messages[0]);
  const CheckpointFile file(folder / "file");
  const auto bytes = file.bytes(file.at("optimizer/x"));
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  CHECK(std::ranges::count(numbers, 0.0f) == 300'000);
  CHECK(std::ranges::count(numbers, 1.0f) == 100'000);
  CHECK(numbers[399'999] == 1.0f);
  CHECK(numbers[400'000] == 2.0f);
}

}  // namespace
}  // namespace engram::harness::ranks_test
