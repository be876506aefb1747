#include <algorithm>
#include <array>

#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

namespace {

std::size_t matrix_bytes(ElementType type, std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns) * element_bytes(type);
}

// A column-major product without transposes. Consecutive steps have different operands, so that no operand is
// in a cache.
class NativeProduct {
 public:
  NativeProduct(Workbench& bench, ElementType type, const Shape& shape)
      : bench_(bench), type_(type), shape_(shape) {
    bench.fill(type);
  }

  void multiply_by_vendor(const Queue& queue, int step, double beta = 0) const {
    const auto& [m, n, k] = shape_;
    const DeviceBlasProduct product{.type = type_,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .a = a(step),
                                    .b = b(step),
                                    .c = bench_.results(),
                                    .lda = m,
                                    .ldb = k,
                                    .ldc = m,
                                    .scalars = {.alpha = 1, .beta = beta},
                                    .scratch_bytes = cuda::vendor_workspace_bytes};
    if (!cuda::multiply_by_vendor(queue, product, bench_.scratch()))
      fail(Status::device_error, "the vendor library refuses a product of {}", shape_.text());
  }
  void multiply_by_own_kernel(const Queue& queue, int step) const {
    cuda::multiply_unsliced(queue, tile(step));
  }

  double operations() const {
    return (type_ == ElementType::c32 || type_ == ElementType::c64 ? 8.0 : 2.0) *
           static_cast<double>(shape_.m) * static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
  }
  // Microseconds by the profile in force; 0 without one.
  double expected_time() const {
    return cuda::expected_vendor_time({type_, shape_.m, shape_.n, shape_.k, 1}).value_or(0);
  }
  bool is_aligned() const {
    constexpr std::size_t line_alignment = 16;
    return matrix_bytes(type_, shape_.m, 1) % line_alignment == 0 &&
           matrix_bytes(type_, shape_.k, 1) % line_alignment == 0;
  }
  std::string text() const { return fmt::format("{} {}", cuda::name_of(type_), shape_.text()); }

 private:
  const std::byte* a(int step) const {
    return bench_.matrix(matrix_bytes(type_, shape_.m, shape_.k), 2 * step);
  }
  const std::byte* b(int step) const {
    return bench_.matrix(matrix_bytes(type_, shape_.k, shape_.n), 2 * step + 1);
  }
  DeviceTile tile(int step) const {
    const auto& [m, n, k] = shape_;
    DeviceTile tile;
    tile.a.matrix = {
        .data = a(step), .type = type_, .rows = m, .columns = k, .row_stride = 1, .column_stride = m};
    tile.b.matrix = {.data = b(step),
                     .type = type_,
                     .rows = n,
                     .columns = k,
                     .row_stride = k,
                     .column_stride = 1,
                     .right = true};
    tile.c = {.data = bench_.results(),
              .type = type_,
              .rows = m,
              .columns = n,
              .row_stride = 1,
              .column_stride = m};
    tile.rows = m;
    tile.columns = n;
    return tile;
  }

  Workbench& bench_;
  ElementType type_;
  Shape shape_;
};

// Returns a rough estimate of a product's time in microseconds. It decides the number of repetitions. A card
// for graphics would take a quarter of an hour for FP64 if it were expected to be as fast as others.
double guess(const NativeProduct& product) {
  constexpr double rate = 40e6;  // operations per microsecond
  constexpr double launch = 6;
  return std::max(launch + product.operations() / rate, product.expected_time());
}

void measure_vendor(Workbench& bench, const Shape& shape, std::vector<Measurement>& measurements) {
  static const Program program = find_scheme("fp16x3")->program;
  const NativeProduct product(bench, ElementType::f32, shape);
  const double measured = bench.microseconds(
      guess(product), [&](const Queue& queue, int step) { product.multiply_by_vendor(queue, step); });
  const DeviceShape modelled = device_shape(program, shape);
  measurements.push_back({"vendor", product.text(), measured, [modelled](const cuda::Costs& costs) {
                            return cuda::expected_vendor_time(modelled, costs.call);
                          }});
}

// Measures a product of the vendor library with which emulations of the type compete, with beta = 0 and -1.
void measure_vendor_product(Workbench& bench, ElementType type, const Shape& shape,
                            std::vector<Measurement>& measurements) {
  const NativeProduct product(bench, type, shape);
  for (const bool adds_to_c : {false, true}) {
    const NativeShape modelled{type, shape.m, shape.n, shape.k, 1, product.is_aligned(), adds_to_c};
    const double measured = bench.microseconds(guess(product), [&](const Queue& queue, int step) {
      product.multiply_by_vendor(queue, step, adds_to_c ? -1 : 0);
    });
    measurements.push_back(
        {fmt::format("vendor_{}", cuda::name_of(type)), product.text() + (adds_to_c ? ", beta -1" : ""),
         measured, [modelled](const cuda::Costs& costs) { return cuda::vendor_time(modelled, costs); }});
  }
}

