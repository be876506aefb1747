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
  bool adds_to_c = false;
};

// Expected times in microseconds.
struct DeviceTimes {
  double emulated;  // includes ranges, selections, and splits of operands that are not prepared
  double native;    // of the vendor library; a lower estimate
};

// Shape of a product in a type's own arithmetic.
struct NativeShape {
  ElementType type = ElementType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t items = 1;
  bool is_aligned = true;  // leading dimensions of A and B are whole multiples of 16 bytes
  bool adds_to_c = false;  // beta is not 0
};

// Limits by which a plan decides whether to emulate and how many candidates to have.
struct DeviceThresholds {
  double max_time_ratio = 0.95;  // an emulation must be expected to take less than this share of native time
  // The same for emulations that norms prove. For data of wide range they have more slices, and take up to
  // 1.3 times as long as with the fewest; with this limit they are then still faster than native (FP64,
  // phi 2, n = 2560 on an H200: 1.02; at 2048, where the ratio is 0.89, it would be 0.83).
  double max_time_ratio_by_norms = 0.82;
  // A product that is expected to take less than this time, in microseconds, is fast. It has at most two
  // emulations.
  double two_candidates_time = 100;
  // max_time_ratio of fast products with two emulations. It is stricter, because data of wide range get the
  // second emulation, which takes up to 1.6 times as long as native.
  double max_time_ratio_if_fast = 0.85;
  // With a prepared operand and at most this number of real vectors beside it, there is one emulation. The
  // early exits of another candidate's kernels would take up to a tenth of the time.
  std::int64_t few_vectors = 128;
  // max_time_ratio of such products. They take less than expected, and cuBLAS more, whose best layout the
  // expected time is of: 2, 16 and 32 rows by weights of 4096 took 34.5 us and cuBLAS 64, 77 and 39, where 41
  // and 40 were expected (H200).
  double max_time_ratio_by_few = 1.05;
  // Up to this number of multiply-adds per batch item, splits of all candidates except the first have few
  // thread blocks. With more thread blocks the early exits of one split would take a tenth of the item's
  // time.
  double small_item_products = 2e9;
  // Products of int8 slices, per element of C, that take as long as the exact sum of one element.
  double exact_sum_terms = 17000;
};

}  // namespace kintsugi::core
