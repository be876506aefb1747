// Tests profiles of devices: written and read again, refused if wrong, and which one a device gets.
#include "engines/cuda/arch/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

DeviceTraits unmeasured(const std::string& name, int major, int minor, int sm_count) {
  return {.name = name,
          .major = major,
          .minor = minor,
          .sm_count = sm_count,
          .clock_mhz = 1500,
          .memory_gb_per_s = 1000};
}

TEST(PredictedProfiles, AreInForceIfNoDeviceOfTheArchitectureWasMeasured) {
  const ConfigFolder folder;
  const DeviceTraits known = unmeasured("NVIDIA GeForce RTX 4090", 8, 9, 128);
  const ProfileInForce found = find_profile(known, {});
  EXPECT_EQ(found.origin, ProfileOrigin::predicted);
  EXPECT_FALSE(found.is_measured());
  EXPECT_THAT(found.text, HasSubstr("predicted, not measured"));
  EXPECT_THAT(found.text, HasSubstr("NVIDIA Ada GPU Architecture"));
  EXPECT_THAT(found.advice, HasSubstr("1.3 times"));
  EXPECT_THAT(found.advice, HasSubstr("kintsugi calibrate"));
  const ProfileInForce unknown = find_profile(unmeasured("NVIDIA Unknown", 8, 6, 30), {});
  EXPECT_THAT(unknown.text, HasSubstr("CUDA C++ Programming Guide"));
  Profile calibrated = found.profile;
  calibrated.library_version = library_version;
  folder.write(calibrated, known);
  EXPECT_EQ(find_profile(known, {}).origin, ProfileOrigin::calibrated);
  EXPECT_TRUE(find_profile(known, {}).is_measured());
}

TEST(PredictedProfiles, FollowPublishedRates) {
  const ConfigFolder folder;
  const Costs& h100 = shipped("NVIDIA H100 80GB HBM3").costs;
  const Costs& h200 = shipped("NVIDIA H200").costs;
  // The nearest measured device of an A100 is the H100, of which the A100 has 19.5 / 66.9 of the FP32 rate.
  DeviceTraits traits = unmeasured("NVIDIA A100-SXM4-80GB", 8, 0, 108);
  traits.memory_gb_per_s = 2039;
  const Costs a100 = find_profile(traits, {}).profile.costs;
  EXPECT_NEAR(a100.call.native_rate / h100.call.native_rate, 19.5 / 66.9, 1e-9);
  EXPECT_NEAR(a100.native[1].vendor_rate / h100.native[1].vendor_rate, 19.5 / 66.9, 1e-9);
  EXPECT_NEAR(a100.call.copy_rate / h100.call.copy_rate, 2039.0 / 3352, 1e-3);
  EXPECT_EQ(a100.call.selection, h100.call.selection) << "launches take as long everywhere";
  EXPECT_NEAR(a100.int8_tile.block / h100.int8_tile.block, 1978.9 / 132 / (624.0 / 108), 1e-9);
  // Few FP64 units delay splits and recombination: 14 instructions for an element of C, 15 slices.
  Costs geforce = find_profile(unmeasured("NVIDIA GeForce RTX 4090", 8, 9, 128), {}).profile.costs;
  EXPECT_NEAR(15 * geforce.residues[1].result_slice, 14 / (1.29e6 / 2), 1e-9);
  EXPECT_LT(geforce.native[1].vendor_rate, h200.native[1].vendor_rate / 40);
  for (const CostField& field : cost_fields(geforce, family_of(8, 9))) {
    EXPECT_TRUE(std::isfinite(*field.value)) << field.name;
    EXPECT_GT(*field.value, 0) << field.name;
  }
}

}  // namespace
}  // namespace kintsugi::core::cuda
