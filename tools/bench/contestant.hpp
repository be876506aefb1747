// Contestants of a benchmark: products of the library, calls of cuBLAS and reference loops, all with the same
// operands.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/device.hpp"
#include "bench/request.hpp"
#include "bench/verdict.hpp"

namespace kintsugi::tools {

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
  virtual ~Contestant() = default;

  virtual const std::string& name() const = 0;
  // Returns the shape of the part of C that the contestant computes: all of C, or a leading block.
  virtual Shape shape() const = 0;
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
};

// These return contestants. The first two fail, naming the candidate, if the library makes no plan for it.
template <class T>
std::unique_ptr<Contestant> host_product(const Bench& bench, const std::string& candidate,
                                         BenchMatrices<T>& matrices);
template <class T>
std::unique_ptr<Contestant> device_product(const Bench& bench, const std::string& candidate,
                                           BenchMatrices<T>& matrices, const DeviceOperands<T>& operands);
// Returns the vendor library's own call, by the function that a program would use.
template <class T>
std::unique_ptr<Contestant> vendor_product(const Bench& bench, BenchMatrices<T>& matrices,
                                           const DeviceOperands<T>& operands);
template <class T>
std::unique_ptr<Contestant> reference_loop(const Bench& bench, const std::string& arithmetic,
                                           BenchMatrices<T>& matrices);

}  // namespace kintsugi::tools
