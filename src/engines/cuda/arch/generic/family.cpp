// Table of all devices whose family has no table of its own: cuBLAS multiplies their slices, and the kernels
// that every GPU runs do the rest. None of these devices was measured.
#include "engines/cuda/arch/family.hpp"

namespace kintsugi::core::cuda {

const Family& generic_family();

const Family& generic_family() {
  static constexpr Family table{.name = "generic"};
  return table;
}

}  // namespace kintsugi::core::cuda
