#include "engines/cuda/recombine/recombine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "arith/residue/digit_sums.hpp"
#include "arith/residue/remainder.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

using KernelsOfTypes = std::array<KernelName, 4>;

// Kernels named `stem`, element type, `ending`. Those for real elements are in image `file`, all others in
// `complex_file`.
#define KINTSUGI_KERNELS(file, complex_file, stem, ending)                      \
  {                                                                             \
    KernelName{file, stem "_f32" ending}, KernelName{file, stem "_f64" ending}, \
        KernelName{complex_file, stem "_c32" ending}, KernelName {              \
      complex_file, stem "_c64" ending                                          \
    }                                                                           \
  }

const KernelName& kernel_of_type(const KernelsOfTypes& kernels, ElementType type) {
  return kernels[static_cast<std::size_t>(type)];
}

std::int64_t thread_blocks_of(const DeviceTile& tile) {
  return divide_up(tile.rows, block_rows) * divide_up(tile.columns, block_columns(tile.c.type));
}

ResidueSums residue_sums(const Accumulators& sums) {
  return {reinterpret_cast<const std::uint8_t*>(sums.data), sums.rows, sums.group_stride()};
}

template <int Limbs>
void launch_residues(const KernelsOfTypes& kernels, const Queue& queue, const ResidueSums& sums,
                     const ResidueSystem& system, const DeviceTile& tile) {
  const auto launch_with = [&](const auto& source) {
    launch(kernel_of_type(kernels, tile.c.type), {thread_blocks_of(tile)}, block_threads, no_shared_bytes,
           queue, tile, source);
  };
  if (system.basis.empty()) {
    launch_with(ResiduesOfParts<Limbs>{sums, remainder_table<Limbs>(system.real_count)});
  } else {
    launch_with(ResiduesOfElements<Limbs>{sums, part_tables<Limbs>(system.basis)});
  }
}

// Returns make(), or what it returned for the same system before in this thread, since tables take longer to
// make than a kernel to launch. The last few systems are known: a call may have four candidates.
template <class Tables, class Make>
const Tables& tables_of(const ResidueSystem& system, const Make& make) {
  struct Known {
    ResidueSystem system;
    Tables tables;
  };
  constexpr std::size_t most_known = 8;
  thread_local std::vector<Known> known;
  thread_local std::size_t next = 0;  // is replaced if the system is a new one
  for (const Known& one : known) {
    if (one.system.real_count == system.real_count && one.system.basis == system.basis) return one.tables;
  }
  if (known.size() < most_known) {
    known.reserve(most_known);
    return known.emplace_back(Known{system, make()}).tables;
  }
  Known& replaced = known[next++ % most_known];
  replaced = {system, make()};
  return replaced.tables;
}

// Table of fractions of the first `real_count` moduli, or an empty one if it does not take so many.
template <class Fractions>
const Fractions& fractions(const ResidueSystem& system) {
  return tables_of<Fractions>(system, [&] {
    const int count = system.real_count;
    return has_fractions<Fractions>(count) ? fraction_table<Fractions::max_residues>(count) : Fractions{};
  });
}

}  // namespace

// More columns hide the thread block's start better, where C is read or passes through shared memory, or
// elements are complex; else fewer leave less work for the last thread blocks
// (lab/results/log/2026-11-26-recombination-on-tensor-cores.md). Later candidates are rarely selected, and
// fewer thread blocks exit early sooner.
int digit_columns(const DeviceTile& tile) {
  constexpr std::int64_t enough_blocks = 256;
  const ElementType type = tile.c.type;
  const bool only_writes_columns = type == ElementType::f64 && tile.c.row_stride == 1 &&
                                   tile.scalars.device_beta == nullptr && tile.scalars.beta == 0.0;
  const bool is_first_candidate = !tile.condition.selected_earlier;
  int columns = most_digit_columns(type) / (only_writes_columns && is_first_candidate ? 2 : 1);
  while (columns > block_columns(type) &&
         divide_up(tile.rows, block_rows) * divide_up(tile.columns, columns) < enough_blocks)
    columns /= 2;
  return columns;
}

