// Recombination by fractions on the device: elements of usual magnitude, with few, many or only ones that are
// not certain.
#include "engines/cuda/recombine/recombine.hpp"
#include "gpu/recombine/recombine_case.hpp"

namespace kintsugi::test {
namespace {

using Integer = core::WideInteger<3>;

// Kind of a column: which of its elements are not certain.
enum class Kind { usual, few_ties, ties, small, zeros, mixed };

Integer draw_integer(std::mt19937_64& random, int length) {
  return Integer::shifted(Integer{{random(), random(), random()}}, length - Integer::bits);
}

// A tie of two doubles of at most `length` bits.
Integer draw_tie(std::mt19937_64& random, int length) {
  const Integer digits{{random() >> 10 | 1U | std::uint64_t{1} << 53}};
  return length < 54 ? draw_integer(random, length) : Integer::shifted(digits, length - 54);
}

Integer draw_element(std::mt19937_64& random, Kind kind, int bits) {
  const int length = std::max(bits - 9, 1);
  switch (kind) {
    case Kind::few_ties: return random() % 600 == 0 ? draw_tie(random, length) : draw_integer(random, length);
    case Kind::ties: return draw_tie(random, length);
    case Kind::small: return draw_integer(random, std::min(length, 40));
    case Kind::zeros: return {};
    default: return draw_integer(random, length);
  }
}

std::uint8_t residue(const Integer& x, bool negative, int modulus) {
  const auto m = static_cast<std::uint64_t>(modulus);
  std::uint64_t remainder = 0;
  for (int bit = Integer::bits - 32; bit >= 0; bit -= 32)
    remainder = (remainder << 32 | (x.bits_from(bit) & 0xffffffffU)) % m;
  return static_cast<std::uint8_t>(negative && remainder != 0 ? m - remainder : remainder);
}

// Sums of `count` moduli; mixed columns are of all other kinds.
TestSums<std::uint8_t> draw_sums(std::mt19937_64& random, const TestTile<double>& tile, Kind kind,
                                 int count) {
  std::vector<Integer> integers;
  std::vector<bool> negative;
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    const Kind own = kind == Kind::mixed ? static_cast<Kind>(random() % 5) : kind;
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      integers.push_back(draw_element(random, own, core::residue_bits(count)));
      negative.push_back(random() % 2 == 0);
    }
  }
  return {core::SumType::residue, tile.rows, tile.columns, count, [&](int t, std::int64_t element) {
            const auto e = static_cast<std::size_t>(element);
            return residue(integers[e], negative[e], core::moduli[t]);
          }};
}

TEST(RecombineFractions, EqualTheHosts) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  SCOPED_TRACE(seed);
  for (const int count : {1, 8, 14, 15, 16, 17, 19, 20}) {
    for (const Kind kind : {Kind::usual, Kind::few_ties, Kind::ties, Kind::small, Kind::zeros, Kind::mixed}) {
      for (const double beta : {0.0, 1.0, -1.0}) {
        TestTile<double> tile(random, kind == Kind::mixed ? 300 : 150, /*special=*/false);
        tile.scalars.set(random() % 2 == 0 ? 1 : -1, beta);
        const TestSums<std::uint8_t> sums = draw_sums(random, tile, kind, count);
        const core::ResidueSystem system{count};
        const auto expected =
            tile.expected([&](auto rows, auto columns, double alpha, double own_beta, const auto& c) {
              core::recombine_residues(sums.host(), system, rows, columns, alpha, own_beta, c, 1);
            });
        core::cuda::recombine_residues({}, sums.device(), system, tile.on_device());
        tile.c.expect(expected,
                      fmt::format("{} moduli, kind {}, {}", count, static_cast<int>(kind), tile.text()));
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace kintsugi::test
