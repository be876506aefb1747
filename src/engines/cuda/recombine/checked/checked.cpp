// Recombination that checks every element, and exact computation of the elements that the check leaves open.
#include <algorithm>
#include <array>

#include "arith/residue/remainder.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

int max_checked_moduli() { return moduli_in_limbs(most_checked_limbs); }

namespace {

using CheckedKernels = std::array<KernelName, 4>;  // one kernel per element type

template <class Source>
void launch_checked(const CheckedKernels& kernels, const Queue& queue, const Source& source,
                    const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open) {
  launch(kernels[static_cast<std::size_t>(tile.c.type)],
         {divide_up(tile.rows, block_rows) * divide_up(tile.columns, block_columns(tile.c.type))},
         block_threads, no_shared_bytes, queue, tile, source, check, open);
}

// True if the kernel that recombines by sums of digits checks the tile: it becomes AB of real FP64 elements,
// and no error is allowed.
bool takes_digits(const ResidueSystem& system, const DeviceCheck& check, const DeviceTile& tile) {
  const DeviceScalars& scalars = tile.scalars;
  return tile.c.type == ElementType::f64 && system.real_count <= max_leading_digit_residues &&
         check.demand.coefficient == 0 && check.magnitudes == nullptr && scalars.device_alpha == nullptr &&
         scalars.device_beta == nullptr && scalars.beta == 0.0 && scalars.alpha == 1.0;
}

void launch_checked_digits(const Queue& queue, const ResidueSums& sums, const ResidueSystem& system,
                           const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open) {
  static const KernelName all_digits{"checked_digits", "checked_digits_f64"};
  static const KernelName leading_digits{"checked_digits", "checked_leading_digits_f64"};
  const bool takes_all = system.real_count <= max_wide_digit_residues;
  auto [source, tables] = wide_digits(system);
  source.sums = sums;
  tables.block_columns = digit_columns(tile);
  launch(takes_all ? all_digits : leading_digits,
         {divide_up(tile.rows, block_rows) * divide_up(tile.columns, tables.block_columns)}, block_threads,
         wide_fraction_shared_bytes, queue, tile, source, tables, wide_fractions(system), check, open);
}

}  // namespace

void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                       const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open) {
  static const CheckedKernels in_3_limbs{
      KernelName{"checked_residues_in_3", "checked_f32"}, KernelName{"checked_residues_in_3", "checked_f64"},
      KernelName{"checked_residues_c32", "checked_c32"}, KernelName{"checked_residues_c64", "checked_c64"}};
  // There are no kernels for complex elements here, since their integers have at most few_checked_limbs
  // limbs.
  static const CheckedKernels in_6_limbs{KernelName{"checked_residues_in_6", "checked_f32"},
                                         KernelName{"checked_residues_in_6", "checked_f64"},
                                         KernelName{"", ""}, KernelName{"", ""}};
  const bool complex = tile.c.complex();
  const int limbs = complex ? remainder_limbs(system.basis) : remainder_limbs(system.real_count);
  const int max_limbs = complex ? few_checked_limbs : most_checked_limbs;
  if (sums.type != SumType::residue || complex == system.basis.empty() || limbs > max_limbs)
    fail(Status::internal, "cannot check sums of type {} ({} real moduli, {} complex)",
         static_cast<int>(sums.type), system.real_count, system.basis.count());
  const ResidueSums residues{reinterpret_cast<const std::uint8_t*>(sums.data), sums.rows,
                             sums.group_stride()};
  if (takes_digits(system, check, tile)) {
    launch_checked_digits(queue, residues, system, check, tile, open);
  } else if (complex) {
    launch_checked(
        in_3_limbs, queue,
        ResiduesOfElements<few_checked_limbs>{residues, part_tables<few_checked_limbs>(system.basis)}, check,
        tile, open);
  } else if (limbs <= few_checked_limbs) {
    launch_checked(
        in_3_limbs, queue,
        ResiduesOfParts<few_checked_limbs>{residues, remainder_table<few_checked_limbs>(system.real_count)},
        check, tile, open);
  } else {
    launch_checked(
        in_6_limbs, queue,
        ResiduesOfParts<most_checked_limbs>{residues, remainder_table<most_checked_limbs>(system.real_count)},
        check, tile, open);
  }
}

