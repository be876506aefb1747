// Tests profiles of devices: written and read again, refused if wrong, and which one a device gets.
#include "engines/cuda/arch/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/status.hpp"
#include "base/version.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/family.hpp"

namespace kintsugi::core::cuda {
namespace {

using testing::HasSubstr;

const Profile& shipped(const std::string& name) {
  for (const Profile& profile : shipped_profiles()) {
    if (profile.device.name == name) return profile;
  }
  throw std::runtime_error("no shipped profile of " + name);
}

std::string error_of(const std::string& text) {
  try {
    read_profile(text, "test.json");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Sets an empty folder of settings for its lifetime.
class ConfigFolder {
 public:
  ConfigFolder() {
    const char* old = std::getenv("XDG_CONFIG_HOME");
    if (old != nullptr) old_ = old;
    folder_ = std::filesystem::path(testing::TempDir()) / ("profiles-" + std::to_string(::getpid()));
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;
  ~ConfigFolder() {
    std::filesystem::remove_all(folder_);
    old_.empty() ? ::unsetenv("XDG_CONFIG_HOME") : ::setenv("XDG_CONFIG_HOME", old_.c_str(), 1);
  }
  void write(const Profile& profile, const DeviceTraits& device) const {
    const std::filesystem::path file = profile_file(device);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << profile_text(profile);
  }

 private:
  std::string old_;
  std::filesystem::path folder_;
};

TEST(Profiles, EveryCostHasOneNamedField) {
  Costs costs{};
  std::set<std::string> names;
  std::set<const double*> values;
  for (const CostField& field : cost_fields(costs, family_of(9, 0))) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(values.insert(field.value).second) << field.name;
  }
  // There are three of four structures, with seven tiles in all, three of four small tiles, and eleven of
  // sixteen native tiles. FP32 has no products by residues.
  constexpr std::size_t unused = 2 * (16 - 7) + 2 * (4 - 3) + (16 - 11) + 4;
  EXPECT_EQ(names.size() + unused, sizeof(Costs) / sizeof(double));
}

TEST(Profiles, AreReadAsTheyWereWritten) {
  Profile profile = shipped("NVIDIA H200");
  double next = 0.125;
  for (const CostField& field : cost_fields(profile.costs, family_of(9, 0))) *field.value = next += 0.37;
  profile.fits = {{"splits", 12, 0.01, 0.2, "1 x 2 x 3"}};
  const std::string text = profile_text(profile);
  EXPECT_EQ(profile_text(read_profile(text, "test.json")), text);
}

TEST(Profiles, ErrorsNameTheWrongMember) {
  const std::string text = profile_text(shipped("NVIDIA H200"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return copy;
  };
  EXPECT_EQ(error_of(text), "");
  EXPECT_THAT(error_of(changed("call.copy_rate", "call.copied")), HasSubstr("call.copy_rate"));
  EXPECT_THAT(error_of(changed("\"format_version\": 2", "\"format_version\": 1")), HasSubstr("version 2"));
  EXPECT_THAT(error_of(changed("\"call.copy_rate\": ", "\"call.copy_rate\": -")),
              HasSubstr("call.copy_rate is -"));
  EXPECT_THAT(error_of("no JSON"), HasSubstr("test.json is no profile"));
}

TEST(Profiles, AMeasuredDeviceGetsItsShippedProfile) {
  const ConfigFolder folder;
  const ProfileInForce found = find_profile(shipped("NVIDIA H200").device, shipped_profiles());
  EXPECT_EQ(found.origin, ProfileOrigin::shipped);
  EXPECT_EQ(found.profile.device.name, "NVIDIA H200");
  EXPECT_EQ(found.advice, "");
}

// A MIG partition's name is the device's name followed by that of the partition.
TEST(Profiles, AnUnmeasuredDeviceGetsTheNearestProfileScaled) {
  const ConfigFolder folder;
  DeviceTraits half = shipped("NVIDIA H200").device;
  half.name += " MIG 3g.71gb";
  half.sm_count = 60;
  half.memory_gb_per_s /= 2;
  const Profile& reference = shipped("NVIDIA H200");
  const ProfileInForce found = find_profile(half, std::span(&reference, 1));
  EXPECT_EQ(found.origin, ProfileOrigin::scaled);
  EXPECT_THAT(found.advice, HasSubstr("kintsugi calibrate"));
  EXPECT_DOUBLE_EQ(found.profile.costs.call.copy_rate, reference.costs.call.copy_rate / 2);
  EXPECT_DOUBLE_EQ(found.profile.costs.call.native_rate, reference.costs.call.native_rate * 60 / 132);
  EXPECT_DOUBLE_EQ(found.profile.costs.multi_term.tiles[0][0].block,
                   reference.costs.multi_term.tiles[0][0].block);
  DeviceTraits slow = reference.device;
  slow.name = "NVIDIA Slow";
  slow.clock_mhz /= 2;
  EXPECT_DOUBLE_EQ(find_profile(slow, std::span(&reference, 1)).profile.costs.multi_term.tiles[0][0].block,
                   2 * reference.costs.multi_term.tiles[0][0].block);
}

TEST(Profiles, ACalibratedProfileIsPreferredToTheShippedOne) {
  const ConfigFolder folder;
  const DeviceTraits device = shipped("NVIDIA H200").device;
  Profile profile = shipped("NVIDIA H200");
  profile.library_version = library_version;
  profile.costs.call.copy_rate = 77;
  folder.write(profile, device);
  const ProfileInForce found = find_profile(device, shipped_profiles());
  EXPECT_EQ(found.origin, ProfileOrigin::calibrated);
  EXPECT_EQ(found.profile.costs.call.copy_rate, 77);
}

TEST(Profiles, ACalibratedProfileOfAnotherVersionOrDeviceIsSkippedAndNamed) {
  const ConfigFolder folder;
  const DeviceTraits device = shipped("NVIDIA H200").device;
  Profile profile = shipped("NVIDIA H200");
  profile.library_version = "0.0.1";
  folder.write(profile, device);
  ProfileInForce found = find_profile(device, shipped_profiles());
  EXPECT_EQ(found.origin, ProfileOrigin::shipped);
  EXPECT_THAT(found.advice, HasSubstr("0.0.1"));
  profile.library_version = library_version;
  profile.device.sm_count = 60;
  folder.write(profile, device);
  found = find_profile(device, shipped_profiles());
  EXPECT_EQ(found.origin, ProfileOrigin::shipped);
  EXPECT_THAT(found.advice, HasSubstr("60 SMs"));
  std::ofstream(profile_file(device)) << "{";
  found = find_profile(device, shipped_profiles());
  EXPECT_EQ(found.origin, ProfileOrigin::shipped);
  EXPECT_THAT(found.advice, HasSubstr("kintsugi calibrate"));
}

}  // namespace
}  // namespace kintsugi::core::cuda
