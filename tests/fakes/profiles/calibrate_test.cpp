// Tests calibration on the fake device, whose times mean nothing: the profile that it writes can be read, and
// measurements computed from known costs give these costs and the decisions that follow from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/version.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/registry.hpp"
#include "fakes/device_plan.hpp"
#include "fakes/profiles/profile_in_force.hpp"
#include "kintsugi/kintsugi.h"
#include "support/effort.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

struct Reports {
  std::vector<double> done;
  std::string last;
};

void record_progress(void* user, double done, const char* step) {
  auto& reports = *static_cast<Reports*>(user);
  reports.done.push_back(done);
  reports.last = step;
}

// The request points at `file`, which must outlive it.
kintsugi_calibration quick_calibration(const char* file, Reports& reports) {
  kintsugi_calibration calibration = KINTSUGI_CALIBRATION_INIT;
  calibration.file = file;
  calibration.quick = 1;
  calibration.progress = record_progress;
  calibration.progress_user = &reports;
  return calibration;
}

class Calibration : public OverFakes {};

TEST_F(Calibration, WritesAProfile) {
  if (!thorough) GTEST_SKIP() << "two minutes under the sanitizers";
  const std::string file = testing::TempDir() + "/calibration/profile.json";
  Reports reports;
  const kintsugi_calibration calibration = quick_calibration(file.c_str(), reports);
  ASSERT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(reports.last, file);
  EXPECT_TRUE(std::is_sorted(reports.done.begin(), reports.done.end()));
  EXPECT_EQ(reports.done.front(), 0);
  EXPECT_EQ(reports.done.back(), 1);
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const core::cuda::Profile profile = core::cuda::read_profile(text, file);
  EXPECT_EQ(profile.device.name, "NVIDIA Fake");
  EXPECT_EQ(profile.device.sm_count, 132);
  EXPECT_EQ(profile.fits.size(), 21U);
  std::filesystem::remove_all(std::filesystem::path(file).parent_path());
}

TEST_F(Calibration, BadRequestsAreNamed) {
  Reports reports;
  kintsugi_calibration calibration = quick_calibration("/proc/nowhere/profile.json", reports);
  calibration.quick = 2;
  EXPECT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("quick = 2"));
  EXPECT_EQ(kintsugi_calibrate(nullptr), KINTSUGI_INVALID_ARGUMENT);
  for (const std::string& file : {std::string("/proc/nowhere/profile.json"), testing::TempDir()}) {
    calibration = quick_calibration(file.c_str(), reports);
    EXPECT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_BAD_SETTING) << file;
    EXPECT_THAT(kintsugi_last_error(), HasSubstr(file));
  }
  EXPECT_TRUE(reports.done.empty());
}

TEST_F(Calibration, ADeviceWithoutProductKernelsIsRefused) {
  const GenericDevices older("8.0");
  Reports reports;
  const kintsugi_calibration calibration = quick_calibration("unused.json", reports);
  EXPECT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_ENGINE_UNAVAILABLE);
  EXPECT_TRUE(reports.done.empty());
  EXPECT_FALSE(std::filesystem::exists("unused.json"));
}

using core::calibrate::Measurement;
using core::cuda::Costs;

// Returns the measurements of a whole calibration, with the fake device's times.
std::vector<Measurement> all_measurements() {
  core::calibrate::Workbench bench(true);
  std::vector<Measurement> measurements;
  for (const core::calibrate::Task& task : core::calibrate::all_tasks(bench)) task.run(measurements);
  return measurements;
}

// Sets the measurements' times to those expected with the costs `truth`, each off by up to 3 %.
void measure_by(const Costs& truth, std::vector<Measurement>& measurements) {
  std::mt19937_64 random(29);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  for (Measurement& measurement : measurements)
    measurement.microseconds = measurement.expected(truth) * noise(random);
}

class KnownCosts : public DevicePlan {
 protected:
  // Returns the first candidates for several numbers of rows times prepared weights, and for square products.
  Names decisions(const Costs& costs) {
    const ProfileInForce profile(costs);
    Names names;
    for (const std::int64_t n : {4096, 8192}) {
      for (const std::int64_t rows : {1, 2, 3, 4, 8, 12, 16, 24, 32, 64, 128}) {
        PlannedCall call(rows, n, n, stream_);
        call.problem.prepared_b = 1;
        names.push_back(fmt::format("{} by {}: {}", rows, n, schemes(planned(call)).front()));
      }
    }
    for (const std::int64_t n : {256, 512, 768, 2048, 4096}) {
      PlannedCall call(n, n, n, stream_);
      names.push_back(fmt::format("{}: {}", n, schemes(planned(call)).front()));
    }
    return names;
  }
  // Returns those of decisions(costs) that stay the same if native products are faster or slower by as much
  // as measurements scatter.
  Names clear_decisions(const Costs& costs) {
    Names found = decisions(costs);
    for (const double factor : {0.96, 1 / 0.96}) {
      Costs changed = costs;
      for (double* rate : {&changed.call.native_rate, &changed.call.native_rate_short,
                           &changed.call.native_read_short, &changed.call.native_read_shortest})
        *rate *= factor;
      const Names others = decisions(changed);
      std::erase_if(found,
                    [&](const std::string& name) { return std::ranges::find(others, name) == others.end(); });
    }
    return found;
  }
};

// Costs of a device whose square calls take long to select a candidate and whose prepared calls do not, and
// of one where both take as long. The fit begins with costs of which every one is wrong by a quarter.
TEST_F(KnownCosts, AreFittedAndGiveTheSameDecisions) {
  if (!thorough) GTEST_SKIP() << "two fits of minutes; Calibration fits measured times";
  Costs quick_prepared = shipped("NVIDIA H200").costs;
  quick_prepared.call.selection = 11;
  quick_prepared.call.prepared_selection = 2;
  Costs slow_prepared = quick_prepared;
  slow_prepared.call.prepared_selection = 22;
  std::vector<Measurement> measurements = all_measurements();
  for (const Costs& truth : {quick_prepared, slow_prepared}) {
    Costs costs = truth;
    double factor = 1.25;
    for (const core::cuda::CostField& field : core::cuda::cost_fields(costs, core::cuda::current_family())) {
      if (field.name.starts_with("direct.")) continue;  // these are not measured
      *field.value *= factor;
      factor = 1 / factor;
    }
    measure_by(truth, measurements);
    for (const core::ProfileFit& fit : core::calibrate::fit_costs(costs, measurements)) {
      EXPECT_LT(fit.median_deviation, 0.03) << fit.kind;
      EXPECT_GT(fit.measurements, 0) << fit.kind;
    }
    EXPECT_NEAR(costs.call.prepared_selection, truth.call.prepared_selection, 1);
    EXPECT_NEAR(costs.call.selection, truth.call.selection, 2);
    const Names clear = clear_decisions(truth);
    EXPECT_GE(clear.size(), 22U);
    EXPECT_THAT(decisions(costs), testing::IsSupersetOf(clear));
  }
  EXPECT_THAT(decisions(quick_prepared), testing::Contains("2 by 4096: fp16x3-wide"));
  EXPECT_THAT(decisions(slow_prepared), testing::Contains("2 by 4096: native"));
}

}  // namespace
}  // namespace kintsugi::test
