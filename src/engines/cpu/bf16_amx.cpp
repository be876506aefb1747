// Products of bf16 slices by AMX (TDPBF16PS), with splits and recombination in AVX-512.
#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engines/cpu/bf16_loops.hpp"
#include "engines/cpu/bf16_panels.hpp"
#include "engines/cpu/tiles_avx512.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t lanes = 16;

inline __mmask16 first_lanes(std::int64_t count) {
  return count >= lanes ? __mmask16(0xffff) : count <= 0 ? __mmask16(0) : __mmask16((1U << count) - 1);
}

// ---------------------------------------------------------------- split

// Rounds finite numbers to bf16, to nearest, ties to even: subnormal ones, too. Of other vectors no element
// of C is written.
inline __m512i rounded(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
  return _mm512_and_si512(sum, _mm512_set1_epi32(static_cast<int>(0xffff0000U)));
}

// Takes the next slice of 32 elements; what remains of them is multiplied by `factor`. `is_interleaved`: the
// numbers of `x` and `y` alternate, else those of `y` follow those of `x`.
template <bool is_interleaved>
inline __m512i take_slice(__m512& x, __m512& y, __m512 factor) {
  const __m512i first = rounded(x);
  const __m512i second = rounded(y);
  x = _mm512_mul_ps(_mm512_sub_ps(x, _mm512_castsi512_ps(first)), factor);
  y = _mm512_mul_ps(_mm512_sub_ps(y, _mm512_castsi512_ps(second)), factor);
  if (is_interleaved) return _mm512_or_si512(_mm512_srli_epi32(first, 16), second);
  const __m256i low = _mm512_cvtepi32_epi16(_mm512_srli_epi32(first, 16));
  const __m256i high = _mm512_cvtepi32_epi16(_mm512_srli_epi32(second, 16));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// Elements at distances of `stride`; lanes outside the mask are not read, and become 0.
inline __m512 load(const float* base, std::int64_t stride, __mmask16 mask) {
  if (stride == 1) return _mm512_maskz_loadu_ps(mask, base);
  const __m512i index =
      _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(stride));
  const __m256 low =
      _mm512_mask_i64gather_ps(_mm256_setzero_ps(), static_cast<__mmask8>(mask), index, base, 4);
  const __m256 high = _mm512_mask_i64gather_ps(_mm256_setzero_ps(), static_cast<__mmask8>(mask >> 8), index,
                                               base + 8 * stride, 4);
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

constexpr std::int64_t rows_ahead = 32;  // inner indices or elements ahead that are prefetched

// Splits the elements of one step into a tile of every slice. Its rows are vectors, or pairs of inner indices
// if the elements are neighbours across vectors.
template <bool is_across>
void split_step(const Bf16Split& task, std::int64_t begin, std::byte* tile, std::int64_t slice_stride,
                bool streams) {
  const __m512 factor = _mm512_set1_ps(task.residual_factor);
  const std::int64_t length = task.length - begin;
  const __mmask16 vectors = first_lanes(task.vectors);
  const float* const elements = task.elements + begin * task.inner_stride;
  for (std::int64_t row = 0; row < lanes; ++row) {
    __m512 x;
    __m512 y;
    __m512 exponents;
    if constexpr (is_across) {
      const float* const pair = elements + 2 * row * task.inner_stride;
      const bool has_first = 2 * row < length;
      const bool has_second = 2 * row + 1 < length;
      _mm_prefetch(reinterpret_cast<const char*>(pair + rows_ahead * task.inner_stride), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(pair + (rows_ahead + 1) * task.inner_stride), _MM_HINT_T0);
      x = _mm512_maskz_loadu_ps(has_first ? vectors : __mmask16(0), pair);
      y = _mm512_maskz_loadu_ps(has_second ? vectors : __mmask16(0), pair + task.inner_stride);
      exponents = _mm512_loadu_ps(task.exponents);
    } else {
      const bool exists = row < task.vectors;
      const float* const vector = elements + (exists ? row * task.vector_stride : 0);
      if (task.inner_stride == 1) {
        _mm_prefetch(reinterpret_cast<const char*>(vector + 2 * rows_ahead), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(vector + 2 * rows_ahead + lanes), _MM_HINT_T0);
      }
      x = load(vector, task.inner_stride, exists ? first_lanes(length) : __mmask16(0));
      y = load(vector + lanes * task.inner_stride, task.inner_stride,
               exists ? first_lanes(length - lanes) : __mmask16(0));
      exponents = _mm512_set1_ps(task.exponents[row]);
    }
    x = _mm512_scalef_ps(x, exponents);
    y = _mm512_scalef_ps(y, exponents);
    for (int s = 0; s < task.slices; ++s)
      store(tile + s * slice_stride + 64 * row, take_slice<is_across>(x, y, factor), streams);
  }
}

template <bool is_across>
void split_half(const Bf16Split& task) {
  alignas(64) std::byte rows[Bf16Panel::max_slices * Bf16Panel::tile_bytes];
  const bool is_direct = is_across != task.is_left;
  std::byte* tile = task.tile;
  for (std::int64_t begin = 0; begin < task.length; begin += Bf16Panel::step, tile += Bf16Panel::step_bytes) {
    if (is_direct) {
      split_step<is_across>(task, begin, tile, task.slice_stride, task.streams);
      continue;
    }
    split_step<is_across>(task, begin, rows, Bf16Panel::tile_bytes, false);
    for (int s = 0; s < task.slices; ++s)
      transpose(rows + s * Bf16Panel::tile_bytes, tile + s * task.slice_stride, task.streams);
  }
  if (task.streams) _mm_sfence();
}

void split(const Bf16Split& task) {
  const bool is_across = task.vector_stride == 1 && task.inner_stride != 1;
  is_across ? split_half<true>(task) : split_half<false>(task);
}

// ---------------------------------------------------------------- products

// Tiles 0 to 3 hold the sums, 4 and 5 the left panel's halves, 6 and 7 the right one's.
class Amx {
 public:
  Amx() { _tile_loadconfig(&tile_shapes); }
  ~Amx() { _tile_release(); }
  Amx(const Amx&) = delete;
  Amx& operator=(const Amx&) = delete;

  void clear() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }

  void load(const float* sums) {
    asm volatile("" : : "r"(sums) : "memory");  // GCC does not know that the next instructions read memory
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + 256, 64);
    _tile_loadd(2, sums + 512, 64);
    _tile_loadd(3, sums + 768, 64);
  }

  void store(float* sums) const {
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
  }

  template <class Between>
  inline __attribute__((always_inline)) void step(const std::byte* left, const std::byte* right,
                                                  const Between& between) {
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + Bf16Panel::tile_bytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + Bf16Panel::tile_bytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    between();
    _tile_dpbf16ps(3, 5, 7);
  }
};

