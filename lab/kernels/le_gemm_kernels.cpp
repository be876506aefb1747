#include "lab/kernels/le_gemm_kernels.hpp"

#include <cmath>

#include "base/status.hpp"
#include "lab/kernels/le_gemm_values.hpp"
#include "tools/measure/metrics.hpp"
#include "tools/measure/probes/probe_kernels.hpp"

namespace kintsugi::core::cuda {

KernelImages le_gemm_images();  // cmake/DeviceCode.cmake

}  // namespace kintsugi::core::cuda

namespace kintsugi::lab {

namespace {

using measure::DeviceMemory;
using measure::ProbeGrid;
using tools::Shape;

constexpr int depth = 32;  // T_K
constexpr int edge = 16;   // of a fragment
constexpr int half_bytes = 2;

// Kernels' arguments, as le_gemm_wmma.cu has them.
struct Matrices {
  const std::byte* a[2];
  const std::byte* b[2];
  std::byte* c;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

core::cuda::Kernel find_kernel(const char* name) {
  using namespace core::cuda;
  if (le_gemm_images().empty())
    core::fail(core::Status::engine_unavailable, "this program was built without device code");
  Kernel kernel = nullptr;
  check(driver().library_kernel(&kernel, loaded_image(le_gemm_images(), "le_gemm_wmma"), name), name);
  return kernel;
}

constexpr std::uint64_t seed_of_a = 1;
constexpr std::uint64_t seed_of_b = 2;
constexpr ProbeGrid of_elements{4096, 256};

std::size_t bytes_of(std::int64_t rows, std::int64_t columns, int element_bytes) {
  return static_cast<std::size_t>(rows * columns) * static_cast<std::size_t>(element_bytes);
}

// Largest relative error that split and left out products may have, of the sum of magnitudes of products.
double split_bound(LeGemmScheme scheme) { return std::ldexp(1.0, scheme == LeGemmScheme::wmma ? -9 : -18); }

}  // namespace

int LeGemmKernel::products() const {
  return scheme == LeGemmScheme::wmma ? 1 : scheme == LeGemmScheme::markidis ? 4 : 3;
}

double LeGemmKernel::bytes(const Shape& shape) const {
  const double elements = static_cast<double>(shape.m) * static_cast<double>(shape.n);
  const double tile_rows = buffers == 0 ? edge : rows;
  const double tile_columns = buffers == 0 ? edge : columns;
  return half_bytes * slices() * elements * static_cast<double>(shape.k) *
             (1 / tile_rows + 1 / tile_columns) +
         elements * sizeof(float);
}

int LeGemmKernel::shared_bytes() const {
  constexpr int pad = 8;
  return buffers * slices() * half_bytes * (rows * (depth + pad) + depth * (columns + pad));
}

const std::vector<LeGemmKernel>& le_gemm_kernels() {
  using enum LeGemmScheme;
  static const std::vector<LeGemmKernel> kernels{
      {"wmma_direct", wmma, 0, 64, 64, 512},           {"markidis_direct", markidis, 0, 64, 64, 512},
      {"ootomo_direct", ootomo, 0, 64, 64, 512},       {"le_gemm_direct", le_gemm, 0, 64, 64, 512},
      {"wmma_128x128x1", wmma, 1, 128, 128, 256},      {"markidis_128x128x1", markidis, 1, 128, 128, 256},
      {"ootomo_128x128x1", ootomo, 1, 128, 128, 256},  {"le_gemm_128x128x1", le_gemm, 1, 128, 128, 256},
      {"le_gemm_64x64x2", le_gemm, 2, 64, 64, 128},    {"le_gemm_64x128x2", le_gemm, 2, 64, 128, 256},
      {"le_gemm_128x64x2", le_gemm, 2, 128, 64, 256},  {"le_gemm_128x128x2", le_gemm, 2, 128, 128, 256},
      {"le_gemm_128x256x2", le_gemm, 2, 128, 256, 512}};
  return kernels;
}

const LeGemmKernel& le_gemm_kernel(const std::string& name) {
  for (const LeGemmKernel& kernel : le_gemm_kernels())
    if (kernel.name == name) return kernel;
  throw std::logic_error("there is no kernel " + name);
}

LeGemmProduct::LeGemmProduct(const measure::DeviceStream& stream, const Shape& shape)
    : stream_(stream), shape_(shape), a_(bytes_of(shape.m, shape.k, sizeof(float))),
      b_(bytes_of(shape.k, shape.n, sizeof(float))), slices_(a_.bytes() + b_.bytes()),
      c_(bytes_of(shape.m, shape.n, sizeof(float))) {
  const auto fill = [&](const DeviceMemory& matrix, std::uint64_t seed, std::int64_t count) {
    launch_probe(stream_, find_kernel("fill_elements"), of_elements, matrix.data(), seed, count);
  };
  fill(a_, seed_of_a, shape.m * shape.k);
  fill(b_, seed_of_b, shape.k * shape.n);
}

void LeGemmProduct::split(const LeGemmKernel& kernel) const {
  const bool cut = kernel.scheme == LeGemmScheme::le_gemm;
  const float scale = cut ? 0x1p10F : kernel.scheme == LeGemmScheme::ootomo ? 0x1p11F : 1.0F;
  const auto split_one = [&](std::byte* slices, const DeviceMemory& matrix) {
    const auto count = static_cast<std::int64_t>(matrix.bytes() / sizeof(float));
    std::byte* low = kernel.slices() == 2 ? slices + matrix.bytes() / 2 : nullptr;
    launch_probe(stream_, find_kernel("split_elements"), of_elements, slices, low, matrix.data(), count,
                 scale, cut);
  };
  split_one(slices_.data(), a_);
  split_one(slices_.data() + a_.bytes(), b_);
}

void LeGemmProduct::multiply(const LeGemmKernel& kernel) const {
  if (shape_.m % kernel.rows != 0 || shape_.n % kernel.columns != 0 || shape_.k % depth != 0)
    core::fail(core::Status::not_supported, "{} has tiles of {} x {} x {}, and the product is {} x {} x {}",
               kernel.name, kernel.rows, kernel.columns, depth, shape_.m, shape_.n, shape_.k);
  const std::byte* a = slices_.data();
  const std::byte* b = a + a_.bytes();
  const Matrices matrices{
      {a, a + a_.bytes() / 2}, {b, b + b_.bytes() / 2}, c_.data(), shape_.m, shape_.n, shape_.k};
  const ProbeGrid grid{shape_.m / kernel.rows * (shape_.n / kernel.columns), kernel.threads,
                       kernel.shared_bytes()};
  launch_probe(stream_, find_kernel(kernel.name), grid, matrices);
}

double LeGemmProduct::checked_frobenius(const LeGemmKernel& kernel) const {
  constexpr std::int64_t checked = 32;  // rows and columns
  const auto place = [](std::int64_t i, std::int64_t size) { return (i * (size / checked) + 7 * i) % size; };
  const auto [m, n, k] = shape_;
  std::vector<float> a(static_cast<std::size_t>(checked * k)), b(a.size()), c(checked * checked);
  std::vector<float> row(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < checked; ++i) {
    for (std::int64_t p = 0; p < k; ++p) {
      const auto at = static_cast<std::size_t>(i * k + p);
      a[at] = le_gemm_element(seed_of_a, static_cast<std::uint64_t>(place(i, m) * k + p));
      b[at] = le_gemm_element(seed_of_b, static_cast<std::uint64_t>(p * n + place(i, n)));
    }
    stream_.download(row.data(), c_.data() + bytes_of(place(i, m), n, sizeof(float)),
                     row.size() * sizeof(float));
    stream_.synchronize();
    for (std::int64_t j = 0; j < checked; ++j)
      c[static_cast<std::size_t>(i * checked + j)] = row[static_cast<std::size_t>(place(j, n))];
  }
  const measure::Product<float> product{.a = {a.data(), checked, k, k, 1}, .b = {b.data(), k, checked, 1, k}};
  std::vector<measure::ElementError> elements;
  const measure::ErrorReport report = measure::measure_errors<float>(
      product, {c.data(), checked, checked, checked, 1}, {}, {.work_limit = 0, .elements = &elements});
  // Sums that are truncated after every addition lose at most 2^-22 of all magnitudes each; residuals without
  // a scale are subnormal, of which 2^-25 may be lost.
  const double relative = split_bound(kernel.scheme) + std::ldexp(static_cast<double>(k), -22);
  for (const measure::ElementError& element : elements) {
    const double bound = relative * element.absolute + std::ldexp(static_cast<double>(k), -23);
    if (std::fabs(element.error) <= bound) continue;
    core::fail(core::Status::device_error,
               "{} is wrong: {} x {} x {}, element ({}, {}) is {}, exactly {}, allowed {}", kernel.name, m, n,
               k, place(element.i, m), place(element.j, n), element.computed, element.exact, bound);
  }
  // The bound on sums is wide where k is long. Elements of other places would have errors near 1.
  const double largest = kernel.scheme == LeGemmScheme::wmma ? 0x1p-8 : 0x1p-12;
  if (report.frobenius_relative > largest)
    core::fail(core::Status::device_error, "{} is wrong: {} x {} x {}, Frobenius error {}, allowed {}",
               kernel.name, m, n, k, report.frobenius_relative, largest);
  return report.frobenius_relative;
}

}  // namespace kintsugi::lab
