#include "schemes/bound.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "arith/tile_arithmetic.hpp"
#include "base/view.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core {

namespace {

// Error of one operand's split, in units of the scaled operand. r is the rule's residual_exponent.
//
//   |x - sum of slices| <= error |x| + error_floor
//   |slice_s| 2^(-s r) <= ratios[s] |x| + floors[s]
struct SplitError {
  double error = 0;
  double error_floor = 0;
  std::vector<double> ratios;
  std::vector<double> floors;
};

// Returns log2 of a bound of the residual after `slices` roundings, relative to the largest power of two 2^e
// <= |x|. Rounding to nearest leaves at most half an ulp, 2^(e - p), so every slice gains p + 1 bits.
// Truncation leaves less than one ulp, so the first slice gains p - 1 bits and each further slice p bits.
int rest_exponent(const SplitRule& rule, int slices) {
  const int p = rule.format->significand_bits;
  const bool nearest =
      rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even;
  return nearest ? 1 - slices * (p + 1) : 1 - slices * p;
}

// Returns log2 of the largest residual that remains because the last slice's format has no smaller quantum.
int quantum_exponent(const SplitRule& rule, int slices) {
  const Rounding rounding = slices == 1 ? rule.first_rounding : rule.residual_rounding;
  const int rounding_bit = rounding == Rounding::nearest_even ? 1 : 0;
  const int quantum = rounding == Rounding::bit_cut ? rule.format->min_exponent : rule.format->min_quantum();
  return quantum - rounding_bit - rule.residual_exponent * (slices - 1);
}

// Returns log2 of the largest residual of elements that are too small for a normal first slice. The larger
// one of two residuals counts: the residual that the last slice's quantum leaves, and the residual before the
// last slice without the p leading bits that the last slice takes. (If a bit-cut gave zero, the residual
// before the last slice is the whole element.)
int floor_exponent(const SplitRule& rule, int slices) {
  const int by_quantum = quantum_exponent(rule, slices);
  if (slices == 1) return by_quantum;
  const int rounding_bit = rule.residual_rounding == Rounding::nearest_even ? 1 : 0;
  return std::max(by_quantum,
                  floor_exponent(rule, slices - 1) - rule.format->significand_bits - rounding_bit);
}

// Returns the exponent of the smallest elements that keep all significant bits of the split.
int lowest_exponent(const SplitRule& rule) {
  return std::max(quantum_exponent(rule, rule.slices) - rest_exponent(rule, rule.slices),
                  rule.format->min_exponent);
}

// Returns a bound of half the quantum of slice s of an integer format, in units of the scaled operand. A
// quantum of slices that are scaled by maxima is at most 127 / 127 in the first slice, since scaled elements
// are below 127, and 1 / 254 of the one before in others. Weights rounded to fp32 and residuals rounded to
// double add less than 2^-20.
double half_quantum_of(const SplitRule& rule, int s) {
  if (!scales_by_maxima(rule)) return power_of_two(-s * rule.residual_exponent - 1);
  return std::pow(254.0, -s) / 2 * (1 + 0x1p-20);
}

// Returns the split error of integer formats, in quanta of the first slice. The last slice's rounding loses
// at most half its quantum. Slice s > 0 is at most half the quantum of slice s - 1.
SplitError grid_error(const SplitRule& rule) {
  const auto half_quantum = [&](int s) { return half_quantum_of(rule, s); };
  SplitError split;
  split.error_floor = half_quantum(rule.slices - 1);
  double later_slices = split.error_floor;
  for (int s = 1; s < rule.slices; ++s) later_slices += half_quantum(s - 1);
  split.ratios.assign(static_cast<std::size_t>(rule.slices), 0);
  split.ratios[0] = 1;
  split.floors.push_back(later_slices);
  for (int s = 1; s < rule.slices; ++s) split.floors.push_back(half_quantum(s - 1));
  return split;
}

// Returns the exponent of the largest elements that overflow no slice. A slice can overflow because the first
// slice is rounded up, or because a residual is scaled by more bits than earlier slices have taken.
int highest_exponent(const SplitRule& rule) {
  int highest = rule.format->max_exponent - 1;
  for (int s = 1; s < rule.slices; ++s) {
    const int max_residual = rule.format->max_exponent - s * rule.residual_exponent;
    // Elements too small for a normal first slice leave residuals bounded by a floor.
    if (floor_exponent(rule, s) > max_residual) return std::numeric_limits<int>::min();
    highest = std::min(highest, max_residual - rest_exponent(rule, s));
  }
  return highest;
}

// Returns log2 of the largest magnitude of slice s as stored.
int slice_exponent(const SplitRule& rule, int largest, int s) {
  const int first = rule.scale_vectors ? rule.top_exponent + 1 : largest + 1;
  if (s == 0) return first;
  return std::max(first - 1 + rest_exponent(rule, s), floor_exponent(rule, s)) + s * rule.residual_exponent;
}

// Returns the split error. `inside_window`: all elements are at least 2^lowest_exponent(). Then
// floating-point slices have no floors.
SplitError split_error(const SplitRule& rule, bool inside_window) {
  if (!rule.format->floating) return grid_error(rule);
  SplitError split;
  split.error = power_of_two(rest_exponent(rule, rule.slices));
  split.error_floor = inside_window ? 0 : power_of_two(floor_exponent(rule, rule.slices));
  for (int s = 0; s < rule.slices; ++s) {
    const double residual = s == 0 ? 1 : power_of_two(rest_exponent(rule, s));
    const double rest_floor = s == 0 || inside_window ? 0 : power_of_two(floor_exponent(rule, s));
    // A slice is a rounded residual, which it exceeds by at most its own rounding.
    split.ratios.push_back(residual * (1 + power_of_two(1 - rule.format->significand_bits)));
    split.floors.push_back(rest_floor + (inside_window ? 0 : power_of_two(floor_exponent(rule, s + 1))));
  }
  return split;
}

// Returns the error of residues: the rounding of scaled elements to integers loses at most 1/2 for each.
ErrorBound integer_rounding(double k) { return {.floor_a = 0.5, .floor_b = 0.5, .floor_both = 0.25 * k}; }

bool has_term(const Schedule& schedule, int a, int b) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [&](const Term& term) { return term.a == a && term.b == b; });
}

