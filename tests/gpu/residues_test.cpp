// Products of residues by our own kernels on Hopper: the bytes that the vendor's products and the kernel behind them leave.
#include <array>
#include <random>

#include "engines/cuda/cublas/products.hpp"
#include "engines/cuda/products/sm90/clusters.hpp"
#include "engines/cuda/products/sm90/residue_products.hpp"
#include "gpu/device_memory.hpp"
#include "plan/schemes/ozaki2.hpp"

namespace kintsugi::test {
namespace {

using core::Accumulators;
using core::Schedule;
using core::Slices;
using Random = std::mt19937_64;

struct Shape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  int moduli;
};

// Slices of one operand in device memory: random bytes, or the smallest, and zeros where there is padding.
struct Operand {
  Operand(Random& random, std::int64_t vectors, std::int64_t k, int count, bool extreme)
      : slices(core::make_slices(core::int8, core::SliceStorage::packed, count, vectors, k)),
        memory(bytes_of(random, slices, extreme)) {
    slices.data = reinterpret_cast<std::byte*>(memory.data());
  }

  static std::vector<std::int8_t> bytes_of(Random& random, const Slices& slices, bool extreme) {
    std::vector<std::int8_t> bytes(slices.bytes());
    for (int s = 0; s < slices.count; ++s) {
      for (std::int64_t v = 0; v < slices.vectors; ++v) {
        std::int8_t* vector = bytes.data() + s * slices.slice_stride() + v * slices.vector_stride();
        for (std::int64_t p = 0; p < slices.k; ++p)
          vector[p] = extreme ? std::int8_t{-128} : static_cast<std::int8_t>(random());
      }
    }
    return bytes;
  }

  std::int64_t element(const std::vector<std::int8_t>& bytes, int slice, std::int64_t v,
                       std::int64_t p) const {
    if (v >= slices.vectors || p >= slices.k) return 0;
    return bytes[static_cast<std::size_t>(slice * slices.slice_stride() + v * slices.vector_stride() + p)];
  }

  Slices slices;
  DeviceArray<std::int8_t> memory;
};

struct Products {
  Products(Random& random, const Shape& shape, bool extreme = false)
      : schedule(core::schemes::ozaki2_program(shape.moduli).schedule),
        a(random, shape.m, shape.k, shape.moduli, extreme),
        b(random, shape.n, shape.k, shape.moduli, extreme),
        sums(core::make_accumulators(core::SumType::residue, core::round_up(shape.m, 16),
                                     core::round_up(shape.n, 16), shape.moduli)) {}

  template <class Multiply>
  std::vector<std::uint8_t> residues(const Multiply& multiply) const {
    const DeviceArray<std::uint8_t> memory(sums.bytes());
    Accumulators into = sums;
    into.data = reinterpret_cast<std::byte*>(memory.data());
    multiply(into);
    std::vector<std::uint8_t> found = memory.host();
    found.resize(static_cast<std::size_t>(sums.group_stride() * sums.groups));  // the rest is padding
    return found;
  }
  std::vector<std::uint8_t> by_the_vendor() const {
    const DeviceArray<std::byte> scratch(
        core::cuda::multiply_scratch_bytes(schedule, core::FormatId::int8, sums.rows, sums.columns));
    return residues([&](const Accumulators& into) {
      core::cuda::multiply({}, schedule, a.slices, b.slices, into, scratch.data(), nullptr);
    });
  }
  std::vector<std::uint8_t> by_the_host() const {
    const std::vector<std::int8_t> bytes_a = a.memory.host();
    const std::vector<std::int8_t> bytes_b = b.memory.host();
    std::vector<std::uint8_t> found;
    for (int t = 0; t < sums.groups; ++t) {
      for (std::int64_t j = 0; j < sums.columns; ++j) {
        for (std::int64_t i = 0; i < sums.rows; ++i) {
          std::int64_t sum = 0;
          for (std::int64_t p = 0; p < a.slices.k; ++p)
            sum += a.element(bytes_a, t, i, p) * b.element(bytes_b, t, j, p);
          const std::int64_t modulus = schedule.group_moduli[static_cast<std::size_t>(t)];
          found.push_back(static_cast<std::uint8_t>((sum % modulus + modulus) % modulus));
        }
      }
    }
    return found;
  }
  std::vector<std::uint8_t> by_tile(std::size_t tile) const {
    const core::cuda::Walk walk =
        core::cuda::residue_walk(core::cuda::residue_tiles[tile], sums.rows, sums.columns, sums.groups,
                                 a.slices.vector_stride(), core::cuda::clusters_of_device());
    return residues([&](const Accumulators& into) {
      core::cuda::multiply_residues({}, schedule, a.slices, b.slices, into, {tile, walk});
    });
  }

