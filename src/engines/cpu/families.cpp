// Families of kernels that this CPU can execute, and those that the environment names.
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/threads.hpp"
#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/products.hpp"

namespace kintsugi::core {

namespace {

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() { return __builtin_cpu_supports("avx512f"); }
bool has_avx512_ifma() { return has_avx512() && __builtin_cpu_supports("avx512ifma"); }
bool has_avx512_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

#if defined(__x86_64__) && defined(__linux__)
bool has_amx() {
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") && has_avx512_vnni();
}

bool request_amx() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  return has_amx() && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

// True if AMX can be used. A process must ask Linux for AMX's registers; Linux refuses if a signal stack is
// too small for them.
bool may_use_amx() {
  static constinit MadeOnce may_use(request_amx);
  return may_use.get();
}
#endif

std::vector<const Int8Kernels*> find_int8_families() {
  std::vector<const Int8Kernels*> families;
#if defined(__x86_64__)
#if defined(__linux__)
  if (may_use_amx()) families.push_back(&int8_amx);
#endif
  if (has_avx512_vnni()) families.push_back(&int8_avx512);
#endif
  families.push_back(&int8_generic);
  return families;
}

std::vector<const Int52Kernels*> find_int52_families() {
  std::vector<const Int52Kernels*> families;
#if defined(__x86_64__)
  if (has_avx512_ifma()) families.push_back(&int52_avx512);
#endif
  families.push_back(&int52_generic);
  return families;
}

std::vector<const FloatKernels*> find_float_families() {
  std::vector<const FloatKernels*> families;
#if defined(__x86_64__)
  if (has_avx512()) families.push_back(&floats_avx512);
  if (has_avx2()) families.push_back(&floats_avx2);
#endif
  families.push_back(&floats_generic);
  return families;
}

std::vector<const PairKernels*> find_pair_families() {
  std::vector<const PairKernels*> families;
#if defined(__x86_64__)
  if (has_avx512()) families.push_back(&pairs_avx512);
  if (has_avx2()) families.push_back(&pairs_avx2);
#endif
  families.push_back(&pairs_generic);
  return families;
}

// Returns the kernels that the environment's setting names now.
template <class Kernels>
KernelChoice<Kernels> choose_by_setting(std::span<const Kernels* const> families, SettingId setting,
                                        std::string_view variable) {
  const auto lock = lock_environment();
  return choose_kernels(families, environment_only_value(setting), variable);
}

}  // namespace

std::span<const Int8Kernels* const> int8_families() {
  static constinit MadeOnce families(find_int8_families);
  return families.get();
}

std::span<const Int52Kernels* const> int52_families() {
  static constinit MadeOnce families(find_int52_families);
  return families.get();
}

std::span<const FloatKernels* const> float_families() {
  static constinit MadeOnce families(find_float_families);
  return families.get();
}

std::span<const PairKernels* const> pair_families() {
  static constinit MadeOnce families(find_pair_families);
  return families.get();
}

const Bf16Kernels* bf16_kernels() {
#if defined(__x86_64__) && defined(__linux__)
  if (may_use_amx() && __builtin_cpu_supports("amx-bf16")) return &bf16_amx;
#endif
  return nullptr;
}

const SumKernels* fastest_sum_kernels() {
#if defined(__x86_64__)
  return has_avx512() ? &sums_avx512 : has_avx2() ? &sums_avx2 : nullptr;
#elif defined(FP_FAST_FMA)
  return &sums_generic;
#else
  return nullptr;
#endif
}

const KernelChoice<Int8Kernels>& int8_choice() {
  static constinit MadeOnce<KernelChoice<Int8Kernels>> choice(
      [] { return choose_by_setting(int8_families(), SettingId::cpu_int8, "KINTSUGI_CPU_INT8"); });
  return choice.get();
}

namespace {

// State of the matrix unit, and when it was measured last, in nanoseconds of the steady clock.
std::atomic<std::int64_t> measured_at = 0;
std::atomic<bool> was_fast = true;

// Between 1 and 2.3 in the slow state, from 3.4 on in the fast one (Xeon, Sapphire Rapids).
constexpr double least_fast_rate = 2.8;

std::string make_amx_setting() {
  const auto lock = lock_environment();
  return std::string(environment_only_value(SettingId::cpu_amx));
}

}  // namespace

std::optional<bool> measure_amx_is_fast() {
  const PanelKernels* const kernels = int8_choice().kernels->panels;
  if (kernels == nullptr || kernels->measure_rate == nullptr) return std::nullopt;
  return kernels->measure_rate() >= least_fast_rate;
}

MatrixUnitState amx_state(int threads) {
  static constinit MadeOnce<std::string> setting(make_amx_setting);
  const PanelKernels* const kernels = int8_choice().kernels->panels;
  if (kernels == nullptr || kernels->measure_rate == nullptr) return MatrixUnitState::steady;
  if (setting.get() == "fast") return MatrixUnitState::set_fast;
  if (setting.get() == "slow") return MatrixUnitState::set_slow;
  if (threads > 1) return MatrixUnitState::unknown;
  constexpr std::int64_t half_a_second = 500'000'000;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t last = measured_at.load();
  if ((last == 0 || now - last > half_a_second) && measured_at.compare_exchange_strong(last, now))
    was_fast = measure_amx_is_fast().value_or(true);
  return was_fast ? MatrixUnitState::fast : MatrixUnitState::slow;
}

std::string amx_refusal() {
#if defined(__x86_64__) && defined(__linux__)
  if (has_amx() && int8_families().front() != &int8_amx)
    return ", because Linux refuses the registers of AMX";
#endif
  return {};
}

const KernelChoice<Int52Kernels>& int52_choice() {
  static constinit MadeOnce<KernelChoice<Int52Kernels>> choice(
      [] { return choose_by_setting(int52_families(), SettingId::cpu_int52, "KINTSUGI_CPU_INT52"); });
  return choice.get();
}

}  // namespace kintsugi::core
