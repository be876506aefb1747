#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "calibrate/fused_products.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_gemm.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

namespace {

using cuda::MultiTermVariant;

// Returns C of the first product by this variant. C is filled with NaN before, so that an element that the
// kernel does not write is detected.
std::vector<float> result_of(const Workbench& bench, const FusedProducts& products,
                             const MultiTermVariant& variant, const Shape& shape) {
  std::vector<float> c(static_cast<std::size_t>(shape.m * shape.n));
  const std::size_t bytes = c.size() * sizeof(float);
  cuda::check(
      cuda::driver().set_bytes_async(reinterpret_cast<cuda::Address>(bench.results()), 0xff, bytes, nullptr),
      "cuMemsetD8Async");
  cuda::multi_term_gemm({}, products.at(0), variant, bench.scratch());
  bench.engine().copy_to_host({}, c.data(), bench.results(), bytes);
  bench.engine().synchronize(Queue{});
  return c;
}

double microseconds_of(const MultiTermVariant& variant) {
  return std::visit([](const auto& given) { return given.microseconds; }, variant);
}

// Fails unless all variants give the same bits. Large results are not checked, since checking them takes
// long.
void check_bits(const Workbench& bench, const FusedProducts& products,
                const std::vector<MultiTermVariant>& variants, const Shape& shape) {
  constexpr std::int64_t max_elements = 1 << 20;
  if (shape.m * shape.n > max_elements) return;
  const std::vector<float> first = result_of(bench, products, variants.front(), shape);
  for (const MultiTermVariant& variant : variants) {
    const std::vector<float> found = result_of(bench, products, variant, shape);
    if (std::memcmp(found.data(), first.data(), first.size() * sizeof(float)) != 0)
      fail(Status::internal, "tiles of {} differ in their bits", shape.text());
  }
}

// Measures the products of a shape, by every variant that might be selected.
void measure(Workbench& bench, const std::string& scheme, const Shape& shape,
             std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  Program program = find_scheme(scheme)->program;
  program.schedule =
      program.schedule.shortened(static_cast<double>(shape.m) * static_cast<double>(shape.n), shape.k);
  const auto products = std::make_shared<FusedProducts>(bench, program, shape);
  const auto shared_program = std::make_shared<const Program>(program);
  // The model reads shape and schedule after this function has returned, so they are copied.
  DeviceFusedProduct modelled = products->at(0);
  modelled.schedule = &shared_program->schedule;
  const auto variants = cuda::multi_term_variants(modelled, cuda::current_costs().multi_term);
  check_bits(bench, *products, variants, shape);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    // A variant that is expected to be max_time_ratio times slower than the fastest one is never selected.
    constexpr double max_time_ratio = 4;
    const double expected = microseconds_of(variants[i]);
    if (expected > max_time_ratio * microseconds_of(*std::ranges::min_element(variants, {}, microseconds_of)))
      continue;
    const double measured = bench.microseconds(expected, [&](const Queue& queue, int step) {
      cuda::multi_term_gemm(queue, products->at(step), variants[i], bench.scratch());
    });
    measurements.push_back({"multi_term", fmt::format("{} {}, variant {}", scheme, shape.text(), i), measured,
                            [modelled, shared_program, i](const cuda::Costs& costs) {
                              return microseconds_of(
                                  cuda::multi_term_variants(modelled, costs.multi_term)[i]);
                            }});
  }
}

}  // namespace

std::vector<Task> multi_term_tasks(Workbench& bench) {
  constexpr std::array shapes{
      Shape{256, 256, 256},     Shape{512, 512, 512},    Shape{768, 768, 768},    Shape{1024, 1024, 1024},
      Shape{1536, 1536, 1536},  Shape{2048, 2048, 2048}, Shape{3072, 3072, 1024}, Shape{4096, 4096, 4096},
      Shape{2048, 2048, 512},   Shape{16, 4096, 4096},   Shape{64, 4096, 4096},   Shape{128, 8192, 2048},
      Shape{4, 8192, 8192},     Shape{32, 8192, 8192},   Shape{64, 64, 65536},    Shape{256, 256, 32768},
      Shape{1024, 1024, 16384}, Shape{8192, 8192, 64},   Shape{8192, 4096, 128},  Shape{4096, 8192, 256}};
  std::vector<Task> tasks;
  for (const char* scheme : {"fp16x3", "fp16x3-wide", "bf16x6"}) {
    for (const Shape& shape : shapes) {
      tasks.push_back({fmt::format("{} {}", scheme, shape.text()),
                       [&bench, scheme = std::string(scheme), shape](std::vector<Measurement>& measurements) {
                         measure(bench, scheme, shape, measurements);
                       }});
    }
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
