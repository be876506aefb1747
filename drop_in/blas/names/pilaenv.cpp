// pilaenv_ returns the logical block size of ScaLAPACK. pdgemm multiplies that many inner indices at a time,
// whatever the blocks of its matrices are. ScaLAPACK's own function returns 32, too few for a fast emulation.
#include "blas/next_blas/next.hpp"
#include "blas/settings.hpp"

namespace kintsugi::blas {

namespace {

constexpr std::int32_t scalapack_block_size = 32;
// At 512 inner indices the splits of both operands cost a small part of the product's time.
constexpr std::int32_t emulation_block_size = 512;

// True if the user asks for emulated products. Otherwise most calls are forwarded, and their results keep the
// bits that they have without this library.
bool asks_for_emulation() {
  const Settings& now = settings();
  if (now.is_malformed() || now.policy == Policy::native) return false;
  return now.policy != Policy::automatic || !now.accuracy.empty();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) std::int32_t pilaenv_(const std::int32_t* context,
                                                                        const char* precision,
                                                                        std::size_t length) {
  if (asks_for_emulation()) return emulation_block_size;
  static constinit Symbol symbol("pilaenv_", "PILAENV");
  auto* const next = symbol.next<std::int32_t(const std::int32_t*, const char*, std::size_t)>();
  return next != nullptr ? next(context, precision, length) : scalapack_block_size;
}

}  // namespace kintsugi::blas
