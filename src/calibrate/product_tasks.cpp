// Tasks that measure GEMM kernels: multi-term, with exponents per tile, and int8.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/cuda/owned.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/weighted_tile_gemm.hpp"
#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

namespace {

// Slices and ranges of one operand, which is matrix `index` of the workbench.
class SplitOperand {
 public:
  SplitOperand(const Workbench& bench, const SplitRule& rule, std::int64_t vectors, std::int64_t k,
               int index);

  const DeviceSide& side() const { return side_; }
  const Slices& slices() const { return slices_; }

 private:
  cuda::OwnedMemory ranges_;
  Slices slices_;
  cuda::OwnedMemory memory_;
  DeviceSide side_;
};

// Several products of the same shape, each with operands of its own. There are so many that a product's
// operands are no longer in a cache when it is computed again. `program` must outlive the object.
class FusedProducts {
 public:
  FusedProducts(const Workbench& bench, const Program& program, const Shape& shape);

  // Returns the product for step `i`.
  const DeviceFusedProduct& at(int i) const {
    return products_[static_cast<std::size_t>(i) % products_.size()];
  }

 private:
  const Program& program_;
  std::vector<std::unique_ptr<SplitOperand>> a_, b_;
  std::vector<DeviceFusedProduct> products_;
};

// Returns matrix `index` of the workbench, whose rows are contiguous, as `vectors` rows of `k` elements.
DeviceMatrix row_major_matrix(const Workbench& bench, std::int64_t vectors, std::int64_t k, int index) {
  return {.data = bench.matrix(static_cast<std::size_t>(vectors * k) * sizeof(float), index),
          .rows = vectors,
          .columns = k,
          .row_stride = k,
          .column_stride = 1};
}

SplitOperand::SplitOperand(const Workbench& bench, const SplitRule& rule, std::int64_t vectors,
                           std::int64_t k, int index)
    : ranges_(static_cast<std::size_t>(vectors) * sizeof(VectorRange)),
      slices_(make_slices(rule, SliceStorage::packed, vectors, k)), memory_(slices_.bytes()) {
  slices_.place_items(memory_.data(), 1);
  side_.matrix = row_major_matrix(bench, vectors, k, index);
  side_.ranges = reinterpret_cast<VectorRange*>(ranges_.data());
  const DeviceSplit split{.side = side_, .rule = &rule, .slices = slices_};
  cuda::split({}, {&split, 1}, {});
}

FusedProducts::FusedProducts(const Workbench& bench, const Program& program, const Shape& shape)
    : program_(program) {
  const std::size_t slice_bytes =
      static_cast<std::size_t>((shape.m + shape.n) * shape.k) * sizeof(std::uint16_t) * 2;
  for (int i = 0; i < std::max(2, matrices_beyond_caches(slice_bytes)); ++i) {
    a_.push_back(std::make_unique<SplitOperand>(bench, program_.split_a, shape.m, shape.k, 2 * i));
    b_.push_back(std::make_unique<SplitOperand>(bench, program_.split_b, shape.n, shape.k, 2 * i + 1));
    products_.push_back({.schedule = &program_.schedule,
                         .a = a_.back()->slices(),
                         .b = b_.back()->slices(),
                         .tile = {.a = a_.back()->side(),
                                  .b = b_.back()->side(),
                                  .c = {.data = bench.results(),
                                        .rows = shape.m,
                                        .columns = shape.n,
                                        .row_stride = shape.n,
                                        .column_stride = 1},
                                  .rows = shape.m,
                                  .columns = shape.n,
                                  .scalars = {},
                                  .condition = {}}});
  }
}

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
  cuda::copy_to_host({}, c.data(), bench.results(), bytes);
  cuda::synchronize(Queue{});
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
void measure_variants(Workbench& bench, const std::string& scheme, const Shape& shape,
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
  for (const cuda::MultiTermKernels& kernels : cuda::current_family().multi_term) {
    const std::string scheme(kernels.name);
    for (const Shape& shape : shapes) {
      tasks.push_back({fmt::format("{} {}", scheme, shape.text()),
                       [&bench, scheme, shape](std::vector<Measurement>& measurements) {
                         measure_variants(bench, scheme, shape, measurements);
                       }});
    }
  }
  return tasks;
}

namespace {

// Returns the program of a level, as for sums of k products.
Program program_of(const std::string& scheme, std::int64_t k) {
  return fitted_program(*find_scheme(scheme), OperandType::f32, k);
}

// Measures the packing of one operand, whose vectors are contiguous.
void measure_packing(Workbench& bench, const std::string& scheme, const Shape& shape,
                     std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  const auto program = std::make_shared<const Program>(program_of(scheme, shape.k));
  const auto expected = [program, shape](const cuda::Costs& costs) {
    return cuda::expected_packing_time(device_shape(*program, shape, true), costs);
  };
  const SplitOperand target(bench, program->split_a, shape.m, shape.k, 0);
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        DeviceSplit split{.side = target.side(), .rule = &program->split_a, .slices = target.slices()};
        split.side.matrix = row_major_matrix(bench, shape.m, shape.k, step);
        cuda::split(queue, {&split, 1}, {});
      });
  measurements.push_back({"packing", fmt::format("{} {}", scheme, shape.text()), measured, expected});
}

