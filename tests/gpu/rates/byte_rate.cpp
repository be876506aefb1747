// Not a test: measures products of int8 slices on the device, by Kintsugi's own kernels and by cuBLAS.
//   build/tests/byte_rate [--json FILE]
// Times are medians of events around batches of some 100 ms, so that the device runs at the clocks of steady
// work; rates count a multiplication and an addition for each product of slices.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "engines/cuda/cublas.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "schemes/ozaki2.hpp"
#include "schemes/ozaki_int8.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

// Fills the memory with copies of an odd number of random words, so that rows and columns differ.
void fill_randomly(const Memory& memory, std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::vector<std::uint64_t> words(std::min<std::size_t>(bytes / 8, (1 << 20) - 1));
  for (std::uint64_t& word : words) word = random();
  for (std::size_t first = 0; first < bytes; first += 8 * words.size())
    core::cuda::copy_to_device({}, memory.data() + first, words.data(),
                               std::min(8 * words.size(), bytes - first));
}

std::vector<std::uint8_t> bytes_of(const Memory& memory, std::size_t bytes) {
  std::vector<std::uint8_t> found(bytes);
  core::cuda::copy_to_host({}, found.data(), memory.data(), bytes);
  core::cuda::synchronize(Queue{});
  return found;
}

// Operands and sums of n x n products of slices, over k.
struct Product {
  Product(const Program& program, std::int64_t n, std::int64_t k)
      : schedule(program.schedule), a(make_slices(int8, SliceStorage::packed, schedule.slices_a, n, k)), b(a),
        sums(make_accumulators(program.sum_type(true), n, n, schedule.groups)), memory_a(a.bytes()),
        memory_b(b.bytes()), memory_sums(sums.bytes()),
        scratch(cuda::cublas_scratch_bytes(schedule, FormatId::int8, n, n)) {
    fill_randomly(memory_a, a.bytes());
    fill_randomly(memory_b, b.bytes());
    a.data = memory_a.data();
    b.data = memory_b.data();
    sums.data = memory_sums.data();
  }

  double operations() const {
    return 2.0 * static_cast<double>(a.vectors) * static_cast<double>(b.vectors) * static_cast<double>(a.k) *
           static_cast<double>(schedule.terms.size());
  }

  Schedule schedule;
  Slices a, b;
  Accumulators sums;
  Memory memory_a, memory_b, memory_sums, scratch;
};

// Times `run`, prints and adds a row. Returns the sums.
std::vector<std::uint8_t> time_kernel(nlohmann::json& rows, const std::string& scheme, const Product& product,
                                      const std::string& name, const std::function<void(int)>& run) {
  const double once = seconds(2, run);
  const double time = seconds(std::max(1, static_cast<int>(0.1 / once)), run, 3);
  const std::int64_t n = product.a.vectors;
  const std::int64_t k = product.a.k;
  const double rate = product.operations() / time;
  fmt::print("{:16} {} x {} x {}, {:8} {:>9.1f} us {:>7.1f} TOP/s\n", scheme, n, n, k, name, time * 1e6,
             rate * 1e-12);
  rows.push_back(
      {{"scheme", scheme}, {"product", name}, {"n", n}, {"k", k}, {"seconds", time}, {"rate", rate}});
  return bytes_of(product.memory_sums, product.sums.bytes());
}

void time_products(nlohmann::json& rows, const std::string& scheme, const Program& program, std::int64_t n,
                   std::int64_t k) {
  const Product product(program, n, k);
  const auto expected = time_kernel(rows, scheme, product, "vendor", [&](int) {
    cuda::multiply_by_cublas({}, product.schedule, product.a, product.b, product.sums, product.scratch.data(),
                             nullptr);
  });
  const auto found = time_kernel(rows, scheme, product, "own", [&](int) {
    cuda::int8_gemm({}, product.schedule, product.a, product.b, product.sums, {});
  });
  if (found != expected) fmt::print("  the sums DIFFER from those of cuBLAS\n");
}

int run(const char* file) {
  nlohmann::json rows;
  for (const std::int64_t n : {256, 512, 1024, 2048, 4096})
    time_products(rows, "ozaki2", schemes::ozaki2_program(16), n, n);
  time_products(rows, "ozaki2", schemes::ozaki2_program(16), 4096, 8192);  // as one tile of a larger product
  time_products(rows, "ozaki2:moduli=15", schemes::ozaki2_program(15), 8192, 8192);
  for (const std::int64_t n : {1024, 4096, 8192})
    time_products(rows, "int8x6", schemes::int8x6.program, n, n);
  time_products(rows, "ozaki-int8", schemes::ozaki_int8.program, 4096, 4096);
  write_json(file, rows);
  return 0;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** arguments) {
  if (count != 1 && (count != 3 || std::strcmp(arguments[1], "--json") != 0)) {
    fmt::print(stderr, "usage: byte_rate [--json FILE]\n");
    return 2;
  }
  const char* file = count == 3 ? arguments[2] : nullptr;
  return kintsugi::core::run_on_device("byte_rate", [&] { return kintsugi::core::run(file); });
}
