// Profiles of CPUs: the costs by which the policy auto decides on the engine cpu, made by calibration
// (docs/schema/profile.schema.json).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engines/engine.hpp"
#include "engines/profile.hpp"

namespace kintsugi::core {

// Costs of calls with a certain number of threads. The unit is the time of one multiply-add of the same
// threads' native FP32 product, for each thread (engines/engine.hpp).
struct CpuThreadCosts {
  double product_nanoseconds = 0;  // of that unit
  NativeCosts native;
  StepCosts residues;  // fused products of bytes (byte_products.cpp); `element` has the range and the norms
  StepCosts digits;
};

struct CpuCosts {
  CpuThreadCosts one;
  CpuThreadCosts all;  // with several threads, measured with as many as the process may use

  const CpuThreadCosts& with(int threads) const { return threads > 1 ? all : one; }
};

// Factor of the time of a product by AMX while the core's other hardware thread works. With several threads
// some cores are slow and some are not, and the loop takes all in: FP32 took 0.43 and FP64 0.88 of MKL's time
// with 10 of 16 cores slow. So calls of several threads count the factor only if a setting says slow.
inline constexpr double slow_amx = 3;

struct CpuCostField {
  std::string name;  // such as "one.residues.slice"
  double* value;
};

// Returns all costs. The fields point into `costs`.
std::vector<CpuCostField> cost_fields(CpuCosts& costs);

// Costs of the fused products depend on the model and on the kernels, which the model alone does not tell:
// virtual machines hide AMX, Linux may refuse it, and KINTSUGI_CPU_INT8 names others.
struct CpuTraits {
  std::string name;     // of the model
  std::string kernels;  // for int8 slices

  friend bool operator==(const CpuTraits&, const CpuTraits&) = default;
};

CpuTraits cpu_traits();

struct CpuProfile {
  CpuTraits device;
  int threads = 1;  // of CpuCosts::all
  std::string library_version;
  std::string date;
  CpuCosts costs;
  std::vector<ProfileFit> fits;
};

// Returns the profile as JSON, and reads it. Reading fails with bad_setting if the text is no profile of a
// CPU.
std::string profile_text(const CpuProfile& profile);
CpuProfile read_cpu_profile(std::string_view text, std::string_view where);

// Returns the path of the file that calibration writes; empty if there is no folder for settings.
std::string profile_file(const CpuTraits& device);

// Returns the costs that the library has for kernels: those of a Xeon (Sapphire Rapids) for AMX, of an EPYC
// (Zen 4) for others.
CpuCosts shipped_cpu_costs(std::string_view kernels);

// Costs in force, and where they come from.
struct CpuCostsInForce {
  CpuCosts costs;
  bool are_calibrated = false;
  std::string text;
  std::string advice;  // on how to get better costs; may be empty
};

// Returns the costs that were calibrated here, else those of the library; found once.
const CpuCostsInForce& cpu_costs_in_force();

// Forgets the costs that were found. So a profile that was just written will be read.
void reread_cpu_profile();

}  // namespace kintsugi::core
