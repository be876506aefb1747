#include "schedule/accumulator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/view.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest_normal_float = 0x1p-126;

// Returns (1 + u)^roundings - 1, rounded up. expm1 and log1p may err by a few units in the last place; the
// factor 1 + 2^-40 covers thousands.
double rounding_growth(double roundings, double u = 0x1p-24) {
  return std::expm1(roundings * std::log1p(u)) * (1 + 0x1p-40);
}

// Returns the number of hardware steps (accumulator_block()) for a run of n products.
double instructions(Accumulator accumulator, FormatId format, std::int64_t n) {
  const std::int64_t block = accumulator_block(accumulator, format);
  return static_cast<double>(n / block + (n % block != 0 ? 1 : 0));
}

// Sequential: with fl(x + y) = (x + y)(1 + d), |d| <= u, the computed sum is
//   sum_0 * prod_{1..n} (1 + d_i) + sum_p a_p b_p * prod_{p..n} (1 + d_i),
// each factor within (1 + u)^n of 1 (Higham, Accuracy and Stability of Numerical Algorithms, 3.1; the product
// is exact inside the fma). The same bound holds for VDPBF16PS, which adds in another order; the zero that
// pads an odd n causes no rounding.
double sequential_error(std::int64_t n) { return rounding_growth(static_cast<double>(n)); }

// AMX: q = ceil(n / 32) instructions. A product passes through at most h = min(16, ceil(n / 2))
// additions of its chain, the addition of the two chains, and q additions into the accumulator; the first
// addition of a chain meets an exact bf16 product and +0, and rounds nothing. So every product and
// sum_0 carry at most h - 1 + 1 + q roundings.
double amx_error(std::int64_t n, double q) {
  const auto chain = static_cast<double>(std::min<std::int64_t>(16, n / 2 + n % 2));
  return rounding_growth(chain + q);
}

// CDNA 2: products of fp16 numbers are exact in fp32. A product passes through two additions of its four and
// q = ceil(n / 4) additions into the accumulator, every one to nearest.
double cdna2_error(double q) { return rounding_growth(2 + q); }

// Tensor core: blocks of b products, e extra bits, q = ceil(n / b) instructions. Let one instruction have
// addends x_0 (the accumulator) ... x_b, M = sum |x_i| and emax their largest exponent.
//  - 2^emax <= M: a product's exponent before normalisation is the sum of its factors', and
//    normal significands are at least 1, so |x| >= 2^exponent. (Subnormal factors: accumulation_floor.)
//  - Each addend loses less than 2^(emax - 23 - e) <= 2^-(23 + e) M. The one that sets emax loses
//    nothing: fp32 has 23 fraction bits, and products have 20 or 14. So at most b of the b + 1
//    addends are truncated: n over the whole run.
//  - The sum T of the truncated addends is exact, |T| <= M, and truncation to fp32 loses less than
//    one unit in the last place, at most 2^-23 |T|.
// Every step rounds towards zero, so |accumulator| never exceeds |sum_0| + sum |products so far|: M of
// every instruction is at most the whole run's sum of magnitudes, and the losses simply add:
//   c(n) = (n 2^-e + q) 2^-23, second-order terms included.
double tensor_core_error(std::int64_t n, int extra_bits, double q) {
  return (std::ldexp(static_cast<double>(n), -extra_bits) + q) * 0x1p-23;
}

// cuBLAS: the run starts at zero in a kernel that cuBLAS selects, which uses tensor cores or fused
// multiply-adds. The result is added to sum_0 with one rounding. The error of the run is at most that of the
// worst of its matrix units. cuBLAS may cut the run into shorter runs that are added in fp32
// (split-k). Shorter runs truncate less, and this outweighs the roundings of the additions.
double vendor_error(FormatId format, std::int64_t n) {
  double run = sequential_error(n);
  for (const TensorCoreUnit& unit : tensor_cores) {
    if (is_vendor_unit(unit)) run = std::max(run, accumulation_error(unit.accumulator, format, n));
  }
  return run + rounding_growth(1) * (1 + run);
}

// A tensor core treats a subnormal factor as if it had the exponent of the smallest normal number. Then
// 2^emax is at most 2^min_exponent times the other factor; for two subnormal factors 2^(2 min_exponent); for
// a subnormal accumulator 2^-126. Every product can lose 2^(emax - 23 - e), and every result can be rounded
// to a multiple of 2^-149. Tensor cores align tiny products to an exponent of at least -133 or so
// (TensorCoreUnit::min_alignment), which is below that of `grid`.
double tensor_core_floor(Accumulator accumulator, FormatId id, std::int64_t n, double largest_operand) {
  const Format& format = *formats[static_cast<std::size_t>(id)];
  const double smallest = power_of_two(format.min_exponent);
  const double grid = std::max(smallest * std::max(smallest, largest_operand), smallest_normal_float);
  const int shift = -23 - accumulator_extra_bits(accumulator);
  return std::ldexp(static_cast<double>(n) * grid, shift) + instructions(accumulator, id, n) * 0x1p-149;
}

}  // namespace

std::string accumulator_names() {
  std::string names;
  for (const Accumulator accumulator : accumulators) {
    if (!names.empty()) names += ", ";
    names += accumulator_name(accumulator);
  }
  return names;
}

