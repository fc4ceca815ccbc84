#include <cmath>
#include <set>

#include "core/philox.hpp"
#include "core/random_stream.hpp"
#include "tests/harness/catch.hpp"

namespace engram::random_test {
namespace {

TEST_CASE("philox: the authors' third test vector", "[core]") {
  // Digits of pi as counter and key (the first two vectors are checked at compile time).
  const PhiloxBlock got = philox({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u);
  CHECK(got.word[0] == 0xd16cfe09u);
  CHECK(got.word[1] == 0x94fdccebu);
  CHECK(got.word[2] == 0x5001e420u);
  CHECK(got.word[3] == 0x24126ea1u);
}

bool same(const PhiloxBlock& a, const PhiloxBlock& b) {
  for (int i = 0; i < 4; ++i)
    if (a.word[i] != b.word[i]) return false;
  return true;
}

TEST_CASE("random stream: every part of the counter matters", "[core]") {
  StepScalars scalars{.step = 3, .piece = 1};
  const RandomStream stream{.seed = 5, .operation = 2, .scalars = &scalars};
  const PhiloxBlock base = stream.draw(10);
  CHECK(same(base, stream.draw(10, 3, 1)));
  CHECK_FALSE(same(base, stream.draw(11)));
  CHECK_FALSE(same(base, stream.draw(10 + (std::uint64_t{1} << 32))));
  CHECK_FALSE(same(base, stream.draw(10, 4, 1)));
  CHECK_FALSE(same(base, stream.draw(10, 3, 2)));
  CHECK_FALSE(same(base, RandomStream{.seed = 5, .operation = 3, .scalars = &scalars}.draw(10)));
  CHECK_FALSE(same(base, RandomStream{.seed = 6, .operation = 2, .scalars = &scalars}.draw(10)));
  CHECK_FALSE(
      same(base, RandomStream{.seed = 5 + (std::uint64_t{1} << 32), .operation = 2, .scalars = &scalars}.draw(10)));
  scalars.step = 4;
  CHECK(same(stream.draw(10), stream.draw(10, 4, 1)));
}

TEST_CASE("dropout rule: threshold and multiplier", "[core]") {
  CHECK_FALSE(DropoutRule().active());
  CHECK(DropoutRule().multiplier == 1);
  CHECK_FALSE(DropoutRule(0).active());
  CHECK(DropoutRule(0.25).threshold == 16384);
  CHECK(DropoutRule(0.25).multiplier == Approx(4 / 3.0).epsilon(1e-15));
  // The multiplier belongs to the share that is really kept, so that the expectation is exact.
  const DropoutRule third(1 / 3.0);
  CHECK(third.threshold == 21845);
  CHECK(third.multiplier * (65536 - third.threshold) == Approx(65536).epsilon(1e-15));
  CHECK(DropoutRule(1e-6).active() == false);
}

TEST_CASE("dropout rule: eight elements of a block use its eight half-words", "[core]") {
  const PhiloxBlock block{{0x00020001u, 0x00040003u, 0x00060005u, 0x00080007u}};
  for (int i = 0; i < 8; ++i) CHECK(DropoutRule::bits_of(block, i) == static_cast<std::uint32_t>(i + 1));
  const DropoutRule rule(4 / 65536.0);
  for (int i = 0; i < 8; ++i) CHECK(rule.keeps(block, i) == (i + 1 >= 4));
}

TEST_CASE("dropout rule: the share dropped is the rate", "[core]") {
  const StepScalars scalars{.step = 1};
  const RandomStream stream{.seed = 42, .operation = 0, .scalars = &scalars};
  const DropoutRule rule(0.3);
  const int blocks = 20000;
  int kept = 0;
  for (int block = 0; block < blocks; ++block) {
    const PhiloxBlock numbers = stream.draw(static_cast<std::uint64_t>(block));
    for (int i = 0; i < DropoutRule::kElementsPerBlock; ++i) kept += rule.keeps(numbers, i);
  }
  const double share = kept / (8.0 * blocks);
  // Five standard deviations of a binomial share.
  CHECK(std::abs(share - 0.7) < 5 * std::sqrt(0.3 * 0.7 / (8.0 * blocks)));
}

}  // namespace
}  // namespace engram::random_test