void measure_products(Workbench& bench, const std::string& scheme, const Shape& shape,
                      std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  const auto program = std::make_shared<const Program>(program_of(scheme, shape.k));
  const FusedProducts products(bench, *program, shape);
  const auto expected = [program, shape](const cuda::Costs& costs) {
    return cuda::expected_weighted_tile_gemm_time(device_shape(*program, shape), costs.weighted_tiles);
  };
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        cuda::launch_weighted_tile_gemm(queue, products.at(step), {}, bench.scratch());
      });
  measurements.push_back({"weighted_tiles", fmt::format("{} {}", scheme, shape.text()), measured, expected});
}

using Measure = void (*)(Workbench&, const std::string&, const Shape&, std::vector<Measurement>&);

void add_tasks(Workbench& bench, Measure measure, std::span<const char* const> schemes,
               std::span<const Shape> shapes, std::vector<Task>& tasks) {
  for (const char* scheme : schemes) {
    for (const Shape& shape : shapes) {
      tasks.push_back(
          {fmt::format("{} {}", scheme, shape.text()),
           [&bench, measure, scheme = std::string(scheme), shape](std::vector<Measurement>& measurements) {
             measure(bench, scheme, shape, measurements);
           }});
    }
  }
}

}  // namespace

std::vector<Task> weighted_tile_tasks(Workbench& bench) {
  constexpr std::array packed{"mixpert-1", "mixpert-4", "mixpert-4:tile=128"};
  constexpr std::array packed_shapes{Shape{256, 1, 256}, Shape{1024, 1, 1024}, Shape{4096, 1, 4096},
                                     Shape{8192, 1, 8192}, Shape{64, 1, 65536}};
  constexpr std::array multiplied{"mixpert-1",          "mixpert-2",
                                  "mixpert-3",          "mixpert-4",
                                  "mixpert-full",       "mixpert-1:tile=128",
                                  "mixpert-2:tile=128", "mixpert-3:tile=128",
                                  "mixpert-4:tile=128", "mixpert-full:tile=128"};
  constexpr std::array shapes{Shape{256, 256, 256},    Shape{1024, 1024, 1024}, Shape{2048, 2048, 2048},
                              Shape{4096, 4096, 4096}, Shape{8192, 4096, 256},  Shape{256, 256, 16384}};
  std::vector<Task> tasks;
  add_tasks(bench, measure_packing, packed, packed_shapes, tasks);
  add_tasks(bench, measure_products, multiplied, shapes, tasks);
  return tasks;
}

namespace {

// Returns slices whose bytes are the bytes of FP32 matrix `index`, which are nearly random.
Slices random_slices(Workbench& bench, int count, std::int64_t vectors, std::int64_t k, int index) {
  Slices slices = make_slices(int8, SliceStorage::packed, count, vectors, k);
  slices.data = bench.matrix(slices.bytes(), index);
  return slices;
}

void measure_int8(Workbench& bench, const Schedule& schedule, const Shape& shape,
                  std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  Accumulators sums = make_accumulators(SumType::residue, shape.m, shape.n, schedule.groups);
  sums.data = bench.results();
  const cuda::Int8Shape modelled{shape.m, shape.n, shape.k, schedule.groups,
                                 static_cast<int>(schedule.terms.size())};
  const auto expected = [modelled, clusters = cuda::clusters_of_device()](const cuda::Costs& costs) {
    return cuda::int8_microseconds(modelled, costs.int8_tile, clusters);
  };
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        cuda::int8_gemm(queue, schedule, random_slices(bench, schedule.slices_a, shape.m, shape.k, 2 * step),
                        random_slices(bench, schedule.slices_b, shape.n, shape.k, 2 * step + 1), sums, {});
      });
  measurements.push_back({"int8", shape.text(), measured, expected});
}

}  // namespace

std::vector<Task> int8_tasks(Workbench& bench) {
  static const Program program = find_scheme("ozaki2:moduli=15")->program;
  constexpr std::array shapes{Shape{256, 256, 256},    Shape{512, 512, 512},    Shape{1024, 1024, 1024},
                              Shape{1536, 1536, 1536}, Shape{2048, 2048, 2048}, Shape{4096, 4096, 1024},
                              Shape{4096, 4096, 4096}, Shape{4096, 4096, 256},  Shape{1024, 1024, 8192}};
  std::vector<Task> tasks;
  for (const Shape& shape : shapes) {
    tasks.push_back(
        {"int8 products, " + shape.text(), [&bench, shape](std::vector<Measurement>& measurements) {
           measure_int8(bench, program.schedule, shape, measurements);
         }});
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
