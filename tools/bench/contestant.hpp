// Who takes part in a benchmark: a product of the library, or a plain loop. All have the same operands.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/device.hpp"
#include "bench/request.hpp"
#include "bench/verdict.hpp"

namespace kintsugi::tools {

// Operands of a batch of products of one shape and type, row-major and behind each other, and C, which all
// contestants write to in their turn. Views are of reals: the parts of a complex A or C stand beside each
// other, and B is what the parts of A are multiplied by to give those of C (base/embedding.hpp), a copy.
template <class T>
struct BenchMatrices {
  BenchMatrices(const Bench& bench, const Shape& shape);

  Shape shape;
  std::int64_t batch;
  std::int64_t parts;
  std::vector<T> a, b, c;

  // Of a product of the batch. Where elements are complex, a view of B is good until one of another product
  // is asked for.
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
  mutable std::vector<T> embedded_;
  mutable std::int64_t embedded_product_ = -1;
};

// What a round says of one run.
struct Round {
  double seconds = 0;
  std::optional<double> processor_seconds;  // of all threads of the program; not where a device works
  lab::DeviceState state;                   // of the device, while it worked
};

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual const std::string& name() const = 0;
  // The elements of every C that it computes: all, or a leading block.
  virtual Shape shape() const = 0;
  // Computes them into the host's C.
  virtual void run() = 0;
  // Times them, after a run.
  virtual Round time_round() = 0;
  // How: clock, stream or graph (docs/schema/bench.schema.json).
  virtual const char* timed_by() const = 0;
  // Of a product of the run before: whether it kept what is promised.
  virtual Verdict judge(std::int64_t product, const lab::ErrorReport& errors,
                        const std::vector<lab::ElementError>& elements) const = 0;
  // Of slices for each product of real matrices, four of which are a complex one; after a run.
  virtual double products_each() const { return 0; }
  // Its members of a row, from scheme to prepared (docs/schema/bench.schema.json), after a run.
  virtual Json facts() const = 0;
};

// Fail, naming the candidate, where the library makes no plan for it.
template <class T>
std::unique_ptr<Contestant> host_product(const Bench& bench, const std::string& candidate,
                                         BenchMatrices<T>& matrices);
template <class T>
std::unique_ptr<Contestant> device_product(const Bench& bench, const std::string& candidate,
                                           BenchMatrices<T>& matrices, const DeviceOperands<T>& operands);
template <class T>
std::unique_ptr<Contestant> reference_loop(const Bench& bench, const std::string& arithmetic,
                                           BenchMatrices<T>& matrices);

}  // namespace kintsugi::tools
