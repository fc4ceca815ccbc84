#include "core/tensor.hpp"

#include "core/backend.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/matrix_view.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/guarded_allocator.hpp"

namespace engram::tensor_test {
namespace {

class Memory {
 public:
  Tensor numbered(Shape shape) {
    Tensor tensor(shape, DType::f32, {}, allocator);
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
    return tensor;
  }
  std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator allocator{*backend};
};

TEST_CASE("tensor: an empty handle", "[core]") {
  const Tensor none;
  CHECK_FALSE(none);
  CHECK(none.use_count() == 0);
  CHECK_THROWS_WITH(none.data<float>(), "tensor: data of an empty tensor was asked for (as f32)");
}

TEST_CASE("tensor: copies share memory, which the last one gives back", "[core]") {
  Memory memory;
  Tensor x = memory.numbered({2, 3});
  CHECK(x.bytes() == 24);
  CHECK(x.count() == 6);
  {
    const Tensor y = x;
    CHECK(x.use_count() == 2);
    y.data<float>()[5] = 50;
  }
  CHECK(x.use_count() == 1);
  CHECK(x.data<float>()[5] == 50);
  CHECK(memory.allocator.bytes_in_use() == 24);
  x = {};
  CHECK(memory.allocator.bytes_in_use() == 0);
}

TEST_CASE("tensor: data is checked against the element type", "[core]") {
  Memory memory;
  const Tensor x = memory.numbered({2, 3});
  CHECK(x.data<const float>() == x.raw());
  CHECK_THROWS_AS(x.data<double>(), DTypeError);
  CHECK_THROWS_WITH(x.data<std::int32_t>(), "tensor: elements are f32, asked for i32, shape [2, 3]");
}

TEST_CASE("tensor: a view keeps memory and count", "[core]") {
  Memory memory;
  const Tensor x = memory.numbered({2, 6});
  const Tensor y = x.view({3, 4});
  CHECK(y.shape() == Shape{3, 4});
  CHECK(y.raw() == x.raw());
  CHECK(x.use_count() == 2);
  CHECK_THROWS_WITH(x.view({3, 5}), "view: the number of elements must stay, got [2, 6] -> [3, 5]");
}

TEST_CASE("tensor: rows are a slice of axis 0 in the same memory", "[core]") {
  Memory memory;
  const Tensor x = memory.numbered({4, 3, 2});
  const Tensor middle = x.rows(1, 3);
  CHECK(middle.shape() == Shape{2, 3, 2});
  CHECK(middle.data<float>()[0] == 6);
  CHECK(middle.rows(1, 2).view({6}).data<float>()[5] == 17);
  CHECK(x.rows(4, 4).count() == 0);
  CHECK_THROWS_AS(x.rows(-1, 2), ShapeError);
  CHECK_THROWS_AS(x.rows(3, 2), ShapeError);
  CHECK_THROWS_WITH(x.rows(2, 5), "rows: needs 0 <= begin <= end <= rows of axis 0, got [2, 5) of [4, 3, 2]");
}

TEST_CASE("tensor: no elements take no access but a valid handle", "[core]") {
  Memory memory;
  const Tensor x = memory.numbered({0, 3});
  CHECK(x);
  CHECK(x.bytes() == 0);
  CHECK(x.rows(0, 0).count() == 0);
}

TEST_CASE("matrix views: strides of a batch and of one flat matrix", "[core]") {
  Memory memory;
  const Tensor x = memory.numbered({2, 3, 4});
  const MatrixView batch = MatrixView::of(x);
  CHECK(batch.rows == 3);
  CHECK(batch.columns == 4);
  CHECK(batch.row_stride == 4);
  CHECK(batch.batch_stride == 12);
  CHECK(*batch.data<float>(1) == 12);
  const MatrixView flat = MatrixView::flat(x);
  CHECK(flat.rows == 6);
  CHECK(flat.columns == 4);
  CHECK(flat.batch_stride == 0);
  CHECK(MatrixView::of(x.view({6, 4})).batch_stride == 0);
  CHECK_THROWS_AS(MatrixView::of(x.view({24})), ShapeError);
}

TEST_CASE("checks: each says the op, the rule and the facts", "[core]") {
  Memory memory;
  const Tensor x = memory.numbered({2, 3});
  CHECK_NOTHROW(check_shape("op", "x", x, {2, 3}));
  CHECK_THROWS_WITH(check_shape("op", "x", x, {3, 2}), "op: x must be [3, 2], got [2, 3]");
  CHECK_THROWS_WITH(check_shape("op", "x", {}, {3, 2}), "op: x must be [3, 2], got no tensor");
  CHECK_THROWS_WITH(check_dtype("op", "x", x, DType::i32), "op: x must be i32, got f32");
  CHECK_NOTHROW(check_same_device("op", x, x));
  const Tensor other({2}, DType::f32, {DeviceKind::cuda, 1}, memory.allocator);
  CHECK_THROWS_WITH(check_same_device("op", x, other), "op: all tensors must be on one device, got cpu and cuda:1");
}

}  // namespace
}  // namespace engram::tensor_test
