// Interface of an engine, which executes schedules on slices, or a whole native product.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arith/split_rule.hpp"
#include "base/view.hpp"
#include "engines/fused_kernel.hpp"
#include "formats/double_double.hpp"
#include "formats/format.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/sum_kernels.hpp"
#include "schedule/accumulator.hpp"
#include "schedule/schedule.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// One run of a schedule: sums(i, j) is the product of slices of vector i of a and vector j of b.
struct Multiplication {
  const Schedule* schedule = nullptr;
  Slices a;
  Slices b;
  Accumulators sums;
  Accumulator accumulator = Accumulator::fp32;
  std::byte* scratch = nullptr;  // Engine::scratch_bytes() bytes
  int threads = 1;
};

// C = alpha * A * B + beta * C in T's own arithmetic. a is m x k, b is k x n. In every matrix one stride is 1
// and the other is free (transposes and layouts of a BLAS call). Complex a and b may be conjugated.
template <class T>
struct NativeProduct {
  MatrixView<const T> a;
  MatrixView<const T> b;
  MatrixView<T> c;
  T alpha = 1;
  T beta = 0;
  int threads = 1;
  bool conjugate_a = false;
  bool conjugate_b = false;
  // If true, the bits must depend on shape and operands alone, not on strides, threads or scratch.
  bool fixed_order = false;
  std::span<std::byte> scratch = {};  // at least Engine::fixed_order_bytes() of a block of C
};

// A property of the machine, or of the build, that an engine requires.
struct Requirement {
  std::string name;
  std::string details;  // what was found
  std::string reason;   // why it does not suffice, and advice; empty if it suffices
};

// State of the cores' matrix unit, where its rate varies (AMX of the engine cpu).
enum class MatrixUnitState : std::uint8_t {
  steady,    // the rate does not vary, or there is no such unit
  fast,      // as measured
  slow,      // as measured
  set_fast,  // by a setting
  set_slow,  // by a setting
  unknown,   // not measured, because several threads take cores in both states
};
inline bool is_slow(MatrixUnitState state) {
  return state == MatrixUnitState::slow || state == MatrixUnitState::set_slow;
}

// Properties of a call, besides its problem, on which costs depend.
struct CallConditions {
  int threads = 1;
  MatrixUnitState unit = MatrixUnitState::steady;
};

// Costs of a call's steps per thread. The unit is the time of one multiply-add of the engine's native FP32
// product of large matrices.
struct StepCosts {
  double product = 0;  // per multiply-add of slices; 0: it follows from relative_rate()
  double element = 0;  // per element of A or B: its range, and the part of its split that all slices share
  double slice = 0;    // per element of a slice: the rest of its split
  double result = 0;   // per element of C: the recombination's rounding, alpha and beta
  double sum = 0;      // per sum: written by the engine and read by the recombination
  // Rows and columns of tiles. Products are padded by zeros to whole tiles (and to Slices::k_multiple). 1: no
  // padding.
  std::int64_t tile = 1;
};

// Costs of a native product in addition to its multiply-adds, in the units of StepCosts.
struct NativeCosts {
  double call = 0;
  double element = 0;  // per element of A, B or C: its transfer through memory
  double fp64 = 2;     // per multiply-add of an FP64 product
};

// Capabilities of an engine on this machine, and the form in which it expects slices.
class EngineCapabilities {
 public:
  virtual ~EngineCapabilities() = default;

  // Largest dimension or leading dimension that the engine takes.
  virtual std::int64_t largest_size() const = 0;

  // Returns the reason why the engine cannot run here, and advice; empty if it can run. An engine with
  // devices answers for the calling thread's device. Cheap after the first call.
  virtual std::string unavailable_reason() const = 0;

  // Returns the reason why the engine cannot satisfy one of its own settings, and the accepted values; empty
  // if it can. A call that may select the engine fails with this text. Otherwise a misspelt name would
  // silently make the call run on a slower engine.
  virtual std::string refused_setting() const { return {}; }

  // Returns the requirements and what was found for each. A requirement comes after those on which it
  // depends, and is left out if one of these is missing, because it cannot be tested then. Empty if nothing
  // can be missing.
  virtual std::vector<Requirement> requirements() const { return {}; }

