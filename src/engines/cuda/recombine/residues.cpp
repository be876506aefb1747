// Launches of the kernels that recombine residues (digits.cu, residues.cu), and their tables.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "arith/residue/digit_sums.hpp"
#include "arith/residue/remainder.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

int max_checked_moduli() { return moduli_in_limbs(most_checked_limbs); }

bool recombines(const ComplexBasis& basis) {
  return remainder_limbs(basis) <= max_element_limbs && basis.slices() <= max_complex_slices;
}

namespace {

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
    return count <= Fractions::max_residues ? fraction_table<Fractions::max_residues>(count) : Fractions{};
  });
}

// Sources, whose sums are not set, and tables of the kernels that sum digits.
using RealDigits = std::pair<ResiduesOfReals<digit_limbs>, RealDigitTables>;
const RealDigits& real_digits(const ResidueSystem& system) {
  return tables_of<RealDigits>(system, [&] {
    return RealDigits{{{}, remainder_table<digit_limbs>(system.real_count)},
                      {{digit_table<RealDigitTables::max_residues>(system.real_count)}, {}}};
  });
}

// With more than max_wide_digit_residues moduli the tables have leading digits alone.
using WideDigits = std::pair<ResiduesOfReals<wide_digit_limbs>, WideDigitTables>;
const WideDigits& wide_digits(const ResidueSystem& system) {
  return tables_of<WideDigits>(system, [&] {
    constexpr int residues = WideDigitTables::max_residues;
    const int count = system.real_count;
    return WideDigits{{{}, remainder_table<wide_digit_limbs>(count)},
                      {{count <= max_wide_digit_residues ? digit_table<residues, wide_pieces>(count)
                                                         : leading_digit_table<residues>(count)},
                       {}}};
  });
}

using ComplexDigits = std::pair<ResiduesOfElements<digit_limbs>, ComplexDigitTables>;
const ComplexDigits& complex_digits(const ResidueSystem& system) {
  return tables_of<ComplexDigits>(system, [&] {
    const auto table = [&](std::int64_t part) {
      const auto residues = part_residues(system.basis, part);
      return digit_table<ComplexDigitTables::max_residues>(system,
                                                           std::span(residues).first(system.basis.slices()));
    };
    return ComplexDigits{{{}, part_tables<digit_limbs>(system.basis)}, {{table(0), table(1)}, {}}};
  });
}

ResidueSums residue_sums(const Accumulators& sums) {
  return {reinterpret_cast<const std::uint8_t*>(sums.data), sums.rows, sums.group_stride()};
}

// Number of limbs of the integers of the elements' parts.
int limbs_of(const ResidueSystem& system) {
  return system.basis.empty() ? remainder_limbs(system.real_count) : remainder_limbs(system.basis);
}

// Launches a kernel of limbs.
template <class... Arguments>
void launch_tile(const KernelName& kernel, const Queue& queue, const DeviceTile& tile,
                 const Arguments&... arguments) {
  launch(kernel, {divide_up(tile.rows, block_rows) * divide_up(tile.columns, block_columns(tile.c.type))},
         block_threads, no_shared_bytes, queue, tile, arguments...);
}

template <int Limbs>
ResiduesOfReals<Limbs> reals(const ResidueSums& sums, const ResidueSystem& system) {
  return {sums, remainder_table<Limbs>(system.real_count)};
}
template <int Limbs>
ResiduesOfElements<Limbs> elements(const ResidueSums& sums, const ResidueSystem& system) {
  return {sums, part_tables<Limbs>(system.basis)};
}
ResiduesOfAnyElements any_elements(const ResidueSums& sums, const ResidueSystem& system) {
  constexpr int limbs = ResiduesOfAnyElements::limbs;
  if (!system.basis.empty()) return {elements<limbs>(sums, system), 1};
  const auto table = remainder_table<limbs, max_complex_slices>(system.real_count);
  return {{sums, {table, table}}, 2};
}

// Launches a kernel of digits. More columns hide the thread block's start better, where C is read or passes
// through shared memory, or elements are complex; else fewer leave less work for the last thread blocks
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
template <class... Arguments>
void launch_digits(const KernelName& kernel, int residues, const Queue& queue, const DeviceTile& tile,
                   int columns, const Arguments&... arguments) {
  launch(kernel, {divide_up(tile.rows, block_rows) * divide_up(tile.columns, columns)}, block_threads,
         digit_shared_bytes(tile.c.type, residues), queue, tile, arguments...);
}

