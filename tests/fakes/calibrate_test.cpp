// Calibration on the fake device, whose times mean nothing: the profile that it writes is read and used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fakes/steering.hpp"
#include "kintsugi/kintsugi.h"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

struct Reports {
  std::vector<double> done;
  std::string last;
};

void note(void* user, double done, const char* step) {
  auto& reports = *static_cast<Reports*>(user);
  reports.done.push_back(done);
  reports.last = step;
}

// The name of the file has to live as long as the request.
kintsugi_calibration quick_calibration(const char* file, Reports& reports) {
  kintsugi_calibration calibration = KINTSUGI_CALIBRATION_INIT;
  calibration.file = file;
  calibration.quick = 1;
  calibration.progress = note;
  calibration.progress_user = &reports;
  return calibration;
}

TEST(Calibration, WritesAProfile) {
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
  EXPECT_EQ(profile.fits.size(), 18U);
  std::filesystem::remove_all(std::filesystem::path(file).parent_path());
}

TEST(Calibration, BadRequestsAreNamed) {
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

TEST(Calibration, ADeviceWithoutSuchKernelsIsRefused) {
  const Steered other("FAKE_CUDA_CAPABILITY", "8.0");
  Reports reports;
  const kintsugi_calibration calibration = quick_calibration("unused.json", reports);
  EXPECT_EQ(kintsugi_calibrate(&calibration), KINTSUGI_ENGINE_UNAVAILABLE);
  EXPECT_TRUE(reports.done.empty());
  EXPECT_FALSE(std::filesystem::exists("unused.json"));
}

}  // namespace
}  // namespace kintsugi::test
