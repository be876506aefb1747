// Not a test: measures every variant of the multi-term GEMM kernel, from slices to C, and prints the expected
// time next to the measured one.
//   build/tests/term_rate [--json FILE] [--stages] [--halvings N] [MxNxK[xITEMS]...]
// Times are medians of graphs whose steps take turns with several operands, so that no cache holds them. All
// variants must give the same bits. --halvings N halves the k-block N times instead of as often as the size
// calls for. --stages measures only small tiles, with every number of pipeline stages.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engines/cuda/arch/hopper/tiles.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "schemes/program.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

using cuda::MultiTermVariant;

struct Size {
  std::int64_t m, n, k, items = 1;

  // Multiplications and additions of the emulated product, in 10^12.
  double tera_operations() const {
    return 2e-12 * static_cast<double>(m * n) * static_cast<double>(k * items);
  }
};

struct Request {
  std::vector<Size> sizes;
  bool stages = false;
  int halvings = -1;  // of the k-block; negative: as many as the size calls for
  const char* file = nullptr;
};

// Slices and ranges of one operand of all items.
class Side {
 public:
  Side(const Pattern<float>& pattern, const SplitRule& rule, std::int64_t vectors, const Size& size)
      : elements_(vectors * size.k * size.items),
        operand_(static_cast<std::size_t>(elements_) * sizeof(float)),
        ranges_(static_cast<std::size_t>(vectors * size.items) * sizeof(VectorRange)),
        slices_(make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, size.k)),
        memory_(slices_.bytes() * static_cast<std::size_t>(size.items)) {
    pattern.fill(operand_, static_cast<std::size_t>(elements_));
    slices_.data = memory_.data();
    side_.matrix = {.data = operand_.data(),
                    .batch_stride = vectors * size.k,
                    .rows = vectors,
                    .columns = size.k,
                    .row_stride = size.k,
                    .column_stride = 1};
    side_.ranges = reinterpret_cast<VectorRange*>(ranges_.data());
    side_.items = size.items;
    const DeviceSplit split{.side = side_, .rule = &rule, .slices = slices_};
    core::cuda::split({}, {&split, 1}, {});
  }

  const DeviceSide& side() const { return side_; }
  const Slices& slices() const { return slices_; }

 private:
  std::int64_t elements_;
  Memory operand_;
  Memory ranges_;
  Slices slices_;
  Memory memory_;
  DeviceSide side_;
};

class Product {
 public:
  Product(const Pattern<float>& pattern, const Program& program, const Size& size)
      : a_(pattern, program.split_a, size.m, size), b_(pattern, program.split_b, size.n, size),
        c_(static_cast<std::size_t>(size.m * size.n * size.items) * sizeof(float)),
        elements_(static_cast<std::size_t>(size.m * size.n * size.items)) {
    product_.schedule = &program.schedule;
    product_.a = a_.slices();
    product_.b = b_.slices();
    product_.items = size.items;
    product_.tile = {.a = a_.side(),
                     .b = b_.side(),
                     .c = {.data = c_.data(),
                           .batch_stride = size.m * size.n,
                           .rows = size.m,
                           .columns = size.n,
                           .row_stride = size.n,
                           .column_stride = 1},
                     .rows = size.m,
                     .columns = size.n,
                     .scalars = {},
                     .condition = {}};
  }

  const DeviceFusedProduct& operator*() const { return product_; }
  double bytes() const { return static_cast<double>(a_.slices().bytes() + b_.slices().bytes()); }

  std::vector<float> result(const MultiTermVariant& variant, std::byte* scratch) const {
    check(driver().set_bytes_async(c_.address(), 0xff, elements_ * sizeof(float), nullptr),
          "cuMemsetD8Async");
    cuda::multi_term_gemm({}, product_, variant, scratch);
    std::vector<float> c(elements_);
    core::cuda::copy_to_host({}, c.data(), c_.data(), elements_ * sizeof(float));
    core::cuda::synchronize(Queue{});
    return c;
  }

 private:
  Side a_;
  Side b_;
  Memory c_;
  std::size_t elements_;
  DeviceFusedProduct product_;
};

std::string describe(const cuda::ClusterTileVariant& variant) {
  return fmt::format("cluster tile {}, {} parts of k", variant.tile, variant.schedule.k_parts);
}
std::string describe(const cuda::MmaTileVariant& variant) {
  return fmt::format("mma tile {}, {} stages, {} blocks", variant.tile, variant.stages,
                     variant.schedule.clusters);
}
std::string describe(const cuda::SmallTileVariant& variant) {
  return fmt::format("{} columns{}, {} stages", cuda::hopper::small_tiles[variant.tile].columns,
                     variant.swapped ? ", swapped" : "", variant.stages);
}

// Variants with small tiles, with every number of stages up to their own.
std::vector<MultiTermVariant> by_stages(const std::vector<MultiTermVariant>& variants) {
  std::vector<MultiTermVariant> found;
  for (const MultiTermVariant& variant : variants) {
    const auto* small = std::get_if<cuda::SmallTileVariant>(&variant);
    if (small == nullptr) continue;
    for (std::int32_t stages = cuda::hopper::small_tiles[small->tile].min_stages(); stages <= small->stages;
         ++stages) {
      found.push_back(*small);
      std::get<cuda::SmallTileVariant>(found.back()).stages = stages;
    }
  }
  return found;
}

Program program_for(const char* scheme, const Size& size, const Request& request) {
  Program program = find_scheme(scheme)->program;
  Schedule& schedule = program.schedule;
  if (request.halvings >= 0) {
    schedule.most_halvings = request.halvings;
    schedule = schedule.shortened(0, size.k);  // a C without elements gets all halvings that are allowed
  } else {
    schedule = schedule.shortened(static_cast<double>(size.m) * static_cast<double>(size.n), size.k);
  }
  return program;
}