// Source and tables of one of the kernels, with all of their members.
template <class Digits>
Digits digits_of(const Digits& known, const ResidueSums& sums, int columns) {
  Digits digits = known;
  digits.first.sums = sums;
  digits.second.block_columns = columns;
  return digits;
}

// True if a tile becomes AB or -AB, or the sum of that and C or -C.
bool has_unit_scalars(const DeviceTile& tile) {
  const DeviceScalars& scalars = tile.scalars;
  return scalars.device_alpha == nullptr && scalars.device_beta == nullptr &&
         std::fabs(scalars.alpha.real()) == 1 && (scalars.beta == 0.0 || std::fabs(scalars.beta.real()) == 1);
}

// True if the kernel for 17 to max_wide_digit_residues real moduli recombines the tile.
bool takes_wide_digits(int count, const DeviceTile& tile) {
  return tile.c.type == ElementType::f64 && count > max_real_digit_residues &&
         count <= max_wide_digit_residues && has_unit_scalars(tile);
}

// Recombines residues of `first` or one more of the next `candidates` numbers of moduli, of which `selected`
// tells if it has a selection.
void launch_wide_digits(const Queue& queue, const ResidueSums& sums, const DeviceTile& tile, int first,
                        int candidates, const SelectedModuli& selected) {
  static const KernelName kernel{"digits", "recombine_f64_wide_digits", waits_for_grid_dependency};
  const int columns = digit_columns(tile);
  SelectedDigits digits{};
  digits.selected = selected;
  for (int i = 0; i < candidates; ++i) {
    const ResidueSystem system{.real_count = first + i};
    std::tie(digits.source[i], digits.tables[i]) = digits_of(wide_digits(system), sums, columns);
    digits.fractions[i] = fractions<WideFractions>(system);
  }
  launch_digits(kernel, WideDigitTables::max_residues, queue, tile, columns, digits);
}

// The kernel for the residues of a tile:
//
//   real FP64      up to 16 moduli: digits, for any alpha and beta; 17 to 20 with alpha = 1 or -1 and
//                  beta = 0, 1 or -1 on the host: wide digits; else limbs
//   complex FP64   of a basis whose integers have 2 limbs, up to 36 slices: digits; else limbs
//   FP32           limbs: 2 up to 16 moduli, which all contracts need, else 6
//   embeddings of complex elements: 6 limbs
//   checked        real FP64 up to 24 moduli, AB alone without an allowed error: digits; else limbs
//
// Digits are summed by the matrix unit (digits.cuh, fractions.cuh), limbs by integer arithmetic (limbs.cuh).
void recombine_f64(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                   const DeviceTile& tile) {
  static const KernelName digits{"digits", "recombine_f64_digits", waits_for_grid_dependency};
  static const KernelName limbs_3{"residues_f64", "recombine_f64_limbs_3"};
  static const KernelName limbs_6{"residues_f64", "recombine_f64_limbs_6"};
  if (system.real_count <= max_real_digit_residues) {
    const int columns = digit_columns(tile);
    const auto [source, tables] = digits_of(real_digits(system), sums, columns);
    return launch_digits(digits, max_real_digit_residues, queue, tile, columns, source, tables,
                         fractions<RealFractions>(system));
  }
  if (takes_wide_digits(system.real_count, tile))
    return launch_wide_digits(queue, sums, tile, system.real_count, 1, {});
  if (limbs_of(system) <= 3) return launch_tile(limbs_3, queue, tile, reals<3>(sums, system));
  launch_tile(limbs_6, queue, tile, reals<6>(sums, system));
}

void recombine_f32(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                   const DeviceTile& tile) {
  static const KernelName limbs_2{"residues_f32", "recombine_f32_limbs_2"};
  static const KernelName limbs_6{"residues_f32", "recombine_f32_limbs_6"};
  if (limbs_of(system) <= 2) return launch_tile(limbs_2, queue, tile, reals<2>(sums, system));
  launch_tile(limbs_6, queue, tile, reals<6>(sums, system));
}

void recombine_c64(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                   const DeviceTile& tile) {
  static const KernelName digits{"digits", "recombine_c64_digits", waits_for_grid_dependency};
  static const KernelName limbs_3{"residues_c64", "recombine_c64_limbs_3"};
  static const KernelName limbs_6{"residues_c64", "recombine_c64_limbs_6"};
  if (system.basis.empty()) return launch_tile(limbs_6, queue, tile, any_elements(sums, system));
  if (limbs_of(system) > digit_limbs || system.basis.slices() > max_complex_digit_residues)
    return launch_tile(limbs_3, queue, tile, elements<3>(sums, system));
  const int columns = digit_columns(tile);
  const auto [source, tables] = digits_of(complex_digits(system), sums, columns);
  launch_digits(digits, max_complex_digit_residues, queue, tile, columns, source, tables);
}