// Returns the bound of Ozaki scheme I with at least d slices by successive roundings.
// - Each rounding leaves at most 2^-gain of the largest residual before it. gain is the number of bits of a
//   slice plus 1, or without the 1 if sigma rounds positive elements.
// - For a vector whose maximum is in [u_i, 2 u_i), s slices leave at most 2^(1 - s gain) u_i of an element.
//   Slice s + 1 is no larger.
// - The program leaves out the residual of each operand after d slices, and with it the product of both
//   residuals. It also leaves out products of slices p and q with p + q > d + 1, where p and q count from 1.
//   There are d - 1 - t products with p + q = d + 2 + t, each at most 4 u_i v_j 2^-((d + t) gain). Their sum
//   is at most (d - 1) / (1 - 2^-gain) times 4 u_i v_j 2^-(d gain).
// - Sums in FP64 round each of N products at most N + 1 times, including the conversion of the integer to
//   FP64.
ErrorBound ozaki1_bound(const Program& program, double k) {
  const Ozaki1Parameters& parameters = program.ozaki1;
  if (parameters.mode == Ozaki1Parameters::Mode::cr) return {};
  const int gain = program.split_a.successive_gain();
  // min_slices is 0 in the report of a product whose A is zero. Nothing is left out then.
  const int d = std::max(parameters.slices != 0 ? parameters.slices : parameters.min_slices, 1);
  const double residual = power_of_two(std::max(1 - d * gain, -1000));
  // The sum of the magnitudes of an element's slices is at most |x| plus `beyond`, which the roundings may
  // add.
  const double beyond = power_of_two(1 - gain) + power_of_two(1 - gain) / (1 - power_of_two(-gain));
  const double roundings = (parameters.max_products + 1.0) * 0x1p-53 * (1 + 0x1p-40);
  const double floor = residual + roundings * beyond;
  const double left_out = residual * residual + residual * 2 * (d - 1) / (1 - power_of_two(-gain));
  constexpr double underflow = 0x1p-1000;
  return {.relative = roundings,
          .floor_a = floor,
          .floor_b = floor,
          .floor_both = k * (left_out + roundings * beyond * beyond + underflow)};
}