double accumulation_error(Accumulator accumulator, FormatId format, std::int64_t n) {
  if (!supports(accumulator, format)) return infinity;
  if (n <= 0) return 0;
  const double q = instructions(accumulator, format, n);
  switch (accumulator) {
    case Accumulator::fp32:
    case Accumulator::avx512_bf16: return sequential_error(n);
    case Accumulator::fp64: return rounding_growth(static_cast<double>(n), 0x1p-53);
    case Accumulator::amx_bf16: return amx_error(n, q);
    case Accumulator::cdna2: return cdna2_error(q);
    case Accumulator::int32:
    case Accumulator::int128: return n <= safe_products(accumulator) ? 0 : infinity;
    case Accumulator::cublas: return vendor_error(format, n);
    default: break;
  }
  return tensor_core_error(n, accumulator_extra_bits(accumulator), q);
}

double accumulation_floor(Accumulator accumulator, FormatId format, std::int64_t n, double largest_operand) {
  if (!supports(accumulator, format)) return infinity;
  if (n <= 0 || is_integer(accumulator)) return 0;
  if (is_tensor_core(accumulator)) return tensor_core_floor(accumulator, format, n, largest_operand);
  // Later roundings also enlarge what a step loses by underflow.
  const double carried = 1 + accumulation_error(accumulator, format, n);
  const auto products = static_cast<double>(n);
  // Rounding a subnormal fma to nearest: half of 2^-149.
  if (accumulator == Accumulator::fp32) return products * 0x1p-150 * carried;
  if (accumulator == Accumulator::cublas)
    return tensor_core_floor(coarsest_vendor_unit(), format, n, largest_operand) * carried + 0x1p-149;
  if (accumulator == Accumulator::fp64) return products * 0x1p-1074 * carried;
  // Flush to zero: an operand below the smallest normal number, 2^-126 of bf16, loses its product; each fma,
  // each addition of chains and each accumulator, before and after, can lose up to 2^-126. So can the three
  // additions of four products of fp16 and their addition to the accumulator, which are no more.
  const double smallest = power_of_two(formats[static_cast<std::size_t>(format)]->min_exponent);
  const double flushes = products + 3 * instructions(accumulator, format, n);
  return (products * largest_operand * smallest + flushes * smallest_normal_float) * carried;
}

namespace {

// Returns, for each term, a bound of |product of its slices| / (|a||b|), with the weights that the ratios
// include.
std::vector<double> term_ratios(const Schedule& schedule, std::span<const double> ratios_a,
                                std::span<const double> ratios_b) {
  std::vector<double> ratios;
  for (const Term& term : schedule.terms) ratios.push_back(ratios_a[term.a] * ratios_b[term.b]);
  return ratios;
}

// Returns the number of fp32 additions outside the engine through which the sum of the first k-block passes:
// first in its segment, then of later segments. cuBLAS has no segments, and adds each term by itself.
std::int64_t outside_roundings(const Schedule& schedule, Accumulator accumulator, std::int64_t k) {
  const std::int64_t segment = accumulator == Accumulator::cublas ? k : schedule.segment_length(k);
  const std::int64_t blocks = divide_up(segment, schedule.block_length(k));
  const std::int64_t later_segments = divide_up(k, segment) - 1;
  std::array<std::int64_t, max_groups> terms{};
  for (const Term& term : schedule.terms) ++terms[schedule.joint ? 0 : term.group];
  const std::int64_t groups_per_sum = schedule.joint ? schedule.groups : 1;
  const std::int64_t additions_per_block =
      accumulator == Accumulator::cublas ? *std::max_element(terms.begin(), terms.end()) : groups_per_sum;
  return later_segments +
         (schedule.joint ? blocks * additions_per_block - 1 : (blocks - 1) * additions_per_block);
}

// Returns 0, since integer sums are exact; infinity if an accumulator can wrap within a block. An accumulator
// sums all terms of its group.
double integer_bound(const Schedule& schedule, Accumulator accumulator, std::int64_t block) {
  std::array<std::int64_t, max_groups> products{};
  for (const Term& term : schedule.terms) products[term.group] += block;
  const std::int64_t max_products = *std::max_element(products.begin(), products.end());
  return max_products <= safe_products(accumulator) ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

double accumulation_bound(const Schedule& schedule, std::span<const double> ratios_a,
                          std::span<const double> ratios_b, Accumulator accumulator, const Format& format,
                          std::int64_t k) {
  const std::vector<double> ratios = term_ratios(schedule, ratios_a, ratios_b);
  if (k == 0) return 0;
  const std::int64_t block = schedule.block_length(k);
  if (!format.floating) return integer_bound(schedule, accumulator, block);
  const bool alternating = schedule.k_step != 0 && schedule.k_step < block;
  std::array<double, max_groups> held{};  // magnitude of each group's accumulator, relative to |a||b|
  if (alternating) {
    for (std::size_t t = 0; t < ratios.size(); ++t) held[schedule.terms[t].group] += ratios[t];
  }
  // With alternating terms a run consists of several steps, and each step may end with a partial instruction
  // block.
  const std::int64_t steps = alternating ? divide_up(block, schedule.k_step) : 1;
  const double run = static_cast<double>(steps) *
                     accumulation_error(accumulator, format.id, alternating ? schedule.k_step : block);
  double inside = 0;
  for (std::size_t t = 0; t < ratios.size(); ++t) {
    double& magnitude = held[schedule.terms[t].group];
    if (!alternating) magnitude += ratios[t];
    inside += run * magnitude;
  }
  const double all = std::accumulate(held.begin(), held.end(), 0.0);
  const auto roundings = static_cast<double>(outside_roundings(schedule, accumulator, k));
  const double outside = roundings * 0x1p-24 * all;
  const double first_order = inside + outside;
  return std::expm1(first_order);
}

}  // namespace kintsugi::core
