// The fit of costs brings expected times to the measured ones, whatever costs it begins with.
#include "calibrate/tasks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kintsugi::core::calibrate {
namespace {

using cuda::Costs;

Costs shipped_costs() { return cuda::shipped_profiles().front().costs; }

// Measurements that follow `truth`, which the fit does not know, each off by a factor of at most 1 +- noise.
std::vector<Measurement> measurements_by(const Costs& truth, double noise) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> deviation(1 - noise, 1 + noise);
  std::vector<Measurement> all;
  const auto add = [&](const std::string& kind, std::function<double(const Costs&)> expected) {
    const double measured = expected(truth) * deviation(random);
    all.push_back({kind, kind, measured, std::move(expected)});
  };
  for (const double elements : {1e4, 1e5, 1e6, 1e7, 1e8}) {
    add("copy", [=](const Costs& costs) { return 8 * elements / costs.call.copy_rate; });
    add("splits", [=](const Costs& costs) {
      return costs.call.split_launch + 8 * elements / (costs.call.split_rate * costs.call.copy_rate);
    });
    add("int8", [=](const Costs& costs) {
      return std::sqrt(elements) * costs.int8_tile.block + costs.int8_tile.tile;
    });
  }
  return all;
}

double max_deviation(const Costs& costs, const std::vector<Measurement>& measurements) {
  double max = 0;
  for (const Measurement& measurement : measurements)
    max = std::max(max, std::abs(measurement.expected(costs) / measurement.microseconds - 1));
  return max;
}

TEST(Fit, FindsCostsThatExplainTheMeasurements) {
  Costs truth = shipped_costs();
  truth.call.copy_rate *= 0.6;
  truth.call.split_launch *= 1.8;
  truth.call.split_rate *= 1.2;
  truth.int8_tile = {2.1, 5};
  const std::vector<Measurement> measurements = measurements_by(truth, 0);
  Costs costs = shipped_costs();
  ASSERT_GT(max_deviation(costs, measurements), 0.3);
  const auto fits = fit_costs(costs, measurements);
  EXPECT_LT(max_deviation(costs, measurements), 0.01);
  EXPECT_NEAR(costs.call.copy_rate, truth.call.copy_rate, 0.01 * truth.call.copy_rate);
  ASSERT_EQ(fits.size(), 3U);
  EXPECT_EQ(fits.front().kind, "copy");
  EXPECT_EQ(fits.front().measurements, 5);
  EXPECT_LT(fits.front().max_deviation, 0.01);
}

TEST(Fit, AnOutlierDoesNotSpoilOtherShapes) {
  const Costs truth = shipped_costs();
  std::vector<Measurement> measurements = measurements_by(truth, 0.02);
  measurements[1].microseconds *= 3;  // a split
  Costs costs = shipped_costs();
  fit_costs(costs, measurements);
  measurements.erase(measurements.begin() + 1);
  // The loss is linear beyond deviations of a tenth, so the outlier pulls no harder than a shape that is off
  // by a tenth.
  EXPECT_LT(max_deviation(costs, measurements), 0.1);
}

TEST(Fit, CostsWithoutMeasurementsKeepTheirValues) {
  Costs costs = shipped_costs();
  fit_costs(costs, measurements_by(costs, 0.05));
  EXPECT_EQ(costs.residues[1].launches, shipped_costs().residues[1].launches);
  EXPECT_EQ(costs.multi_term.launch, shipped_costs().multi_term.launch);
  EXPECT_EQ(costs.residues[2].launches, shipped_costs().residues[2].launches);
}

// The costs of a CPU, from times of whole calls that follow other costs.
TEST(Fit, FindsTheCostsOfACpu) {
  CpuCosts truth = shipped_cpu_costs("amx");
  truth.one.product_nanoseconds = 0.013;
  truth.one.native.fp64 = 2.4;
  truth.all.product_nanoseconds = 0.03;
  truth.all.residues.product *= 2;
  std::vector<CpuMeasurement> measurements;
  const auto add = [&](const std::string& kind, std::function<double(const CpuCosts&)> expected) {
    const double measured = expected(truth);
    measurements.push_back({kind, kind, measured, std::move(expected)});
  };
  for (const double n : {64, 256, 1024, 4096}) {
    for (const int threads : {1, 8}) {
      const std::string of_threads = threads > 1 ? "all." : "one.";
      for (const bool is_double : {false, true})
        add(of_threads + "native", [=](const CpuCosts& costs) {
          const CpuThreadCosts& t = costs.with(threads);
          return t.product_nanoseconds *
                 (t.native.call + 3 * n * n * t.native.element + n * n * n * (is_double ? t.native.fp64 : 1));
        });
      add(of_threads + "residues", [=](const CpuCosts& costs) {
        const CpuThreadCosts& t = costs.with(threads);
        return t.product_nanoseconds * (n * n * t.residues.element + 15 * n * n * n * t.residues.product);
      });
    }
  }
  CpuCosts costs = shipped_cpu_costs("avx512");
  const std::vector<ProfileFit> fits = fit_costs(costs, measurements);
  ASSERT_EQ(fits.size(), 4U);
  for (const ProfileFit& fit : fits) EXPECT_LT(fit.max_deviation, 0.03) << fit.kind;
  EXPECT_NEAR(costs.one.product_nanoseconds, 0.013, 0.0005);
  EXPECT_NEAR(costs.one.native.fp64, 2.4, 0.1);
  EXPECT_NEAR(costs.all.product_nanoseconds, 0.03, 0.001);
  EXPECT_NEAR(costs.one.residues.product, truth.one.residues.product, 0.005);
  EXPECT_NEAR(costs.all.residues.product, truth.all.residues.product, 0.01);
  // No measurement depends on these.
  EXPECT_EQ(costs.one.digits.product, shipped_cpu_costs("avx512").one.digits.product);
}

}  // namespace
}  // namespace kintsugi::core::calibrate
