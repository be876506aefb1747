// What an engine is: something that executes schedules on slices, or a whole native product.
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

// One run of a schedule: sums(i, j) over k of slices of a (m vectors) and b (n vectors).
struct Multiplication {
  const Schedule* schedule = nullptr;
  Slices a;
  Slices b;
  Accumulators sums;
  Accumulator accumulator = Accumulator::fp32;
  std::byte* scratch = nullptr;  // scratch_bytes() of the engine
  int threads = 1;
};

// C = alpha * A * B + beta * C in T's own arithmetic; a is m x k, b is k x n, any strides of which one is 1
// in every matrix (transposes and layouts of a BLAS call). Of complex matrices a and b may be conjugated.
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
  // Bits must depend on shape and operands alone: not on strides, threads or scratch.
  bool fixed_order = false;
  std::span<std::byte> scratch = {};  // Engine::fixed_order_bytes() of a block of C at least
};

// Something of the machine, or of how the library was built, that an engine cannot do without.
struct Requirement {
  std::string name;
  std::string details;  // what was found
  std::string reason;   // why it is not enough, with what would help; empty: it is
};

// What one thread needs around the products of a call, in the time of one product of elements: of a
// multiplication and an addition of the engine's native FP32 product of large matrices.
struct StepCosts {
  double product = 0;  // of elements of slices; 0: what relative_rate() says
  double element = 0;  // of A or B: its range, and what of its split does not depend on slices
  double slice = 0;    // of an element: its split
  double result = 0;   // of C: the recombination's rounding, alpha and beta
  double sum = 0;      // of an element: its way out of the engine and into the recombination
  // Products take whole tiles of so many rows and columns (and Slices::k_multiple), padded by zeros; 1: they
  // do not.
  std::int64_t tile = 1;
};

// The same of a native product, beside its products of elements.
struct NativeCosts {
  double call = 0;
  double element = 0;  // of A, B or C: its way through memory
};

class DeviceContexts;
class DeviceEngine;

class Engine {
 public:
  virtual ~Engine() = default;

  // Its steps for matrices in a memory of its own (engines/device_engine.hpp); nullptr: it works on the
  // host's, by multiply() and native().
  virtual const DeviceEngine* device() const { return nullptr; }
  // Where that memory belongs (engines/device_context.hpp); nullptr where device() is.
  virtual const DeviceContexts* contexts() const { return nullptr; }

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;

  // The largest dimension or leading dimension that it takes.
  virtual std::int64_t largest_size() const = 0;

  // Why it cannot run here, with what would help; empty when it can. An engine with devices answers for the
  // one that the calling thread works on. Cheap after the first call.
  virtual std::string unavailable_reason() const = 0;

  // Why it cannot do what a setting that is made for it alone asks for, with what is accepted; empty when it
  // can. A call that may choose the engine fails with it: it must not run on a slower one because a name was
  // misspelt.
  virtual std::string refused_setting() const { return {}; }

  // What it needs, each with what was found, in the order in which one needs the other; what cannot be found
  // out because of something missing is left out. Empty: nothing that could be missing.
  virtual std::vector<Requirement> requirements() const { return {}; }

  // What it runs on: library, kernel, device; one line for people.
  virtual std::string details() const = 0;

  // How it can add products of that format, its preferred way first; empty: it does not take it.
  virtual std::span<const Accumulator> accumulators(FormatId format) const = 0;

  // How it wants slices stored.
  virtual SliceStorage slice_storage(FormatId format) const = 0;

  // Products of that format per time, relative to its native FP32 product.
  virtual double relative_rate(FormatId format) const = 0;

  // Beside products under that rule; nothing is counted where products take all of the time.
  virtual StepCosts step_costs(const SplitRule&) const { return {}; }
  virtual NativeCosts native_costs() const { return {}; }
  // Time of a native double-double product relative to one in FP32.
  virtual double native_pair_time() const = 0;

  // Bytes of scratch that multiply() needs for operands of inner length k.
  virtual std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t k,
                                    int threads) const = 0;

  // Whether it fuses the first step of the Chinese remainder to products of residues: their sums leave it
  // as SumType::residue.
  virtual bool reduces_sums() const = 0;

  // Whether native products of f32, f64 and complex matrices are in a fixed order, asked for or not.
  virtual bool native_order_is_fixed() const { return false; }
  // Bytes of scratch that a native product in a fixed order takes: of m rows and n columns of reals (of a
  // complex matrix's embedding), sums of k products.
  virtual std::size_t fixed_order_bytes(std::size_t, std::int64_t, std::int64_t, std::int64_t, int) const {
    return 0;
  }

  virtual void multiply(const Multiplication& multiplication) const = 0;

  virtual void native(const NativeProduct<float>& product) const = 0;
  virtual void native(const NativeProduct<double>& product) const = 0;
  virtual void native(const NativeProduct<std::complex<float>>& product) const = 0;
  virtual void native(const NativeProduct<std::complex<double>>& product) const = 0;
  // In the arithmetic of arith/pair_sum.hpp along k, one product after the other: the same bits on every
  // engine.
  virtual void native(const NativeProduct<DoubleDouble>& product) const = 0;
};

}  // namespace kintsugi::core
