// Tests profiles of CPUs: written and read again, refused if wrong, and decisions of the policy auto by them.
#include "engines/cpu/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/status.hpp"
#include "base/version.hpp"
#include "engines/cpu/products.hpp"
#include "kintsugi/kintsugi.h"
#include "support/effort.hpp"

namespace kintsugi::core {
namespace {

using testing::HasSubstr;

CpuProfile profile_of(const CpuTraits& device) {
  return {.device = device,
          .threads = 7,
          .library_version = library_version,
          .date = "2026-11-29",
          .costs = shipped_cpu_costs("amx"),
          .fits = {{"one.native", 3, 0.01, 0.02, "n = 512"}}};
}

// An empty folder of settings in which profiles are kept, for its lifetime.
class ProfileFolder {
 public:
  ProfileFolder() {
    if (const char* old = std::getenv("XDG_CONFIG_HOME"); old != nullptr) old_ = old;
    folder_ = std::filesystem::path(testing::TempDir()) / ("cpu-profiles-" + std::to_string(::getpid()));
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    reread_cpu_profile();
  }
  ProfileFolder(const ProfileFolder&) = delete;
  ProfileFolder& operator=(const ProfileFolder&) = delete;
  ~ProfileFolder() {
    std::filesystem::remove_all(folder_);
    old_.empty() ? ::unsetenv("XDG_CONFIG_HOME") : ::setenv("XDG_CONFIG_HOME", old_.c_str(), 1);
    reread_cpu_profile();
  }
  static void write(const CpuProfile& profile) {
    const std::filesystem::path file = profile_file(cpu_traits());
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << profile_text(profile);
    reread_cpu_profile();
  }

 private:
  std::string old_;
  std::filesystem::path folder_;
};

std::string error_of(const std::string& text) {
  try {
    read_cpu_profile(text, "test.json");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(CpuProfiles, AreReadAsTheyWereWritten) {
  CpuProfile profile = profile_of({"A CPU", "amx"});
  double next = 0.5;
  std::set<std::string> names;
  for (const CpuCostField& field : cost_fields(profile.costs)) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    *field.value = next += 0.37;
  }
  EXPECT_EQ(names.size() * sizeof(double), sizeof(CpuCosts) - 4 * sizeof(StepCosts::tile)) << "a field each";
  CpuProfile read = read_cpu_profile(profile_text(profile), "test.json");
  EXPECT_EQ(read.device, profile.device);
  EXPECT_EQ(read.threads, 7);
  EXPECT_EQ(read.fits.front().worst, "n = 512");
  next = 0.5;
  for (const CpuCostField& field : cost_fields(read.costs)) EXPECT_EQ(*field.value, next += 0.37);
}

TEST(CpuProfiles, WrongTextsAreRefused) {
  const std::string text = profile_text(profile_of({"A CPU", "amx"}));
  EXPECT_THAT(error_of("{}"), HasSubstr("test.json is no profile of this version"));
  std::string other = text;
  other.replace(other.find("one.native.call"), 15, "one.native.coll");
  EXPECT_THAT(error_of(other), HasSubstr("one.native.call"));
}

TEST(CpuProfiles, AProfileOfThisCpuIsInForce) {
  const ProfileFolder folder;
  EXPECT_FALSE(cpu_costs_in_force().are_calibrated);
  EXPECT_THAT(cpu_costs_in_force().advice, HasSubstr("kintsugi calibrate --engine cpu"));
  CpuProfile profile = profile_of(cpu_traits());
  profile.costs.all.digits.sum = 1234;
  ProfileFolder::write(profile);
  EXPECT_TRUE(cpu_costs_in_force().are_calibrated) << cpu_costs_in_force().advice;
  EXPECT_EQ(cpu_costs_in_force().costs.all.digits.sum, 1234);
  profile.device.kernels = "others";
  ProfileFolder::write(profile);
  EXPECT_FALSE(cpu_costs_in_force().are_calibrated);
  EXPECT_THAT(cpu_costs_in_force().advice, HasSubstr("int8 kernels others"));
  profile = profile_of(cpu_traits());
  profile.library_version = "0.0.1";
  ProfileFolder::write(profile);
  EXPECT_FALSE(cpu_costs_in_force().are_calibrated);
  EXPECT_THAT(cpu_costs_in_force().advice, HasSubstr("version 0.0.1"));
}

bool emulates(kintsugi_type type, std::int32_t threads) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = 1024;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.policy = "auto";
  options.engine = "cpu";
  options.threads = threads;
  kintsugi_plan plan = nullptr;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  std::size_t needed = 0;
  kintsugi_plan_describe(plan, nullptr, 0, &needed);
  std::string text(needed, 0);
  EXPECT_EQ(kintsugi_plan_describe(plan, text.data(), text.size(), &needed), KINTSUGI_SUCCESS);
  kintsugi_plan_destroy(plan);
  return text.find("ozaki2") != std::string::npos || text.find("int8x6") != std::string::npos;
}

// The costs of the call's number of threads decide, and so does the time of native FP64 products.
TEST(CpuProfiles, AutoDecidesByThem) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "no fused products of bytes";
  const ProfileFolder folder;
  CpuProfile profile = profile_of(cpu_traits());
  profile.costs.one.residues.product = profile.costs.one.digits.product = 1e-4;
  profile.costs.all.residues.product = profile.costs.all.digits.product = 10;
  ProfileFolder::write(profile);
  for (const kintsugi_type type : {KINTSUGI_F32, KINTSUGI_F64}) {
    EXPECT_TRUE(emulates(type, 1));
    EXPECT_FALSE(emulates(type, 2));
  }
  profile.costs.all.native.fp64 = 1000;
  ProfileFolder::write(profile);
  EXPECT_FALSE(emulates(KINTSUGI_F32, 2));
  EXPECT_TRUE(emulates(KINTSUGI_F64, 2));
}

TEST(CpuProfiles, CalibrationMeasuresThisCpu) {
  const ProfileFolder folder;
  kintsugi_calibration calibration = KINTSUGI_CALIBRATION_INIT;
  calibration.quick = 1;
  calibration.engine = "gpu";
  EXPECT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_BAD_SETTING);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("cpu, cuda"));
  if (!test::thorough) GTEST_SKIP() << "a minute under the sanitizers";
  calibration.engine = "cpu";
  ASSERT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_TRUE(cpu_costs_in_force().are_calibrated) << cpu_costs_in_force().advice;
  // Between 1 GFLOP/s and 1 TFLOP/s for each thread.
  const CpuCosts& costs = cpu_costs_in_force().costs;
  for (const int threads : {1, 2}) {
    EXPECT_GT(costs.with(threads).product_nanoseconds, 0.002);
    EXPECT_LT(costs.with(threads).product_nanoseconds, 2);
    EXPECT_GT(costs.with(threads).native.fp64, 1);
  }
}

}  // namespace
}  // namespace kintsugi::core
