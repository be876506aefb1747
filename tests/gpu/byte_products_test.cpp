// Tests the int8 GEMM kernels on Hopper: their sums are those of cuBLAS products that are added outside, and
// of loops on the host.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "engines/cuda/cublas.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "gpu/device_memory.hpp"
#include "schemes/magnitudes.hpp"
#include "schemes/ozaki2.hpp"
#include "schemes/ozaki_int8.hpp"

namespace kintsugi::test {
namespace {

using core::Accumulators;
using core::Program;
using core::Schedule;
using core::Slices;
using core::SumType;

struct Shape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// Slices of one operand in device memory: random bytes, or -128 with `extreme`, and zeros as padding.
struct Operand {
  Operand(std::mt19937_64& random, std::int64_t vectors, std::int64_t k, int count, bool extreme)
      : slices(core::make_slices(core::int8, core::SliceStorage::packed, count, vectors, k)),
        bytes(slices.bytes()) {
    for (int s = 0; s < slices.count; ++s) {
      for (std::int64_t v = 0; v < slices.vectors; ++v) {
        std::int8_t* vector = bytes.data() + s * slices.slice_stride() + v * slices.vector_stride();
        for (std::int64_t p = 0; p < slices.k; ++p)
          vector[p] = extreme ? std::int8_t{-128} : static_cast<std::int8_t>(random());
      }
    }
    memory.emplace(bytes);
    slices.data = reinterpret_cast<std::byte*>(memory->data());
  }

  std::int64_t element(int slice, std::int64_t v, std::int64_t p) const {
    if (v >= slices.vectors) return 0;
    return bytes[static_cast<std::size_t>(slice * slices.slice_stride() + v * slices.vector_stride() + p)];
  }

  Slices slices;
  std::vector<std::int8_t> bytes;
  std::optional<DeviceArray<std::int8_t>> memory;
};

struct Products {
  Products(std::mt19937_64& random, const Program& program, const Shape& shape, bool extreme = false)
      : schedule(program.schedule), a(random, shape.m, shape.k, schedule.slices_a, extreme),
        b(random, shape.n, shape.k, schedule.slices_b, extreme),
        sums(core::make_accumulators(program.sum_type(true), core::round_up(shape.m, 16),
                                     core::round_up(shape.n, 16), schedule.groups)) {}

  std::size_t bytes() const {
    return static_cast<std::size_t>(sums.group_stride() * sums.groups) * sums.element_bytes();
  }

  template <class Multiply>
  std::vector<std::uint8_t> sums_by(const Multiply& multiply) const {
    const DeviceArray<std::uint8_t> memory(bytes());
    Accumulators target = sums;
    target.data = reinterpret_cast<std::byte*>(memory.data());
    multiply(target);
    return memory.host();
  }
  std::vector<std::uint8_t> by_cublas() const {
    const DeviceArray<std::byte> scratch(
        core::cuda::cublas_scratch_bytes(schedule, core::FormatId::int8, sums.rows, sums.columns));
    return sums_by([&](const Accumulators& target) {
      core::cuda::multiply_by_cublas({}, schedule, a.slices, b.slices, target, scratch.data(), nullptr);
    });
  }
  // Sums of the first groups, by the kernel of candidates that share it. `candidate` is the selected one;
  // candidate 0 has one modulus, and the last has as many as the schedule.
  std::vector<std::uint8_t> by_shared_kernel(std::int32_t candidate) const {
    core::DeviceSelection selected;
    selected.candidate = candidate;
    const DeviceArray<core::DeviceSelection> selection(std::vector{selected});
    return sums_by([&](const Accumulators& target) {
      core::cuda::multiply_selected({}, schedule, a.slices, b.slices, target,
                                    {selection.data(), 0, 1, schedule.groups});
    });
  }
  std::vector<std::uint8_t> by_kernel() const {
    return sums_by([&](const Accumulators& target) {
      core::cuda::int8_gemm({}, schedule, a.slices, b.slices, target, {});
    });
  }

