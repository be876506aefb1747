// Families of kernels that this CPU can execute, and those that the environment names.
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <vector>

#include "base/settings.hpp"
#include "base/threads.hpp"
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
// True if AMX can be used. A process must ask Linux for AMX's registers; Linux refuses if a signal stack is
// too small for them.
bool may_use_amx() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") && has_avx512_vnni() &&
         syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
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

const KernelChoice<Int8Kernels>& int8_choice() {
  static constinit MadeOnce<KernelChoice<Int8Kernels>> choice(
      [] { return choose_by_setting(int8_families(), SettingId::cpu_int8, "KINTSUGI_CPU_INT8"); });
  return choice.get();
}

const KernelChoice<Int52Kernels>& int52_choice() {
  static constinit MadeOnce<KernelChoice<Int52Kernels>> choice(
      [] { return choose_by_setting(int52_families(), SettingId::cpu_int52, "KINTSUGI_CPU_INT52"); });
  return choice.get();
}

}  // namespace kintsugi::core
