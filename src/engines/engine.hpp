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
#include "formats/double_double.hpp"
#include "formats/format.hpp"
#include "recombine/accumulators.hpp"
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
  // True: bits must depend on shape and operands alone, not on strides, threads or scratch.
  bool fixed_order = false;
  std::span<std::byte> scratch = {};  // at least Engine::fixed_order_bytes() of a block of C
};

// A property of the machine, or of the build, that an engine requires.
struct Requirement {
  std::string name;
  std::string details;  // what was found
  std::string reason;   // why it does not suffice, with what would help; empty if it does
};

// Costs per thread of a call's steps, in units of one multiply-add of the engine's native FP32 product of
// large matrices.
struct StepCosts {
  double product = 0;  // per multiply-add of slices; 0: it follows from relative_rate()
  double element = 0;  // per element of A or B: its range, and what its split costs for any number of slices
  double slice = 0;    // per element of a slice: its split
  double result = 0;   // per element of C: the recombination's rounding, alpha and beta
  double sum = 0;      // per sum: written by the engine and read by the recombination
  // Rows and columns of tiles, to which products are padded by zeros (and to Slices::k_multiple); 1: no
  // padding.
  std::int64_t tile = 1;
};

// Costs of a native product in addition to its multiply-adds, in the units of StepCosts.
struct NativeCosts {
  double call = 0;
  double element = 0;  // per element of A, B or C: its transfer through memory
};

class DeviceContexts;
class DeviceEngine;

// Problems that an engine can run on this machine, and how it expects slices.
class EngineCapabilities {
 public:
  virtual ~EngineCapabilities() = default;

  // Largest dimension or leading dimension that the engine takes.
  virtual std::int64_t largest_size() const = 0;

  // Returns why the engine cannot run here, with what would help; empty if it can. For an engine with devices
  // it is about the calling thread's device. Cheap after the first call.
  virtual std::string unavailable_reason() const = 0;

  // Returns why the engine cannot satisfy one of its own settings, with the accepted values; empty if it can.
  // A call that may select the engine fails with this text, so that a misspelt name does not make it run on a
  // slower engine.
  virtual std::string refused_setting() const { return {}; }

  // Returns the requirements with what was found for each, every one after those on which it depends; leaves
  // out those that cannot be tested because an earlier one is missing. Empty if nothing can be missing.
  virtual std::vector<Requirement> requirements() const { return {}; }

  // Returns library, kernel or device that the engine uses; one line for messages.
  virtual std::string details() const = 0;

  // Returns the accumulators for products of that format, the preferred one first; empty if the engine does
  // not take the format.
  virtual std::span<const Accumulator> accumulators(FormatId format) const = 0;

  // Returns the storage of slices that multiply() expects.
  virtual SliceStorage slice_storage(FormatId format) const = 0;

  // True if the engine fuses the first step of the Chinese remainder to products of residues: sums are then
  // written as SumType::residue.
  virtual bool reduces_sums_modulo() const = 0;

  // True if the engine multiplies slices with exponents per tile (TileSums of schedule/schedule.hpp).
  virtual bool multiplies_tiles() const { return false; }

  // True if native products of f32, f64 and complex matrices always have a fixed order.
  virtual bool native_order_is_fixed() const { return false; }
};

// Rates and costs by which plans compare an engine's programs.
class EngineCosts {
 public:
  virtual ~EngineCosts() = default;

  // Products of that format per unit of time, relative to the engine's native FP32 product.
  virtual double relative_rate(FormatId format) const = 0;

  // Returns the costs of a call's steps with slices of that rule; zeros if only products take time. The cost
  // of products is 0 if it follows from relative_rate().
  virtual StepCosts step_costs(const SplitRule&) const { return {}; }
  virtual NativeCosts native_costs() const { return {}; }
  // Seconds of the multiply-add that is the unit of these costs; 0: unknown.
  virtual double product_seconds() const { return 0; }
  // Time of a native double-double product relative to one in FP32.
  virtual double native_double_double_time() const = 0;
};

// Products of matrices in host memory.
class HostProducts {
 public:
  virtual ~HostProducts() = default;

  // Bytes of scratch that multiply() needs for operands of inner length k.
  virtual std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t k,
                                    int threads) const = 0;

  // Bytes of scratch of a native product in a fixed order, with m rows and n columns of reals (for a complex
  // matrix, of its embedding) of `real_bytes` bytes each and sums of k products.
  virtual std::size_t fixed_order_bytes([[maybe_unused]] std::size_t real_bytes,
                                        [[maybe_unused]] std::int64_t m, [[maybe_unused]] std::int64_t n,
                                        [[maybe_unused]] std::int64_t k, [[maybe_unused]] int threads) const {
    return 0;
  }

  virtual void multiply(const Multiplication& multiplication) const = 0;

  virtual void native(const NativeProduct<float>& product) const = 0;
  virtual void native(const NativeProduct<double>& product) const = 0;
  virtual void native(const NativeProduct<std::complex<float>>& product) const = 0;
  virtual void native(const NativeProduct<std::complex<double>>& product) const = 0;
  // Sums in the arithmetic of arith/pair_sum.hpp in the order of k: the same bits on every engine.
  virtual void native(const NativeProduct<DoubleDouble>& product) const = 0;
};

class Engine : public EngineCapabilities, public EngineCosts, public HostProducts {
 public:
  // Returns the steps for matrices in the engine's own memory (engines/device_engine.hpp); nullptr if the
  // engine works on host memory, by multiply() and native().
  virtual const DeviceEngine* device() const { return nullptr; }
  // Returns the contexts to which that memory belongs (engines/device_context.hpp); nullptr if device() is.
  virtual const DeviceContexts* contexts() const { return nullptr; }

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
};

}  // namespace kintsugi::core
