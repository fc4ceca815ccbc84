#include "cuda/simulated/warpgroup.hpp"

#include <bit>
#include <cstring>

#include "core/error.hpp"

namespace engram::simulated {
namespace {

constexpr int kInner = 16;  // places of a step
constexpr int kRows = 64;

float number(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

/// "Matrix Descriptor Format": 14 bits each of address, leading and stride distance, in units of 16 bytes; the swizzle.
struct Descriptor {
  std::size_t address, leading, stride;
  unsigned base_offset, swizzle;

  explicit Descriptor(std::uint64_t bits)
      : address((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4),
        base_offset(static_cast<unsigned>(bits >> 49 & 7)),
        swizzle(static_cast<unsigned>(bits >> 62)) {}

  std::string mistake() const {
    if (swizzle != 1) return text("an operand must have the swizzle of 128 bytes (1), got ", swizzle);
    if (base_offset != 0 || address / 128 % 8 != 0)
      return text("an operand of eight rows must begin at a multiple of 1,024 bytes, got byte ", address,
                  " and an offset of ", base_offset);
    return {};
  }
  /// Byte of a number. "Canonical Layouts", of two bytes a number: atoms of 8 rows of 128 bytes; rows are inner places
  /// of the transposed operand. Bits 4 to 6 are turned by bits 7 to 9.
  std::size_t place(std::size_t column, std::size_t inner, bool transposed) const {
    const std::size_t linear =
        transposed ? address + column / 64 * leading + column % 64 * 2 + inner / 8 * stride + inner % 8 * 128
                   : address + column / 8 * stride + column % 8 * 128 + inner * 2;
    return linear ^ (linear >> 7 & 7) << 4;
  }
};

}  // namespace

void OperandMemory::begin_block(const SharedMemory& shared, std::size_t threads) {
  shared_ = &shared;
  threads_ = threads;
  units_.clear();
  fenced_.clear();
  read_.clear();
}

std::string OperandMemory::write(std::size_t thread, std::size_t at, std::size_t bytes, const Site& site) {
  if (at % kUnit != 0 || bytes % kUnit != 0 || at >= shared_->bytes() || bytes > shared_->bytes() - at)
    return text("an operand must lie in whole 16 bytes of the block's ", shared_->bytes(), ", got ", bytes,
                " bytes at byte ", at, ", at ", site.text());
  if (units_.empty()) {
    units_.assign((shared_->bytes() + kUnit - 1) / kUnit, {});
    seen_.resize(units_.size() * kUnit);
    written_.assign(threads_, {});
  }
  for (std::size_t unit = at / kUnit; unit < (at + bytes) / kUnit; ++unit) {
    if (units_[unit].was_read)
      return text("a barrier must come between a product and the next write to its operand, got a write to byte ",
                  unit * kUnit, " at ", site.text());
    units_[unit].state = State::written;
    written_[thread].push_back(unit);
  }
  return {};
}

void OperandMemory::fence(std::size_t thread) {
  if (units_.empty()) return;
  for (const std::size_t unit : written_[thread]) {
    units_[unit].state = State::fenced;
    fenced_.push_back(unit);
  }
  written_[thread].clear();
}

void OperandMemory::barrier() {
  for (const std::size_t unit : read_) units_[unit].was_read = false;
  read_.clear();
  for (const std::size_t unit : fenced_) {
    if (units_[unit].state != State::fenced) continue;  // written again since
    units_[unit].state = State::seen;
    std::memcpy(seen_.data() + unit * kUnit, shared_->data() + unit * kUnit, kUnit);
  }
  fenced_.clear();
}

float OperandMemory::read(std::size_t at, std::string& mistake) {
  const std::size_t unit = at / kUnit;
  if (at + sizeof(std::uint16_t) > shared_->bytes()) {
    mistake = text("an operand must lie in the block's ", shared_->bytes(), " bytes of shared memory, got byte ", at);
    return 0;
  }
  if (units_.empty() || units_[unit].state != State::seen) {
    constexpr const char* kHow[] = {"was not written as one", "was not fenced by the thread that wrote it",
                                    "was fenced, but no barrier came behind"};
    mistake = text("a product must read an operand that was written, fenced and is behind a barrier, got byte ", at,
                   ", which ", kHow[units_.empty() ? 0 : static_cast<std::size_t>(units_[unit].state)]);
    return 0;
  }
  if (!units_[unit].was_read) {
    units_[unit].was_read = true;
    read_.push_back(unit);
    if (std::memcmp(seen_.data() + unit * kUnit, shared_->data() + unit * kUnit, kUnit) != 0) {
      mistake = text("an operand must be written by store_operand, got byte ", at, ", which was changed otherwise");
      return 0;
    }
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, seen_.data() + at, sizeof bits);
  return number(bits);
}

std::string Warpgroup::arrive(int thread, const Site& site, const WarpgroupProduct& product) {
  if (count_ == 0) {
    site_ = site;
    first_ = thread;
  } else if (!(site_ == site)) {
    return text("the threads of a warpgroup must make one call, got thread ", thread, " at ", site.text(),
                " and thread ", first_, " at ", site_.text());
  } else if (!product.agrees_with(*lanes_[static_cast<std::size_t>(first_)])) {
    return text("the threads of a warpgroup must name one operand, got another one of thread ", thread,
                " than of thread ", first_, " at ", site.text());
  }
  lanes_[static_cast<std::size_t>(thread)] = &product;
  ++count_;
  return {};
}

std::string Warpgroup::multiply(OperandMemory& memory, const Site& site) {
  count_ = 0;
  const WarpgroupProduct& all = *lanes_[0];
  const auto columns = static_cast<std::size_t>(all.columns), inner = static_cast<std::size_t>(all.steps) * kInner;
  left_.resize(kRows * inner);
  right_.resize(inner * columns);
  std::string mistake;
  for (int step = 0; step < all.steps; ++step) {
    const Descriptor operand(all.right + static_cast<std::uint64_t>(step) * all.step);
    if (mistake = operand.mistake(); !mistake.empty()) return text(mistake, " at ", site.text());
    for (std::size_t k = 0; k < kInner; ++k) {
      float* const row = right_.data() + (static_cast<std::size_t>(step) * kInner + k) * columns;
      for (std::size_t column = 0; column < columns; ++column) {
        row[column] = memory.read(operand.place(column, k, all.transposed), mistake);
        if (!mistake.empty()) return text(mistake, " at ", site.text());
      }
    }
  }
  // Lane 4 g + t of a warp has rows g and g + 8 of the warp's 16, and of 16 inner places 2 t, 2 t + 1 and the same
  // eight further.
  const auto row_of = [](std::size_t thread, std::size_t half) {
    return thread / 32 * 16 + thread % 32 / 4 + 8 * half;
  };
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    for (std::size_t word = 0; word < static_cast<std::size_t>(all.steps) * 4; ++word) {
      const std::uint32_t pair = lanes_[thread]->left[word];
      float* const to =
          left_.data() + row_of(thread, word % 2) * inner + word / 4 * kInner + word % 4 / 2 * 8 + thread % 4 * 2;
      to[0] = number(pair & 0xffffu);
      to[1] = number(pair >> 16);
    }
  std::array<float, 256> sums;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::size_t first = row / 16 * 32 + row % 8 * 4, half = row % 16 / 8;
    const auto element = [&](std::size_t column) -> float& {
      return lanes_[first + column % 8 / 2]->sums[column / 8 * 4 + half * 2 + column % 2];
    };
    for (std::size_t column = 0; column < columns; ++column) sums[column] = all.adds ? element(column) : 0.0f;
    for (std::size_t k = 0; k < inner; ++k) {
      const float factor = left_[row * inner + k];
      const float* const others = right_.data() + k * columns;
      for (std::size_t column = 0; column < columns; ++column) sums[column] += factor * others[column];
    }
    for (std::size_t column = 0; column < columns; ++column) element(column) = sums[column];
  }
  return {};
}

}  // namespace engram::simulated
