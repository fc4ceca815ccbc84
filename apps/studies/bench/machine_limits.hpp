#pragma once
/// What this machine can do, measured through the library's own kernels: the limits that a step is compared with.

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/product_precision.hpp"

namespace engram {

struct MachineLimits {
  struct Product {
    ProductPrecision precision;
    std::int64_t rows, columns, inner;
    double flops_per_second;  ///< median of several calls
  };
  std::vector<Product> products;  ///< of different shapes
  double flops_per_second = 0;    ///< of the fastest f32 product
  /// Of the fastest bf16 product: on the host of f32 operands, which it rounds, on cards of bf16 ones. 0: the device
  /// has no instructions that make them faster than f32.
  double bf16_flops_per_second = 0;
  double bytes_per_second = 0;  ///< of a copy larger than the caches: read and written bytes together
  /// Of softmax over rows that the caches hold; of a card by its facts, since no kernel of the library does only that.
  double exponentials_per_second = 0;

  /// These limits with flops_per_second of the products that a step uses, where the device has them.
  MachineLimits with(ProductPrecision precision) const;
};

/// `side`: rows, columns and inner size of the largest product; the copy has as many elements as four of its matrices.
/// With 4000 it takes a few seconds and half a gigabyte, which is given back. Not 4096: rows a power of two apart share
/// cache lines, and products run at half their rate on some machines. Throws UsageError for a side below 16.
MachineLimits measure_limits(Backend& backend, std::int64_t side = 4000);
/// The rate of that copy alone, with the threads that the backend has now. Throws UsageError as above.
double copy_rate(Backend& backend, std::int64_t side = 4000);

}  // namespace engram
