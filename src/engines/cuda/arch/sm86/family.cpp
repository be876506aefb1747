// All other GPUs from compute capability 8.6 on: the kernels of 8.0 (gemm/sm80) with the shared memory that a
// thread block has on 8.6, 8.9 and 12.0. None of these GPUs was measured. Their matrix units' additions were
// not recorded; the model of 8.0 keeps the fewest bits of all that are known, so its error bound holds for
// the others.
#include "engines/cuda/arch/family.hpp"

namespace kintsugi::core::cuda {

const Family& sm80_family();
const Family& sm86_family();

const Family& sm86_family() {
  static const Family table = [] {
    Family family = sm80_family();
    family.name = "sm86";
    family.major = Family::any;
    family.minor = Family::any;
    family.max_shared_bytes = 99 << 10;
    family.has_few_fp64_units = true;
    return family;
  }();
  return table;
}

}  // namespace kintsugi::core::cuda