namespace {

struct ExactKernel {
  KernelName name;
  std::int64_t shared_bytes;
};

// Number of thread blocks of a kernel whose warps compute one element at a time. Each element of the tile
// gets its own warp, as long as max_exact_blocks allows it.
std::int64_t exact_blocks(const DeviceTile& tile) {
  return std::min(divide_up(tile.rows * tile.columns, std::int64_t{exact_warps}), max_exact_blocks);
}

// Sums open elements in two doubles, if many are open and the rows of A or the columns of B are adjacent in
// memory.
void recompute_adjacent_vectors(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open) {
  static const KernelName kernel{"adjacent_vectors", "recompute_adjacent_vectors_f64",
                                 waits_for_grid_dependency};
  const bool of_rows = block.a.matrix.row_stride == 1;
  if (block.c.type != ElementType::f64 || open.in_own_arithmetic ||
      (!of_rows && block.b.matrix.row_stride != 1) || block.rows * block.columns < least_elements_of_block)
    return;
  const std::int64_t bands = divide_up(of_rows ? block.rows : block.columns, std::int64_t{band_vectors});
  const std::int64_t blocks = 2 * sm_count();  // thread blocks that a device holds
  const std::int64_t parts = std::max(blocks / bands, std::int64_t{1});
  launch(kernel, {bands * parts}, adjacent_vectors_threads, adjacent_vectors_shared_bytes, queue, block, open,
         of_rows, parts);
}

}  // namespace

void multiply_exactly(const Queue& queue, const DeviceTile& tile) {
  static const std::array<ExactKernel, 4> kernels{
      ExactKernel{{"exact_products", "exact_f32"}, exact_shared_bytes<float>},
      ExactKernel{{"exact_products", "exact_f64"}, exact_shared_bytes<double>},
      ExactKernel{{"exact_products", "exact_c32"}, exact_shared_bytes<Complex<float>>},
      ExactKernel{{"exact_products", "exact_c64"}, exact_shared_bytes<Complex<double>>}};
  const ExactKernel& kernel = kernels[static_cast<std::size_t>(tile.c.type)];
  launch(kernel.name, {exact_blocks(tile)}, exact_warps * exact_lanes, kernel.shared_bytes, queue, tile);
}

void recompute(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open,
               DeviceReport* report) {
  static const KernelName list_masks{"chain", "list_open_masks", waits_for_grid_dependency};
  static const std::array<ExactKernel, 4> kernels{
      ExactKernel{{"exact_products", "recompute_f32"}, recompute_shared_bytes<float>},
      ExactKernel{{"exact_products", "recompute_f64"}, recompute_shared_bytes<double>},
      ExactKernel{{"exact_products", "recompute_c32"}, recompute_shared_bytes<Complex<float>>},
      ExactKernel{{"exact_products", "recompute_c64"}, recompute_shared_bytes<Complex<double>>}};
  recompute_adjacent_vectors(queue, block, open);
  const std::int64_t masks = open.masks_per_column * block.columns;
  launch(list_masks, {std::min(divide_up(masks, list_threads), max_list_blocks)}, list_threads,
         no_shared_bytes, queue, open, masks);
  const ExactKernel& kernel = kernels[static_cast<std::size_t>(block.c.type)];
  launch(kernel.name, {exact_blocks(block)}, exact_warps * exact_lanes, kernel.shared_bytes, queue, block,
         open, report);
}

void choose_checked(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                    const DeviceCheckedChain& chain, DeviceSelection* selection, DeviceCheckState* state,
                    DeviceReport* report) {
  static const KernelName kernel{"chain", "sample_open_elements", waits_for_grid_dependency};
  const std::int64_t length = a.matrix.length();
  const bool is_single = a.matrix.type == ElementType::f32 || a.matrix.type == ElementType::c32;
  const SampleTask task{
      .sides = {a, b},
      .vectors = {std::min(a.matrix.vectors(), sample_vectors), std::min(b.matrix.vectors(), sample_vectors)},
      .length = std::min(length, sample_length),
      .step = std::max(length / sample_length, std::int64_t{1}),
      .digits = is_single ? 24 : 53,
      .parts = a.matrix.complex() ? 2.0 : 1.0,
      .chain = chain,
      .selection = selection,
      .state = state,
      .report = report};
  clear(queue, state, sizeof *state);
  launch(kernel, {task.vectors[0] * task.vectors[1]}, sample_threads, no_shared_bytes, queue, task);
}

void begin_checks(const Queue& queue, const DeviceSelection* selection, DeviceCheckState* state) {
  static const KernelName kernel{"chain", "begin_checks", waits_for_grid_dependency};
  launch(kernel, {}, warp_size, no_shared_bytes, queue, selection, state);
}

void advance_checks(const Queue& queue, const DeviceCheckedChain& chain, int index, std::int64_t elements,
                    DeviceCheckState* state) {
  static const KernelName kernel{"chain", "advance_checks", waits_for_grid_dependency};
  launch(kernel, {}, warp_size, no_shared_bytes, queue, chain, index, static_cast<double>(elements), state);
}

}  // namespace kintsugi::core::cuda
