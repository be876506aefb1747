// Recombination and scaling on the device give the bits of the host's functions.
#include "engines/cuda/recombine/recombine.hpp"
#include "arith/complex.hpp"
#include "arith/residue/remainder.hpp"
#include "gpu/recombine/drawn_integers.hpp"
#include "gpu/recombine/recombine_case.hpp"
#include "schemes/program.hpp"

namespace kintsugi::test {
namespace {

template <class T, class Part>
void check_weighted(TestTile<T>& tile, const TestSums<Part>& sums, std::span<const int> exponents,
                    const std::string& name) {
  const auto expected = tile.expected([&](auto rows, auto columns, T alpha, T beta, const auto& c) {
    core::recombine_weighted(sums.host(), exponents, rows, columns, alpha, beta, c, 1);
  });
  core::cuda::recombine_weighted({}, sums.device(), exponents, tile.on_device());
  tile.c.expect(expected, fmt::format("{}, {}", name, tile.text()));
}

template <class T>
void check_floats(std::mt19937_64& random, TestTile<T>& tile, const core::Schedule& schedule,
                  const std::string& name) {
  const TestSums<float> sums(
      core::SumType::f32, tile.rows, core::parts_of<T> * tile.columns, schedule.sums(),
      [&](int, std::int64_t) { return random() % 16 == 0 ? 0.0F : draw_real<float>(random, 30); });
  std::vector<int> exponents;
  for (int s = 0; s < schedule.sums(); ++s) exponents.push_back(schedule.sum_exponent(s));
  check_weighted(tile, sums, exponents, name);
}

template <class T>
void check_integers(std::mt19937_64& random, TestTile<T>& tile, const core::Schedule& schedule,
                    const std::string& name) {
  const TestSums<std::int64_t> sums(
      core::SumType::i64, tile.rows, core::parts_of<T> * tile.columns, schedule.sums(),
      [&](int, std::int64_t) { return static_cast<std::int64_t>(random()) >> (5 + random() % 50); });
  std::vector<int> exponents;
  for (int s = 0; s < schedule.sums(); ++s) exponents.push_back(schedule.sum_exponent(s));
  check_weighted(tile, sums, exponents, name);
}

TYPED_TEST(Recombine, WeightedSumsOfEverySchemeEqualTheHosts) {
  int schemes = 0;
  for (const core::Scheme* scheme : core::all_schemes()) {
    const core::Program& program = scheme->program;
    if (program.recombination != core::Recombination::weighted) continue;
    const core::SumType type = program.sum_type();
    if (type == core::SumType::i128) continue;
    ++schemes;
    for (int draw = 0; draw < 40; ++draw) {
      TestTile<TypeParam> tile(this->random, 130, draw % 2 == 0);
      const std::string name = fmt::format("{}, draw {}", scheme->name, draw);
      if (type == core::SumType::f32) {
        check_floats(this->random, tile, program.schedule, name);
      } else {
        check_integers(this->random, tile, program.schedule, name);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(schemes, 10);
}

TYPED_TEST(Recombine, WeightedSumsOfLargerTilesEqualTheHosts) {
  core::Schedule schedule = core::find_scheme("ootomo")->program.schedule;
  for (const std::int64_t rows : {1, 31, 128, 257, 1024, 1025}) {
    for (const std::int64_t columns : {1, 127, 515}) {
      for (const bool special : {false, true}) {
        TestTile<TypeParam> tile(this->random, rows, columns, 5, special);
        check_floats(this->random, tile, schedule, "ootomo");
      }
    }
  }
}

// The residue that slice s of modulus t holds for an element whose parts have the residues `re` and `im`.
std::uint8_t residue_of_slice(const core::ComplexBasis& basis, int t, int s, int re, int im) {
  const int m = basis.modulus(t);
  if (basis.has_root(t)) return static_cast<std::uint8_t>((re + (s == 0 ? im : m - im) * basis.root(t)) % m);
  const int b = (3 * re + 7 * im) % m;
  const int a = (re + b) % m;
  return static_cast<std::uint8_t>(s == 0 ? a : s == 1 ? b : (im + a + b) % m);
}

TYPED_TEST(Recombine, ResiduesOfComplexElementsEqualTheHosts) {
  using T = TypeParam;
  if constexpr (core::is_complex<T>) {
    for (int count = 2; core::remainder_limbs(count) <= 3; ++count) {
      const core::ComplexBasis basis = core::cheapest_basis(core::residue_bits(count));
      for (int draw = 0; draw < 4; ++draw) {
        TestTile<T> tile(this->random, draw == 0 ? 150 : 70, draw % 2 == 0);
        const std::int64_t elements = tile.rows * tile.columns;
        const DrawnIntegers integers(this->random, core::residue_bits(basis), 2 * elements);
        std::vector<int> modulus_of;
        for (int t = 0; t < basis.count(); ++t)
          modulus_of.insert(modulus_of.end(), basis.has_root(t) ? 2 : 3, t);
        const TestSums<std::uint8_t> sums(core::SumType::residue, tile.rows, tile.columns, basis.slices(),
                                          [&](int slice, std::int64_t element) {
                                            const int t = modulus_of[static_cast<std::size_t>(slice)];
                                            return residue_of_slice(
                                                basis, t, slice - basis.first_slice(t),
                                                integers.residue(element, basis.modulus(t)),
                                                integers.residue(elements + element, basis.modulus(t)));
                                          });
        const core::ResidueSystem system{.basis = basis};
        const auto expected = tile.expected([&](auto rows, auto columns, T alpha, T beta, const auto& c) {
          core::recombine_residues(sums.host(), system, rows, columns, alpha, beta, c, 1);
        });
        core::cuda::recombine_residues({}, sums.device(), system, tile.on_device());
        tile.c.expect(expected, fmt::format("{} slices, draw {}, {}", basis.slices(), draw, tile.text()));
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

TYPED_TEST(Recombine, ResiduesOfEveryNumberOfModuliEqualTheHosts) {
  using T = TypeParam;
  for (int count = 1; count <= core::max_moduli; ++count) {
    // Even draws: AB and -AB have kernels of their own.
    for (int draw = 0; draw < 8; ++draw) {
      TestTile<T> tile(this->random, draw == 0 ? 150 : 70, draw % 4 < 2);
      if (draw % 2 == 0) tile.scalars.set(draw % 4 == 0 ? T(1) : T(-1), T(0));
      const DrawnIntegers integers(this->random, core::residue_bits(count),
                                   tile.rows * core::parts_of<T> * tile.columns);
      const TestSums<std::uint8_t> sums(
          core::SumType::residue, tile.rows, core::parts_of<T> * tile.columns, count,
          [&](int t, std::int64_t element) { return integers.residue(element, core::moduli[t]); });
      const core::ResidueSystem system{count};
      const auto expected = tile.expected([&](auto rows, auto columns, T alpha, T beta, const auto& c) {
        core::recombine_residues(sums.host(), system, rows, columns, alpha, beta, c, 1);
      });
      core::cuda::recombine_residues({}, sums.device(), system, tile.on_device());
      tile.c.expect(expected, fmt::format("{} moduli, draw {}, {}", count, draw, tile.text()));
    }
    if (testing::Test::HasFailure()) return;
  }
}

TYPED_TEST(Recombine, ScalingEqualsTheHosts) {
  using T = TypeParam;
  for (int draw = 0; draw < 60; ++draw) {
    const std::int64_t rows = draw_size(this->random, 1, draw == 0 ? 3000 : 130);
    TestMatrix<T> c(this->random, rows, draw_size(this->random, 1, 130), 20);
    c.view()(0, 0) = T(std::numeric_limits<core::RealOf<T>>::quiet_NaN());
    const TestScalars<T> scalars(this->random);
    const TestCondition condition(this->random);
    std::vector<T> expected = c.values();
    if (condition.holds()) scale_on_host(c.view(expected), scalars.beta);
    const core::DeviceMatrix matrix = c.on_device();
    core::cuda::scale({}, matrix, c.item(), scalars.scalars(), condition.condition());
    c.expect(expected, fmt::format("draw {}, {}", draw, scalars.text()));
  }
}

TEST(SumsOutside, KBlocksAddUpToTheHostsSums) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int draw = 0; draw < 100; ++draw) {
    const auto elements = static_cast<std::size_t>(draw_size(random, 1, draw == 0 ? 100000 : 3000));
    const int modulus = draw % 2 == 0 ? 0 : core::moduli[random() % core::max_moduli];
    std::vector<std::int64_t> expected(elements);
    const DeviceArray<std::int64_t> integers(elements);
    const DeviceArray<std::uint8_t> residues(elements);
    for (int k_block = 0; k_block < 3; ++k_block) {
      std::vector<std::int32_t> sums(elements);
      for (auto& sum : sums) sum = static_cast<std::int32_t>(random());
      const DeviceArray<std::int32_t> block_sums(sums);
      void* total_sums = modulus == 0 ? static_cast<void*>(integers.data()) : residues.data();
      core::cuda::add_outside({}, block_sums.data(), static_cast<std::int64_t>(elements), modulus,
                              k_block == 0, total_sums);
      for (std::size_t e = 0; e < elements; ++e) {
        expected[e] += sums[e];
        if (modulus != 0) expected[e] = ((expected[e] % modulus) + modulus) % modulus;
      }
      const auto integer_sums = integers.host();
      const auto residue_sums = residues.host();
      for (std::size_t e = 0; e < elements; ++e) {
        const std::int64_t found = modulus == 0 ? integer_sums[e] : residue_sums[e];
        ASSERT_EQ(found, expected[e])
            << "seed " << seed << ", draw " << draw << ", modulus " << modulus << ", k-block " << k_block
            << ", element " << e << " of " << elements << ", sum " << sums[e];
      }
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
