#include "engines/cpu/profile.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/text/format_text.hpp"
#include "base/threads.hpp"
#include "engines/cpu/products.hpp"
#include "engines/profile_json.hpp"

namespace kintsugi::core {

namespace {

using profile_json::Json;

// Costs of calls and elements of native products were measured on 16 x 16 x 16, and on 2048 x 8 x 2048 and
// 2048 x 2048 x 8.
constexpr NativeCosts native_costs{.call = 180'000, .element = 12, .fp64 = 2};

// A Xeon (Sapphire Rapids) while its cores' other hardware threads are idle, and an EPYC (Zen 4).
constexpr CpuThreadCosts amx_costs{
    .product_nanoseconds = 0.0125,
    .native = native_costs,
    .residues = {.product = 0.06, .element = 60, .slice = 10, .result = 60, .sum = 12},
    .digits = {.product = 0.058, .element = 50, .slice = 14, .result = 40, .sum = 12}};
constexpr CpuThreadCosts vnni_costs{
    .product_nanoseconds = 0.019,
    .native = native_costs,
    .residues = {.product = 0.25, .element = 70, .slice = 8, .result = 80, .sum = 12},
    .digits = {.product = 0.25, .element = 40, .slice = 12, .result = 30, .sum = 10}};

void add_steps(std::vector<CpuCostField>& fields, const std::string& name, StepCosts& costs) {
  fields.push_back({name + ".product", &costs.product});
  fields.push_back({name + ".element", &costs.element});
  fields.push_back({name + ".slice", &costs.slice});
  fields.push_back({name + ".result", &costs.result});
  fields.push_back({name + ".sum", &costs.sum});
}

void add_thread_costs(std::vector<CpuCostField>& fields, const std::string& name, CpuThreadCosts& costs) {
  fields.push_back({name + ".native.product_nanoseconds", &costs.product_nanoseconds});
  fields.push_back({name + ".native.call", &costs.native.call});
  fields.push_back({name + ".native.element", &costs.native.element});
  fields.push_back({name + ".native.fp64", &costs.native.fp64});
  add_steps(fields, name + ".residues", costs.residues);
  add_steps(fields, name + ".digits", costs.digits);
}

std::string model_name() {
#if defined(__x86_64__)
  constexpr unsigned first_leaf = 0x80000002;
  std::array<unsigned, 12> words{};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* const word = words.data() + std::size_t{4} * leaf;
    if (__get_cpuid(first_leaf + leaf, word, word + 1, word + 2, word + 3) == 0) return "x86-64";
  }
  std::array<char, sizeof words + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof words);
  std::string name = text.data();
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.empty() ? "x86-64" : name;
#else
  return "CPU";
#endif
}

std::string words_of(const CpuTraits& device) {
  return fmt::format("{} with int8 kernels {}", device.name, device.kernels);
}

CpuCostsInForce find_costs() {
  const CpuTraits device = cpu_traits();
  std::string advice;
  const auto calibrated = profile_json::calibrated(
      profile_file(device), advice, read_cpu_profile,
      [&](const CpuProfile& found) { return found.device == device ? "" : words_of(found.device); });
  if (calibrated)
    return {calibrated->costs,
            true,
            fmt::format("of {}, calibrated here with 1 and {} threads on {}", words_of(device),
                        calibrated->threads, calibrated->date),
            {}};
  return {shipped_cpu_costs(device.kernels), false,
          fmt::format("of {}, shipped with the library",
                      device.kernels == "amx" ? "a Xeon with AMX (Sapphire Rapids)" : "an EPYC (Zen 4)"),
          advice.empty() ? "`kintsugi calibrate --engine cpu` measures this machine in a minute" : advice};
}

// Costs are never destroyed, since a call in another thread may still read them.
struct FoundCosts {
  CpuCostsInForce costs;
  const FoundCosts* before;  // those that were in force earlier
};
const FoundCosts* last_found = nullptr;
// nullptr: not found yet, or to be found again.
std::atomic<const FoundCosts*> costs_found = nullptr;

}  // namespace

std::vector<CpuCostField> cost_fields(CpuCosts& costs) {
  std::vector<CpuCostField> fields;
  add_thread_costs(fields, "one", costs.one);
  add_thread_costs(fields, "all", costs.all);
  return fields;
}

CpuTraits cpu_traits() { return {.name = model_name(), .kernels = int8_choice().kernels->name}; }

std::string profile_text(const CpuProfile& profile) {
  Json document = profile_json::new_document(
      {{"name", profile.device.name}, {"kernels", profile.device.kernels}, {"threads", profile.threads}});
  document["library_version"] = profile.library_version;
  document["date"] = profile.date;
  CpuCosts copy = profile.costs;  // cost_fields() gives pointers to members that are not const
  return profile_json::finished(std::move(document), cost_fields(copy), profile.fits);
}

CpuProfile read_cpu_profile(std::string_view text, std::string_view where) {
  return profile_json::read_document(text, where, [](const Json& document) {
    const Json& device = document.at("device");
    CpuProfile profile{.device = {.name = device.at("name"), .kernels = device.at("kernels")},
                       .threads = device.at("threads"),
                       .library_version = document.at("library_version"),
                       .date = document.at("date"),
                       .costs = {},
                       .fits = profile_json::read_fits(document)};
    profile_json::read_costs(document, cost_fields(profile.costs));
    return profile;
  });
}

std::string profile_file(const CpuTraits& device) {
  return profile_json::file_of(device.name + " " + device.kernels);
}

CpuCosts shipped_cpu_costs(std::string_view kernels) {
  const CpuThreadCosts& costs = kernels == "amx" ? amx_costs : vnni_costs;
  return {.one = costs, .all = costs};
}

const CpuCostsInForce& cpu_costs_in_force() {
  const FoundCosts* found = costs_found.load(std::memory_order_acquire);
  if (found != nullptr) return found->costs;
  const auto lock = lock_shared_state();
  found = costs_found.load(std::memory_order_acquire);
  if (found == nullptr) {
    last_found = found = new FoundCosts{find_costs(), last_found};
    costs_found.store(found, std::memory_order_release);
  }
  return found->costs;
}

void reread_cpu_profile() { costs_found.store(nullptr, std::memory_order_release); }

}  // namespace kintsugi::core
