/// A small language model of one's own with a product-key memory: it learns which character follows the last eight
/// ones, is saved, read again by another object, and writes.

#include <algorithm>
#include <cstdio>
#include <engram/engram.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace engram;

namespace {

constexpr std::int64_t kContext = 8, kWidth = 48;
const std::string kText =
    "This is the house that Jack built. This is the malt that lay in the house that Jack built. This is the rat that "
    "ate the malt that lay in the house that Jack built. This is the cat that killed the rat that ate the malt that "
    "lay in the house that Jack built. This is the dog that worried the cat that killed the rat that ate the malt that "
    "lay in the house that Jack built. ";

ProductKeyOptions memory_options() {
  ProductKeyOptions options;  // 16 x 16 slots
  options.subkeys = 16;
  options.heads = 2;
  options.selected = 8;
  options.query_width = 16;
  return options;
}

/// ids of the last characters [rows, kContext] -> logits of the next one [rows, 256].
struct CharacterModel final : Module {
  Embedding characters{256, 12};
  Linear inner{kContext * 12, kWidth};
  ProductKeyMemory memory{memory_options(), kWidth};
  Linear output{kWidth, 256};

  Variable forward(Tape& tape, const Tensor& ids) {
    const Variable seen = reshape(characters.forward(tape, ids), {ids.shape()[0], kContext * 12});
    const Variable hidden = tanh(inner.forward(seen));
    return output.forward(add(hidden, memory.forward(hidden)));
  }
  void visit(Visitor& visit) override {
    visit("characters", characters);
    visit("inner", inner);
    visit("memory", memory);
    visit("output", output);
  }
};

/// A model with what it needs to run.
struct Workshop {
  std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu});
  HeapAllocator heap{*backend};
  Arena arena{heap};
  Step step{*backend, arena, /*seed=*/1};
  ParameterStore store;
  CharacterModel model;

  explicit Workshop(std::uint64_t seed) {
    collect(model, store);
    store.place(*backend, DType::f32, seed);
  }

  /// What stands in `text` before each of its positions from `first` on: [rows, kContext].
  Tensor contexts(const std::string& text, std::size_t first) {
    const auto rows = static_cast<std::int64_t>(text.size() - first + 1);
    Tensor ids({rows, kContext}, DType::i32, backend->device(), heap);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < kContext; ++i) {
        const std::size_t at = first + static_cast<std::size_t>(row + i) - kContext;
        ids.data<std::int32_t>()[row * kContext + i] = static_cast<unsigned char>(text[at]);
      }
    return ids;
  }

  /// The likeliest characters that follow a text of at least kContext ones.
  std::string continued(std::string text, int count) {
    for (int i = 0; i < count; ++i) {
      const Tensor ids = contexts(text, text.size());
      step.begin({});
      {
        Tape tape(step, Tape::Mode::inference);
        const std::vector<double> logits = host_doubles(*backend, model.forward(tape, ids).value());
        text += static_cast<char>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      }
      arena.end_step();
    }
    return text;
  }
};

/// The last loss, in nats a character.
double train(Workshop& shop, const std::filesystem::path& file) {
  const auto rows = static_cast<std::int64_t>(kText.size()) - kContext;
  const Tensor ids = shop.contexts(kText, kContext).rows(0, rows);
  Tensor next({rows}, DType::i32, shop.backend->device(), shop.heap),
      weights({rows}, DType::f32, shop.backend->device(), shop.heap);
  for (std::int64_t row = 0; row < rows; ++row) {
    next.data<std::int32_t>()[row] = static_cast<unsigned char>(kText[static_cast<std::size_t>(row + kContext)]);
    weights.data<float>()[row] = 1.0f / static_cast<float>(rows);
  }
  OptimizerOptions rule;
  rule.kind = OptimizerKind::adam;
  rule.clip_kind = ClipKind::global;
  rule.clip = 1;
  rule.tables.rate = 0.01;  // of the memory's values
  const auto optimizer = make_optimizer(rule, shop.store, shop.step);
  double loss = 0;
  for (std::uint64_t update = 0; update <= 150; ++update) {
    shop.step.begin({.step = update, .learning_rate = 0.01});
    shop.store.zero_gradients(shop.step);
    {
      Tape tape(shop.step);
      const CrossEntropy result = cross_entropy(shop.model.forward(tape, ids), next, weights);
      tape.backward({result.loss});
      loss = host_doubles(*shop.backend, result.loss.value())[0];
    }
    optimizer->update(shop.step);
    shop.arena.end_step();
    if (update % 50 == 0) std::printf("update %3d: loss %.3f\n", static_cast<int>(update), loss);
  }
  save_checkpoint(file, *shop.backend, named_tensors(shop.store, *optimizer), {{"updates", "151"}});
  return loss;
}

}  // namespace

int main() {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "engram-characters.safetensors";
  try {
    Workshop trained(/*seed=*/1), read(/*seed=*/2);
    const double loss = train(trained, file);
    // What is only to be used needs no state of the optimiser.
    CheckpointFile(file).load(*read.backend, named_tensors(read.store), {.may_be_ignored = {"optimizer/"}});
    std::filesystem::remove(file);
    const std::string written = read.continued("This is the dog ", 64);
    std::printf("%s\n", written.c_str());
    return loss < 0.2 && written == trained.continued("This is the dog ", 64) ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
