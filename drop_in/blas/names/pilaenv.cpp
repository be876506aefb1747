// ScaLAPACK's logical block size, which its PBLAS asks for by name. It cuts the inner dimension of pdgemm
// into products of that depth, whatever the matrices' own blocks are, and its own answer is 32: too few to
// emulate at speed.
#include "blas/next_blas/next.hpp"
#include "blas/settings.hpp"

namespace kintsugi::blas {

namespace {

constexpr std::int32_t depth_of_scalapack = 32;
// Inner length at which the splits of two operands cost a small part of their product.
constexpr std::int32_t depth_of_emulation = 512;

// True if products are emulated by policy or accuracy. Otherwise calls are forwarded, and results should keep
// the bits that they have without this library.
bool asks_for_emulation() {
  const Settings& now = settings();
  if (now.malformed || now.policy == Policy::native) return false;
  return now.policy != Policy::automatic || !now.accuracy.empty();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) std::int32_t pilaenv_(const std::int32_t* context,
                                                                        const char* precision,
                                                                        std::size_t length) {
  if (asks_for_emulation()) return depth_of_emulation;
  static constinit Symbol symbol("pilaenv_", "PILAENV");
  auto* const next = symbol.next<std::int32_t(const std::int32_t*, const char*, std::size_t)>();
  return next != nullptr ? next(context, precision, length) : depth_of_scalapack;
}

}  // namespace kintsugi::blas
