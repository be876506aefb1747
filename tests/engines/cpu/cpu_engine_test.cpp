// Tests that the engine cpu has the bits of the reference engine for integers and floats.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

constexpr Structure<3> three_terms{{Term{1, 0, 0}, Term{0, 1, 1}, Term{0, 0, 0}}, 2, 2, 2, 64, 0};
constexpr Structure<4> alternating{
    {Term{1, 1, 0}, Term{1, 0, 0}, Term{0, 1, 0}, Term{0, 0, 0}}, 2, 2, 1, 0, 16};
constexpr Structure<3> rescaled{{Term{1, 0, 0}, Term{0, 1, 0}, Term{0, 0, 0, true}}, 2, 2, 1, 32, 0};

struct EngineRun {
  std::vector<std::byte> a_memory, b_memory, sums_memory, scratch;
  Multiplication task;
};

// Fills slices with random finite elements of the format, the same for both engines.
void fill(const Slices& slices, std::uint64_t seed, int bits_used) {
  for (int s = 0; s < slices.count; ++s) {
    for (std::int64_t v = 0; v < slices.padded_vectors(); ++v) {
      for (std::int64_t p = 0; p < slices.vector_stride(); ++p) {
        const bool inside = v < slices.vectors && p < slices.k;
        const auto bits = measure::mix_bits(seed + static_cast<std::uint64_t>((s * 1000 + v) * 100000 + p));
        const double x =
            inside ? std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits)), bits_used - 63) : 0;
        const std::uint64_t pattern = encode(*slices.format, x);
        if (slices.storage == SliceStorage::panels) {
          slices.vector<float>(s, v)[p * slices.element_stride()] =
              static_cast<float>(decode(*slices.format, pattern));
        } else if (slices.format->storage_bytes == 1) {
          slices.vector<std::uint8_t>(s, v)[p] = static_cast<std::uint8_t>(pattern);
        } else if (slices.format->storage_bytes == 2) {
          slices.vector<std::uint16_t>(s, v)[p] = static_cast<std::uint16_t>(pattern);
        } else {
          slices.vector<std::uint32_t>(s, v)[p] = static_cast<std::uint32_t>(pattern);
        }
      }
    }
  }
}

EngineRun run_engine(const Engine& engine, const Schedule& schedule, const Format& format,
                     Accumulator accumulator, std::int64_t m, std::int64_t n, std::int64_t k, int bits_used,
                     int threads) {
  EngineRun run;
  const auto prepare = [&](int count, std::int64_t vectors, std::vector<std::byte>& memory,
                           std::uint64_t seed) {
    Slices slices = make_slices(format, engine.slice_storage(format.id), count, vectors, k);
    memory.resize(slices.bytes());
    slices.data = memory.data();
    fill(slices, seed, bits_used);
    return slices;
  };
  run.task.schedule = &schedule;
  run.task.a = prepare(schedule.slices_a, m, run.a_memory, 1);
  run.task.b = prepare(schedule.slices_b, n, run.b_memory, 900000007);
  run.task.sums = make_accumulators(format.floating ? SumType::f32 : SumType::i64, m, n, schedule.groups);
  run.sums_memory.assign(run.task.sums.bytes(), std::byte{0xcd});
  run.task.sums.data = run.sums_memory.data();
  run.scratch.assign(engine.host()->scratch_bytes(schedule, format.id, k, threads), std::byte{0xab});
  run.task.scratch = run.scratch.data();
  run.task.accumulator = accumulator;
  run.task.threads = threads;
  engine.host()->multiply(run.task);
  return run;
}

class CpuEngine : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_engine("cpu")->unavailable_reason().empty())
      GTEST_SKIP() << find_engine("cpu")->unavailable_reason();
  }
  const Engine& cpu_ = *find_engine("cpu");
  const Engine& reference_ = *find_engine("reference");
};

