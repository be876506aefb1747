#include "lab/kernels/unit_products.hpp"

#include "base/status.hpp"
#include "tools/measure/probes/probe_kernels.hpp"

namespace kintsugi::core::cuda {

KernelImages le_gemm_images();  // cmake/DeviceCode.cmake

}  // namespace kintsugi::core::cuda

namespace kintsugi::lab {

namespace {

constexpr int tile_edge = 16;  // of a thread block

// The kernels' argument.
struct SlicedSquares {
  const std::byte* a[2];
  const std::byte* b[2];
  std::byte* c;
  std::int64_t n;
  std::int64_t k;
};

core::cuda::Kernel unit_kernel(const std::string& name) {
  using namespace core::cuda;
  if (le_gemm_images().empty())
    core::fail(core::Status::engine_unavailable, "this program was built without device code");
  Kernel kernel = nullptr;
  check(driver().library_kernel(&kernel, loaded_image(le_gemm_images(), "unit_sums"), name.c_str()),
        name.c_str());
  return kernel;
}

}  // namespace

const std::vector<UnitScheme>& unit_schemes() {
  static const std::vector<UnitScheme> schemes{
      {"fp16", "fp16", 1, false, false},
      {"markidis", "markidis", 1, true, false},
      {"ootomo", "ootomo", 0x1p11F, false, false},
      {"ootomo_inside", "split-n:a=2:b=2:terms=3:scale=11:block=0", 0x1p11F, false, false},
      {"legemm", "legemm", 0x1p10F, true, true}};
  return schemes;
}

UnitProduct::UnitProduct(const measure::DeviceStream& stream, std::int64_t n, const std::vector<float>& a,
                         const std::vector<float>& b)
    : stream_(stream), n_(n), a_(a.size() * sizeof(float)), b_(b.size() * sizeof(float)),
      slices_(a_.bytes() + b_.bytes()), c_(a_.bytes()) {
  const auto elements = static_cast<std::size_t>(n * n);
  if (n % tile_edge != 0 || a.size() != elements || b.size() != elements)
    core::fail(core::Status::invalid_argument,
               "n = {} is no multiple of {}, or A and B have {} and {} elements for {}", n, tile_edge,
               a.size(), b.size(), elements);
  stream_.upload(a_.data(), a.data(), a_.bytes());
  stream_.upload(b_.data(), b.data(), b_.bytes());
  stream_.synchronize();
}

std::vector<float> UnitProduct::multiply(const std::string& unit, const UnitScheme& scheme) const {
  const std::size_t half = a_.bytes() / 2;
  std::byte* slices = slices_.data();
  for (const auto* matrix : {&a_, &b_}) {
    std::byte* high = slices + (matrix == &b_ ? a_.bytes() : 0);
    measure::launch_probe(stream_, unit_kernel("slice_elements"), {4096, 256}, high, high + half,
                          matrix->data(), n_ * n_, scheme.scale, scheme.truncates, scheme.copies);
  }
  const std::byte* a = slices;
  const std::byte* b = a + a_.bytes();
  const SlicedSquares squares{{a, a + half}, {b, b + half}, c_.data(), n_, n_};
  const std::int64_t tiles = n_ / tile_edge;
  measure::launch_probe(stream_, unit_kernel(unit + "_" + scheme.kernel),
                        {tiles * tiles, tile_edge * tile_edge}, squares);
  return downloaded();
}

std::vector<float> UnitProduct::sequential() const {
  const std::int64_t tiles = n_ / tile_edge;
  measure::launch_probe(stream_, unit_kernel("sequential_sums"), {tiles * tiles, tile_edge * tile_edge},
                        c_.data(), a_.data(), b_.data(), n_);
  return downloaded();
}

std::vector<float> UnitProduct::downloaded() const {
  std::vector<float> c(static_cast<std::size_t>(n_ * n_));
  stream_.download(c.data(), c_.data(), c_.bytes());
  stream_.synchronize();
  return c;
}

}  // namespace kintsugi::lab
