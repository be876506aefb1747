// The tasks of a calibration.
#pragma once

#include <vector>

#include "calibrate/measurement.hpp"
#include "calibrate/workbench.hpp"

namespace kintsugi::core::calibrate {

// Copies in device memory, and splits of FP32 operands.
std::vector<Task> split_tasks(Workbench& bench);
// Multi-term GEMM kernels in every tile, from slices to C.
std::vector<Task> multi_term_tasks(Workbench& bench);
// The vendor library's FP32 products, which FP32 emulations have to beat.
std::vector<Task> vendor_tasks(Workbench& bench);
// Native products of every type: by Kintsugi's kernels, and by cuBLAS.
std::vector<Task> native_tasks(Workbench& bench);
// int8 GEMM kernels in every tile, from residues of A and B to residues of C, without split and
// recombination.
std::vector<Task> int8_tasks(Workbench& bench);
// Packing of FP32 operands into int8 slices with exponents per tile, and the GEMM kernels for such slices.
std::vector<Task> weighted_tile_tasks(Workbench& bench);
// Whole emulated calls: FP32 calls, and those of other types by residues.
std::vector<Task> call_tasks(Workbench& bench);
// Whole emulated FP32 calls with a prepared B.
std::vector<Task> prepared_call_tasks(Workbench& bench);

// All tasks of a calibration, in the order in which they are measured.
std::vector<Task> all_tasks(Workbench& bench);

}  // namespace kintsugi::core::calibrate
