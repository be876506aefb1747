// Shapes of products on a device and their expected times.
#pragma once

#include <cstdint>

#include "engines/device_operands.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core {

// Shape of a product of FP32 matrices by fused steps, or by residues of complex elements.
struct DeviceShape {
  const Schedule& schedule;
  FormatId format;
  ElementType type;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t items;
  bool prepared_a;  // its slices exist already
  bool prepared_b;
  bool is_aligned = true;  // NativeShape::is_aligned
};

// Expected times in microseconds.
struct DeviceTimes {
  double emulated;  // includes ranges, selections, and splits of operands that are not prepared
  double native;    // under the contract; a lower estimate
};

// Shape of a product in a type's own arithmetic.
struct NativeShape {
  ElementType type = ElementType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t items = 1;
  bool is_aligned = true;  // leading dimensions of A and B are whole multiples of 16 bytes
};

// Expected times of native products under a contract, in microseconds: by our own kernels, which test every
// sum, or by the vendor library's and a test of its sums; and both with sums added to C.
struct NativeTimes {
  double own;
  double own_added;
  double vendor;  // without a test
  double vendor_added;
  double test_by_sums;      // reads every sum
  double test_by_operands;  // reads the operands, which prove all sums

  constexpr bool looks_at_operands() const { return test_by_operands < test_by_sums; }
  constexpr double test() const { return looks_at_operands() ? test_by_operands : test_by_sums; }
  constexpr double vendor_tested() const { return vendor + test(); }
};

// Limits by which a plan decides on an emulation and on its number of candidates.
struct DeviceThresholds {
  double max_time_ratio = 0.95;  // an emulation must be expected to take less than this part of native time
  // A product that is expected to take less than this, in microseconds, is fast and has at most two
  // emulations.
  double two_candidates_time = 100;
  // max_time_ratio of fast products with two emulations: where the first one gains less, data of wide range,
  // which get the second, take up to 1.6 times as long as native.
  double max_time_ratio_if_fast = 0.85;
  // Real vectors beside a prepared operand up to which there is one emulation: the early exits of another
  // candidate's kernels would take up to a tenth of the time.
  std::int64_t few_vectors = 128;
  // Multiply-adds of a batch item up to which splits of all candidates but the first have few thread blocks:
  // otherwise the early exits of one take a tenth of the item's time.
  double small_item_products = 2e9;
  // Products of int8 slices, per element of C, that take as long as the exact sum of one element.
  double exact_sum_terms = 17000;
};

}  // namespace kintsugi::core
