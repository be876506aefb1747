// Tests that every accumulator of every engine adds products of integer slices exactly, up to the last bit
// that it holds.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "engines/registry.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core {
namespace {

constexpr std::int64_t rows = 5;
constexpr std::int64_t columns = 3;

struct Case {
  const Format* format;
  int bits;
  std::int64_t k;
  std::int64_t block;
};

class Operand {
 public:
  Operand(const Case& test, const Engine& engine, std::int64_t vectors,
          const std::vector<std::int64_t>& integers)
      : slices_(make_slices(*test.format, engine.slice_storage(test.format->id), 1, vectors, test.k)) {
    memory_.assign(slices_.bytes() / sizeof(double), 0);
    slices_.data = reinterpret_cast<std::byte*>(memory_.data());
    for (std::int64_t v = 0; v < vectors; ++v) {
      for (std::int64_t p = 0; p < test.k; ++p) store(v, p, static_cast<double>(integers[v * test.k + p]));
    }
  }
  const Slices& slices() const { return slices_; }

 private:
  void store(std::int64_t v, std::int64_t p, double integer) {
    if (slices_.format->id == FormatId::fp64) {
      slices_.vector<double>(0, v)[p] = integer;
    } else if (slices_.storage == SliceStorage::panels) {
      slices_.vector<float>(0, v)[p * slices_.element_stride()] = static_cast<float>(integer);
    } else {
      slices_.vector<std::uint16_t>(0, v)[p] = static_cast<std::uint16_t>(encode(fp16, integer));
    }
  }

  Slices slices_;
  std::vector<double> memory_;
};

std::vector<std::int64_t> products(const Case& test, const Engine& engine, Accumulator accumulator,
                                   const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const Operand left(test, engine, rows, a);
  const Operand right(test, engine, columns, b);
  Schedule schedule = make_schedule(single_product);
  schedule.integer_sums = true;
  schedule.k_block = test.block;
  std::vector<std::int64_t> sums(rows * columns, 99);
  Accumulators target = make_accumulators(SumType::i64, rows, columns, 1);
  target.data = reinterpret_cast<std::byte*>(sums.data());
  std::vector<std::byte> scratch(engine.host()->scratch_bytes(schedule, test.format->id, test.k, 2) + 256);
  engine.host()->multiply({&schedule, left.slices(), right.slices(), target, accumulator, scratch.data(), 2});
  return sums;
}

// With `extreme` all factors have the largest magnitude and one sign, and sums are the largest that the
// accumulators hold: k 4^bits = 2^24 and 2^53.
void expect_exact(const Case& test, bool extreme) {
  std::mt19937_64 random(test.k);
  const auto largest = std::int64_t{1} << test.bits;
  std::uniform_int_distribution<std::int64_t> integers(-largest, largest);
  std::vector<std::int64_t> a(rows * test.k, largest);
  std::vector<std::int64_t> b(columns * test.k, largest);
  if (!extreme) {
    for (auto& x : a) x = integers(random);
    for (auto& x : b) x = integers(random);
  }
  std::vector<std::int64_t> exact(rows * columns);
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t p = 0; p < test.k; ++p) exact[i + j * rows] += a[i * test.k + p] * b[j * test.k + p];
    }
  }
  for (const Engine* engine : all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    const auto accumulators = engine->accumulators(test.format->id);
    EXPECT_FALSE(accumulators.empty()) << engine->name();
    for (const Accumulator accumulator : accumulators) {
      EXPECT_EQ(products(test, *engine, accumulator, a, b), exact)
          << engine->name() << " " << accumulator_name(accumulator) << ", k " << test.k;
    }
  }
}

TEST(IntegerSums, AreExactInEveryAccumulator) {
  for (const bool extreme : {false, true}) {
    for (const Case& test : {Case{&fp16, 11, 4, 0}, Case{&fp16, 8, 256, 0}, Case{&fp16, 7, 1024, 0},
                             Case{&fp16, 5, 16384, 0}, Case{&fp16, 9, 1000, 64}, Case{&fp64, 26, 2, 0},
                             Case{&fp64, 21, 2048, 0}, Case{&fp64, 25, 1000, 8}}) {
      expect_exact(test, extreme);
    }
  }
}

// Intended failure: sums of one bit more than 2^24 are rounded.
TEST(IntegerSums, AreInexactBeyondTheAccumulator) {
  const Case test{&fp16, 11, 8, 0};
  std::vector<std::int64_t> a(rows * test.k, 2048);
  std::vector<std::int64_t> b(columns * test.k, 2047);
  a[0] = b[0] = 1;
  const auto sums = products(test, *find_engine("reference"), Accumulator::fp32, a, b);
  EXPECT_NE(sums[0], 7 * std::int64_t{2048} * 2047 + 1);
}

}  // namespace
}  // namespace kintsugi::core
