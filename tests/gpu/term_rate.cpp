// Not a test: how long every way of an own product takes, from slices to C, beside what the choice expects of
// it.
//   build/tests/term_rate [--json FILE] [--stages] [--halvings N] [MxNxK[xENTRIES]...]
// Times are medians of graphs whose steps have operands in turn, so that no cache has them. All ways must
// give the same bits. With --halvings, blocks of k are halved so often, else as the size asks. With --stages:
// small tiles alone, with one place in shared memory for a block of k and with more, one by one.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engines/cuda/gemm/multi_term/multi_term_gemm.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_structures.hpp"
#include "schemes/program.hpp"
#include "tests/gpu/rate.hpp"

namespace kintsugi::core {
namespace {

using cuda::MultiTermVariant;

struct Size {
  std::int64_t m, n, k, items = 1;
};

struct Request {
  std::vector<Size> sizes;
  bool stages = false;
  int halvings = -1;  // less than 0: as the size asks
  const char* file = nullptr;
};

// One operand's slices and ranges, of all items.
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
    const DeviceSplit split{side_, 0, &rule, slices_, false};
    engine().split({}, {&split, 1}, {});
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

  std::vector<float> result(const MultiTermVariant& way, std::byte* scratch) const {
    check(driver().set_bytes_async(c_.address(), 0xff, elements_ * sizeof(float), nullptr),
          "cuMemsetD8Async");
    cuda::multi_term_gemm({}, product_, way, scratch);
    std::vector<float> c(elements_);
    engine().copy_to_host({}, c.data(), c_.data(), elements_ * sizeof(float));
    engine().synchronize(Queue{});
    return c;
  }

 private:
  Side a_;
  Side b_;
  Memory c_;
  std::size_t elements_;
  DeviceFusedProduct product_;
};

std::string describe(const cuda::ClusterTileChoice& choice) {
  return fmt::format("schedule, tile {}, {} parts", choice.tile, choice.schedule.parts);
}
std::string describe(const cuda::SmallTileChoice& choice) {
  return fmt::format("{} columns{}, {} stages", cuda::small_tiles[choice.tile].columns,
                     choice.swapped ? ", swapped" : "", choice.stages);
}

// The small tiles among them, with every number of stages that they can have up to the way's own.
std::vector<MultiTermVariant> by_stages(const std::vector<MultiTermVariant>& ways) {
  std::vector<MultiTermVariant> found;
  for (const MultiTermVariant& way : ways) {
    const auto* small = std::get_if<cuda::SmallTileChoice>(&way);
    if (small == nullptr) continue;
    for (std::int32_t stages = cuda::small_tiles[small->tile].least_stages(); stages <= small->stages;
         ++stages) {
      found.push_back(*small);
      std::get<cuda::SmallTileChoice>(found.back()).stages = stages;
    }
  }
  return found;
}

// False: some way has other bits.
bool measure(const char* scheme, const Pattern<float>& pattern, const Size& size, const Request& request,
             nlohmann::json& rows) {
  Program program = find_scheme(scheme)->program;
  Schedule& schedule = program.schedule;
  if (request.halvings >= 0) {
    schedule.most_halvings = request.halvings;
    schedule = schedule.shortened(0, size.k);
  } else {
    schedule = schedule.shortened(static_cast<double>(size.m) * static_cast<double>(size.n), size.k);
  }
  std::vector<std::unique_ptr<Product>> products;
  constexpr double enough = 200.0 * (1 << 20);
  for (double bytes = 0; bytes < enough || products.size() < 2; bytes += products.back()->bytes())
    products.push_back(std::make_unique<Product>(pattern, program, size));
  const Memory scratch(cuda::multi_term_scratch_bytes(
      {schedule, program.format().id, ElementType::f32, size.m, size.n, size.k, size.items, false, false}));
  const double work = 2e-12 * static_cast<double>(size.m * size.n) * static_cast<double>(size.k * size.items);
  const auto all_ways = cuda::multi_term_variants(**products.front());
  const auto ways = request.stages ? by_stages(all_ways) : all_ways;
  const std::vector<float> expected = products.front()->result(ways.front(), scratch.data());
  bool right = true;
  for (const MultiTermVariant& way : ways) {
    const auto found = products.front()->result(way, scratch.data());
    const bool same = std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)) == 0;
    right = right && same;
    const int count = static_cast<int>(round_up(16, static_cast<std::int64_t>(products.size())));
    const double time = seconds_in_graph(count, work / 150 + 5e-6, [&](const Queue& queue, int i) {
      cuda::multi_term_gemm(queue, **products[static_cast<std::size_t>(i) % products.size()], way,
                            scratch.data());
    });
    const std::string what = std::visit([](const auto& choice) { return describe(choice); }, way);
    const double expected_time = std::visit([](const auto& choice) { return choice.microseconds; }, way);
    fmt::print(
        "{:12} {:>2} {:>5} x {:>5} x {:>5} x {:>3}  {:48} {:>8.1f} us  expected {:>8.1f}  {:>6.1f} TFLOP/s  "
        "{:>6.0f} GB/s{}\n",
        scheme, schedule.k_block, size.m, size.n, size.k, size.items, what, time * 1e6, expected_time,
        work / time, products.front()->bytes() / time * 1e-9, same ? "" : "  OTHER BITS");
    rows.push_back({{"scheme", scheme},
                    {"k_block", schedule.k_block},
                    {"m", size.m},
                    {"n", size.n},
                    {"k", size.k},
                    {"items", size.items},
                    {"way", what},
                    {"seconds", time},
                    {"expected", expected_time * 1e-6},
                    {"same_bits", same}});
  }
  std::fflush(stdout);
  return right;
}

int run(const Request& request) {
  engine();  // makes the context
  const Pattern<float> pattern(7);
  nlohmann::json rows = nlohmann::json::array();
  bool right = true;
  for (const Size& size : request.sizes) {
    for (const char* scheme : {"fp16x3", "fp16x3-wide"})
      right = measure(scheme, pattern, size, request, rows) && right;
    if (request.file != nullptr)
      std::ofstream(request.file) << nlohmann::json{{"rows", rows}}.dump(2) << '\n';
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
      fmt::print(stderr, "usage: term_rate [--json FILE] [--stages] [--halvings N] [MxNxK[xENTRIES]...]\n");
      return 2;
    }
  }
  if (request.sizes.empty()) {
    for (const std::int64_t m : {16, 64, 128}) request.sizes.push_back({m, 8192, 8192});
    for (const std::int64_t n : {512, 1024, 2048}) request.sizes.push_back({n, n, n});
    request.sizes.push_back({512, 512, 512, 64});
  }
  const std::string reason = find_engine("cuda")->unavailable_reason();
  if (!reason.empty()) {
    fmt::print(stderr, "term_rate: {}\n", reason);
    return 1;
  }
  return run(request);
}