void measure_native(Workbench& bench, ElementType type, const Shape& shape,
                    std::vector<Measurement>& measurements) {
  const NativeProduct product(bench, type, shape);
  const char* name = cuda::name_of(type);
  const NativeShape modelled{type, shape.m, shape.n, shape.k, 1};
  measurements.push_back(
      {fmt::format("own_native_{}", name), product.text(),
       bench.microseconds(guess(product),
                          [&](const Queue& queue, int step) { product.multiply_by_own_kernel(queue, step); }),
       [modelled](const cuda::Costs& costs) { return cuda::own_native_time(modelled, costs); }});
  measurements.push_back(
      {"small_vendor", product.text(),
       bench.microseconds(guess(product),
                          [&](const Queue& queue, int step) { product.multiply_by_vendor(queue, step); }),
       [modelled](const cuda::Costs& costs) { return cuda::vendor_time(modelled, costs); }});
}

}  // namespace

// Returns tasks for sizes that suit the vendor library's kernels, since emulations compete with its best
// times.
std::vector<Task> vendor_tasks(Workbench& bench) {
  constexpr std::array shapes{
      Shape{256, 256, 256},    Shape{512, 512, 512},    Shape{1024, 1024, 1024},  Shape{2048, 2048, 2048},
      Shape{4096, 4096, 4096}, Shape{8192, 8192, 2048}, Shape{1024, 1024, 16384}, Shape{64, 4096, 4096},
      Shape{64, 8192, 8192},   Shape{128, 8192, 8192},  Shape{16, 8192, 8192},    Shape{4, 8192, 8192},
      Shape{8, 4096, 8192},    Shape{4096, 4096, 64},   Shape{8192, 8192, 32},    Shape{2, 4096, 4096},
      Shape{8, 4096, 4096},    Shape{32, 4096, 4096},   Shape{32, 8192, 8192}};
  std::vector<Task> tasks;
  for (const Shape& shape : shapes) {
    tasks.push_back(
        {"cuBLAS, FP32, " + shape.text(), [&bench, shape](std::vector<Measurement>& measurements) {
           measure_vendor(bench, shape, measurements);
         }});
  }
  return tasks;
}

std::vector<Task> native_tasks(Workbench& bench) {
  constexpr std::array vendor_shapes{
      Shape{2048, 2048, 2048}, Shape{3072, 3072, 3072}, Shape{4096, 4096, 4096}, Shape{2047, 2047, 2047},
      Shape{3071, 3071, 3071}, Shape{4096, 4096, 256},  Shape{4096, 4096, 1024}, Shape{8192, 4096, 512}};
  constexpr std::array shapes{Shape{64, 64, 64},       Shape{128, 128, 128},    Shape{256, 256, 256},
                              Shape{384, 384, 384},    Shape{512, 512, 512},    Shape{768, 768, 768},
                              Shape{1024, 1024, 1024}, Shape{1536, 1536, 1536}, Shape{2048, 2048, 2048},
                              Shape{4096, 4096, 1024}, Shape{4096, 4096, 128},  Shape{64, 64, 8192},
                              Shape{512, 512, 8192},   Shape{3072, 3072, 1024}, Shape{2048, 6144, 512},
                              Shape{512, 4096, 2048},  Shape{8192, 4096, 32},   Shape{512, 16384, 96}};
  std::vector<Task> tasks;
  for (const ElementType type : {ElementType::f32, ElementType::f64, ElementType::c32, ElementType::c64}) {
    for (const Shape& shape : vendor_shapes) {
      tasks.push_back({fmt::format("cuBLAS, {} {}", cuda::name_of(type), shape.text()),
                       [&bench, type, shape](std::vector<Measurement>& measurements) {
                         measure_vendor_product(bench, type, shape, measurements);
                       }});
    }
    for (const Shape& shape : shapes) {
      tasks.push_back({fmt::format("native products, {} {}", cuda::name_of(type), shape.text()),
                       [&bench, type, shape](std::vector<Measurement>& measurements) {
                         measure_native(bench, type, shape, measurements);
                       }});
    }
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