  std::int64_t sum(int group, std::int64_t i, std::int64_t j) const {
    std::int64_t sum = 0;
    for (const core::Term& term : schedule.terms) {
      if (term.group != group) continue;
      for (std::int64_t p = 0; p < a.slices.k; ++p) sum += a.element(term.a, i, p) * b.element(term.b, j, p);
    }
    const std::int64_t modulus = schedule.group_moduli[static_cast<std::size_t>(group)];
    return modulus == 0 ? sum : (sum % modulus + modulus) % modulus;
  }
  std::vector<std::uint8_t> by_host() const {
    std::vector<std::uint8_t> found(bytes());
    std::uint8_t* next = found.data();
    for (int g = 0; g < sums.groups; ++g) {
      for (std::int64_t j = 0; j < sums.columns; ++j) {
        for (std::int64_t i = 0; i < sums.rows; ++i, next += sums.element_bytes()) {
          const std::int64_t value = sum(g, i, j);
          std::memcpy(next, &value, sums.element_bytes());  // little-endian
        }
      }
    }
    return found;
  }

  // Clears the sums of rows and columns beyond those of the operands. Those are computed from the elements
  // that follow a block in memory, or from zeros.
  void clear_padding(std::vector<std::uint8_t>& found) const {
    const auto bytes = static_cast<std::int64_t>(sums.element_bytes());
    for (int g = 0; g < sums.groups; ++g) {
      for (std::int64_t j = 0; j < sums.columns; ++j) {
        const std::int64_t rows = j < b.slices.vectors ? a.slices.vectors : 0;
        const std::int64_t column = g * sums.group_stride() + j * sums.rows;
        std::fill(found.begin() + (column + rows) * bytes, found.begin() + (column + sums.rows) * bytes, 0);
      }
    }
  }

  Schedule schedule;
  Operand a;
  Operand b;
  Accumulators sums;
};

class Int8Params : public testing::Test {
 protected:
  void SetUp() override {
    core::cuda::Device device = 0;
    int major = 0;
    prepare_device();
    core::cuda::check(core::cuda::driver().context_device(&device), "cuCtxGetDevice");
    core::cuda::check(
        core::cuda::driver().device_attribute(&major, core::cuda::compute_capability_major, device),
        "cuDeviceGetAttribute");
    if (major != 9) GTEST_SKIP() << "there are no kernels for this device";
  }

  static Program residues(int moduli) { return core::schemes::ozaki2_program(moduli); }

  static void expect_sums(const Products& products, const std::vector<std::uint8_t>& expected) {
    const std::vector<std::uint8_t> found = products.by_kernel();
    if (found == expected) return;
    const Accumulators& sums = products.sums;
    const std::int64_t index =
        (std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin()) /
        static_cast<std::int64_t>(sums.element_bytes());
    const std::int64_t index_in_group = index % sums.group_stride();
    FAIL() << "m " << products.a.slices.vectors << " n " << products.b.slices.vectors << " k "
           << products.a.slices.k << ", " << sums.groups << " groups, type " << static_cast<int>(sums.type)
           << ": sum " << index / sums.group_stride() << " of item " << index_in_group % sums.rows << ", "
           << index_in_group / sums.rows << " differs";
  }
  void expect_sums_of_cublas(const Program& program, const Shape& shape, bool extreme = false) {
    const Products products(random_, program, shape, extreme);
    expect_sums(products, products.by_cublas());
  }
  void expect_sums_of_host(const Program& program, const Shape& shape) {
    const Products products(random_, program, shape);
    expect_sums(products, products.by_host());
  }

