// Compares norms of the items of a batch with the host's.
#include "gpu/split/norm_cases.hpp"

namespace kintsugi::test {
namespace {

// Operands of a batch of which every item has the strides of the first.
template <class T>
struct DrawnBatch {
  DrawnBatch(Random& random, std::int64_t items)
      : operands(draw_operands(random, items)), values(values_of(operands)), matrix(operands.front().matrix),
        ranges(operands.size() * static_cast<std::size_t>(matrix.vectors())), norms(ranges.size()) {
    matrix.data = values.data();
    matrix.batch_stride = static_cast<std::int64_t>(operands.front().values.size());
  }
  DeviceSide side() const {
    return {matrix, 0, ranges.data(), static_cast<std::int64_t>(operands.size()), norms.data()};
  }
  void expect_host(const std::string& test) const {
    const auto vectors = static_cast<std::size_t>(matrix.vectors());
    const std::vector<VectorRange> all_ranges = ranges.host();
    const std::vector<VectorNorm> all_norms = norms.host();
    for (std::size_t item = 0; item < operands.size(); ++item) {
      const std::string text = fmt::format("{}, {}, item {}", operands[item].text(), test, item);
      std::vector<VectorRange> wanted(vectors);
      find_ranges(operands[item].view(), rule_of_norms(), wanted, 1);
      find_depths(operands[item].view(), wanted);
      const auto first = all_ranges.begin() + static_cast<std::ptrdiff_t>(item * vectors);
      expect_same_ranges({first, first + static_cast<std::ptrdiff_t>(vectors)}, wanted, text, false);
      expect_same_norms(all_norms.data() + item * vectors, norms_on_host(operands[item].view(), wanted),
                        text);
    }
  }

  std::vector<Operand<T>> operands;
  DeviceArray<T> values;
  DeviceMatrix matrix;
  DeviceArray<VectorRange> ranges;
  DeviceArray<VectorNorm> norms;

 private:
  static std::vector<Operand<T>> draw_operands(Random& random, std::int64_t items) {
    const Operand<T> first(random.integer(1, 60), random.integer(1, 1500),
                           layouts[static_cast<std::size_t>(random.integer(0, 2))], 0, random.bits());
    std::vector<Operand<T>> drawn(static_cast<std::size_t>(items), first);
    for (Operand<T>& operand : drawn) operand.draw_values(random);
    return drawn;
  }
  static std::vector<T> values_of(const std::vector<Operand<T>>& operands) {
    std::vector<T> all;
    for (const Operand<T>& operand : operands)
      all.insert(all.end(), operand.values.begin(), operand.values.end());
    return all;
  }
};

template <class T>
class NormsOfBatch : public testing::Test {};
TYPED_TEST_SUITE(NormsOfBatch, EveryType);

TYPED_TEST(NormsOfBatch, ItemsHaveTheHostsNorms) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 6 && !testing::Test::HasFailure(); ++round) {
    const std::int64_t items = random.integer(2, 5);
    const DrawnBatch<TypeParam> a(random, items);
    const DrawnBatch<TypeParam> b(random, items);
    core::cuda::find_norms({}, a.side(), b.side(), {});
    for (const auto* batch : {&a, &b}) batch->expect_host(fmt::format("seed {}, round {}", seed, round));
  }
}

}  // namespace
}  // namespace kintsugi::test
