// Recombination that checks every element, and the exact computation of the elements that the check leaves
// open.
#include <algorithm>
#include <array>

#include "arith/residue/remainder.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/exact_lanes.hpp"
#include "engines/cuda/recombine/recombine.hpp"

namespace kintsugi::core::cuda {

void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                       const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open) {
  static const std::array<KernelName, 4> kernels{
      KernelName{"checked_residues", "checked_f32"}, KernelName{"checked_residues", "checked_f64"},
      KernelName{"checked_residues_c32", "checked_c32"}, KernelName{"checked_residues_c64", "checked_c64"}};
  const bool complex = tile.c.complex();
  const int limbs = complex ? remainder_limbs(system.basis) : remainder_limbs(system.real_count);
  if (sums.type != SumType::residue || complex == system.basis.empty() || limbs > checked_limbs)
    fail(Status::internal, "engine cuda was handed sums of type {} modulo {} moduli, {} complex, to check",
         static_cast<int>(sums.type), system.real_count, system.basis.count());
  const ResidueSums residues{reinterpret_cast<const std::uint8_t*>(sums.data), sums.rows,
                             sums.group_stride()};
  const auto launch_with = [&](const auto& source) {
    launch(kernels[static_cast<std::size_t>(tile.c.type)],
           {divide_up(tile.rows, block_rows) * divide_up(tile.columns, block_columns(tile.c.type))},
           block_threads, 0, queue, tile, source, check, open);
  };
  if (complex) {
    launch_with(ResiduesOfElements<checked_limbs>{residues, part_tables<checked_limbs>(system.basis)});
  } else {
    launch_with(ResiduesOfParts<checked_limbs>{residues, remainder_table<checked_limbs>(system.real_count)});
  }
}

void multiply_exactly(const Queue& queue, const DeviceTile& tile, const DeviceOpenElements& open,
                      DeviceReport* report) {
  struct ExactKernel {
    KernelName name;
    std::int64_t shared_bytes;
  };
  static const std::array<ExactKernel, 4> kernels{
      ExactKernel{{"exact_products", "exact_f32"}, exact_shared_bytes<float>},
      ExactKernel{{"exact_products", "exact_f64"}, exact_shared_bytes<double>},
      ExactKernel{{"exact_products", "exact_c32"}, exact_shared_bytes<Complex<float>>},
      ExactKernel{{"exact_products", "exact_c64"}, exact_shared_bytes<Complex<double>>}};
  const ExactKernel& kernel = kernels[static_cast<std::size_t>(tile.c.type)];
  const std::int64_t blocks =
      std::min(divide_up(tile.rows * tile.columns, std::int64_t{exact_warps}), max_exact_blocks);
  launch(kernel.name, {blocks}, exact_warps * exact_lanes, kernel.shared_bytes, queue, tile, open, report);
}

}  // namespace kintsugi::core::cuda