const WideDigits& wide_digits(const ResidueSystem& system) {
  return tables_of<WideDigits>(system, [&] {
    constexpr int residues = padded_digit_residues(max_wide_digit_residues);
    const int count = system.real_count;
    return WideDigits{{{}, remainder_table<wide_digit_limbs>(count)},
                      {{count <= max_wide_digit_residues ? digit_table<residues, wide_pieces>(count)
                                                         : leading_digit_table<residues>(count)},
                       {}}};
  });
}

const WideFractions& wide_fractions(const ResidueSystem& system) { return fractions<WideFractions>(system); }

namespace {

// True if an element of this type is recombined by sums of digits.
bool takes_digits(const ResidueSystem& system, ElementType type) {
  if (type == ElementType::f64) return system.real_count <= max_real_digit_residues;
  return type == ElementType::c64 && !system.basis.empty() && remainder_limbs(system.basis) <= digit_limbs &&
         system.basis.slices() <= max_complex_digit_residues;
}

// Source and tables of a kernel for residues of real moduli by sums of digits.
using RealDigits = std::pair<ResiduesOfParts<digit_limbs>, RealDigitTables>;
const RealDigits& real_digits(const ResidueSystem& system) {
  return tables_of<RealDigits>(system, [&] {
    return RealDigits{{{}, remainder_table<digit_limbs>(system.real_count)},
                      {{digit_table<padded_digit_residues(max_real_digit_residues)>(system.real_count)}, {}}};
  });
}

template <class Source, class Tables, class... Fractions>
void launch_digits(const KernelName& kernel, std::int64_t shared_bytes, const Queue& queue,
                   const ResidueSums& sums, const DeviceTile& tile, Source source, Tables tables,
                   const Fractions&... fractions) {
  source.sums = sums;
  tables.block_columns = digit_columns(tile);
  launch(kernel, {divide_up(tile.rows, block_rows) * divide_up(tile.columns, tables.block_columns)},
         block_threads, shared_bytes, queue, tile, source, tables, fractions...);
}

void launch_digit_residues(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                           const DeviceTile& tile) {
  static const KernelName f64{"digit_residues", "digit_residues_f64", waits_for_grid_dependency};
  static const KernelName c64{"digit_residues", "digit_residues_c64"};
  const std::int64_t shared_bytes = digit_shared_bytes(tile.c.type);
  if (tile.c.type == ElementType::f64) {
    const auto& [source, tables] = real_digits(system);
    return launch_digits(f64, shared_bytes, queue, sums, tile, source, tables,
                         fractions<RealFractions>(system));
  }
  using Tables = std::pair<ResiduesOfElements<digit_limbs>, ComplexDigitTables>;
  const auto& [source, tables] = tables_of<Tables>(system, [&] {
    const auto table = [&](std::int64_t part) {
      const auto residues = part_residues(system.basis, part);
      return digit_table<padded_digit_residues(max_complex_digit_residues)>(
          system, std::span(residues).first(system.basis.slices()));
    };
    return Tables{{{}, part_tables<digit_limbs>(system.basis)}, {{table(0), table(1)}, {}}};
  });
  launch_digits(c64, shared_bytes, queue, sums, tile, source, tables);
}

// True if a tile of real elements of 17 to max_wide_digit_residues moduli becomes AB or -AB, or the sum of
// that and C or -C.
bool takes_wide_digits(const ResidueSystem& system, const DeviceTile& tile) {
  const DeviceScalars& scalars = tile.scalars;
  return tile.c.type == ElementType::f64 && !has_fractions<RealFractions>(system.real_count) &&
         system.real_count <= max_wide_digit_residues && scalars.device_alpha == nullptr &&
         scalars.device_beta == nullptr && std::fabs(scalars.alpha.real()) == 1 &&
         (scalars.beta == 0.0 || std::fabs(scalars.beta.real()) == 1);
}

void launch_wide_digit_residues(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                                const DeviceTile& tile) {
  static const KernelName f64{"wide_digit_residues", "wide_digit_residues_f64", waits_for_grid_dependency};
  const auto& [source, tables] = wide_digits(system);
  launch_digits(f64, wide_fraction_shared_bytes, queue, sums, tile, source, tables, wide_fractions(system));
}

// Recombines residues of candidates that share a kernel.
void launch_selected_digits(const Queue& queue, const ResidueSums& sums, DeviceTile tile,
                            const SelectedModuli& selected) {
  static const KernelName kernel{"selected_digit_residues", "selected_digit_residues_f64",
                                 waits_for_grid_dependency};
  SelectedDigits digits{};
  digits.selected = selected;
  tile.condition = {.selected_earlier = true};
  const int columns = digit_columns(tile);
  for (int i = 0; i < selected.candidates(); ++i) {
    const ResidueSystem system{.real_count = selected.least + i};
    const auto& [source, tables] = wide_digits(system);
    digits.source[i] = {sums, source.table};
    digits.tables[i] = tables;
    digits.tables[i].block_columns = columns;
    digits.fractions[i] = wide_fractions(system);
  }
  launch(kernel, {divide_up(tile.rows, block_rows) * divide_up(tile.columns, columns)}, block_threads,
         wide_fraction_shared_bytes, queue, tile, digits);
}

// Recombines sums of 52-bit words. If there is a single group, it has products of one word of A and one word
// of B, and the exact sum fits into 2 limbs.
void recombine_words(const Queue& queue, const WeightedSums& sums, const DeviceTile& tile) {
  static const KernelsOfTypes in_2 KINTSUGI_KERNELS("words", "words", "words_in_2", "");
  static const KernelsOfTypes in_7 KINTSUGI_KERNELS("words", "words", "words_in_7", "");
  launch(kernel_of_type(sums.groups == 1 ? in_2 : in_7, tile.c.type),
         {divide_up(tile.rows, elements_threads), tile.columns}, elements_threads, no_shared_bytes, queue,
         tile, sums);
}

}  // namespace

