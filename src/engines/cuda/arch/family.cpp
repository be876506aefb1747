#include "engines/cuda/arch/family.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "base/settings.hpp"
#include "base/threads.hpp"
#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

#define KINTSUGI_GPU_FAMILY(name) const Family& name##_family();
#include "engines/cuda/arch/families.def"
#undef KINTSUGI_GPU_FAMILY

namespace {

std::span<const Family* const> families() {
  static const std::array tables{
#define KINTSUGI_GPU_FAMILY(name) &name##_family(),
#include "engines/cuda/arch/families.def"
#undef KINTSUGI_GPU_FAMILY
  };
  return tables;
}

// Families by the setting `arch`: for each of families() the table that takes its place. Empty if the setting
// is `auto`.
std::vector<Family> make_forced_families() {
  const auto lock = lock_environment();
  const Family* forced = find_family(environment_only_value(SettingId::arch));
  std::vector<Family> tables;
  if (forced == nullptr) return tables;
  for (const Family* own : families()) {
    tables.push_back(*forced);
    const bool both_multiply = !own->multi_term.empty() && !tables.back().multi_term.empty();
    if (both_multiply) tables.back().fp16_bf16_accumulators = own->fp16_bf16_accumulators;
  }
  return tables;
}

// Tables that were made last; nullptr if they must be made.
std::atomic<const std::vector<Family>*> forced_tables = nullptr;
// All tables that were ever made. They are kept, since references to them may be in use.
std::vector<std::unique_ptr<const std::vector<Family>>> all_forced_tables;

const std::vector<Family>& forced_families() {
  if (const std::vector<Family>* made = forced_tables.load(std::memory_order_acquire)) return *made;
  const auto lock = lock_shared_state();
  if (forced_tables.load(std::memory_order_relaxed) == nullptr) {
    all_forced_tables.push_back(std::make_unique<const std::vector<Family>>(make_forced_families()));
    forced_tables.store(all_forced_tables.back().get(), std::memory_order_release);
  }
  return *forced_tables.load(std::memory_order_relaxed);
}

}  // namespace

// In a build without device code the kernels count as present, so that plans can be made.
// kernels_missing_reason() reports that nothing can run.
bool Family::has_gemm_kernels() const {
  return !gemm_image.empty() && (engine_images().empty() || has_image(engine_images(), gemm_image));
}

const DmmaKernels* Family::available_dmma(ElementType type) const {
  return has_gemm_kernels() ? dmma[static_cast<std::size_t>(type)] : nullptr;
}

std::span<const Accumulator> Family::available_fp16_bf16_accumulators() const {
  return has_gemm_kernels() ? fp16_bf16_accumulators : fp16_bf16_accumulators.last(1);  // cuBLAS's
}

const Family& family_of(int major, int minor) {
  for (const Family* family : families()) {
    if (family->matches(major, minor)) return *family;
  }
  return *families().back();
}

const Family* find_family(std::string_view name) {
  const auto found =
      std::ranges::find_if(families(), [&](const Family* family) { return family->name == name; });
  return found == families().end() ? nullptr : *found;
}

const Family& current_family() {
  if (driver().devices == 0) return *families().back();
  const Device device = device_in_use();
  const Family& own = family_of(device_attribute(compute_capability_major, device),
                                device_attribute(compute_capability_minor, device));
  if (!is_family_forced()) return own;
  const auto index = std::ranges::find(families(), &own) - families().begin();
  return forced_families()[static_cast<std::size_t>(index)];
}

void reread_family_setting() { forced_tables.store(nullptr, std::memory_order_release); }

bool is_family_forced() { return !forced_families().empty(); }

std::int64_t max_shared_bytes_of_block() {
  return std::min<std::int64_t>(device_attribute(shared_bytes_of_block, current_device()),
                                current_family().max_shared_bytes);
}

}  // namespace kintsugi::core::cuda