  std::mt19937_64 random_{std::random_device{}()};
};

TEST_F(Int8Params, SumsEqualTheHostsInSmallCases) {
  for (const std::int64_t size : {1, 17, 130}) {
    for (const Program& program : {residues(3), core::schemes::int8x6.program, core::magnitude_program}) {
      expect_sums_of_host(program, {size, 200, 70});
      expect_sums_of_host(program, {200, size, 200});
      expect_sums_of_host(program, {40, 30, size});
    }
    expect_sums_of_host(residues(core::max_moduli), {33, 30, size});
    expect_sums_of_host(core::schemes::ozaki_int8.program, {33, 30, size});
  }
}

// The kernel of candidates that share it computes the groups of the selected one, and leaves the memory of
// all others as it was.
TEST_F(Int8Params, SharedKernelComputesTheGroupsOfTheSelectedCandidate) {
  for (int round = 0; round < 40; ++round) {
    const auto draw = [&](std::int64_t most) {
      return 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
    };
    const int most = static_cast<int>(draw(20));
    const Products products(random_, residues(std::max(most, 2)), {draw(900), draw(900), draw(1400)});
    const int groups = products.schedule.groups;
    const auto all = products.by_kernel();
    const auto candidate = static_cast<std::int32_t>(draw(groups + 2)) - 2;
    auto expected = std::vector<std::uint8_t>(all.size(), DeviceArray<std::uint8_t>::poison);
    if (candidate >= 0 && candidate < groups)
      std::copy_n(all.begin(), (candidate + 1) * products.sums.group_stride(), expected.begin());
    ASSERT_EQ(products.by_shared_kernel(candidate), expected)
        << "candidate " << candidate << " of " << groups;
  }
}

// Rows and columns are about those of the tiles, and lengths about k-blocks. From 1024 on tiles may be
// narrow.
TEST_F(Int8Params, SumsOfEveryShapeEqualThoseOfCublas) {
  constexpr std::array<std::int64_t, 20> sides{1,   15,  16,  17,  64,  65,  127, 128, 129, 191,
                                               192, 193, 255, 256, 257, 383, 384, 385, 513, 800};
  constexpr std::array<std::int64_t, 12> lengths{1, 31, 64, 65, 127, 128, 129, 500, 512, 1024, 1100, 1300};
  for (const std::int64_t m : sides) {
    for (const std::int64_t n : sides) {
      const Shape shape{m, n, lengths[random_() % lengths.size()]};
      expect_sums_of_cublas(
          random_() % 3 == 0 ? core::schemes::int8x6.program : residues(2 + static_cast<int>(random_() % 4)),
          shape);
      if (HasFatalFailure()) return;
    }
  }
  for (int moduli = 2; moduli <= core::max_moduli; ++moduli)
    expect_sums_of_cublas(residues(moduli), {300, 280, 200});
  for (const Program& program : core::schemes::ozaki_int8_programs)
    expect_sums_of_cublas(program, {300, 280, 200});
}

// Every cluster computes many tiles; the last product is of blocks of the operands' vectors.
TEST_F(Int8Params, SumsOfLargeProductsEqualThoseOfCublas) {
  for (const Shape& shape : {Shape{2100, 1900, 1300}, Shape{700, 4096, 640}, Shape{4096, 1000, 330}}) {
    expect_sums_of_cublas(residues(7), shape);
    expect_sums_of_cublas(core::schemes::int8x6.program, shape);
  }
  Products products(random_, residues(4), {1500, 1300, 300});
  products.a.slices = products.a.slices.block(384, 700);
  products.b.slices = products.b.slices.block(128, 900);
  products.sums.rows = core::round_up(700, 16);
  products.sums.columns = core::round_up(900, 16);
  std::vector<std::uint8_t> expected = products.by_cublas();
  std::vector<std::uint8_t> found = products.by_kernel();
  products.clear_padding(expected);
  products.clear_padding(found);
  EXPECT_TRUE(found == expected);
}

// Sums exceed int32, with the largest products and with random ones.
TEST_F(Int8Params, LongSumsEqualThoseOfCublas) {
  for (const std::int64_t k : {32769, 65536, 65537, 130944, 130945, 131073, 200000, 400100}) {
    for (const Program& program : {residues(3), core::schemes::int8x6.program, core::magnitude_program}) {
      expect_sums_of_cublas(program, {30, 20, k}, true);
      expect_sums_of_cublas(program, {20, 40, k});
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
