// Profiles of devices: the costs of their kernels and calls, made by calibration and stored as JSON
// (docs/schema/profile.schema.json).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/profile.hpp"

namespace kintsugi::core::cuda {

// Properties by which a device and its costs are compared with others.
struct DeviceTraits {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int sm_count = 0;
  double clock_mhz = 0;
  double memory_gb_per_s = 0;  // bandwidth by the memory's clock and bus width
};

DeviceTraits traits_of(Device device);

struct Profile {
  DeviceTraits device;  // device that was measured
  std::string library_version;
  int driver_version = 0;  // 13000 is CUDA 13.0
  std::string date;
  Costs costs{};
  std::vector<ProfileFit> fits;
};

// Returns the profile as JSON.
std::string profile_text(const Profile& profile);

// Reads a profile from JSON. Fails with bad_setting if the text is no profile or lacks a cost; the message
// begins with `where`, the text's origin.
Profile read_profile(std::string_view text, std::string_view where);

// Returns the path of the file that calibration writes for a device,
// $XDG_CONFIG_HOME/kintsugi/profiles/NAME.json. Empty if there is no folder for settings.
std::string profile_file(const DeviceTraits& device);

// Returns the profiles that are part of the library.
std::span<const Profile> shipped_profiles();

// Returns the costs that are expected on another device of the architecture of `reference`.
Costs scaled_costs(const Profile& reference, const DeviceTraits& device);

// Only the first two were measured on the device itself.
enum class ProfileOrigin { calibrated, shipped, scaled, predicted };

// Profile by which calls on a device are planned.
struct ProfileInForce {
  Profile profile;
  ProfileOrigin origin = ProfileOrigin::scaled;
  std::string text;                 // description of the profile and its origin
  std::string advice;               // advice to the user on how to get a better profile; may be empty
  bool has_few_fp64_units = false;  // by the card's published rates (has_few_fp64_units() in steps.hpp)

  bool is_measured() const { return origin == ProfileOrigin::calibrated || origin == ProfileOrigin::shipped; }
};

// Returns the profile for a device: the one that was calibrated here; else the shipped one of this device's
// name; else the one of `shipped`, profiles of the device's architecture, that is most similar, scaled; else,
// if `shipped` is empty, a profile that is predicted from published numbers (predicted.hpp).
ProfileInForce find_profile(const DeviceTraits& device, std::span<const Profile> shipped);

// Returns the profile in force for the device in use, which is found once per device. Returns nullptr if its
// family has no product kernels, or some without costs, or if the setting `arch` names a family.
const ProfileInForce* profile_in_force();

// Returns the costs of the profile in force. Throws `internal` if there is none.
const Costs& current_costs();

// Forgets the profiles that were found. So a profile that was just written will be read.
void reread_profiles();

}  // namespace kintsugi::core::cuda