void recombine_weighted(const Queue& queue, const Accumulators& sums, std::span<const int> exponents,
                        const DeviceTile& tile) {
  static const KernelsOfTypes weighted_floats KINTSUGI_KERNELS("weighted", "weighted", "weighted",
                                                               "_of_floats");
  static const KernelsOfTypes weighted_integers KINTSUGI_KERNELS("weighted", "weighted", "weighted",
                                                                 "_of_integers");
  if (sums.type == SumType::residue)
    fail(Status::internal, "engine cuda got sums of type {} to weigh", static_cast<int>(sums.type));
  const auto group_exponents = exponents.first(static_cast<std::size_t>(sums.groups));
  WeightedSums weighted{
      .data = sums.data,
      .rows = sums.rows,
      .group_stride = sums.group_stride(),
      .groups = sums.groups,
      .smallest_exponent = *std::min_element(group_exponents.begin(), group_exponents.end()),
      .exponents = {}};
  std::transform(group_exponents.begin(), group_exponents.end(), weighted.exponents,
                 [](int exponent) { return static_cast<std::int16_t>(exponent); });
  if (sums.type == SumType::i128) return recombine_words(queue, weighted, tile);
  launch(kernel_of_type(sums.type == SumType::f32 ? weighted_floats : weighted_integers, tile.c.type),
         {thread_blocks_of(tile)}, block_threads, no_shared_bytes, queue, tile, weighted);
}

bool recombines(const ComplexBasis& basis) {
  return remainder_limbs(basis) <= max_element_limbs && basis.slices() <= max_complex_slices;
}