// Returns the bound of programs that accept elements by it: the contract without the last rounding. The
// second term is that of underflow, of elements computed in FP32 as well (docs/design/bounds.md).
ErrorBound accepted_bound(std::int64_t k) {
  const auto products = static_cast<double>(k);
  return {.relative = (products + 7) * 0x1p-24, .floor_both = (2 * products + 8) * 0x1p-126};
}

// Returns the error of splits and left-out products, which does not depend on the engine.
ErrorBound split_bound(const Program& program, const SplitError& a, const SplitError& b) {
  ErrorBound bound;
  bound.relative = a.error + b.error * (1 + a.error);
  bound.floor_a = a.error_floor * (1 + b.error);
  bound.floor_b = b.error_floor * (1 + a.error);
  bound.floor_both = a.error_floor * b.error_floor;
  for (int s = 0; s < program.split_a.slices; ++s) {
    for (int t = 0; t < program.split_b.slices; ++t) {
      if (has_term(program.schedule, s, t)) continue;
      bound.relative += a.ratios[s] * b.ratios[t];
      bound.floor_a += a.floors[s] * b.ratios[t];
      bound.floor_b += a.ratios[s] * b.floors[t];
      bound.floor_both += a.floors[s] * b.floors[t];
    }
  }
  return bound;
}

// Returns the matrix unit whose floors hold for the accumulator. cuBLAS's additions outside the unit lose
// nothing by underflow.
Accumulator unit_of(Accumulator accumulator) {
  return accumulator == Accumulator::cublas ? coarsest_vendor_unit() : accumulator;
}

// Returns the loss of a product with a subnormal factor, divided by the other factor as stored. A tensor core
// aligns such a product as if the subnormal factor had the smallest normal exponent, and truncates up to
// block + 1 addends there (schedule/accumulator.cpp). Products of two subnormal fp16 numbers lose nothing,
// since they are multiples of the grid 2^(2 min_exponent). Other units flush a subnormal factor, which is
// below 2^min_exponent, to zero; the result is twice that, for later roundings.
double subnormal_loss(Accumulator accumulator, const Format& format) {
  if (flushes_subnormals(accumulator)) return power_of_two(format.min_exponent + 1);
  const Accumulator unit = unit_of(accumulator);
  if (!is_tensor_core(unit)) return 0;
  const int block = accumulator_block(unit, format.id);
  return (block + 1) * power_of_two(format.min_exponent - 23 - accumulator_extra_bits(unit));
}

// Returns the loss of sums by underflow: in fp32 additions, in units that flush subnormal numbers, or in a
// tensor core's grid of subnormal sums. Losses because of subnormal factors are counted by subnormal_loss().
double underflow_loss(const Program& program, Accumulator accumulator, std::int64_t k) {
  const auto terms = static_cast<double>(program.schedule.terms.size());
  // Every addend and every result can be rounded to a multiple of 2^-149. There are no more results than
  // products.
  if (is_tensor_core(unit_of(accumulator))) return terms * static_cast<double>(k) * 2 * 0x1p-149;
  constexpr double largest_operand = 0;  // subnormal_loss() counts flushed operands
  return terms * accumulation_floor(accumulator, program.format().id, k, largest_operand);
}

// Adds the floors of the engine's arithmetic: the losses of all products with a slice that may be subnormal.
// Inside the window only slices after the first one may be subnormal.
void add_engine_floors(ErrorBound& bound, const Program& program, Accumulator accumulator,
                       const SplitError& a, const SplitError& b, bool a_in_window, bool b_in_window) {
  const double loss = subnormal_loss(accumulator, program.format());
  for (const Term& term : program.schedule.terms) {
    const double unscale_a = power_of_two(-term.a * program.split_a.residual_exponent);
    const double unscale_b = power_of_two(-term.b * program.split_b.residual_exponent);
    // The stored factor is the slice times 2^(s r). The term's weight undoes the powers of both factors.
    if (term.a > 0 || !a_in_window) {
      bound.floor_a += loss * unscale_a * b.ratios[term.b];
      bound.floor_both += loss * unscale_a * b.floors[term.b];
    }
    if (term.b > 0 || !b_in_window) {
      bound.floor_b += loss * unscale_b * a.ratios[term.a];
      bound.floor_both += loss * unscale_b * a.floors[term.a];
    }
  }
}

