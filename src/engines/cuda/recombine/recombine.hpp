// Recombination of sums into C, checks and recomputation of elements, SIMT products and beta C on a device.
// Functions without a comment are documented in engines/device_engine.hpp.
#pragma once

#include <span>
#include <utility>

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/device_engine.hpp"
#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

void recombine_weighted(const Queue& queue, const Accumulators& sums, std::span<const int> exponents,
                        const DeviceTile& tile);
bool recombines(const ComplexBasis& basis);
void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                        const DeviceTile& tile);
bool recombines_selected(ElementType type, const SplitRule& least, const SplitRule& most);
void recombine_selected(const Queue& queue, const Accumulators& sums, const DeviceTile& tile,
                        const SelectedModuli& selected);
bool recombines_strassen(ElementType type, const SplitRule& rule);
int max_checked_moduli();
void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                       const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open);
void choose_checked(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                    const DeviceCheckedChain& chain, DeviceSelection* selection, DeviceCheckState* state,
                    DeviceReport* report);
void begin_checks(const Queue& queue, const DeviceSelection* selection, DeviceCheckState* state);
void advance_checks(const Queue& queue, const DeviceCheckedChain& chain, int index, std::int64_t elements,
                    DeviceCheckState* state);
void recompute(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open,
               DeviceReport* report);
void multiply_exactly(const Queue& queue, const DeviceTile& tile);
void multiply_unsliced(const Queue& queue, const DeviceTile& tile);
void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item, const DeviceScalars& scalars,
           const DeviceCondition& condition);

// Adds the int32 sums `inside` of one k-block to the sums `outside` of the earlier k-blocks. The sums of the
// first k-block are stored instead. `outside` has 64-bit integers if modulus is 0; else it has residues of
// one byte, 0 ... modulus - 1. Both arrays have `elements` elements.
void add_outside(const Queue& queue, const std::int32_t* inside, std::int64_t elements, int modulus,
                 bool is_first_k_block, void* outside);

// add_outside() without a modulus, for sums `inside` that are integers in FP64 (`inside_is_fp64`) or FP32.
void add_exact_sums_outside(const Queue& queue, const void* inside, bool inside_is_fp64,
                            std::int64_t elements, bool is_first_k_block, std::int64_t* outside);

// Columns of C of a thread block that recombines by sums of digits.
int digit_columns(const DeviceTile& tile);

// Source, whose sums are not set, and tables of the kernels for real moduli and wide weights. With more than
// max_wide_digit_residues moduli, the tables have leading digits alone.
using WideDigits = std::pair<ResiduesOfParts<wide_digit_limbs>, WideDigitTables>;
const WideDigits& wide_digits(const ResidueSystem& system);

// Table of fractions of the system's moduli, empty for more than 24.
const WideFractions& wide_fractions(const ResidueSystem& system);

}  // namespace kintsugi::core::cuda