void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                        const DeviceTile& tile) {
  static const KernelsOfTypes in_2 KINTSUGI_KERNELS("residues_in_2", "complex_residues_in_2", "residues", "");
  static const KernelsOfTypes in_3 KINTSUGI_KERNELS("residues_in_3", "complex_residues_in_3", "residues", "");
  static const KernelsOfTypes in_6 KINTSUGI_KERNELS("residues_in_6", "complex_residues_in_6", "residues", "");
  if (sums.type != SumType::residue)
    fail(Status::internal, "engine cuda got sums of type {} for residues", static_cast<int>(sums.type));
  const ResidueSums residues = residue_sums(sums);
  if (takes_wide_digits(system, tile)) return launch_wide_digit_residues(queue, residues, system, tile);
  if (takes_digits(system, tile.c.type)) return launch_digit_residues(queue, residues, system, tile);
  // Kernels for residues of the parts of complex elements always have 6 limbs.
  const int limbs = !system.basis.empty() ? remainder_limbs(system.basis)
                    : tile.c.complex()    ? 6
                                          : remainder_limbs(system.real_count);
  // For two limbs there are only kernels of FP32; complex bases of many moduli may need them in FP64.
  const bool needs_3 = limbs <= 2 && tile.c.type == ElementType::c64;
  if (limbs <= 2 && !needs_3) return launch_residues<2>(in_2, queue, residues, system, tile);
  if (limbs <= 3) return launch_residues<3>(in_3, queue, residues, system, tile);
  launch_residues<6>(in_6, queue, residues, system, tile);
}

void recombine_selected(const Queue& queue, const Accumulators& sums, const DeviceTile& tile,
                        const SelectedModuli& selected) {
  if (takes_wide_digits(ResidueSystem{.real_count = selected.most}, tile))
    return launch_selected_digits(queue, residue_sums(sums), tile, selected);
  for (int count = selected.least; count <= selected.most; ++count) {
    DeviceTile tile_of_candidate = tile;
    tile_of_candidate.condition = selected.condition_of(count);
    recombine_residues(queue, sums, ResidueSystem{.real_count = count}, tile_of_candidate);
  }
}

namespace {

constexpr std::int64_t threads = 256;  // threads per block of the kernels that scale C or add sums outside
constexpr std::int64_t elements_of_thread = 4;  // elements per thread of the kernels that add sums outside

}  // namespace

void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item, const DeviceScalars& scalars,
           const DeviceCondition& condition) {
  static const KernelsOfTypes kernels KINTSUGI_KERNELS("scale", "scale", "scale", "");
  ScaledMatrix matrix{c, item, scalars, condition};
  const bool rows_are_contiguous = c.column_stride < c.row_stride || c.rows == 1;
  if (rows_are_contiguous) {  // the kernel gets the transpose, whose columns are contiguous
    std::swap(matrix.c.rows, matrix.c.columns);
    std::swap(matrix.c.row_stride, matrix.c.column_stride);
  }
  launch(kernel_of_type(kernels, c.type), {divide_up(matrix.c.rows, scaled_rows) * matrix.c.columns}, threads,
         no_shared_bytes, queue, matrix);
}

void add_outside(const Queue& queue, const std::int32_t* inside, std::int64_t elements, int modulus,
                 bool is_first_k_block, void* outside) {
  static const KernelName as_integers{"add_outside", "add_as_integers"};
  static const KernelName as_residues{"add_outside", "add_as_residues"};
  const Extent grid{divide_up(elements, elements_of_thread * threads)};
  if (modulus == 0) {
    launch(as_integers, grid, threads, no_shared_bytes, queue, inside, elements, is_first_k_block, outside);
    return;
  }
  const auto divisor = static_cast<std::uint32_t>(modulus);
  const auto reciprocal = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / divisor);
  launch(as_residues, grid, threads, no_shared_bytes, queue, inside, elements, is_first_k_block, outside,
         divisor, reciprocal);
}

void add_exact_sums_outside(const Queue& queue, const void* inside, bool inside_is_fp64,
                            std::int64_t elements, bool is_first_k_block, std::int64_t* outside) {
  static const KernelName add_floats{"add_outside", "add_floats_as_integers"};
  static const KernelName add_doubles{"add_outside", "add_doubles_as_integers"};
  launch(inside_is_fp64 ? add_doubles : add_floats, {divide_up(elements, elements_of_thread * threads)},
         threads, no_shared_bytes, queue, inside, elements, is_first_k_block, outside);
}

}  // namespace kintsugi::core::cuda