// Adds the error of recombination. n groups are added in double with n - 1 roundings. Each rounding loses at
// most one unit roundoff of the sum of all magnitudes.
void add_recombination(ErrorBound& bound, const Program& program, const SplitError& a, const SplitError& b,
                       std::int64_t k) {
  if (program.sum_type() == SumType::i128) return;  // exact except for the last rounding
  const bool by_maxima = scales_by_maxima(program.split_a);
  if (!program.format().floating && !by_maxima) {  // exact except for the rounding of the sum to double
    bound.relative += 0x1p-52;
    return;
  }
  // Integer sums are rounded to double and multiplied by their weights.
  const int roundings = program.schedule.sums() - 1 + (by_maxima ? 2 : 0);
  const double loss = roundings * 0x1p-53 * (1 + 0x1p-20);
  for (const Term& term : program.schedule.terms) {
    bound.relative += loss * a.ratios[term.a] * b.ratios[term.b];
    bound.floor_a += loss * a.floors[term.a] * b.ratios[term.b];
    bound.floor_b += loss * a.ratios[term.a] * b.floors[term.b];
    bound.floor_both += loss * a.floors[term.a] * b.floors[term.b] * static_cast<double>(k);
  }
}

// Returns the bound as one coefficient of (|A||B|)_ij. It divides floors by the smallest elements: a non-zero
// scaled element is at least 2^(top - range), or half of that if an integer format's scale is lowered so that
// rounding cannot overflow. floor_both is k times the loss of one product, and a product with a zero loses
// nothing.
double relative_of(const Program& program, const ErrorBound& bound, std::int64_t k, int range_a,
                   int range_b) {
  const bool lowers_scale = !program.format().floating && program.split_a.kind != SplitKind::residues;
  const int lowered_by = lowers_scale ? 1 : 0;  // binades
  const double products = program.format().floating ? 1 : static_cast<double>(std::max<std::int64_t>(k, 1));
  const double min_a = power_of_two(program.split_a.top_exponent - lowered_by - range_a);
  const double min_b = power_of_two(program.split_b.top_exponent - lowered_by - range_b);
  return bound.relative + bound.floor_a / min_a + bound.floor_b / min_b +
         bound.floor_both / products / (min_a * min_b);
}

// Like relative_of(), for operands within `depth` (are_within_depth() of split/ranges.hpp). n products of two
// non-zero elements have a sum of magnitudes of at least n 2^(top_a + top_b - depth), and every element is
// below 2^(top + 1).
double relative_at_depth(const Program& program, const ErrorBound& bound, std::int64_t k, int depth) {
  const int top_a = program.split_a.top_exponent;
  const int top_b = program.split_b.top_exponent;
  return bound.relative + bound.floor_a * power_of_two(1 + depth - top_a) +
         bound.floor_b * power_of_two(1 + depth - top_b) +
         bound.floor_both / static_cast<double>(std::max<std::int64_t>(k, 1)) *
             power_of_two(depth - top_a - top_b);
}

// True if products of all operands are rounded once. A grid of integers loses elements of wide vectors, even
// where it holds all bits of narrow ones.
bool rounds_once(const Program& program) {
  if (program.recombination == Recombination::ozaki1)
    return program.ozaki1.mode == Ozaki1Parameters::Mode::cr;
  return program.recombination == Recombination::exact_sums && !program.scales_as_words;
}

// Returns the largest number of significant bits that the slices hold. A floating-point slice has p bits. The
// sign of every slice after the first one is worth another bit.
int max_bits(const SplitRule& rule) {
  if (rule.kind == SplitKind::tiles) return segment_bits * rule.slices;
  if (rule.kind == SplitKind::residues) return rule.top_exponent + 1;
  if (!rule.format->floating) return rule.top_exponent + 1 + (rule.slices - 1) * rule.residual_exponent;
  return rule.slices * (rule.format->significand_bits + 1) - 1;
}

// Returns the smallest relative loss of a number with one more bit than the slices hold. The number loses
// 2^-bits times its leading power of two, which is more than 2^-(bits + 1) times the number. Returns 0 if the
// operands decide the number of bits or the grid, since then no loss is certain.
double min_loss(const Program& program, const SplitRule& rule, OperandType type) {
  const bool is_fixed =
      (program.recombination == Recombination::weighted && !scales_by_maxima(rule)) ||
      (program.recombination == Recombination::residues && rule.scales == ScaleRule::exponent);
  const int bits = max_bits(rule);
  return is_fixed && bits < -std::ilogb(unit_roundoff(type)) ? power_of_two(-bits - 1) : 0;
}

