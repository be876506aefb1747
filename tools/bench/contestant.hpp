// Who takes part in a benchmark: a product of the library, or a plain loop. All have the same operands.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/device.hpp"
#include "bench/request.hpp"
#include "bench/verdict.hpp"

namespace kintsugi::tools {

// Operands of a batch of products of one shape and type, row-major and behind each other, and C, which all contestants
// write to in their turn.
template <class T>
struct BenchMatrices {
  BenchMatrices(const Bench& bench, const Shape& shape);

  Shape shape;
  std::int64_t batch;
  std::vector<T> a, b, c;

  // Of a product of the batch.
  core::MatrixView<const T> view_a(std::int64_t product) const {
    return {a.data() + product * shape.m * shape.k, shape.m, shape.k, shape.k, 1};
  }
  core::MatrixView<const T> view_b(std::int64_t product) const {
    return {b.data() + product * shape.k * shape.n, shape.k, shape.n, shape.n, 1};
  }
  core::MatrixView<T> view_c(std::int64_t product) {
    return {c.data() + product * shape.m * shape.n, shape.m, shape.n, shape.n, 1};
  }
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
  // The entries of every C that it computes: all, or a leading block.
  virtual Shape shape() const = 0;
  // Computes them into the host's C.
  virtual void run() = 0;
  // Times them, after a run.
  virtual Round time_round() = 0;
  // How: clock, stream or graph (docs/schema/bench.schema.json).
  virtual const char* timed_by() const = 0;
  // Of a product of the run before: whether it kept what is promised.
  virtual Verdict judge(std::int64_t product, const lab::ErrorReport& errors,
                        const std::vector<lab::EntryError>& entries) const = 0;
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
std::unique_ptr<Contestant> plain_loop(const Bench& bench, const std::string& arithmetic,
                                       BenchMatrices<T>& matrices);

}  // namespace kintsugi::tools
