// Contestants of a benchmark: products of the library, calls of cuBLAS and reference loops, all with the same
// operands, in host memory or in that of a device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/run.hpp"
#include "support.hpp"
#include "tools/measure/machine/ceilings.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

struct Verdict {
  std::string promise;  // "exact", "contract" or "bound"
  Json relative;        // allowed coefficient of |A||B|; null: C must be correctly rounded
  Json largest_ratio;   // largest |error| relative to the allowed one; null: C must be correctly rounded
  bool held = false;
};

// Fails, naming --memory, if there is no device on which products can be timed.
void require_device();

class BenchDevice {
 public:
  // Measures the ceilings on request, which takes some seconds.
  explicit BenchDevice(bool measures_ceilings);

  const measure::DeviceStream& stream() const { return stream_; }
  const measure::DeviceFacts& facts() const { return facts_; }
  const measure::DeviceMonitor& monitor() const { return monitor_; }
  // Returns members of the document (docs/schema/bench.schema.json).
  Json description() const;
  Json ceilings() const;  // null: none was measured
  // Returns the ceiling of a format in operations per second, or of "copy" in bytes per second; 0 if it was
  // not measured.
  double ceiling(const std::string& name) const;

 private:
  measure::DeviceStream stream_;
  measure::DeviceFacts facts_;
  measure::DeviceMonitor monitor_;
  std::vector<measure::Ceiling> ceilings_;
};

// Returns "power_watts" and "clock_mhz", null if unknown.
Json state_document(const measure::DeviceState& state);

template <class T>
struct BenchMatrices;

// Sets of A, B and C in device memory. Runs use one set after the other. There are enough sets, up to a
// limit, that a set is no longer in the cache when it is used again.
template <class T>
class DeviceOperands {
 public:
  DeviceOperands(const BenchDevice& device, const BenchMatrices<T>& matrices);

  const BenchDevice& device() const { return device_; }
  int sets() const { return sets_; }
  const T* a(int set) const { return elements(set, 0); }
  const T* b(int set) const { return elements(set, bytes_a_); }
  T* c(int set) const { return elements(set, bytes_a_ + bytes_b_); }

 private:
  T* elements(int set, std::size_t offset) const {
    return reinterpret_cast<T*>(memory_->data() + static_cast<std::size_t>(set) * set_bytes() + offset);
  }
  std::size_t set_bytes() const { return bytes_a_ + bytes_b_ + bytes_c_; }

  const BenchDevice& device_;
  std::size_t bytes_a_;
  std::size_t bytes_b_;
  std::size_t bytes_c_;
  int sets_ = 1;
  std::unique_ptr<measure::DeviceMemory> memory_;
};

// Operands of a batch of products of one shape and type, and C, which all contestants write in turn. All
// matrices are row-major and contiguous. Views have real elements. A view of a complex A or C has the two
// parts of an element in adjacent columns. A view of a complex B is its real embedding (base/embedding.hpp),
// so that the product of the views of A and B is the view of C.
template <class T>
struct BenchMatrices {
  BenchMatrices(const Bench& bench, const Shape& shape);

  Shape shape;
  std::int64_t batch;
  std::int64_t parts;  // numbers in an element: 2 if complex
  std::vector<T> a, b, c;

  // Views of one product of the batch. All complex products share the memory for the embedding of B, so the
  // result of view_b() is valid until view_b() is called for another product.
  core::MatrixView<const T> view_a(std::int64_t product) const {
    const std::int64_t columns = parts * shape.k;
    return {a.data() + product * shape.m * columns, shape.m, columns, columns, 1};
  }
  core::MatrixView<const T> view_b(std::int64_t product) const;
  core::MatrixView<T> view_c(std::int64_t product) {
    const std::int64_t columns = parts * shape.n;
    return {c.data() + product * shape.m * columns, shape.m, columns, columns, 1};
  }

 private:
  mutable std::vector<T> embedded_b_;
  mutable std::int64_t embedded_product_ = -1;  // product whose B embedded_b_ holds; -1: none
};

// Times of one round: the times of a run, or means over the runs of the round.
struct Round {
  double seconds = 0;
  std::optional<double> processor_seconds;  // CPU time of all threads together; nullopt if a device computes
  measure::DeviceState state;               // state of the device during the run
};

class Contestant {
 public:
  // `shape`: shape of the part of C that the contestant computes, all of C or a leading block.
  Contestant(std::string name, const Shape& shape) : name_(std::move(name)), shape_(shape) {}
  virtual ~Contestant() = default;

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  // Computes the elements of every C into BenchMatrices::c, which is in host memory.
  virtual void run() = 0;
  // Times the computation; call after run().
  virtual Round time_round() = 0;
  // Returns the timing method: clock, calls, stream or graph (docs/schema/bench.schema.json).
  virtual const char* timed_by() const = 0;
  // Returns whether the errors of a product of the last run keep the contestant's promise.
  virtual Verdict judge(std::int64_t product, const measure::ErrorReport& errors,
                        const std::vector<measure::ElementError>& elements) const = 0;
  // Returns the number of products of slices in one real product (a complex product is four real ones); 0 if
  // nothing is split. Call after run().
  virtual double products_each() const { return 0; }
  // Returns the members "scheme" to "prepared" of the contestant's row (docs/schema/bench.schema.json). Call
  // after run().
  virtual Json facts() const = 0;

 private:
  std::string name_;
  Shape shape_;
};

// Returns the contestant of that name: a reference loop, the vendor library's own call by the function that a
// program would use, or a product of the library, in a device's memory if there are `operands`, else in the
// host's. Fails, naming the candidate, if the library makes no plan for it.
template <class T>
std::unique_ptr<Contestant> make_contestant(const Bench& bench, const std::string& name,
                                            BenchMatrices<T>& matrices, const DeviceOperands<T>* operands);

}  // namespace kintsugi::tools