// ---------------------------------------------------------------- recombination

void recombine(const Bf16Results& task) {
  const __m512d weight = _mm512_set1_pd(task.weight);
  const __m512d alpha = _mm512_set1_pd(task.alpha);
  const __m512d beta = _mm512_set1_pd(task.beta);
  const __m512d zero = _mm512_setzero_pd();
  for (std::int64_t i = 0; i < Bf16Panel::vectors; ++i) {
    const __m512d row_unit = _mm512_set1_pd(task.row_units[i]);
    for (std::int64_t half = 0; half < 2; ++half) {
      const auto open = static_cast<__mmask16>(task.open[i] >> lanes * half);
      if (open == 0) continue;
      const float* const sums = task.sums + i / lanes * 512 + half * 256 + i % lanes * lanes;
      float* const c = task.c + i * task.row_stride + lanes * half;
      for (std::int64_t h = 0; h < 2; ++h) {
        const auto columns = static_cast<__mmask8>(open >> 8 * h);
        const __m512d unit =
            _mm512_mul_pd(row_unit, _mm512_loadu_pd(task.column_units + lanes * half + 8 * h));
        // The sum begins with 0, as in recombine_weighted(), so that -0 becomes 0.
        const __m512d sum =
            _mm512_add_pd(zero, _mm512_mul_pd(weight, _mm512_cvtps_pd(_mm256_load_ps(sums + 8 * h))));
        __m512d result = _mm512_mul_pd(alpha, _mm512_mul_pd(sum, unit));
        if (task.beta != 0) {
          const __m512d old = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(columns, c + 8 * h));
          result = _mm512_add_pd(result, _mm512_mul_pd(beta, old));
        }
        _mm256_mask_storeu_ps(c + 8 * h, columns, _mm512_cvtpd_ps(result));
      }
    }
  }
}

}  // namespace

const Bf16Kernels bf16_amx{
    .name = "amx", .split = split, .multiply = multiply_bf16_panels<Amx>, .recombine = recombine};

}  // namespace kintsugi::core

#endif