  Schedule schedule;
  Operand a;
  Operand b;
  Accumulators sums;
};

class Residues : public testing::Test {
 protected:
  void SetUp() override {
    core::cuda::Device device = 0;
    int major = 0;
    device_engine();
    core::cuda::check(core::cuda::driver().context_device(&device), "cuCtxGetDevice");
    core::cuda::check(
        core::cuda::driver().device_attribute(&major, core::cuda::compute_capability_major, device),
        "cuDeviceGetAttribute");
    if (major != 9) GTEST_SKIP() << "there are no kernels for this device";
  }
};

enum class Reference : std::uint8_t { host, vendor };

void expect_residues(Random& random, const Shape& shape, Reference reference = Reference::vendor,
                     bool extreme = false) {
  const Products products(random, shape, extreme);
  const std::vector<std::uint8_t> expected =
      reference == Reference::host ? products.by_the_host() : products.by_the_vendor();
  for (std::size_t tile = 0; tile < core::cuda::residue_tiles.size(); ++tile) {
    const std::vector<std::uint8_t> found = products.by_tile(tile);
    if (found == expected) continue;
    const auto at = static_cast<std::int64_t>(
        std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin());
    const std::int64_t place = at % products.sums.group_stride();
    FAIL() << "tile " << tile << ", m " << shape.m << " n " << shape.n << " k " << shape.k << ", "
           << shape.moduli << " moduli: residue " << at / products.sums.group_stride() << " of entry "
           << place % products.sums.rows << ", " << place / products.sums.rows << " is " << int{found[at]}
           << " instead of " << int{expected[at]};
  }
}

TEST_F(Residues, SmallProductsAreTheHosts) {
  Random random(std::random_device{}());
  for (const std::int64_t size : {1, 17, 130}) {
    expect_residues(random, {size, 200, 70, 2}, Reference::host);
    expect_residues(random, {200, size, 200, 5}, Reference::host);
    expect_residues(random, {40, 30, size, core::most_moduli}, Reference::host);
  }
}

// Sides around those of the tiles, and lengths around blocks of k.
TEST_F(Residues, EveryShapeHasTheVendors) {
  Random random(std::random_device{}());
  constexpr std::array<std::int64_t, 20> sides{1,   15,  16,  17,  64,  65,  127, 128, 129, 191,
                                               192, 193, 255, 256, 257, 383, 384, 385, 513, 800};
  constexpr std::array<std::int64_t, 10> lengths{1, 31, 64, 65, 127, 128, 129, 500, 512, 1100};
  for (const std::int64_t m : sides) {
    for (const std::int64_t n : sides) {
      expect_residues(random, {m, n, lengths[random() % lengths.size()], 2 + static_cast<int>(random() % 4)});
      if (HasFatalFailure()) return;
    }
  }
  for (int moduli = 2; moduli <= core::most_moduli; ++moduli)
    expect_residues(random, {300, 280, 200, moduli});
}

// Many tiles of each cluster, and blocks of the operands' vectors.
TEST_F(Residues, LargeProductsHaveTheVendors) {
  Random random(std::random_device{}());
  for (const Shape& shape :
       {Shape{2100, 1900, 1300, 7}, Shape{700, 4096, 640, 16}, Shape{4096, 1000, 330, 3}})
    expect_residues(random, shape);
  Products products(random, {1500, 1300, 300, 4});
  products.a.slices = products.a.slices.block(384, 700);
  products.b.slices = products.b.slices.block(128, 900);
  products.sums.rows = core::round_up(700, 16);
  products.sums.columns = core::round_up(900, 16);
  for (std::size_t tile = 0; tile < core::cuda::residue_tiles.size(); ++tile)
    EXPECT_TRUE(products.by_tile(tile) == products.by_the_vendor()) << "tile " << tile;
}

// Sums that int32 does not hold, of the largest products too.
TEST_F(Residues, LongSumsHaveTheVendors) {
  Random random(std::random_device{}());
  for (const std::int64_t k : {65536, 65537, 131072, 131073, 200000, 400100}) {
    expect_residues(random, {30, 20, k, 3}, Reference::vendor, true);
    expect_residues(random, {20, 40, k, 7});
  }
}

}  // namespace
}  // namespace kintsugi::test
