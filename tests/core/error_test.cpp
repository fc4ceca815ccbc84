#include "core/error.hpp"

#include <string>
#include <thread>

#include "core/device.hpp"
#include "core/dtype.hpp"
#include "core/scope.hpp"
#include "core/shape.hpp"
#include "tests/harness/catch.hpp"

namespace engram::error_test {
namespace {

TEST_CASE("text: every kind of part", "[core]") {
  CHECK(text("rows ", 3, ", ", std::size_t{4}, ", ", true, ", ", 0.5, ", ", 1.0f, ", ", std::string("s")) ==
        "rows 3, 4, true, 0.5, 1, s");
  CHECK(text(Shape{2, 3}, " ", DType::bf16, " ", DeviceKind::simulated, " ", Device{DeviceKind::cuda, 2}) ==
        "[2, 3] bf16 simulated cuda:2");
  CHECK(text(std::int64_t{-5}, " ", std::uint64_t{18446744073709551615u}) == "-5 18446744073709551615");
}

TEST_CASE("errors: the open scopes stand before the message", "[core]") {
  CHECK(std::string(Error("op: rule, got fact").what()) == "op: rule, got fact");
  const Scope layer("layers.3");
  {
    const Scope attention("attention");
    CHECK(Scope::path() == "layers.3/attention");
    CHECK(std::string(ShapeError("op: rule, got fact").what()) == "[layers.3/attention] op: rule, got fact");
  }
  CHECK(std::string(ShapeError("op: rule, got fact").what()) == "[layers.3] op: rule, got fact");
}

TEST_CASE("errors: an exception leaves the scopes it passed", "[core]") {
  try {
    const Scope outer("outer");
    const Scope inner("inner");
    throw DTypeError("op: rule, got fact");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "[outer/inner] op: rule, got fact");
  }
  CHECK(Scope::path().empty());
}

TEST_CASE("errors: scopes belong to their thread", "[core]") {
  const Scope here("here");
  std::string other = "unset";
  std::thread([&other] { other = Scope::path(); }).join();
  CHECK(other.empty());
  CHECK(Scope::path() == "here");
}

TEST_CASE("errors: all are caught as Error and as std::exception", "[core]") {
  CHECK_THROWS_AS(throw FileError("f"), Error);
  CHECK_THROWS_AS(throw UsageError("u"), Error);
  CHECK_THROWS_AS(throw NotAvailable("n"), std::exception);
}

}  // namespace
}  // namespace engram::error_test