TEST_F(CpuEngine, IntegerSumsHaveTheBitsOfTheReference) {
  for (const Schedule& schedule :
       {make_schedule(single_product), make_schedule(three_terms), make_schedule(alternating)}) {
    for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {5, 3, 64}, {130, 129, 200}, {17, 140, 2500}}) {
      const EngineRun by_cpu = run_engine(cpu_, schedule, int8, Accumulator::int32, m, n, k, 8, 3);
      const EngineRun by_reference =
          run_engine(reference_, schedule, int8, Accumulator::int32, m, n, k, 8, 2);
      for (int g = 0; g < schedule.groups; ++g) {
        for (std::int64_t e = 0; e < m * n; ++e) {
          ASSERT_EQ(by_cpu.task.sums.group<std::int64_t>(g)[e],
                    by_reference.task.sums.group<std::int64_t>(g)[e]);
        }
      }
    }
  }
}

TEST_F(CpuEngine, FloatSumsHaveTheBitsOfTheReference) {
  for (const Format* format : {&fp16, &bf16, &tf32, &fp8_e4m3, &fp8_e5m2}) {
    for (const Schedule& schedule : {make_schedule(single_product), make_schedule(three_terms),
                                     make_schedule(alternating), make_schedule(rescaled, -3)}) {
      const std::int64_t m = 131, n = 9, k = 150;
      const EngineRun by_cpu = run_engine(cpu_, schedule, *format, Accumulator::fp32, m, n, k, 3, 2);
      const EngineRun by_reference =
          run_engine(reference_, schedule, *format, Accumulator::fp32, m, n, k, 3, 2);
      EXPECT_EQ(by_cpu.sums_memory, by_reference.sums_memory) << format->name;
    }
  }
}

TEST_F(CpuEngine, BitsDoNotDependOnThreads) {
  const Schedule schedule = make_schedule(rescaled, -12);
  const EngineRun single_thread = run_engine(cpu_, schedule, fp16, Accumulator::fp32, 300, 200, 100, 3, 1);
  for (const int threads : {2, 3, 7}) {
    const EngineRun several_threads =
        run_engine(cpu_, schedule, fp16, Accumulator::fp32, 300, 200, 100, 3, threads);
    EXPECT_EQ(single_thread.sums_memory, several_threads.sums_memory) << threads;
  }
}

template <class T>
void expect_nan_of_beta(const Engine& engine) {
  using Real = typename T::value_type;
  constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
  constexpr std::int64_t n = 5;
  const std::vector<T> operand(n * n, T(1));
  for (const T beta : {T(0, nan), T(nan, 0), T(nan, nan), T(1, nan)}) {
    std::vector<T> c(n * n, T(2, 1));
    NativeProduct<T> product;
    product.a = product.b = MatrixView<const T>{operand.data(), n, n, 1, n};
    product.c = MatrixView<T>{c.data(), n, n, 1, n};
    product.alpha = T(1);
    product.beta = beta;
    product.threads = 1;
    engine.host()->native(product);
    for (const T& element : c) {
      EXPECT_TRUE(std::isnan(element.real()) && std::isnan(element.imag()))
          << "beta (" << beta.real() << ", " << beta.imag() << "): " << element.real() << ", "
          << element.imag();
    }
  }
}

TEST_F(CpuEngine, NativeComplexProductsKeepANanOfBeta) {
  expect_nan_of_beta<std::complex<float>>(cpu_);
  expect_nan_of_beta<std::complex<double>>(cpu_);
}

TEST(Engines, AreFoundByName) {
  EXPECT_EQ(find_engine("reference")->name(), "reference");
  EXPECT_EQ(find_engine("gpu"), nullptr);
  EXPECT_EQ(engine_names(), "cpu, reference, cuda");
  for (const Engine* engine : all_engines()) {
    EXPECT_FALSE(engine->summary().empty());
    // Devices have no schedules of fp64 slices, only native fp64 products.
    if (engine->host() != nullptr) {
      EXPECT_EQ(engine->accumulators(FormatId::fp64).front(), Accumulator::fp64);
    }
    for (const Format* format : formats) {
      for (const Accumulator accumulator : engine->accumulators(format->id))
        EXPECT_TRUE(supports(accumulator, format->id));
    }
  }
}

}  // namespace
}  // namespace kintsugi::core