void recombine_c32(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                   const DeviceTile& tile) {
  static const KernelName limbs_2{"residues_c32", "recombine_c32_limbs_2"};
  static const KernelName limbs_6{"residues_c32", "recombine_c32_limbs_6"};
  if (!system.basis.empty() && limbs_of(system) <= 2)
    return launch_tile(limbs_2, queue, tile, elements<2>(sums, system));
  launch_tile(limbs_6, queue, tile, any_elements(sums, system));
}

// True if the kernel that recombines by sums of digits checks the tile: it becomes AB of real FP64 elements,
// and no error is allowed.
bool checks_digits(const ResidueSystem& system, const DeviceCheck& check, const DeviceTile& tile) {
  return tile.c.type == ElementType::f64 && system.real_count <= max_leading_digit_residues &&
         check.demand.coefficient == 0 && check.demand.rounding == RoundingMode::nearest &&
         check.magnitudes == nullptr && has_unit_scalars(tile) && tile.scalars.beta == 0.0 &&
         tile.scalars.alpha == 1.0;
}

}  // namespace

void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                        const DeviceTile& tile) {
  if (sums.type != SumType::residue)
    fail(Status::internal, "engine cuda got sums of type {} for residues", static_cast<int>(sums.type));
  const ResidueSums residues = residue_sums(sums);
  switch (tile.c.type) {
    case ElementType::f32: return recombine_f32(queue, residues, system, tile);
    case ElementType::f64: return recombine_f64(queue, residues, system, tile);
    case ElementType::c32: return recombine_c32(queue, residues, system, tile);
    case ElementType::c64: return recombine_c64(queue, residues, system, tile);
  }
}

void recombine_selected(const Queue& queue, const Accumulators& sums, const DeviceTile& tile,
                        const SelectedModuli& selected) {
  DeviceTile tile_of_candidate = tile;
  if (takes_wide_digits(selected.most, tile)) {
    tile_of_candidate.condition = {.selected_earlier = true};
    return launch_wide_digits(queue, residue_sums(sums), tile_of_candidate, selected.least,
                              selected.candidates(), selected);
  }
  for (int count = selected.least; count <= selected.most; ++count) {
    tile_of_candidate.condition = selected.condition_of(count);
    recombine_residues(queue, sums, ResidueSystem{.real_count = count}, tile_of_candidate);
  }
}

void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                       const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open) {
  static const KernelName f64_digits{"check_digits", "check_f64_digits"};
  static const KernelName f32_limbs_3{"residues_f32", "check_f32_limbs_3"};
  static const KernelName f32_limbs_6{"residues_f32", "check_f32_limbs_6"};
  static const KernelName f64_limbs_3{"residues_f64", "check_f64_limbs_3"};
  static const KernelName f64_limbs_6{"residues_f64", "check_f64_limbs_6"};
  static const KernelName c32_limbs_3{"residues_c32", "check_c32_limbs_3"};
  static const KernelName c64_limbs_3{"residues_c64", "check_c64_limbs_3"};
  const bool complex = tile.c.complex();
  const int limbs = limbs_of(system);
  if (sums.type != SumType::residue || complex == system.basis.empty() ||
      limbs > (complex ? few_checked_limbs : most_checked_limbs))
    fail(Status::internal, "cannot check sums of type {} ({} real moduli, {} complex)",
         static_cast<int>(sums.type), system.real_count, system.basis.count());
  const ResidueSums residues = residue_sums(sums);
  const bool is_single = tile.c.type == ElementType::f32 || tile.c.type == ElementType::c32;
  if (checks_digits(system, check, tile)) {
    const int columns = digit_columns(tile);
    const auto [source, tables] = digits_of(wide_digits(system), residues, columns);
    launch_digits(f64_digits, WideDigitTables::max_residues, queue, tile, columns, source, tables,
                  fractions<WideFractions>(system), check, open);
  } else if (complex) {
    launch_tile(is_single ? c32_limbs_3 : c64_limbs_3, queue, tile,
                elements<few_checked_limbs>(residues, system), check, open);
  } else if (limbs <= few_checked_limbs) {
    launch_tile(is_single ? f32_limbs_3 : f64_limbs_3, queue, tile,
                reals<few_checked_limbs>(residues, system), check, open);
  } else {
    launch_tile(is_single ? f32_limbs_6 : f64_limbs_6, queue, tile,
                reals<most_checked_limbs>(residues, system), check, open);
  }
}

}  // namespace kintsugi::core::cuda
