// Products of the engine cpu: by families of kernels (kernels.hpp), and by OpenBLAS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text/format_text.hpp"
#include "engines/cpu/bf16_panels.hpp"
#include "engines/cpu/kernels.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// ---------------------------------------------------------------- families of kernels

// Return the families that this CPU can execute, fastest first. The last one is generic. All families give
// the bits of the reference engine.
std::span<const Int8Kernels* const> int8_families();
std::span<const Int52Kernels* const> int52_families();
std::span<const FloatKernels* const> float_families();
std::span<const PairKernels* const> pair_families();
inline const FloatKernels& fastest_float_kernels() { return *float_families().front(); }
inline const PairKernels& fastest_pair_kernels() { return *pair_families().front(); }
// Returns nullptr if the CPU has no fused multiply-adds: superaccumulators are then faster.
const SumKernels* fastest_sum_kernels();

// Returns the kernels for bf16 slices of this CPU's matrix unit (Accumulator::amx_bf16); nullptr if there is
// none, or if Linux refuses its registers.
const Bf16Kernels* bf16_kernels();

template <class Kernels>
struct KernelChoice {
  const Kernels* kernels;
  std::string reason;  // why the setting's kernels are not these; empty if they are
};

// Return the families that KINTSUGI_CPU_INT8 and KINTSUGI_CPU_INT52 name, read at the first call.
const KernelChoice<Int8Kernels>& int8_choice();
const KernelChoice<Int52Kernels>& int52_choice();

// Returns the kernels with the name `name`; "auto" means the fastest. `families` are those that this CPU can
// execute, the fastest first; the last one runs on any CPU.
template <class Kernels>
KernelChoice<Kernels> choose_kernels(std::span<const Kernels* const> families, std::string_view name,
                                     std::string_view variable) {
  std::string names = "auto";
  for (const Kernels* kernels : families) {
    if (name == "auto" || name == kernels->name) return {kernels, {}};
    names += fmt::format(", {}", kernels->name);
  }
  return {families.back(),
          fmt::format("{} = \"{}\" names kernels that this CPU cannot execute; it can execute {}", variable,
                      name, names)};
}

// ---------------------------------------------------------------- products of slices

// Scratch bytes of one thread of the products below.
std::size_t int8_worker_bytes(const Int8Kernels& kernels);
std::size_t tiles_worker_bytes(const Int8Kernels& kernels);
std::size_t int52_worker_bytes(const Int52Kernels& kernels);
std::size_t floats_worker_bytes(const Schedule& schedule);
std::size_t fp64_integers_worker_bytes();

// Multiplies int8 slices. Sums inside the engine are modulo 2^32; so the order of terms, steps and tiles does
// not change them.
void multiply_int8(const Multiplication& task, const Int8Kernels& kernels);

// Multiplies int8 slices with exponents per tile: computes the sums of all elements, as TileElement of
// engines/tiled_products.hpp defines them.
void multiply_tiles(const Multiplication& task, const Int8Kernels& kernels);

// Multiplies 52-bit words. Sums are modulo 2^128 inside and outside the engine; so neither blocks of k nor
// the order of additions changes them. Words that are zero in the whole tile are not multiplied.
void multiply_int52(const Multiplication& task, const Int52Kernels& kernels);

// Multiplies floating slices, which must be stored in panels. Sums are 64-bit integers if the schedule has
// integer_sums, else FP32.
void multiply_floats(const Multiplication& task, const FloatKernels& kernels);
// Products of slices of this format per unit of time, relative to OpenBLAS's FP32 product.
double float_rate(const FloatKernels& kernels, FormatId format);

// Multiplies bf16 slices, which must be stored in panels, by a matrix unit (Accumulator::amx_bf16).
void multiply_bf16(const Multiplication& task, const Bf16Kernels& kernels);
std::size_t bf16_worker_bytes(const Schedule& schedule);

// Multiplies fp64 slices that hold integers (Ozaki scheme I) by OpenBLAS. Every partial sum over a block of k
// is an integer that FP64 holds exactly; so every order of additions gives the same sum.
void multiply_fp64_integers(const Multiplication& task);

// ---------------------------------------------------------------- fused products

// From FP32 and FP64 operands to C by int8 slices (byte_products.cpp).
extern const FusedKernel byte_products;
// Its sizes on this machine as words; empty if there are no such kernels.
std::string panel_details();
// Says that Linux refuses the registers of AMX to this process; empty if it does not, or if there is no AMX.
std::string amx_refusal();
// True if byte_products takes such slices, as far as their rule tells.
bool takes_residues(const SplitRule& rule);
bool takes_digits(const SplitRule& rule);
// Returns the state of AMX for a call of so many threads, steady with other kernels: the unit of a core has
// half its rate, and loads that no longer overlap products, while the core's other hardware thread works.
// KINTSUGI_CPU_AMX fixes the answer; else it is measured for one thread, at most twice a second, for 25 us at
// most.
MatrixUnitState amx_state(int threads);
// Measures the calling thread's core now, whatever the setting says: true if it is fast. Nothing with other
// kernels.
std::optional<bool> measure_amx_is_fast();

// Sizes and order of a fused product, in place of those that follow from the caches (0). For studies of them
// (tests/engines/cpu/panel_rate.cpp); bits do not depend on them.
struct PanelStudy {
  std::int64_t depth = 0;  // inner indices of a panel: a multiple of panel_step, at most panel_depth
  // Vectors of a tile, and of the block that is split at once: multiples of panel_vectors.
  std::int64_t left_tile = 0;
  std::int64_t right_tile = 0;
  std::int64_t left_block = 0;
  std::int64_t right_block = 0;
  bool reduces_at_once = false;  // PanelProducts::reduces_at_once
};

// Computes a product that byte_products takes, by the kernels of one family.
template <class T>
void multiply_panels(const FusedProduct<T>& product, const PanelKernels& kernels,
                     const PanelStudy& study = {});
// Returns the bytes of its scratch memory, and its sizes for a C with contiguous columns.
std::size_t panel_scratch_bytes(const FusedProblem& problem, int threads, const PanelStudy& study);
PanelStudy panel_sizes(const FusedProblem& problem, int threads, const PanelStudy& study);

// From FP32 operands to C, split while they are multiplied (direct_products.cpp).
extern const FusedKernel direct_products;

// From FP32 operands to C by bf16 slices (bf16_products.cpp).
extern const FusedKernel bf16_products;
// True if the kernel computes such products with Accumulator::amx_bf16.
bool takes_bf16(const FusedProblem& problem);
void multiply_bf16(const FusedProduct<float>& product, const Bf16Kernels& kernels);

// ---------------------------------------------------------------- native products

// Computes C = alpha A B + beta C. Each element is summed in ascending order of k (arith/pair_sum.hpp).
void multiply_pairs(const NativeProduct<DoubleDouble>& task, const PairKernels& kernels);

// Compute C in a fixed order: OpenBLAS multiplies, but the bits depend on shape and operands alone.
// task.scratch must hold at least the bytes of one worker.
void multiply_in_tiles(const NativeProduct<float>& task);
void multiply_in_tiles(const NativeProduct<double>& task);
void multiply_in_tiles(const NativeProduct<std::complex<float>>& task);
void multiply_in_tiles(const NativeProduct<std::complex<double>>& task);

// Scratch bytes of multiply_in_tiles() with m rows, n columns and sums of k products. Elements are reals; a
// complex matrix counts with the shape of its embedding (base/embedding.hpp). There is memory for one worker
// per tile, but at most `threads` workers.
std::size_t native_tiles_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                               int threads);

}  // namespace kintsugi::core
