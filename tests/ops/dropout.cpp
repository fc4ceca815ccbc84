#include "autograd/functions/dropout.hpp"

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "cpu/dropout_bits.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/op_table.hpp"

namespace engram::harness::dropout_test {
namespace {

/// What the definition in core/random_stream.hpp says of one element.
double multiplier(const RandomStream& random, const DropoutRule& rule, std::uint64_t element) {
  const PhiloxBlock block = random.draw(element / DropoutRule::kElementsPerBlock);
  return rule.keeps(block, static_cast<int>(element % DropoutRule::kElementsPerBlock)) ? rule.multiplier : 0;
}

Array64 dropped(const Array64& x, double rate, std::uint32_t operation) {
  Array64 y = x;
  const DropoutRule rule(rate);
  for (std::size_t i = 0; i < y.data.size(); ++i) y.data[i] *= multiplier(random_stream(operation), rule, i);
  return y;
}

BadCall refused(double rate, const char* shown) {
  return {.inputs = {normal({3})},
          .contains = {"[0, 1 - 2^-17)", shown},
          .function = [rate](std::span<const Variable> x) { return dropout(x[0], rate); }};
}

const OpCases cases{
    OpCase{.name = "dropout",
           .inputs = {{normal({3, 7})}, {normal({1})}, {normal({5, 16411})}},
           .function = [](std::span<const Variable> x) { return dropout(x[0], 0.3); },
           .reference = [](std::span<const Array64> x) { return dropped(x[0], 0.3, 0); },
           .tolerance = {.bf16 = kRounding},
           .dropout = true,
           .errors = {refused(1, "1"), refused(-0.1, "-0.1"), refused(0.999999, "0.999999"),
                      refused(std::nan(""), "nan")}},
    OpCase{.name = "dropout twice draws different bits",
           .inputs = {{normal({1031})}},
           .function = [](std::span<const Variable> x) { return dropout(dropout(x[0], 0.5), 0.2); },
           .reference = [](std::span<const Array64> x) { return dropped(dropped(x[0], 0.5, 0), 0.2, 1); },
           .tolerance = {.bf16 = 2 * kRounding},
           .dropout = true},
    OpCase{.name = "dropout, rate 0",
           .inputs = {{normal({11})}},
           .function = [](std::span<const Variable> x) { return dropout(x[0], 0); },
           .reference = [](std::span<const Array64> x) { return x[0]; },
           .tolerance = {.bf16 = kMoved}},
};

TEST_CASE("dropout: rate 0 and inference mode return the input itself", "[ops]") {
  Backend& backend = *available_backends().front();
  GuardedAllocator memory(backend);
  Step step(backend, memory);
  Tape training(step), inference(step, Tape::Mode::inference);
  const Tensor x = step.empty({4}, DType::f32);
  CHECK(dropout(training.leaf(x), 0).value().raw() == x.raw());
  CHECK(dropout(inference.leaf(x), 0.5).value().raw() == x.raw());
  CHECK_THROWS_AS(dropout(inference.leaf(x), 1.5), Error);
}

TEMPLATE_TEST_CASE("dropout: many multipliers at once are those of the definition", "[ops]", float, double) {
  const StepScalars scalars{.step = 0x123456789aULL, .piece = 3};
  const RandomStream random{0x1122334455667788ULL, 17, &scalars};
  // Starts around the blocks, the batches, and where the block number outgrows 32 bits.
  const std::uint64_t far = std::uint64_t{1} << 35;
  for (const double rate : {0.1, 0.5, 0.9999})
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{13}, far - 64, far - 61})
      for (const int count : {0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 250, 256, 257, 1031}) {
        const DropoutRule rule(rate);
        std::vector<TestType> got(static_cast<std::size_t>(count) + 2, TestType(-7)), wanted = got;
        cpu::dropout_multipliers(random, rule, first, count, got.data() + 1);
        for (int i = 0; i < count; ++i)
          wanted[static_cast<std::size_t>(i) + 1] =
              static_cast<TestType>(multiplier(random, rule, first + static_cast<std::uint64_t>(i)));
        INFO("rate " << rate << ", first " << first << ", count " << count);
        CHECK(got == wanted);
      }
}

TEST_CASE("dropout: the share kept is the asked one, for every place in a block", "[ops]") {
  const StepScalars scalars{.step = 1};
  const RandomStream random{9, 2, &scalars};
  constexpr int kBlocks = 20000;
  std::vector<double> out(8 * kBlocks);
  for (const double rate : {0.1, 0.3, 0.75}) {
    cpu::dropout_multipliers(random, DropoutRule(rate), 0, static_cast<std::int64_t>(out.size()), out.data());
    const double deviation = std::sqrt(rate * (1 - rate) / kBlocks);
    for (std::size_t place = 0; place < 8; ++place) {
      double kept = 0;
      for (std::size_t i = place; i < out.size(); i += 8) kept += out[i] > 0;
      INFO("rate " << rate << ", place " << place);
      CHECK(kept / kBlocks == Approx(1 - rate).margin(5 * deviation).epsilon(0));
    }
  }
}

TEST_CASE("dropout: step, piece, operation and seed all change the bits", "[ops]") {
  const StepScalars scalars{.step = 1}, next_step{.step = 2}, next_piece{.step = 1, .piece = 1};
  const auto bits = [](const RandomStream& random) {
    std::vector<float> out(256);
    cpu::dropout_multipliers(random, DropoutRule(0.5), 0, 256, out.data());
    return out;
  };
  const std::vector<float> base = bits({9, 2, &scalars});
  CHECK(bits({9, 2, &scalars}) == base);
  for (const RandomStream& other : {RandomStream{9, 2, &next_step}, RandomStream{9, 2, &next_piece},
                                    RandomStream{9, 3, &scalars}, RandomStream{10, 2, &scalars}}) {
    const std::vector<float> drawn = bits(other);
    int equal = 0;
    for (std::size_t i = 0; i < drawn.size(); ++i) equal += drawn[i] == base[i];
    CHECK(std::abs(equal - 128) < 40);  // five deviations of 256 coins
  }
}

}  // namespace
}  // namespace engram::harness::dropout_test