// Returns the bound `before` together with the last rounding.
double with_last_rounding(const Program& program, OperandType type, double before) {
  const bool fp32_sum = program.format().floating && program.schedule.sums() == 1;
  return fp32_sum && type == OperandType::f32 ? before : before + unit_roundoff(type) * (1 + before);
}

}  // namespace

int window_range(const SplitRule& rule) {
  if (rule.kind == SplitKind::tiles) return segment_bits * rule.slices - 1;
  if (rule.kind == SplitKind::successive) return rule.slices * rule.successive_gain();
  // On a grid an element keeps at least one bit down to the last quantum.
  if (rule.kind == SplitKind::residues) return rule.top_exponent;
  // A slice that is scaled by maxima gains seven bits at least.
  const int gain = scales_by_maxima(rule) ? rule.format->max_exponent + 1 : rule.residual_exponent;
  if (!rule.format->floating) return rule.top_exponent + (rule.slices - 1) * gain;
  return rule.top_exponent - lowest_exponent(rule);
}

bool can_overflow(const SplitRule& rule, const RangeSummary& ranges) {
  return !rule.scale_vectors && rule.kind != SplitKind::direct_residuals &&
         ranges.largest > highest_exponent(rule);
}

bool sums_can_overflow(const Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k) {
  if (!program.format().floating) return false;
  constexpr int highest = 126;  // largest exponent of fp32 sums
  const int bits_of_k = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)));
  return std::any_of(program.schedule.terms.begin(), program.schedule.terms.end(), [&](const Term& term) {
    return slice_exponent(program.split_a, a.largest, term.a) +
               slice_exponent(program.split_b, b.largest, term.b) + bits_of_k >
           highest;
  });
}

bool grid_can_overflow(const Program& program, OperandType type, const RangeSummary& a, const RangeSummary& b,
                       std::int64_t k) {
  if (program.format().floating ||
      (program.recombination != Recombination::weighted && !program.scales_as_words))
    return false;
  const int highest = type == OperandType::f32 ? 126 : 1022;
  return a.largest + b.largest + 2 + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k))) >
         highest;
}

bool in_window(const SplitRule& rule, const RangeSummary& ranges) {
  // These splits have no window: the bound's floors hold for all elements.
  if (!rule.format->floating || rule.kind == SplitKind::successive ||
      rule.kind == SplitKind::direct_residuals)
    return true;
  if (rule.scale_vectors) return ranges.dynamic_range <= window_range(rule);
  return !can_overflow(rule, ranges) && ranges.smallest >= lowest_exponent(rule);
}

ErrorBound error_bound(const Program& program, Accumulator accumulator, std::int64_t k, bool a_in_window,
                       bool b_in_window) {
  const bool is_on_grid = program.recombination == Recombination::residues || program.scales_as_words;
  if (is_on_grid) return integer_rounding(static_cast<double>(k));
  if (program.recombination == Recombination::exact_sums) return {};
  if (program.recombination == Recombination::ozaki1) return ozaki1_bound(program, static_cast<double>(k));
  if (is_direct(program)) return accepted_bound(k);
  if (has_tiles(program)) return tile_bound(program, k);
  const SplitError a = split_error(program.split_a, a_in_window);
  const SplitError b = split_error(program.split_b, b_in_window);
  ErrorBound bound = split_bound(program, a, b);
  add_engine_floors(bound, program, accumulator, a, b, a_in_window, b_in_window);
  bound.floor_both *= static_cast<double>(k);
  bound.floor_both += underflow_loss(program, accumulator, k);
  const auto accumulated = [&](const std::vector<double>& ratios_a, const std::vector<double>& ratios_b) {
    return accumulation_bound(program.schedule, ratios_a, ratios_b, accumulator, program.format(), k);
  };
  bound.relative += accumulated(a.ratios, b.ratios);
  bound.floor_a += accumulated(a.floors, b.ratios);
  bound.floor_b += accumulated(a.ratios, b.floors);
  bound.floor_both += accumulated(a.floors, b.floors) * static_cast<double>(k);
  add_recombination(bound, program, a, b, k);
  return bound;
}

