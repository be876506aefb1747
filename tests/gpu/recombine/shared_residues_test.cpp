// Recombination of candidates that share kernels gives the bits of the host's function for the selected
// number of moduli.
#include "arith/residue/residue.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "gpu/recombine/drawn_integers.hpp"
#include "gpu/recombine/recombine_case.hpp"

namespace kintsugi::test {
namespace {

// Sums of `most` moduli, of which the first `count` are residues of integers.
void check_selected(std::mt19937_64& random, TestTile<double>& tile, int least, int most, int count) {
  const DrawnIntegers integers(random, core::residue_bits(count), tile.rows * tile.columns);
  const auto draw = [&](int t, std::int64_t element) {
    return t < count ? integers.residue(element, core::moduli[t]) : static_cast<std::uint8_t>(random());
  };
  const TestSums<std::uint8_t> sums(core::SumType::residue, tile.rows, tile.columns, most, draw);
  const auto expected = tile.expected([&](auto rows, auto columns, double alpha, double beta, const auto& c) {
    core::recombine_residues(sums.host(), core::ResidueSystem{count}, rows, columns, alpha, beta, c, 1);
  });
  constexpr std::int32_t first = 3;
  const auto selection = selection_of(tile.condition.holds() ? first + count - least : first - 1);
  core::cuda::recombine_selected({}, sums.device(), tile.on_device(), {selection.data(), first, least, most});
  tile.c.expect(expected, fmt::format("{} of {} to {} moduli, {}", count, least, most, tile.text()));
}

TEST(SharedResidues, AreRecombinedLikeThoseOfTheSelectedCandidate) {
  if (!core::cuda::current_family().has_clusters) GTEST_SKIP() << "the device has no shared kernels";
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 120 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", seed, round));
    const int least = static_cast<int>(draw_size(random, 16, 19));
    const int most = static_cast<int>(draw_size(random, least + 1, 20));
    TestTile<double> tile(random, round % 10 == 0 ? 700 : 150, round % 3 == 0);
    const double sign = random() % 2 == 0 ? 1 : -1;
    if (round % 2 == 0) tile.scalars.set(sign, round % 4 == 0 ? 0 : random() % 2 == 0 ? 1 : -1);
    check_selected(random, tile, least, most, static_cast<int>(draw_size(random, least, most)));
  }
}

}  // namespace
}  // namespace kintsugi::test
