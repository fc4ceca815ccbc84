/// All checks of every entry of the op table: one test case per check, one section per entry.

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_checks.hpp"

namespace engram::harness::op_table_test {
namespace {

Backend& cpu() { return *available_backends().front(); }

void report(const OpCase& op, std::size_t set, const Faults& faults) {
  for (const std::string& fault : faults) FAIL_CHECK(op.name << ", inputs " << set << ": " << fault);
  CHECK(faults.empty());
}

/// Runs check(op, set) for every set of every entry.
template <class Check>
void for_every_entry(Check check) {
  for (const OpCase& op : all_op_cases()) {
    DYNAMIC_SECTION(op.name) {
      for (std::size_t set = 0; set < op.inputs.size(); ++set) {
        INFO("inputs " << set);
        report(op, set, check(op, set));
      }
    }
  }
}

/// Entries that a device cannot run for lack of a kernel, with what it says; tests/kernel_coverage_test.cpp has the
/// list of kernels that may be lacking. Told by the last test case.
std::map<std::string, std::set<std::string>>& left_out() {
  static std::map<std::string, std::set<std::string>> entries;
  return entries;
}

/// Runs check(backend, op, set) for every device.
template <class Check>
void for_every_device(Check check) {
  for_every_entry([&](const OpCase& op, std::size_t set) {
    Faults faults;
    for (const auto& backend : available_backends()) {
      try {
        for (const std::string& fault : check(*backend, op, set))
          faults.push_back(text(backend->device(), ": ", fault));
      } catch (const NotAvailable& lacking) {
        if (backend->device().kind == DeviceKind::cpu) throw;
        left_out()[lacking.what()].insert(op.name);
      }
    }
    return faults;
  });
}

/// Runs check(backend, op, set, dtype) for every device, in f32, and in bf16 where both have it.
template <class Check>
void for_every_device_and_dtype(Check check) {
  for_every_device([&](Backend& backend, const OpCase& op, std::size_t set) {
    Faults faults = check(backend, op, set, DType::f32);
    if (runs_in_bf16(backend, op))
      for (const std::string& fault : check(backend, op, set, DType::bf16)) faults.push_back("bf16: " + fault);
    return faults;
  });
}

TEST_CASE("op table: entries are complete", "[ops]") {
  const std::vector<OpCase>& entries = all_op_cases();
  CHECK_FALSE(entries.empty());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    INFO(entries[i].name);
    CHECK_FALSE(entries[i].name.empty());
    CHECK_FALSE(entries[i].inputs.empty());
    if (i > 0) CHECK(entries[i].name != entries[i - 1].name);
  }
}

TEST_CASE("op table: forward in f64 against the reference", "[ops]") {
  for_every_device(
      [](Backend& backend, const OpCase& op, std::size_t set) { return check_reference(backend, op, set); });
}

TEST_CASE("op table: gradients in f64 against central differences", "[ops]") {
  for_every_entry([](const OpCase& op, std::size_t set) { return check_gradient(cpu(), op, set); });
}

TEST_CASE("op table: f32 and bf16 of every device against f64", "[ops]") {
  for_every_device(
      [](Backend& backend, const OpCase& op, std::size_t set) { return check_precision(backend, cpu(), op, set); });
}

TEST_CASE("op table: gradients of a second use are added", "[ops]") {
  for_every_entry([](const OpCase& op, std::size_t set) { return check_add_mode(cpu(), op, set, DType::f64); });
}

TEST_CASE("op table: gradients of a second use are added, f32 and bf16 on every device", "[ops]") {
  for_every_device_and_dtype(check_add_mode);
}

TEST_CASE("op table: gradients that are not wanted", "[ops]") {
  for_every_device(
      [](Backend& backend, const OpCase& op, std::size_t set) { return check_unwanted(backend, op, set); });
}

TEST_CASE("op table: every element written, nothing else", "[ops]") { for_every_device_and_dtype(check_memory); }

TEST_CASE("op table: every element written, nothing else, in f64", "[ops]") {
  for_every_entry([](const OpCase& op, std::size_t set) { return check_memory(cpu(), op, set, DType::f64); });
}

TEST_CASE("op table: same bits in every run and with every number of threads", "[ops]") {
  for_every_device_and_dtype(check_determinism);
}

TEST_CASE("op table: gradients in f64 of every device against the CPU's", "[ops]") {
  for_every_device([](Backend& backend, const OpCase& op, std::size_t set) {
    return backend.device().kind == DeviceKind::cpu ? Faults{} : check_same_f64(backend, cpu(), op, set);
  });
}

TEST_CASE("op table: texts of errors", "[ops]") {
  for (const OpCase& op : all_op_cases()) DYNAMIC_SECTION(op.name) {
      report(op, 0, check_errors(cpu(), op));
    }
}

TEST_CASE("op table: what devices leave out", "[ops]") {
  for (const auto& [reason, entries] : left_out()) {
    std::string names;
    for (const std::string& name : entries) names += (names.empty() ? "" : ", ") + name;
    std::cout << reason << "\n  left out: " << names << "\n";
  }
}

}  // namespace
}  // namespace engram::harness::op_table_test