// Makes so many products that no cache holds the operands of one when its turn comes again.
std::vector<std::unique_ptr<Product>> make_products(const Pattern<float>& pattern, const Program& program,
                                                    const Size& size) {
  std::vector<std::unique_ptr<Product>> products;
  constexpr double enough = 200.0 * (1 << 20);
  for (double bytes = 0; bytes < enough || products.size() < 2; bytes += products.back()->bytes())
    products.push_back(std::make_unique<Product>(pattern, program, size));
  return products;
}

struct Timing {
  std::string variant;
  double seconds = 0;
  double expected = 0;  // in seconds
  bool same_bits = false;
};

nlohmann::json print_row(const char* scheme, std::int64_t k_block, const Size& size, double slice_bytes,
                         const Timing& timing) {
  fmt::print(
      "{:12} {:>2} {:>5} x {:>5} x {:>5} x {:>3}  {:48} {:>8.1f} us  expected {:>8.1f}  {:>6.1f} TFLOP/s  "
      "{:>6.0f} GB/s{}\n",
      scheme, k_block, size.m, size.n, size.k, size.items, timing.variant, timing.seconds * 1e6,
      timing.expected * 1e6, size.tera_operations() / timing.seconds, slice_bytes / timing.seconds * 1e-9,
      timing.same_bits ? "" : "  OTHER BITS");
  return {{"scheme", scheme},
          {"k_block", k_block},
          {"m", size.m},
          {"n", size.n},
          {"k", size.k},
          {"items", size.items},
          {"way", timing.variant},
          {"seconds", timing.seconds},
          {"expected", timing.expected},
          {"same_bits", timing.same_bits}};
}

// Returns whether all variants have the same bits.
bool measure(const char* scheme, const Pattern<float>& pattern, const Size& size, const Request& request,
             nlohmann::json& rows) {
  const Program program = program_for(scheme, size, request);
  const Schedule& schedule = program.schedule;
  const auto products = make_products(pattern, program, size);
  const Product& first = *products.front();
  const std::size_t bytes = cuda::multi_term_scratch_bytes(
      {schedule, program.format().id, ElementType::f32, size.m, size.n, size.k, size.items, false, false});
  const Memory scratch(std::max<std::size_t>(1, bytes));
  // Without a profile only mma tiles can be measured, which do not depend on costs.
  const cuda::ProfileInForce* in_force = cuda::profile_in_force();
  const cuda::MultiTermCosts costs =
      in_force != nullptr ? in_force->profile.costs.multi_term : cuda::MultiTermCosts{};
  const auto all_variants = cuda::multi_term_variants(*first, costs);
  const auto variants = request.stages ? by_stages(all_variants) : all_variants;
  const std::vector<float> expected = first.result(variants.front(), scratch.data());
  // At least 16 calls, every product equally often.
  const int count = static_cast<int>(round_up(16, static_cast<std::int64_t>(products.size())));
  bool right = true;
  for (const MultiTermVariant& variant : variants) {
    const auto found = first.result(variant, scratch.data());
    Timing timing;
    timing.same_bits = std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)) == 0;
    right = right && timing.same_bits;
    constexpr double slow_tera_operations_per_second = 150, launch_seconds = 5e-6;
    const double max_seconds = size.tera_operations() / slow_tera_operations_per_second + launch_seconds;
    timing.seconds = seconds_in_graph(count, max_seconds, [&](const Queue& queue, int i) {
      cuda::multi_term_gemm(queue, **products[static_cast<std::size_t>(i) % products.size()], variant,
                            scratch.data());
    });
    timing.variant = std::visit([](const auto& given) { return describe(given); }, variant);
    timing.expected = 1e-6 * std::visit([](const auto& given) { return given.microseconds; }, variant);
    rows.push_back(print_row(scheme, schedule.k_block, size, first.bytes(), timing));
  }
  std::fflush(stdout);
  return right;
}

int run(const Request& request) {
  const Pattern<float> pattern(7);
  nlohmann::json rows = nlohmann::json::array();
  bool right = true;
  for (const Size& size : request.sizes) {
    for (const char* scheme : {"fp16x3", "fp16x3-wide"})
      right = measure(scheme, pattern, size, request, rows) && right;
    write_json(request.file, {{"rows", rows}});
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** arguments) {
  using namespace kintsugi::core;
  Request request;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--json") == 0 && i + 1 < count) {
      request.file = arguments[++i];
    } else if (std::strcmp(arguments[i], "--halvings") == 0 && i + 1 < count) {
      request.halvings = std::atoi(arguments[++i]);
    } else if (std::strcmp(arguments[i], "--stages") == 0) {
      request.stages = true;
    } else if (long long m, n, k, e = 1;
               std::sscanf(arguments[i], "%lldx%lldx%lldx%lld", &m, &n, &k, &e) >= 3) {
      request.sizes.push_back({m, n, k, e});
    } else {
      fmt::print(stderr, "usage: term_rate [--json FILE] [--stages] [--halvings N] [MxNxK[xITEMS]...]\n");
      return 2;
    }
  }
  if (request.sizes.empty()) {
    for (const std::int64_t m : {16, 64, 128}) request.sizes.push_back({m, 8192, 8192});
    for (const std::int64_t n : {512, 1024, 2048}) request.sizes.push_back({n, n, n});
    request.sizes.push_back({512, 512, 512, 64});
  }
  return run_on_device("term_rate", [&] { return run(request); });
}
