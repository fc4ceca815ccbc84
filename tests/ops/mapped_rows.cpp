/// Reading of tables that are in mapped files: [product-key 10], test 19.

#include <algorithm>

#include "autograd/functions/weighted_rows.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/files/mapped_table.hpp"
#include "core/kernels/weighted_rows.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/table_files.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::mapped_rows_test {
namespace {

constexpr std::int64_t kRows = 23, kResults = 9, kReads = 7;

Backend& cpu() {
  return **std::ranges::find_if(available_backends(),
                                [](const auto& backend) { return backend->device().kind == DeviceKind::cpu; });
}

struct ReadFixture {
  Backend& backend;
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step, Tape::Mode::inference};

  explicit ReadFixture(Backend& device) : backend(device) {}

  Tensor tensor(Shape shape, const std::vector<double>& numbers, DType dtype) {
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, values(shape, numbers), dtype).view(shape);
  }
  Tensor ids(Shape shape, const std::vector<double>& numbers) {
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, wide_integers(shape, numbers), DType::f32)
        .view(shape);
  }
  std::string bytes(const Tensor& x) {
    std::string host(x.bytes(), '\0');
    backend.copy(host.data(), x.raw(), x.bytes(), CopyKind::device_to_host);
    return host;
  }
  /// Table, ids and weights.
  std::vector<Array64> numbers(std::int64_t width, DType dtype) {
    return input_values(
        "mapped", {normal({kRows, width}), wide_index({kResults, kReads}, kRows), normal({kResults, kReads})}, dtype);
  }
};

TEST_CASE("weighted_rows: a mapped table gives what the table in memory gives, to the bit", "[ops]") {
  ReadFixture f(cpu());
  const TemporaryFolder folder;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const std::int64_t width : {1, 3, 16, 31, 64, 512, 520, 1031, 1100}) {
      CAPTURE(name_of(dtype), width);
      const std::vector<Array64> drawn = f.numbers(width, dtype);
      const Tensor values = f.tensor({kRows, width}, drawn[0].data, dtype);
      const Tensor ids = f.ids({kResults, kReads}, drawn[1].data);
      const Variable weights = f.tape.constant(f.tensor({kResults, kReads}, drawn[2].data, compute_dtype(dtype)));
      put_table(folder / "t.table", values.shape(), dtype, values.raw());
      const MappedTable mapped(folder / "t.table", values.shape(), dtype);
      mapped.read_ahead(ids);
      const Variable in_memory = weighted_rows(f.tape.constant(values), ids, weights);
      const Variable read = weighted_rows(mapped, ids, weights);
      CHECK(read.shape() == in_memory.shape());
      CHECK(read.dtype() == in_memory.dtype());
      CHECK((f.bytes(read.value()) == f.bytes(in_memory.value())));
      CHECK_FALSE(read.requires_grad());
    }
}

TEST_CASE("weighted_rows: kernels read the first columns of padded rows", "[ops]") {
  ReadFixture f(each_device());
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const std::int64_t width : {1, 4, 8, 30, 64, 520})
      for (const std::int64_t padding : {1, 8, 24}) {
        CAPTURE(name_of(dtype), width, padding);
        const std::vector<Array64> drawn = f.numbers(width, dtype);
        std::vector<double> padded(static_cast<std::size_t>(kRows * (width + padding)), 1e30);
        for (std::int64_t row = 0; row < kRows; ++row)
          std::copy_n(drawn[0].data.begin() + row * width, width, padded.begin() + row * (width + padding));
        const Tensor ids = f.ids({kResults, kReads}, drawn[1].data);
        const Tensor weights = f.tensor({kResults, kReads}, drawn[2].data, compute_dtype(dtype));
        std::vector<Tensor> read;
        for (const Tensor& table :
             {f.tensor({kRows, width}, drawn[0].data, dtype), f.tensor({kRows, width + padding}, padded, dtype)}) {
          Tensor y = f.step.empty({kResults, width}, compute_dtype(dtype));
          kernels::weighted_rows_forward(f.step, table, ids, weights, y);
          read.push_back(y);
        }
        // Cards round another way where rows cannot be read in packs; those of a file always can.
        if (f.backend.device().kind == DeviceKind::cpu || padding % 8 == 0) {
          CHECK((f.bytes(read[0]) == f.bytes(read[1])));
          continue;
        }
        const std::vector<double> plain = to_host(f.backend, read[0]).data, strided = to_host(f.backend, read[1]).data;
        const double rounding = dtype == DType::f64 ? 1e-14 : 1e-5;
        for (std::size_t i = 0; i < plain.size(); ++i)
          CHECK(strided[i] == Approx(plain[i]).epsilon(rounding).margin(rounding));
      }
}

TEST_CASE("weighted_rows: the last row of a mapped file of more than 4 GiB", "[ops]") {
  ReadFixture f(cpu());
  const TemporaryFolder folder;
  const TableHeader header = TableHeader::of({1'100'000, 1024}, DType::f32);  // a page for every row
  REQUIRE(header.file_bytes() > (std::uint64_t{1} << 32));
  const std::int64_t last = header.rows - 1;
  {
    SparseTable sparse(folder / "t.table", header);
    sparse.put_row(last, std::vector<float>(1024, 3).data());
    sparse.put_row(last - (std::int64_t{1} << 32) / 4096, std::vector<float>(1024, 100).data());
    sparse.put_row(1, std::vector<float>(1024, 5).data());
  }
  const MappedTable mapped(folder / "t.table", header.shape(), header.dtype);
  const double end = static_cast<double>(last);
  const Tensor ids = f.ids({2, 2}, {1, end, end, end});
  mapped.read_ahead(ids);
  const Variable y = weighted_rows(mapped, ids, f.tape.constant(f.tensor({2, 2}, {1, 2, 10, 20}, DType::f32)));
  for (int i = 0; i < 1024; ++i) {
    CHECK(y.value().data<float>()[i] == 11);
    CHECK(y.value().data<float>()[1024 + i] == 90);
  }
}

TEST_CASE("weighted_rows: what is refused of a mapped table", "[ops]") {
  ReadFixture f(cpu());
  const TemporaryFolder folder;
  const std::vector<float> values(10, 1);
  const MappedTable mapped(put_table(folder / "t.table", {5, 2}, DType::f32, values.data()), {5, 2}, DType::f32);
  const Variable weights = f.tape.constant(f.tensor({1, 2}, {1, 1}, DType::f32));
  CHECK_THROWS_WITH(weighted_rows(mapped, f.ids({1, 2}, {0, 5}), weights),
                    ContainsSubstring("[0, 5), got 5 at place 1"));
  CHECK_THROWS_WITH(weighted_rows(mapped, f.ids({2}, {0, 1}), weights), ContainsSubstring("[R, A]"));
  CHECK_THROWS_WITH(weighted_rows(mapped, f.ids({1, 2}, {0, 1}), f.tape.constant(f.tensor({1, 2}, {1, 1}, DType::f64))),
                    ContainsSubstring("weights must be f32, got f64"));
  Tape training(f.step);
  CHECK_THROWS_WITH(
      weighted_rows(mapped, f.ids({1, 2}, {0, 1}), training.constant(f.tensor({1, 2}, {1, 1}, DType::f32))),
      ContainsSubstring("must be read on an inference tape, got one of training") && ContainsSubstring("t.table"));
}

}  // namespace
}  // namespace engram::harness::mapped_rows_test
