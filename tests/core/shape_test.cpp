#include "core/shape.hpp"

#include "core/error.hpp"
#include "tests/harness/catch.hpp"

namespace engram::shape_test {
namespace {

TEST_CASE("shape: axes, counts and rows", "[core]") {
  const Shape shape{2, 3, 5};
  CHECK(shape.rank() == 3);
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 5);
  CHECK(shape[-3] == 2);
  CHECK(shape.count() == 30);
  CHECK(shape.rows() == 6);
  CHECK(text(shape) == "[2, 3, 5]");
}

TEST_CASE("shape: rank 0 is one element, a zero axis none", "[core]") {
  CHECK(Shape{}.count() == 1);
  CHECK(Shape{}.rows() == 1);
  CHECK(text(Shape{}) == "[]");
  CHECK(Shape{0, 7}.count() == 0);
  CHECK(Shape{7}.rows() == 1);
  CHECK(Shape{4, 0}.rows() == 4);
}

TEST_CASE("shape: equality looks at the axes only", "[core]") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2} != Shape{2, 1});
  CHECK(Shape{2, 3}.with(-1, 9) == Shape{2, 9});
  CHECK(Shape{2, 3}.with(0, 9) == Shape{9, 3});
}

TEST_CASE("shape: six axes or a negative one are refused with the list", "[core]") {
  CHECK(Shape{1, 2, 3, 4, 5}.count() == 120);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1}), ShapeError);
  CHECK_THROWS_WITH((Shape{2, -1}), "shape: needs at most 5 axes, none negative, got [2, -1]");
  CHECK_THROWS_AS((Shape{2, 3}.with(0, -1)), ShapeError);
}

TEST_CASE("shape: sizes whose product does not fit are refused with the list", "[core]") {
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  CHECK(Shape{kMany, kMany - 1}.count() == kMany * (kMany - 1));
  CHECK(Shape{Shape::kMostElements}.count() == Shape::kMostElements);
  CHECK_THROWS_WITH((Shape{kMany, kMany}), "shape: must have at most 2^60 - 1 elements, got [1073741824, 1073741824]");
  CHECK_THROWS_AS((Shape{Shape::kMostElements + 1}), ShapeError);
  CHECK_THROWS_AS((Shape{std::int64_t{1} << 62, 16}), ShapeError);  // the product would be 0
  CHECK_THROWS_AS((Shape{0, std::int64_t{1} << 62, 16}), ShapeError);
  CHECK_THROWS_AS((Shape{2, kMany}.with(0, kMany)), ShapeError);
}

static_assert(Shape{2, 3}.count() == 6, "usable at compile time");
static_assert(std::is_trivially_copyable_v<Shape>, "may be a kernel argument");

}  // namespace
}  // namespace engram::shape_test
