#include "engines/cuda/arch/profile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "base/threads.hpp"
#include "engines/cuda/arch/cards.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/predicted.hpp"
#include "engines/cuda/device.hpp"
#include "engines/profile_json.hpp"

namespace kintsugi::core::cuda {

// Texts of the profiles in the folders of arch/, written by the build. nullptr ends the list.
extern const char* const shipped_profile_texts[];

namespace {

using profile_json::Json;

// True if a profile of one device holds for the other. An instance of a partitioned GPU (MIG) is another
// device: its name and its number of SMs differ from the whole GPU's.
bool is_same_device(const DeviceTraits& x, const DeviceTraits& y) {
  return x.name == y.name && x.major == y.major && x.minor == y.minor && x.sm_count == y.sm_count;
}

// All costs of the device.
std::vector<CostField> fields_of(Costs& costs, const DeviceTraits& device) {
  return cost_fields(costs, family_of(device.major, device.minor));
}

// Difference between two devices: the logarithmic difference of the total clock rates of their SMs, plus that
// of their memory bandwidths.
double distance(const DeviceTraits& x, const DeviceTraits& y) {
  return std::abs(std::log(x.sm_count * x.clock_mhz / (y.sm_count * y.clock_mhz))) +
         std::abs(std::log(x.memory_gb_per_s / y.memory_gb_per_s));
}

double scaled(double value, CostScaling scaling, const DeviceTraits& from, const DeviceTraits& to) {
  const double clock = to.clock_mhz / from.clock_mhz;
  const double memory = to.memory_gb_per_s / from.memory_gb_per_s;
  switch (scaling) {
    case CostScaling::clock_time: return value / clock;
    case CostScaling::memory_time: return value / memory;
    case CostScaling::compute_rate: return value * clock * to.sm_count / from.sm_count;
    case CostScaling::memory_rate: return value * memory;
    case CostScaling::none: break;
  }
  return value;
}

// Returns the profile that calibration wrote for this device. Returns nothing if there is no file, or if the
// profile cannot be used; then `advice` is the reason. `advice` is also set if the returned profile may be
// out of date.
std::optional<Profile> calibrated_profile(const DeviceTraits& device, std::string& advice) {
  const std::string file = profile_file(device);
  auto profile = profile_json::calibrated(file, advice, read_profile, [&](const Profile& found) {
    return is_same_device(found.device, device)
               ? ""
               : fmt::format("{} with {} SMs", found.device.name, found.device.sm_count);
  });
  if (profile && profile->driver_version != driver().version)
    advice = fmt::format("{} was made with another driver; `kintsugi calibrate` writes it anew", file);
  return profile;
}

}  // namespace

DeviceTraits traits_of(Device device) {
  constexpr int clock_khz_attribute = 13;
  constexpr int memory_clock_khz_attribute = 36;
  constexpr int memory_bus_bits_attribute = 37;
  const DeviceDescription description = describe_device(device);
  constexpr double transfers_per_clock = 2;
  return {.name = description.name,
          .major = description.major,
          .minor = description.minor,
          .sm_count = device_attribute(sm_count_attribute, device),
          .clock_mhz = device_attribute(clock_khz_attribute, device) * 1e-3,
          .memory_gb_per_s = transfers_per_clock * device_attribute(memory_clock_khz_attribute, device) *
                             1e3 * device_attribute(memory_bus_bits_attribute, device) / 8 * 1e-9};
}

std::string profile_text(const Profile& profile) {
  Json document =
      profile_json::new_document({{"name", profile.device.name},
                                  {"compute_capability", {profile.device.major, profile.device.minor}},
                                  {"sm_count", profile.device.sm_count},
                                  {"clock_mhz", profile.device.clock_mhz},
                                  {"memory_gb_per_s", profile.device.memory_gb_per_s}});
  document["library_version"] = profile.library_version;
  document["driver_version"] = profile.driver_version;
  document["date"] = profile.date;
  Costs copy = profile.costs;  // fields_of() gives pointers to members that are not const
  return profile_json::finished(std::move(document), fields_of(copy, profile.device), profile.fits);
}

Profile read_profile(std::string_view text, std::string_view where) {
  return profile_json::read_document(text, where, [](const Json& document) {
    const Json& device = document.at("device");
    Profile profile{.device = {.name = device.at("name"),
                               .major = device.at("compute_capability").at(0),
                               .minor = device.at("compute_capability").at(1),
                               .sm_count = device.at("sm_count"),
                               .clock_mhz = device.at("clock_mhz"),
                               .memory_gb_per_s = device.at("memory_gb_per_s")},
                    .library_version = document.at("library_version"),
                    .driver_version = document.at("driver_version"),
                    .date = document.at("date"),
                    .costs = {},
                    .fits = profile_json::read_fits(document)};
    profile_json::read_costs(document, fields_of(profile.costs, profile.device));
    return profile;
  });
}

std::string profile_file(const DeviceTraits& device) { return profile_json::file_of(device.name); }

std::span<const Profile> shipped_profiles() {
  static const std::vector<Profile> profiles = [] {
    std::vector<Profile> all;
    for (const char* const* text = shipped_profile_texts; *text != nullptr; ++text)
      all.push_back(read_profile(*text, "a shipped profile"));
    return all;
  }();
  return profiles;
}

Costs scaled_costs(const Profile& reference, const DeviceTraits& device) {
  Costs costs = reference.costs;
  for (const CostField& field : fields_of(costs, device))
    *field.value = scaled(*field.value, field.scaling, reference.device, device);
  return costs;
}

namespace {

const Profile& nearest_of(std::span<const Profile> profiles, const DeviceTraits& device) {
  return *std::ranges::min_element(profiles, {},
                                   [&](const Profile& profile) { return distance(profile.device, device); });
}

ProfileInForce predicted_profile(const DeviceTraits& device, const std::string& advice) {
  const Card card = card_of(device);
  const Profile& reference = nearest_of(shipped_profiles(), card.traits);
  Profile profile = reference;
  profile.device = device;
  profile.costs = predicted_costs(card, reference);
  profile.fits.clear();
  return {profile, ProfileOrigin::predicted,
          fmt::format("of {}, predicted, not measured: published rates ({}) and the shares of them that {} "
                      "reaches",
                      device.name, card.source, reference.device.name),
          advice};
}

}  // namespace

ProfileInForce find_profile(const DeviceTraits& device, std::span<const Profile> shipped) {
  std::string advice;
  if (const auto calibrated = calibrated_profile(device, advice))
    return {*calibrated, ProfileOrigin::calibrated,
            fmt::format("of {}, calibrated here on {}", device.name, calibrated->date), advice};
  const auto found = std::ranges::find_if(
      shipped, [&](const Profile& profile) { return is_same_device(profile.device, device); });
  if (found != shipped.end())
    return {*found, ProfileOrigin::shipped, fmt::format("of {}, shipped with the library", device.name),
            advice};
  if (advice.empty())
    advice = fmt::format(
        "{} was never measured, so `auto` emulates only where it expects 1.3 times the native speed; "
        "`kintsugi calibrate` measures it in a minute",
        device.name);
  if (shipped.empty()) return predicted_profile(device, advice);
  const Profile& nearest = nearest_of(shipped, device);
  Profile profile = nearest;
  profile.device = device;
  profile.costs = scaled_costs(nearest, device);
  return {profile, ProfileOrigin::scaled,
          fmt::format("of {}, scaled to {} SMs, {:.0f} MHz and {:.0f} GB/s", nearest.device.name,
                      device.sm_count, device.clock_mhz, device.memory_gb_per_s),
          advice};
}

namespace {

// Profile in force of each device. nullptr: not found yet, or to be found again.
std::array<std::atomic<const ProfileInForce*>, max_devices> profiles_found{};
// All profiles that were ever in force. They are kept, since a call in another thread may still read a
// profile that was replaced.
std::vector<std::unique_ptr<const ProfileInForce>> all_profiles_found;

// True if all product kernels of a family have costs, which can be predicted.
bool has_costs(const Family& family) {
  return !family.gemm_image.empty() && std::ranges::none_of(family.multi_term, [](const auto& kernels) {
    return kernels.tiles.empty() && kernels.mma_tiles.empty();
  });
}

// Returns the shipped profiles of a device's architecture.
std::vector<Profile> shipped_for(const DeviceTraits& device) {
  std::vector<Profile> found;
  for (const Profile& profile : shipped_profiles()) {
    if (profile.device.major == device.major && profile.device.minor == device.minor)
      found.push_back(profile);
  }
  return found;
}

}  // namespace

const ProfileInForce* profile_in_force() {
  static const ProfileInForce none{};  // value in profiles_found that means "there is no profile"
  if (driver().devices == 0) return nullptr;
  const Device device = device_in_use();
  auto& found = profiles_found[static_cast<std::size_t>(number_of(device))];
  const ProfileInForce* in_force = found.load(std::memory_order_acquire);
  if (in_force == nullptr) {
    const auto lock = lock_shared_state();
    const DeviceTraits traits = traits_of(device);
    // A profile has the costs of the device's own family.
    if (is_family_forced() || !has_costs(family_of(traits.major, traits.minor))) {
      in_force = &none;
    } else {
      ProfileInForce profile = find_profile(traits, shipped_for(traits));
      profile.has_few_fp64_units = card_of(traits).has_few_fp64_units();
      all_profiles_found.push_back(std::make_unique<const ProfileInForce>(std::move(profile)));
      in_force = all_profiles_found.back().get();
    }
    found.store(in_force, std::memory_order_release);
  }
  return in_force == &none ? nullptr : in_force;
}

const Costs& current_costs() {
  const ProfileInForce* in_force = profile_in_force();
  if (in_force == nullptr) fail(Status::internal, "there are no costs of a device that has no profile");
  return in_force->profile.costs;
}

void reread_profiles() {
  for (auto& found : profiles_found) found.store(nullptr, std::memory_order_release);
}

}  // namespace kintsugi::core::cuda
