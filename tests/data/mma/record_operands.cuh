// Operands of the sums that record_h200.cu records.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <type_traits>
#include <vector>

namespace record {

constexpr int rows = 64;
constexpr int columns = 16;
constexpr int row_bytes = 32;  // of A and B: one instruction's depth, 16 fp16 or bf16, 8 tf32
constexpr int results = rows * columns;

struct Fp16 {
  using Storage = std::uint16_t;
  using Fragment = __half;
  static constexpr const char* name = "fp16";
  static constexpr int fraction_bits = 10, min_exponent = -14, shift = 0, exponent_bits = 5;
};
struct Bf16 {
  using Storage = std::uint16_t;
  using Fragment = __nv_bfloat16;
  static constexpr const char* name = "bf16";
  static constexpr int fraction_bits = 7, min_exponent = -126, shift = 0, exponent_bits = 8;
};
struct Tf32 {
  using Storage = std::uint32_t;
  using Fragment = nvcuda::wmma::precision::tf32;
  static constexpr const char* name = "tf32";
  static constexpr int fraction_bits = 10, min_exponent = -126, shift = 13, exponent_bits = 8;
};

template <class Format>
constexpr int depth = row_bytes / static_cast<int>(sizeof(typename Format::Storage));

inline std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Truncates; values are inside the format's range.
template <class Format>
typename Format::Storage encode(double value) {
  if (value == 0) return 0;
  const int exponent = std::max(std::ilogb(value), Format::min_exponent);
  auto significand =
      static_cast<std::uint32_t>(std::ldexp(std::fabs(value), Format::fraction_bits - exponent));
  const std::uint32_t field = significand >> Format::fraction_bits != 0
                                  ? static_cast<std::uint32_t>(exponent - Format::min_exponent + 1)
                                  : 0;
  significand &= (1U << Format::fraction_bits) - 1;
  const std::uint32_t sign = std::signbit(value) ? 1U << (Format::exponent_bits + Format::fraction_bits) : 0;
  return static_cast<typename Format::Storage>((sign | field << Format::fraction_bits | significand)
                                               << Format::shift);
}

struct Operand {
  std::int32_t significand;  // value = significand * 2^(exponent - fraction_bits)
  int exponent;
};

template <class Format>
Operand decode(typename Format::Storage stored) {
  const std::uint32_t bits = stored >> Format::shift;
  const auto fraction = static_cast<std::int32_t>(bits & ((1U << Format::fraction_bits) - 1));
  const auto field = static_cast<int>(bits >> Format::fraction_bits & ((1U << Format::exponent_bits) - 1));
  const std::int32_t magnitude = field > 0 ? fraction | 1 << Format::fraction_bits : fraction;
  const bool negative = bits >> (Format::exponent_bits + Format::fraction_bits) != 0;
  return {negative ? -magnitude : magnitude, Format::min_exponent + std::max(field, 1) - 1};
}

template <class Format>
class Tiles {
 public:
  using Storage = typename Format::Storage;
  std::vector<Storage> a, b;
  std::vector<float> c;

  explicit Tiles(int count)
      : a(count * rows * depth<Format>), b(count * columns * depth<Format>), c(count * results) {
    for (int tile = 0; tile < count; ++tile) draw(tile);
  }

 private:
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double sign() { return between(0, 1) != 0 ? 1 : -1; }
  double significand() { return sign() * (1 + std::uniform_real_distribution<double>()(random_)); }

  void draw(int tile) {
    constexpr int k = depth<Format>;
    Storage* tile_a = a.data() + tile * rows * k;
    Storage* tile_b = b.data() + tile * columns * k;
    constexpr bool narrow = Format::min_exponent == -14;
    constexpr int spreads[] = {0, 2, 6, 12, 20};
    const int kind = tile % 8;
    const int spread = spreads[tile / 8 % 5];
    // The exponent of products: anywhere near fp32's underflow, or where the alignment's limit is.
    const int product = narrow ? between(-48, -24) : kind < 3 ? between(-160, -100) : between(-152, -134);
    const bool subnormal = kind == 2 || kind == 5;
    const int low = narrow ? -24 : -133;
    const int high = narrow ? 8 : 20;
    int first = subnormal ? between(low, Format::min_exponent - 1) : between(Format::min_exponent, high);
    first = std::clamp(first, std::max(low, product - high), std::min(high, product - low));
    const auto element = [&](int exponent) {
      const int e = std::clamp(exponent - between(0, spread), low - 2, narrow ? 14 : 100);
      return between(0, 15) == 0 ? Storage{0} : encode<Format>(std::ldexp(significand(), e));
    };
    for (int i = 0; i < rows * k; ++i) tile_a[i] = element(first + spread / 2);
    for (int i = 0; i < columns * k; ++i) tile_b[i] = element(product - first + spread / 2);
    if (kind == 4 || kind == 7) cancel(tile_a, tile_b);
    for (int i = 0; i < results; ++i) c[tile * results + i] = accumulator(kind, product, spread);
  }

  // Every second product is the negative of the one before, but for some last bits.
  void cancel(Storage* tile_a, Storage* tile_b) {
    constexpr Storage sign_bit = static_cast<Storage>(1U << (8 * sizeof(Storage) - 1));
    constexpr Storage last = static_cast<Storage>(1U << Format::shift);
    for (int i = 1; i < rows * depth<Format>; i += 2) tile_a[i] = tile_a[i - 1] ^ sign_bit;
    for (int i = 1; i < columns * depth<Format>; i += 2)
      tile_b[i] = between(0, 1) != 0 ? tile_b[i - 1] : tile_b[i - 1] ^ last;
  }

  float accumulator(int kind, int product, int spread) {
    const int chance = between(0, 9);
    if (kind >= 3 && kind <= 5) return chance == 0 ? -0.0F : 0.0F;
    if (chance < 3) return 0.0F;
    if (chance < 5) return static_cast<float>(std::ldexp(significand(), between(-149, -126)));
    return static_cast<float>(std::ldexp(significand(), product + between(-spread - 2, spread + 8)));
  }

  std::mt19937_64 random_{20261129};
};

// Row 0 of A and column 0 of B of the first tile get the sum that MATLAB-tensor-core's issue 7 reports of an
// H100, 0x1.6p-146.
template <class Format>
void insert_published(Tiles<Format>& tiles) {
  if constexpr (std::is_same_v<Format, Bf16>) {
    constexpr std::uint16_t a[] = {0x9b94, 0x19f3, 0x9a2e, 0x1a67, 0x9a25, 0x9b4e, 0x9b29, 0x9a33,
                                   0x99e0, 0x1a14, 0x9914, 0x99d1, 0x9ae9, 0x1b1a, 0x9a9c, 0x1b3a};
    constexpr std::uint16_t b[] = {0x9aaf, 0x99f3, 0x9acc, 0x1b7c, 0x19ed, 0x1b25, 0x9a1b, 0x9a20,
                                   0x9af7, 0x9a48, 0x1ae1, 0x1b32, 0x1b12, 0x1b0e, 0x9a68, 0x1735};
    std::copy(std::begin(a), std::end(a), tiles.a.begin());
    std::copy(std::begin(b), std::end(b), tiles.b.begin());
    tiles.c[0] = 0;
  }
}

}  // namespace record