  // Returns one line for messages: the library, kernel or device that the engine uses.
  virtual std::string details() const = 0;

  // Returns the accumulators for products of this format, the preferred one first; empty if the engine does
  // not take the format.
  virtual std::span<const Accumulator> accumulators(FormatId format) const = 0;

  // Returns the storage of slices that multiply() expects.
  virtual SliceStorage slice_storage(FormatId format) const = 0;

  // True if products reduce their sums modulo the moduli, which is the first step of the Chinese remainder.
  // Sums are then written as SumType::residue.
  virtual bool reduces_sums_modulo() const = 0;

  // True if the engine multiplies slices with exponents per tile (TileSums of schedule/schedule.hpp), and
  // operands that its products split themselves.
  virtual bool multiplies_tiles() const { return false; }
  virtual bool multiplies_directly() const { return false; }

  // True if native products of f32, f64 and complex matrices always have a fixed order.
  virtual bool native_order_is_fixed() const { return false; }

  // Returns the kernels that replace several steps of a plan, the preferred ones first.
  virtual std::span<const FusedKernel> fused_kernels() const { return {}; }
};

// Rates and costs by which plans compare an engine's programs.
class EngineCosts {
 public:
  virtual ~EngineCosts() = default;

  // Rate of products of this format, relative to the engine's native FP32 product.
  virtual double relative_rate(FormatId format) const = 0;

  // Returns the state of the matrix unit by which a plan is made now, for a call that may have so many
  // threads.
  virtual MatrixUnitState matrix_unit_state(int /*threads*/) const { return MatrixUnitState::steady; }
  // Returns the costs of a call's steps with slices of this rule; zeros if only products take time.
  virtual StepCosts step_costs(const SplitRule&, const CallConditions&) const { return {}; }
  virtual NativeCosts native_costs(int /*threads*/) const { return {}; }
  // Seconds in which each of the threads computes one multiply-add, the unit of these costs; 0 if unknown.
  virtual double product_seconds(int /*threads*/) const { return 0; }
  // Time of a native double-double product divided by the time of a native FP32 product; 0: there are none.
  virtual double native_double_double_time_ratio() const { return 0; }
};

// Products of matrices in host memory.
class HostProducts {
 public:
  virtual ~HostProducts() = default;

  // Bytes of scratch that multiply() needs for operands of inner length k.
  virtual std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t k,
                                    int threads) const = 0;

  // Bytes of scratch of a native product in a fixed order, for m rows, n columns and sums of k products.
  // Elements are reals of `real_bytes` bytes; a complex matrix counts with the shape of its embedding.
  virtual std::size_t fixed_order_bytes([[maybe_unused]] std::size_t real_bytes,
                                        [[maybe_unused]] std::int64_t m, [[maybe_unused]] std::int64_t n,
                                        [[maybe_unused]] std::int64_t k, [[maybe_unused]] int threads) const {
    return 0;
  }

  // Returns the kernels by which exact sums are tried in two doubles first; nullptr: there are none.
  virtual const SumKernels* sum_kernels() const { return nullptr; }

  virtual void multiply(const Multiplication& multiplication) const = 0;

  virtual void native(const NativeProduct<float>& product) const = 0;
  virtual void native(const NativeProduct<double>& product) const = 0;
  virtual void native(const NativeProduct<std::complex<float>>& product) const = 0;
  virtual void native(const NativeProduct<std::complex<double>>& product) const = 0;
  // Sums in the arithmetic of arith/pair_sum.hpp, in ascending order of k: all engines give the same bits.
  virtual void native(const NativeProduct<DoubleDouble>& product) const = 0;
};

class Engine : public EngineCapabilities, public EngineCosts {
 public:
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;

  // Returns the products of matrices in host memory; nullptr if the engine multiplies in the memory of its
  // devices, as cuda does by the functions of engines/cuda/steps.hpp.
  virtual const HostProducts* host() const { return nullptr; }
  bool is_device() const { return host() == nullptr; }
};

// An engine that multiplies in host memory.
class HostEngine : public Engine, public HostProducts {
 public:
  const HostProducts* host() const final { return this; }
};

}  // namespace kintsugi::core
