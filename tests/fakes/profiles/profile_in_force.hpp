// Profiles of costs that a test sets.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "base/version.hpp"
#include "engines/cuda/arch/profile.hpp"

namespace kintsugi::test {

inline const core::cuda::Profile& shipped(const std::string& name) {
  for (const core::cuda::Profile& profile : core::cuda::shipped_profiles()) {
    if (profile.device.name == name) return profile;
  }
  throw std::runtime_error("no shipped profile of " + name);
}

// Writes a profile of the fake device with these costs where calls look for it, for the lifetime of the
// object.
class ProfileInForce {
 public:
  explicit ProfileInForce(const core::cuda::Costs& costs)
      : folder_(testing::TempDir() + "/profile-in-force") {
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    core::cuda::Profile profile = core::cuda::profile_in_force()->profile;
    profile.library_version = core::library_version;
    profile.driver_version = core::cuda::driver().version;
    profile.costs = costs;
    const std::filesystem::path file = core::cuda::profile_file(profile.device);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << core::cuda::profile_text(profile);
    core::cuda::reread_profiles();
  }
  ProfileInForce(const ProfileInForce&) = delete;
  ProfileInForce& operator=(const ProfileInForce&) = delete;
  ~ProfileInForce() {
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
    core::cuda::reread_profiles();
  }

 private:
  std::string folder_;
};

inline core::cuda::Costs costs_of_h200() { return shipped("NVIDIA H200").costs; }

// Costs of a device on which int8 slices are packed, multiplied and converted in little time, and the
// candidates after a level are as fast as the first one without it. So a level pays for products of any size.
inline core::cuda::Costs costs_for_levels() {
  core::cuda::Costs costs = costs_of_h200();
  costs.multi_term.tiles[1] = costs.multi_term.tiles[0];
  costs.multi_term.launch += 50;
  costs.packing = {.launch = 0.1, .rate = 10};
  costs.weighted_tiles.launch = costs.weighted_tiles.tile = 0.1;
  costs.weighted_tiles.failing_rate = 1e6;
  costs.weighted_tiles.product = costs.weighted_tiles.conversion_32 = 1e-3;
  costs.weighted_tiles.conversion_128 = 0.1;
  costs.direct = {};  // no times of kernels that split operands themselves
  return costs;
}

}  // namespace kintsugi::test