double split_loss(const Program& program) {
  if (program.recombination == Recombination::exact_sums && !program.scales_as_words) return 0;
  if (program.recombination == Recombination::residues || program.scales_as_words)
    return relative_of(program, integer_rounding(1), 1, 0, 0);
  if (is_direct(program)) return accepted_bound(1).relative;
  if (has_tiles(program)) return relative_of(program, tile_split_bound(program, 1), 1, 0, 0);
  constexpr bool inside_window = true;
  const ErrorBound bound = split_bound(program, split_error(program.split_a, inside_window),
                                       split_error(program.split_b, inside_window));
  return relative_of(program, bound, 1, 0, 0);
}

bool can_meet(const Program& program, OperandType type, double coefficient) {
  if (coefficient == 0 && !rounds_once(program)) return false;
  return min_loss(program, program.split_a, type) <= coefficient &&
         min_loss(program, program.split_b, type) <= coefficient;
}

double relative_bound(const Program& program, const ErrorBound& bound, OperandType type, std::int64_t k,
                      int range_a, int range_b) {
  return with_last_rounding(program, type, relative_of(program, bound, k, range_a, range_b));
}

double bound_at_depth(const Program& program, const ErrorBound& bound, OperandType type, std::int64_t k,
                      int depth) {
  return with_last_rounding(program, type, relative_at_depth(program, bound, k, depth));
}

namespace {

// Returns the largest magnitude of a product of segments, relative to the leading powers of two of both
// tiles.
double segment_product(int i, int j) { return 127.0 * 127.0 * power_of_two(-12 - segment_bits * (i + j)); }

bool has_product(const Schedule& schedule, int i, int j) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [&](const Term& term) { return term.a == i && term.b == j; });
}

// Returns the sum of the left-out products of segments of two elements. (The half-precision program leaves
// out less: 5 * 2^-46 and smaller products, in total below 2^-43.)
double left_out(const Program& program) {
  double sum = 0;
  for (int i = 0; i < program.split_a.slices; ++i) {
    for (int j = 0; j < program.split_b.slices; ++j) {
      if (!has_product(program.schedule, i, j)) sum += segment_product(i, j);
    }
  }
  constexpr double half_precision = 0x1p-43;
  return std::max(sum, half_precision);
}

}  // namespace

double tile_rounding(const SplitRule& rule) { return power_of_two(-segment_bits * rule.slices); }

ErrorBound tile_split_bound(const Program& program, std::int64_t k) {
  // If both tiles of a product share one exponent, the elements of one tile are shifted by the difference of
  // the exponents. Exponents of FP32 numbers are between -149 and 128 after rounding.
  const double shifted = program.schedule.tiles.pair_exponent ? power_of_two(278) : 1;
  const double a = shifted * tile_rounding(program.split_a);
  const double b = shifted * tile_rounding(program.split_b);
  return {.floor_a = a, .floor_b = b, .floor_both = static_cast<double>(k) * (a * b + left_out(program))};
}

// Each operation in FP32 loses at most u of its result. A product of elements passes through these
// operations:
// - one addition for each later tile or piece. Tiles and pieces have at least 32 inner indices.
// - the fma of tile_value().
// - the conversions of two integers to FP32. Together the conversions lose u, and nothing for k <= 2.
// The fma instructions of the half-precision program lose u, 2^-8 u, 2^-16 u and so on.
ErrorBound tile_bound(const Program& program, std::int64_t k) {
  const ErrorBound split = tile_split_bound(program, k);
  const double additions = static_cast<double>(divide_up(k, half_piece)) + (k > 2 ? 1 : 0) + 0x1p-6;
  const double loss = additions * 0x1p-24 / (1 - additions * 0x1p-24);
  // Weights below 2^-126 are zero, and subnormal fp32 sums lose bits.
  const double underflow = static_cast<double>(k) * 0x1p-100;
  return {.relative = loss,
          .floor_a = split.floor_a * (1 + loss),
          .floor_b = split.floor_b * (1 + loss),
          .floor_both = split.floor_both * (1 + loss) + underflow};
}

}  // namespace kintsugi::core
