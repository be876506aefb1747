// Bytes with AVX-512: panels of fused products (splits, products by VNNI and by AMX, reductions,
// recombination), and products of int8 slices in memory.
#if defined(__x86_64__)

#include "engines/cpu/byte_panels.hpp"

#include <immintrin.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "engines/cpu/kernels.hpp"
#include "engines/cpu/tiles_avx512.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t lanes = 16;
constexpr std::int64_t tile_bytes = 1024;
constexpr int units = 16;  // of a pair of panels: 64 sums each, four rows of a tile

inline __m512i all32(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
inline __m512i all16(std::uint32_t x) { return _mm512_set1_epi16(static_cast<short>(x)); }

inline __mmask16 first_lanes(std::int64_t count) {
  return count >= lanes ? __mmask16(0xffff) : count <= 0 ? __mmask16(0) : __mmask16((1U << count) - 1);
}

// Montgomery step of 16 bits: -x 2^-16 modulo the modulus.
inline __m512i montgomery(__m512i x, __m512i inverse, __m512i modulus) {
  return _mm512_mulhi_epu16(_mm512_mullo_epi16(x, inverse), modulus);
}

// Residues of 64 sums of bytes in their order after packing, as 16-bit numbers: the sums' vectors 0 and 1 in
// `first`, 2 and 3 in `second`.
struct Residues {
  __m512i first;
  __m512i second;
};

inline Residues reduce(__m512i s0, __m512i s1, __m512i s2, __m512i s3, const ByteReduction& r) {
  const __m512i last = all32(r.last);
  const __m512i bias = all32(r.last_bias);
  const __m512i inverse = all16(r.inverse);
  const __m512i modulus = all16(r.modulus);
  s0 = _mm512_dpbusd_epi32(bias, s0, last);
  s1 = _mm512_dpbusd_epi32(bias, s1, last);
  s2 = _mm512_dpbusd_epi32(bias, s2, last);
  s3 = _mm512_dpbusd_epi32(bias, s3, last);
  return {montgomery(_mm512_packus_epi32(s0, s1), inverse, modulus),
          montgomery(_mm512_packus_epi32(s2, s3), inverse, modulus)};
}

// The lowest bytes of 64 numbers of 32 bits.
inline __m512i pack_bytes(__m512i x0, __m512i x1, __m512i x2, __m512i x3) {
  const __m512i mask = all32(0xff);
  return _mm512_packus_epi16(_mm512_packus_epi32(_mm512_and_si512(x0, mask), _mm512_and_si512(x1, mask)),
                             _mm512_packus_epi32(_mm512_and_si512(x2, mask), _mm512_and_si512(x3, mask)));
}

// ---------------------------------------------------------------- split

// 64 integers x + 2^(32 words - 1) by words of 32 bits, the lowest first; vector e of a word has elements
// 16 e ... 16 e + 15.
template <IntegerWidth width>
struct Integers {
  __m512i word[words_of(width)][4];
};

// Element e of 16 is at base[e * stride]; lanes outside the mask are not read, and become 0.
inline void load(const double* base, std::int64_t stride, __mmask16 mask, __m512d& x, __m512d& y) {
  const auto low = static_cast<__mmask8>(mask);
  const auto high = static_cast<__mmask8>(mask >> 8);
  if (stride == 1) {
    x = _mm512_maskz_loadu_pd(low, base);
    y = _mm512_maskz_loadu_pd(high, base + 8);
    return;
  }
  const __m512i index =
      _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(stride));
  x = _mm512_mask_i64gather_pd(_mm512_setzero_pd(), low, index, base, 8);
  y = _mm512_mask_i64gather_pd(_mm512_setzero_pd(), high, index, base + 8 * stride, 8);
}

inline void load(const float* base, std::int64_t stride, __mmask16 mask, __m512d& x, __m512d& y) {
  if (stride == 1) {
    const __m512 all = _mm512_maskz_loadu_ps(mask, base);
    x = _mm512_cvtps_pd(_mm512_castps512_ps256(all));
    y = _mm512_cvtps_pd(_mm512_extractf32x8_ps(all, 1));
    return;
  }
  const __m512i index =
      _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(stride));
  x = _mm512_cvtps_pd(
      _mm512_mask_i64gather_ps(_mm256_setzero_ps(), static_cast<__mmask8>(mask), index, base, 4));
  y = _mm512_cvtps_pd(_mm512_mask_i64gather_ps(_mm256_setzero_ps(), static_cast<__mmask8>(mask >> 8), index,
                                               base + 8 * stride, 4));
}

// Parts of 16 complex elements.
struct Parts {
  __m512d re[2];
  __m512d im[2];
};

// The same for complex elements, at any distance.
template <class T>
inline void load_apart(const T* base, std::int64_t stride, __mmask16 mask, Parts& parts) {
  load(base, 2 * stride, mask, parts.re[0], parts.re[1]);
  load(base + 1, 2 * stride, mask, parts.im[0], parts.im[1]);
}

// The same. The lanes of the mask are the first ones.
inline void load(const double* base, std::int64_t stride, __mmask16 mask, Parts& parts) {
  if (stride != 1) return load_apart(base, stride, mask, parts);
  const auto pairs = static_cast<std::uint32_t>((std::uint64_t{1} << 2 * __builtin_popcount(mask)) - 1);
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m512d x = _mm512_maskz_loadu_pd(static_cast<__mmask8>(pairs >> (16 * h)), base + 16 * h);
    const __m512d y = _mm512_maskz_loadu_pd(static_cast<__mmask8>(pairs >> (16 * h + 8)), base + 16 * h + 8);
    parts.re[h] = _mm512_permutex2var_pd(x, even, y);
    parts.im[h] = _mm512_permutex2var_pd(x, odd, y);
  }
}

inline void load(const float* base, std::int64_t stride, __mmask16 mask, Parts& parts) {
  if (stride != 1) return load_apart(base, stride, mask, parts);
  const auto pairs = static_cast<std::uint32_t>((std::uint64_t{1} << 2 * __builtin_popcount(mask)) - 1);
  const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m512 x = _mm512_permutexvar_ps(
        order, _mm512_maskz_loadu_ps(static_cast<__mmask16>(pairs >> (16 * h)), base + 16 * h));
    parts.re[h] = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    parts.im[h] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  }
}

// Low and high words of 16 integers of 64 bits, in two vectors.
inline __m512i even_words(__m512i x, __m512i y) {
  return _mm512_permutex2var_epi32(
      x, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), y);
}
inline __m512i odd_words(__m512i x, __m512i y) {
  return _mm512_permutex2var_epi32(
      x, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), y);
}

// The integer nearest to x, of magnitude up to 2^94: bits 0 to 31, and the others.
struct WideWords {
  __m256i low;
  __m512i high;
};
inline WideWords wide_words(__m512d x) {
  constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  const __m512d integer = _mm512_roundscale_pd(x, to_nearest);
  const __m512d high = _mm512_roundscale_pd(_mm512_mul_pd(integer, _mm512_set1_pd(0x1p-32)), down);
  return {_mm512_cvttpd_epu32(_mm512_fnmadd_pd(high, _mm512_set1_pd(0x1p32), integer)),
          _mm512_cvtpd_epi64(high)};
}

// Sets vector e of the integers nearest to x and y times powers of two.
template <IntegerWidth width>
inline void set_integers(__m512d x, __m512d y, __m512d x_exponents, __m512d y_exponents, int e,
                         Integers<width>& integers) {
  x = _mm512_scalef_pd(x, x_exponents);
  y = _mm512_scalef_pd(y, y_exponents);
  const __m512i sign = all32(0x80000000U);
  if constexpr (width == IntegerWidth::wide) {
    const WideWords i = wide_words(x);
    const WideWords j = wide_words(y);
    integers.word[0][e] = _mm512_inserti64x4(_mm512_castsi256_si512(i.low), j.low, 1);
    integers.word[1][e] = even_words(i.high, j.high);
    integers.word[2][e] = _mm512_xor_si512(odd_words(i.high, j.high), sign);
  } else {
    const __m512i i = _mm512_cvtpd_epi64(x);
    const __m512i j = _mm512_cvtpd_epi64(y);
    integers.word[0][e] = even_words(i, j);
    integers.word[1][e] = _mm512_xor_si512(odd_words(i, j), sign);
  }
}

// The integer of a double-double number times a power of two: upper, the integer nearest to hi, plus the one
// nearest to what hi and lo have beside it (split/residues.cpp), by halves of 64 bits.
struct PairHalves {
  __m512i low;
  __m512i high;
};
inline PairHalves pair_halves(__m512d hi, __m512d lo, __m512d exponents) {
  constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  // The number that the pair represents: two_sum().
  const __m512d sum = _mm512_add_pd(hi, lo);
  const __m512d part = _mm512_sub_pd(sum, hi);
  const __m512d error = _mm512_add_pd(_mm512_sub_pd(hi, _mm512_sub_pd(sum, part)), _mm512_sub_pd(lo, part));
  const __m512d scaled = _mm512_scalef_pd(sum, exponents);
  const __m512d upper = _mm512_roundscale_pd(scaled, to_nearest);
  const __m512d rest = _mm512_add_pd(_mm512_sub_pd(scaled, upper), _mm512_scalef_pd(error, exponents));
  // upper = 2^54 top + bottom, |bottom| <= 2^53.
  const __m512d top = _mm512_roundscale_pd(_mm512_mul_pd(upper, _mm512_set1_pd(0x1p-54)), to_nearest);
  const __m512d bottom = _mm512_fnmadd_pd(top, _mm512_set1_pd(0x1p54), upper);
  const __m512i lower = _mm512_add_epi64(_mm512_cvtpd_epi64(bottom), _mm512_cvtpd_epi64(rest));
  const __m512i tops = _mm512_cvtpd_epi64(top);
  const __m512i shifted = _mm512_slli_epi64(tops, 54);
  const __m512i low = _mm512_add_epi64(shifted, lower);
  const __mmask8 carries = _mm512_cmplt_epu64_mask(low, shifted);
  const __m512i high = _mm512_add_epi64(_mm512_srai_epi64(tops, 10), _mm512_srai_epi64(lower, 63));
  return {low, _mm512_mask_add_epi64(high, carries, high, _mm512_set1_epi64(1))};
}

inline void set_integers(const Parts& pairs, __m512d x_exponents, __m512d y_exponents, int e,
                         Integers<IntegerWidth::pair>& integers) {
  const PairHalves i = pair_halves(pairs.re[0], pairs.im[0], x_exponents);
  const PairHalves j = pair_halves(pairs.re[1], pairs.im[1], y_exponents);
  integers.word[0][e] = even_words(i.low, j.low);
  integers.word[1][e] = odd_words(i.low, j.low);
  integers.word[2][e] = even_words(i.high, j.high);
  integers.word[3][e] = _mm512_xor_si512(odd_words(i.high, j.high), all32(0x80000000U));
}

// Integers of 64 elements: one each, or two of complex elements.
template <class T, IntegerWidth width, bool is_complex>
struct Elements {
  // Numbers in memory of an element.
  static constexpr std::int64_t numbers = is_complex || width == IntegerWidth::pair ? 2 : 1;

  Integers<width> parts[is_complex ? 2 : 1];

  // Loads vector e.
  inline void load_vector(const PanelSplit& task, const T* base, std::int64_t stride, __mmask16 mask,
                          __m512d x_exponents, __m512d y_exponents, int e) {
    if constexpr (numbers == 1) {
      __m512d x;
      __m512d y;
      load(base, stride, mask, x, y);
      set_integers<width>(x, y, x_exponents, y_exponents, e, parts[0]);
      return;
    } else {
      Parts x;
      load(base, stride, mask, x);
      if constexpr (is_complex) {
        const __m512d sign = _mm512_set1_pd(task.conjugates ? -0.0 : 0.0);
        set_integers<width>(x.re[0], x.re[1], x_exponents, y_exponents, e, parts[0]);
        set_integers<width>(_mm512_xor_pd(x.im[0], sign), _mm512_xor_pd(x.im[1], sign), x_exponents,
                            y_exponents, e, parts[1]);
      } else {
        set_integers(x, x_exponents, y_exponents, e, parts[0]);
      }
    }
  }
};

template <IntegerWidth width>
inline __m512i add_bytes(__m512i sum, const Integers<width>& x, int e, const ByteWeights& weights) {
  for (int w = 0; w < words_of(width); ++w)
    sum = _mm512_dpbusd_epi32(sum, x.word[w][e], all32(weights.word[w]));
  return sum;
}

// Bytes of slice s of 64 elements, unsigned. Lane l of 128 bits has elements 4 l ... 4 l + 3 of each of the
// four vectors.
template <class T, IntegerWidth width, bool is_complex>
inline __m512i bytes_of_slice(const Elements<T, width, is_complex>& elements, const PanelSplit& task, int s) {
  const auto& low = elements.parts[0].word[0];
  if (!is_complex && task.reductions == nullptr) {
    const int shift = 8 * (task.slices - 1 - s);
    const __m128i count = _mm_cvtsi32_si128(shift);
    return pack_bytes(_mm512_srl_epi32(low[0], count), _mm512_srl_epi32(low[1], count),
                      _mm512_srl_epi32(low[2], count), _mm512_srl_epi32(low[3], count));
  }
  const ByteReduction& r = task.reductions[s];
  if (!is_complex && r.modulus == 256) return pack_bytes(low[0], low[1], low[2], low[3]);
  const __m512i bias = all32(r.first_bias);
  __m512i sums[4];
#pragma GCC unroll 4
  for (int e = 0; e < 4; ++e) {
    sums[e] = add_bytes(bias, elements.parts[0], e, r.weights);
    if constexpr (is_complex) sums[e] = add_bytes(sums[e], elements.parts[1], e, r.imaginary);
  }
  if (is_complex && r.modulus == 256) return pack_bytes(sums[0], sums[1], sums[2], sums[3]);
  const Residues residues = reduce(sums[0], sums[1], sums[2], sums[3], r);
  return _mm512_packus_epi16(residues.first, residues.second);
}

// Writes the bytes of 64 elements to row `row` of a tile of every slice.
template <bool is_quad, class T, IntegerWidth width, bool is_complex>
inline void store_slices(Elements<T, width, is_complex>& x, const PanelSplit& task, std::byte* tile,
                         std::int64_t slice_stride, bool streams) {
  if (task.reductions == nullptr) {
    for (__m512i& low : x.parts[0].word[0]) low = _mm512_add_epi32(low, all32(0x80808080U));
  }
  const __m512i four =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  for (int s = 0; s < task.slices; ++s) {
    __m512i bytes = bytes_of_slice(x, task, s);
    if (task.is_left) {
      if (task.reductions == nullptr) {
        bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
      } else {  // residues above 127 become negative
        const auto modulus = static_cast<char>(task.reductions[s].modulus);
        bytes = _mm512_mask_sub_epi8(bytes, _mm512_movepi8_mask(bytes), bytes, _mm512_set1_epi8(modulus));
      }
    }
    if (is_quad) bytes = _mm512_shuffle_epi8(bytes, four);
    store(tile + s * slice_stride, bytes, streams);
  }
}

template <class T>
constexpr std::int64_t line_numbers = 64 / static_cast<std::int64_t>(sizeof(T));
constexpr std::int64_t quads_ahead = 8;  // of four inner indices, which are prefetched

// Prefetches into the L1 cache. The address may be beyond the operand.
inline void prefetch(const void* address) { _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0); }

// Splits 16 vectors over 64 inner indices whose elements are neighbours along the inner dimension, or at any
// distance.
template <class T, IntegerWidth width, bool is_complex>
void split_along(const PanelSplit& task, std::int64_t first, std::int64_t begin, std::byte* tile,
                 std::int64_t slice_stride, bool streams) {
  constexpr std::int64_t numbers = Elements<T, width, is_complex>::numbers;
  for (std::int64_t v = 0; v < lanes; ++v) {
    const bool exists = first + v < task.vectors;
    const std::int64_t first_element =
        (exists ? (first + v) * task.vector_stride : 0) + begin * task.inner_stride;
    const T* base = static_cast<const T*>(task.elements) + numbers * first_element;
    const __m512d exponent = _mm512_set1_pd(task.exponents[first + v]);
    if (task.inner_stride == 1) {  // the vector's elements of the next step
      constexpr std::int64_t step = numbers * panel_step;
      for (std::int64_t e = 0; e < step; e += line_numbers<T>) prefetch(base + step + e);
    }
    Elements<T, width, is_complex> x;
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) {
      const __mmask16 mask = exists ? first_lanes(task.length - begin - lanes * e) : __mmask16(0);
      x.load_vector(task, base + numbers * lanes * e * task.inner_stride, task.inner_stride, mask, exponent,
                    exponent, e);
    }
    store_slices<false>(x, task, tile + 64 * v, slice_stride, streams);
  }
}

// The same for elements that are neighbours across vectors.
template <class T, IntegerWidth width, bool is_complex>
void split_across(const PanelSplit& task, std::int64_t first, std::int64_t begin, std::byte* tile,
                  std::int64_t slice_stride, bool streams) {
  constexpr std::int64_t numbers = Elements<T, width, is_complex>::numbers;
  const __mmask16 vectors = first_lanes(task.vectors - first);
  const __m512d x_exponents = _mm512_loadu_pd(task.exponents + first);
  const __m512d y_exponents = _mm512_loadu_pd(task.exponents + first + 8);
  const T* base = static_cast<const T*>(task.elements) + numbers * first;
  const std::int64_t step = numbers * task.inner_stride;
  for (std::int64_t q = 0; q < lanes; ++q) {
    for (std::int64_t p = begin + 4 * (q + quads_ahead); p < begin + 4 * (q + quads_ahead + 1); ++p) {
      for (std::int64_t v = 0; v < numbers * lanes; v += line_numbers<T>) prefetch(base + p * step + v);
    }
    Elements<T, width, is_complex> x;
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) {
      const std::int64_t p = begin + 4 * q + t;
      const bool exists = p < task.length;
      x.load_vector(task, base + (exists ? p : 0) * step, 1, exists ? vectors : __mmask16(0), x_exponents,
                    y_exponents, t);
    }
    store_slices<true>(x, task, tile + 64 * (4 * (q & 3) + (q >> 2)), slice_stride, streams);
  }
}

template <class T, IntegerWidth width, bool is_complex>
void split_panel(const PanelSplit& task) {
  const bool is_across = task.vector_stride == 1 && task.inner_stride != 1;
  const bool is_direct = is_across != task.is_left;
  for (std::int64_t begin = 0; begin < task.length; begin += panel_step) {
    for (std::int64_t first = 0; first < panel_vectors; first += lanes) {
      std::byte* const tile = task.panel + begin / panel_step * 2 * tile_bytes + first / lanes * tile_bytes;
      std::byte* const target = is_direct ? tile : task.scratch;
      const std::int64_t stride = is_direct ? task.slice_stride : tile_bytes;
      if (is_across) {
        split_across<T, width, is_complex>(task, first, begin, target, stride, is_direct && task.streams);
      } else {
        split_along<T, width, is_complex>(task, first, begin, target, stride, is_direct && task.streams);
      }
      if (is_direct) continue;
      for (int s = 0; s < task.slices; ++s)
        transpose(target + s * stride, tile + s * task.slice_stride, task.streams);
    }
  }
  if (task.streams) _mm_sfence();
  if (task.vector_sums == nullptr) return;
  const __m512i ones = _mm512_set1_epi8(1);
  for (int s = 0; s < task.slices; ++s) {
    for (std::int64_t v = 0; v < panel_vectors; ++v) {
      const std::byte* row = task.panel + s * task.slice_stride + v / lanes * tile_bytes + v % lanes * 64;
      __m512i sum = _mm512_setzero_si512();
      for (std::int64_t begin = 0; begin < task.length; begin += panel_step, row += 2 * tile_bytes)
        sum = _mm512_dpbusd_epi32(sum, ones, _mm512_load_si512(row));
      task.vector_sums[s * panel_vectors + v] = _mm512_reduce_add_epi32(sum);
    }
  }
}

template <class T, IntegerWidth width>
void split_elements(const PanelSplit& task) {
  task.is_complex ? split_panel<T, width, true>(task) : split_panel<T, width, false>(task);
}

void split(const PanelSplit& task) {
  if (task.width == IntegerWidth::pair) return split_panel<double, IntegerWidth::pair, false>(task);
  const bool is_wide = task.width == IntegerWidth::wide;
  if (task.is_double) {
    is_wide ? split_elements<double, IntegerWidth::wide>(task)
            : split_elements<double, IntegerWidth::narrow>(task);
  } else {
    is_wide ? split_elements<float, IntegerWidth::wide>(task)
            : split_elements<float, IntegerWidth::narrow>(task);
  }
}

// ---------------------------------------------------------------- products

// Place of the int32 sums of a pair of panels: numbers from one half of a panel's vectors to the other, and
// from row to row.
struct Sums {
  std::uint32_t* first = nullptr;
  std::int64_t left_half = 512;
  std::int64_t right_half = 256;
  std::int64_t row = 16;
  bool adds = false;  // to what is there
};

// Reduces the sums of a pair of panels and adds them to its plane, unit by unit. So the units can be
// spread over the next pair's products.
struct Finish {
  const std::uint32_t* sums = nullptr;  // nullptr: there is nothing to finish
  std::byte* plane = nullptr;
  const ByteReduction* reduction = nullptr;
  bool is_first = false;

  inline __attribute__((always_inline)) void unit(int u) const {
    const std::uint32_t* source = sums + 64 * u;
    __m512i s0 = _mm512_load_si512(source);
    __m512i s1 = _mm512_load_si512(source + 16);
    __m512i s2 = _mm512_load_si512(source + 32);
    __m512i s3 = _mm512_load_si512(source + 48);
    __m512i* const target = reinterpret_cast<__m512i*>(plane + 64 * u);
    const __m512i zero = _mm512_setzero_si512();
    const __m512i old = is_first ? zero : _mm512_load_si512(target);
    if (reduction->modulus == 256) {
      _mm512_store_si512(target, _mm512_add_epi8(pack_bytes(s0, s1, s2, s3), old));
      return;
    }
    const ByteReduction& r = *reduction;
    const __m512i offset = all32(0x80000000U);
    const __m512i bias = all32(r.first_bias);
    const __m512i low = all32(r.weights.word[0]);
    s0 = _mm512_dpbusd_epi32(bias, _mm512_xor_si512(s0, offset), low);
    s1 = _mm512_dpbusd_epi32(bias, _mm512_xor_si512(s1, offset), low);
    s2 = _mm512_dpbusd_epi32(bias, _mm512_xor_si512(s2, offset), low);
    s3 = _mm512_dpbusd_epi32(bias, _mm512_xor_si512(s3, offset), low);
    const Residues residues = reduce(s0, s1, s2, s3, r);
    const __m512i modulus = all16(r.modulus);
    const __m512i first = _mm512_add_epi16(residues.first, _mm512_unpacklo_epi8(old, zero));
    const __m512i second = _mm512_add_epi16(residues.second, _mm512_unpackhi_epi8(old, zero));
    _mm512_store_si512(target,
                       _mm512_packus_epi16(_mm512_min_epu16(first, _mm512_sub_epi16(first, modulus)),
                                           _mm512_min_epu16(second, _mm512_sub_epi16(second, modulus))));
  }

  void all_units(int from) const {
    if (sums == nullptr) return;
    for (int u = from; u < units; ++u) unit(u);
  }
};

// Data that the next products need: panels, of which each step prefetches one left and two right lines into
// the L2 cache, and the sums to which they are added.
struct Prefetch {
  const std::byte* left;
  const std::byte* right;
  Sums sums{};
};

// VPDPBUSD: blocks of eight rows by 32 columns.
struct Vnni {
  static constexpr int rows = 8;

  static void add_block(const std::byte* left, const std::byte* right, int steps, const Sums& sums,
                        std::uint32_t* target) {
    __m512i block[rows][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      block[i][0] = block[i][1] = _mm512_setzero_si512();
      if (!sums.adds) continue;
      block[i][0] = _mm512_loadu_si512(target + i * sums.row);
      block[i][1] = _mm512_loadu_si512(target + i * sums.row + sums.right_half);
    }
    for (int s = 0; s < steps; ++s, left += 2 * tile_bytes, right += 2 * tile_bytes) {
      for (int d = 0; d < lanes; ++d) {
        const __m512i first = _mm512_load_si512(right + 64 * d);
        const __m512i second = _mm512_load_si512(right + tile_bytes + 64 * d);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
          int four;
          __builtin_memcpy(&four, left + 64 * i + 4 * d, sizeof four);
          const __m512i row = _mm512_set1_epi32(four);
          // GCC 12 copies the sums if they are added by the intrinsic.
          asm("vpdpbusd %2, %1, %0" : "+v"(block[i][0]) : "v"(first), "v"(row));
          asm("vpdpbusd %2, %1, %0" : "+v"(block[i][1]) : "v"(second), "v"(row));
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      _mm512_storeu_si512(target + i * sums.row, block[i][0]);
      _mm512_storeu_si512(target + i * sums.row + sums.right_half, block[i][1]);
    }
  }

  void multiply(const std::byte* left, const std::byte* right, int steps, const Sums& sums,
                const Finish& previous, const Prefetch&) const {
    previous.all_units(0);
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < lanes; i += rows)
        add_block(left + half * tile_bytes + 64 * i, right, steps, sums,
                  sums.first + half * sums.left_half + i * sums.row);
    }
  }
};

#if defined(__linux__)
// TDPBSUD: tiles 0 to 3 hold the sums, 4 and 5 the left panel's halves, 6 and 7 the right one's. The right
// panel stays in the L1 cache; the left one is read from the L2 cache past it. Units of the pair before are
// finished between the products.
struct Amx {
  Amx() { _tile_loadconfig(&tile_shapes); }
  ~Amx() { _tile_release(); }
  Amx(const Amx&) = delete;
  Amx& operator=(const Amx&) = delete;

  // Prefetches the lines of rows 2 s and 2 s + 1 of sums into the L1 cache.
  static inline __attribute__((always_inline)) void prefetch_sums(const Sums& sums, int s) {
    const std::uint32_t* const row = sums.first + (s >> 3) * sums.left_half + 2 * (s & 7) * sums.row;
    prefetch(row);
    prefetch(row + sums.right_half);
    prefetch(row + sums.row);
    prefetch(row + sums.row + sums.right_half);
  }

  template <bool finishes, bool adds>
  static void run(const std::byte* left, const std::byte* right, int steps, const Sums& sums,
                  const Finish& previous, Prefetch next) {
    const std::int64_t row_bytes = 4 * sums.row;
    std::uint32_t* const lower = sums.first + sums.left_half;
    if (adds) {
      // The sums may have been written by vector instructions, of which GCC's tile loads do not know.
      asm volatile("" ::: "memory");
      _tile_loadd(0, sums.first, row_bytes);
      _tile_loadd(1, sums.first + sums.right_half, row_bytes);
      _tile_loadd(2, lower, row_bytes);
      _tile_loadd(3, lower + sums.right_half, row_bytes);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int s = 0; s < steps; ++s) {
      _tile_stream_loadd(4, left, 64);
      _tile_loadd(6, right, 64);
      _tile_dpbsud(0, 4, 6);
      if (finishes) previous.unit(s);
      _tile_loadd(7, right + tile_bytes, 64);
      _tile_dpbsud(1, 4, 7);
      _tile_stream_loadd(5, left + tile_bytes, 64);
      _tile_dpbsud(2, 5, 6);
      _mm_prefetch(next.left, _MM_HINT_T1);
      _mm_prefetch(next.right, _MM_HINT_T1);
      _mm_prefetch(next.right + 64, _MM_HINT_T1);
      if (!finishes && next.sums.first != nullptr) prefetch_sums(next.sums, s & 15);
      _tile_dpbsud(3, 5, 7);
      left += 2 * tile_bytes;
      right += 2 * tile_bytes;
      next.left += 64;
      next.right += 128;
    }
    _tile_stored(0, sums.first, row_bytes);
    _tile_stored(1, sums.first + sums.right_half, row_bytes);
    _tile_stored(2, lower, row_bytes);
    _tile_stored(3, lower + sums.right_half, row_bytes);
    asm volatile("" ::: "memory");
  }

  void multiply(const std::byte* left, const std::byte* right, int steps, const Sums& sums,
                const Finish& previous, const Prefetch& next) const {
    if (sums.adds) {
      run<false, true>(left, right, steps, sums, previous, next);
    } else if (previous.sums == nullptr) {
      run<false, false>(left, right, steps, sums, previous, next);
    } else {
      run<true, false>(left, right, steps, sums, previous, next);
      previous.all_units(steps);
    }
  }
};
#endif

template <class Unit>
void multiply(const PanelProducts& task) {
  const Unit unit;
  const bool by_residues = task.reductions != nullptr;
  alignas(64) std::uint32_t buffers[2][sums_of_panels];  // of residues
  const auto steps = static_cast<int>((task.length + panel_step - 1) / panel_step);
  const std::int64_t pair_bytes = sums_of_panels * (by_residues ? 1 : 4);
  std::uint64_t seen = 0;  // planes that have a term before the current ones
  Finish previous;
  int current = 0;
  for (int first = 0, last = 0; first < task.term_count; first = last) {
    while (last < task.term_count && task.terms[last].right == task.terms[first].right) ++last;
    const std::byte* const right = task.right + task.terms[first].right * task.right_stride;
    const std::byte* const following =
        last < task.term_count ? task.right + task.terms[last].right * task.right_stride : task.next_right;
    for (std::int64_t j = 0; j < task.right_panels; ++j) {
      const std::byte* const panel = right + j * task.panel_stride;
      const std::byte* const next_panel = j + 1 < task.right_panels ? panel + task.panel_stride : following;
      for (std::int64_t i = 0; i < task.left_panels; ++i) {
        const auto plane_of = [&](int t, std::int64_t pair) {
          return task.planes + task.terms[t].plane * task.plane_stride + pair * pair_bytes;
        };
        const std::int64_t pair = i * task.right_panels + j;
        // Every pair prefetches its share of the next right panel, and of the left panels that follow.
        Prefetch next{task.next_left + (j * task.left_panels + i) * task.panel_stride / task.right_panels,
                      next_panel + i * task.panel_stride / task.left_panels};
        for (int t = first; t < last; ++t) {
          const PanelTerm& term = task.terms[t];
          const bool is_first = task.is_first && (seen >> term.plane & 1) == 0;
          Sums sums{.first = buffers[current]};
          if (!by_residues) {
            sums = {.first = reinterpret_cast<std::uint32_t*>(plane_of(t, pair)), .adds = !is_first};
            next.sums.first = reinterpret_cast<std::uint32_t*>(
                t + 1 < last ? plane_of(t + 1, pair) : plane_of(first, pair + task.right_panels));
          }
          unit.multiply(task.left + term.left * task.left_stride + i * task.panel_stride, panel, steps, sums,
                        previous, next);
          if (!by_residues) continue;
          previous = {.sums = buffers[current],
                      .plane = plane_of(t, pair),
                      .reduction = task.reductions + term.plane,
                      .is_first = is_first};
          current ^= 1;
          if (task.reduces_at_once) {
            previous.all_units(0);
            previous = {};
          }
        }
      }
    }
    for (int t = first; t < last; ++t) seen |= std::uint64_t{1} << task.terms[t].plane;
  }
  previous.all_units(0);
}

// ---------------------------------------------------------------- recombination

inline __m512d halves(__m512i low_words, __m512i high_words, int half) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return _mm512_castsi512_pd(_mm512_permutex2var_epi32(low_words, half == 0 ? first : second, high_words));
}

inline __m512i widened(__m512i words, int half) {
  return _mm512_cvtepu32_epi64(half == 0 ? _mm512_castsi512_si256(words)
                                         : _mm512_extracti64x4_epi64(words, 1));
}

// A row of 16 elements, and the lanes whose value is certainly the exact result rounded once.
struct Row {
  __m512d value[2];
  __mmask8 certain[2];
  __mmask8 tiny[2];  // below the normal floats
};

// Deviations of 16 elements.
struct Deviations {
  __m512d of_factor[2];  // FractionFactor::deviation, with the deviation of the product from its integer
  __mmask16 zero;        // elements whose integer is the product
  __mmask16 small;       // elements whose integer differs from the product by far less than the fraction
};

inline Deviations find_deviations(const PanelResults& task, int row, int column) {
  Deviations result{};
  unsigned zero = 0;
  unsigned small = 0;
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const std::int64_t first = column + 8 * h;
    const __m512d of_fraction = _mm512_loadu_pd(task.column_deviation + first);
    __m512d deviation = _mm512_setzero_pd();
    if (task.row_bounds != nullptr) {
      const PanelBounds& a = *task.row_bounds;
      const PanelBounds& b = *task.column_bounds;
      const auto smaller = [](double x, const double* y) {
        return _mm512_min_pd(_mm512_set1_pd(x), _mm512_loadu_pd(y));
      };
      deviation = _mm512_add_pd(_mm512_add_pd(smaller(a.products[row], b.magnitudes + first),
                                              smaller(a.magnitudes[row], b.products + first)),
                                smaller(a.inexact[row], b.inexact + first));
    }
    // FractionFactor::deviation is times 2^-116.
    const __m512d unit = _mm512_mul_pd(_mm512_loadu_pd(task.column_units + first), _mm512_set1_pd(0x1p-116));
    const __m512d eight_units = _mm512_mul_pd(unit, _mm512_set1_pd(8));
    result.of_factor[h] = _mm512_fmadd_pd(deviation, unit, of_fraction);
    zero |= static_cast<unsigned>(_mm512_cmp_pd_mask(deviation, _mm512_setzero_pd(), _CMP_EQ_OQ)) << 8 * h;
    small |= static_cast<unsigned>(
                 _mm512_cmp_pd_mask(_mm512_mul_pd(deviation, eight_units), of_fraction, _CMP_LE_OQ))
             << 8 * h;
  }
  result.zero = static_cast<__mmask16>(zero);
  result.small = static_cast<__mmask16>(small);
  return result;
}

// fraction_of_digits() and rounded_product() or rounded_update() of arith/residue/fraction_sums.hpp for the
// 16 elements of row `row`. `old` has beta times the elements of C.
inline __attribute__((always_inline)) Row round_row(const __m512i (&sums)[PanelFractions::digits],
                                                    const PanelResults& task, int row, int column,
                                                    const Deviations& deviations, bool updates,
                                                    const __m512d (&old)[2]) {
  __m512i pair[PanelFractions::digits / 2];
#pragma GCC unroll 6
  for (int d = 0; d < PanelFractions::digits / 2; ++d)
    pair[d] = _mm512_add_epi32(sums[2 * d], _mm512_slli_epi32(sums[2 * d + 1], 8));
  const double row_offset = task.row_offsets[row];
  std::uint64_t offset_bits;
  __builtin_memcpy(&offset_bits, &row_offset, sizeof offset_bits);
  const auto exponent = static_cast<std::uint32_t>(offset_bits >> 32) & 0xfff00000U;
  const __m512i x_words = _mm512_add_epi32(pair[4], _mm512_slli_epi32(pair[5], 16));
  const __m512i y_exponent =
      _mm512_set1_epi64(static_cast<std::int64_t>(std::uint64_t{exponent - (32U << 20)} << 32));
  const __m512i l_exponent =
      _mm512_set1_epi64(static_cast<std::int64_t>(std::uint64_t{exponent - (64U << 20)} << 32));
  const __m512d offset = _mm512_set1_pd(row_offset);
  Row result{};
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const auto word = [&](int d, __m512i word_exponent) {
      return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_or_si512(word_exponent, widened(pair[d], h)),
                                                  _mm512_slli_epi64(widened(pair[d + 1], h), 16)));
    };
    const __m512d x = halves(x_words, all32(exponent), h);
    const __m512d y = word(2, y_exponent);
    const __m512d l = word(0, l_exponent);
    const __m512d a = _mm512_sub_pd(x, offset);
    const __m512d high = _mm512_add_pd(a, y);
    const __m512d low = _mm512_add_pd(_mm512_sub_pd(y, _mm512_sub_pd(high, a)), l);
    const __m512d factor = _mm512_loadu_pd(task.column_high + column + 8 * h);
    const __m512d p = _mm512_mul_pd(high, factor);
    const __m512d q = _mm512_fmadd_pd(low, factor,
                                      _mm512_fmadd_pd(high, _mm512_loadu_pd(task.column_low + column + 8 * h),
                                                      _mm512_fmsub_pd(high, factor, p)));
    const __m512d deviation = deviations.of_factor[h];
    const __m512d upper = _mm512_fmadd_pd(offset, deviation, q);
    const __m512d lower = _mm512_fnmadd_pd(offset, deviation, q);
    __m512d most;
    __m512d least;
    if (!updates) {
      most = _mm512_add_pd(p, upper);
      least = _mm512_add_pd(p, lower);
    } else {
      const __m512d sum = _mm512_add_pd(p, old[h]);
      const __m512d part = _mm512_sub_pd(sum, p);
      const __m512d error =
          _mm512_add_pd(_mm512_sub_pd(p, _mm512_sub_pd(sum, part)), _mm512_sub_pd(old[h], part));
      most = _mm512_add_pd(sum, _mm512_add_round_pd(error, upper, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
      least =
          _mm512_add_pd(sum, _mm512_add_round_pd(error, lower, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
    }
    result.value[h] = most;
    if (task.is_double) {
      result.certain[h] = _mm512_cmp_pd_mask(most, least, _CMP_EQ_OQ);
    } else {
      // Rounding to double and then to float is right unless a double is halfway between two floats. Results
      // below the normal floats are left to the caller.
      const __m512i half_bits = _mm512_set1_epi64(0x10000000);
      const __m512i mask = _mm512_set1_epi64(0x1fffffff);
      const auto is_tie = [&](__m512d v) {
        return _mm512_cmpeq_epi64_mask(_mm512_and_si512(_mm512_castpd_si512(v), mask), half_bits);
      };
      const __mmask8 equal = _mm256_cmp_ps_mask(_mm512_cvtpd_ps(most), _mm512_cvtpd_ps(least), _CMP_EQ_OQ);
      result.tiny[h] = _mm512_cmp_pd_mask(_mm512_abs_pd(least), _mm512_set1_pd(0x1p-125), _CMP_LT_OQ);
      result.certain[h] = static_cast<__mmask8>(equal & ~result.tiny[h] & ~is_tie(most) & ~is_tie(least));
    }
  }
  return result;
}

// Numbers of 16 elements of a row of C, as doubles: of real ones, the two parts of complex ones, or the
// two words of double-double ones.
template <bool is_pair>
struct RowOfC {
  static constexpr std::int64_t numbers = is_pair ? 2 : 1;  // of an element
  __m512d part[numbers][2] = {};
};

template <class T>
inline void load(const T* c, __mmask16 mask, RowOfC<false>& row) {
  load(c, 1, mask, row.part[0][0], row.part[0][1]);
}
template <class T>
inline void load(const T* c, __mmask16 mask, RowOfC<true>& row) {
  // Lanes between those of the mask exist, too; so all lanes before the last one may be read.
  const auto before = static_cast<__mmask16>(mask == 0 ? 0 : (1U << (32 - __builtin_clz(mask))) - 1);
  Parts parts;
  load(c, 1, before, parts);
  for (int h = 0; h < 2; ++h) {
    row.part[0][h] = parts.re[h];
    row.part[1][h] = parts.im[h];
  }
}

template <bool is_pair>
inline void load_row(const PanelResults& task, std::int64_t row, int column, __mmask16 mask,
                     RowOfC<is_pair>& old) {
  const std::int64_t first = RowOfC<is_pair>::numbers * (row * task.row_stride + column);
  if (task.is_double) {
    load(static_cast<const double*>(task.c) + first, mask, old);
  } else {
    load(static_cast<const float*>(task.c) + first, mask, old);
  }
}

// Stores eight numbers.
inline void store(double* c, unsigned mask, __m512d x) {
  _mm512_mask_storeu_pd(c, static_cast<__mmask8>(mask), x);
}
inline void store(float* c, unsigned mask, __m512d x) {
  _mm256_mask_storeu_ps(c, static_cast<__mmask8>(mask), _mm512_cvtpd_ps(x));
}

template <class T>
inline void store(T* c, unsigned mask, const RowOfC<false>& row) {
  store(c, mask, row.part[0][0]);
  store(c + 8, mask >> 8, row.part[0][1]);
}
template <class T>
inline void store(T* c, unsigned mask, const RowOfC<true>& row) {
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  for (int h = 0; h < 2; ++h, mask >>= 8, c += 16) {
    unsigned pairs = 0;  // bits 2 i and 2 i + 1 belong to bit i of the mask
    for (unsigned i = 0; i < 8; ++i) pairs |= (mask >> i & 1) * 3 << 2 * i;
    store(c, pairs, _mm512_permutex2var_pd(row.part[0][h], low, row.part[1][h]));
    store(c + 8, pairs >> 8, _mm512_permutex2var_pd(row.part[0][h], high, row.part[1][h]));
  }
}

template <bool is_pair>
inline void store_row(const PanelResults& task, std::int64_t row, int column, __mmask16 mask,
                      const RowOfC<is_pair>& value) {
  const std::int64_t first = RowOfC<is_pair>::numbers * (row * task.row_stride + column);
  if (task.is_double) {
    store(static_cast<double*>(task.c) + first, mask, value);
  } else {
    store(static_cast<float*>(task.c) + first, mask, value);
  }
}

constexpr int units_ahead = 4;  // whose residues are prefetched

// Words of four residues each, less 128, of the elements of a unit: word w of row e. Lanes are columns.
struct ResidueWords {
  __m512i word[PanelFractions::max_words][4];
};

inline void load_words(const PanelResults& task, int unit, ResidueWords& words) {
  const int residues = task.plane_count;
  const __m512i zero = _mm512_setzero_si512();
  for (int t = 0; t < residues; t += 4) {
    const auto plane = [&](int i) {
      if (t + i >= residues) return zero;
      const std::byte* const source = task.planes + (t + i) * task.plane_stride + 64 * unit;
      _mm_prefetch(source + 64 * units_ahead, _MM_HINT_T0);
      return _mm512_load_si512(source);
    };
    const __m512i p0 = plane(0);
    const __m512i p1 = plane(1);
    const __m512i p2 = plane(2);
    const __m512i p3 = plane(3);
    const __m512i low01 = _mm512_unpacklo_epi8(p0, p1);
    const __m512i low23 = _mm512_unpacklo_epi8(p2, p3);
    const __m512i high01 = _mm512_unpackhi_epi8(p0, p1);
    const __m512i high23 = _mm512_unpackhi_epi8(p2, p3);
    const __m512i rows[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                             _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) words.word[t / 4][e] = _mm512_xor_si512(rows[e], _mm512_set1_epi8(-128));
  }
}

// Elements of a unit whose integer is zero, in the order of the planes: of real elements, or of part
// `part` of complex ones (arith/residue/complex_residue.hpp). Results 0 are the only ones that fractions
// never prove though they are common.
template <bool is_complex>
__attribute__((noinline)) __mmask64 find_zeros(const PanelResults& task, int unit, int part) {
  const auto plane = [&](int t) {
    return _mm512_load_si512(task.planes + t * task.plane_stride + 64 * unit);
  };
  __mmask64 zeros = ~__mmask64{0};
  if constexpr (!is_complex) {
    for (int t = 0; t < task.plane_count; ++t) zeros &= _mm512_testn_epi8_mask(plane(t), plane(t));
    return zeros;
  }
  const auto modulus = [&](int t) { return _mm512_set1_epi8(static_cast<char>(task.reductions[t].modulus)); };
  // m - x modulo m.
  const auto negated = [](__m512i x, __m512i m) {
    return _mm512_maskz_sub_epi8(_mm512_test_epi8_mask(x, x), m, x);
  };
  for (int t = 0; t < task.planes_of_roots; t += 2) {
    const __m512i q = part == 0 ? negated(plane(t + 1), modulus(t)) : plane(t + 1);
    zeros &= _mm512_cmpeq_epi8_mask(plane(t), q);
  }
  for (int t = task.planes_of_roots; t < task.plane_count; t += 3) {
    const __m512i a = plane(t);
    const __m512i b = plane(t + 1);
    if (part == 0) {
      zeros &= _mm512_cmpeq_epi8_mask(a, b);
      continue;
    }
    // a + b modulo m is a - (m - b), plus m if that is negative.
    const __m512i minus_b = negated(b, modulus(t));
    const __m512i difference = _mm512_sub_epi8(a, minus_b);
    const __m512i sum =
        _mm512_mask_add_epi8(difference, _mm512_cmplt_epu8_mask(a, minus_b), difference, modulus(t));
    zeros &= _mm512_cmpeq_epi8_mask(plane(t + 2), sum);
  }
  return zeros;
}

// Lanes of row e of a unit from a mask in the order of the planes.
inline unsigned lanes_of_row(__mmask64 mask, int e) {
  const std::uint64_t row = mask >> 4 * e;
  return static_cast<unsigned>((row & 0xf) | (row >> 12 & 0xf0) | (row >> 24 & 0xf00) | (row >> 36 & 0xf000));
}

// Sums of the digits of a row.
template <class Fractions>
inline __attribute__((always_inline)) void add_digits(const Fractions& table, const ResidueWords& words,
                                                      int row, __m512i (&sums)[Fractions::digits]) {
#pragma GCC unroll 20
  for (int d = 0; d < Fractions::digits; ++d) sums[d] = all32(table.first[d]);
  const int count = (table.residues + 3) / 4;
  for (int w = 0; w < count; ++w) {
    const __m512i x = words.word[w][row];
#pragma GCC unroll 20
    for (int d = 0; d < Fractions::digits; ++d) {
      // GCC 12 copies the sums if they are added by the intrinsic.
      asm("vpdpbusd %2, %1, %0" : "+v"(sums[d]) : "v"(all32(table.digit[d][w])), "v"(x));
    }
  }
}

// Sum of two numbers and its error.
struct SumAndError {
  __m512d sum;
  __m512d error;
};
inline SumAndError two_sum(__m512d x, __m512d y) {
  const __m512d sum = _mm512_add_pd(x, y);
  const __m512d part = _mm512_sub_pd(sum, x);
  return {sum, _mm512_add_pd(_mm512_sub_pd(x, _mm512_sub_pd(sum, part)), _mm512_sub_pd(y, part))};
}
inline SumAndError fast_two_sum(__m512d x, __m512d y) {  // |x| >= |y|, or x = 0
  const __m512d sum = _mm512_add_pd(x, y);
  return {sum, _mm512_sub_pd(y, _mm512_sub_pd(sum, x))};
}
inline SumAndError two_product(__m512d x, __m512d y) {
  const __m512d product = _mm512_mul_pd(x, y);
  return {product, _mm512_fmsub_pd(x, y, product)};
}

// f1, f2 and f3 of arith/residue/pair_fractions.hpp for half h of a row, times the row's unit.
struct PairFraction {
  __m512d f1, f2, f3;
};
inline PairFraction fraction_of_digits(const __m512i (&sums)[PanelPairFractions::digits], int h,
                                       double unit) {
  const __m512i word_mask = _mm512_set1_epi64(0xffffffff);
  __m512i words[5];
  __m512i carry = _mm512_setzero_si512();
#pragma GCC unroll 5
  for (int w = 0; w < 5; ++w) {
    const __m512i low = _mm512_add_epi32(sums[4 * w], _mm512_slli_epi32(sums[4 * w + 1], 8));
    const __m512i high = _mm512_add_epi32(sums[4 * w + 2], _mm512_slli_epi32(sums[4 * w + 3], 8));
    const __m512i sum =
        _mm512_add_epi64(_mm512_add_epi64(widened(low, h), _mm512_slli_epi64(widened(high, h), 16)), carry);
    words[w] = _mm512_and_si512(sum, word_mask);
    carry = _mm512_srli_epi64(sum, 32);
  }
  const __m512i top = _mm512_or_si512(_mm512_slli_epi64(words[4], 32), words[3]);
  const __m512d f1 = _mm512_cvtepi64_pd(top);
  const __m512i rest = _mm512_sub_epi64(top, _mm512_cvtpd_epi64(f1));
  const __m512i middle =
      _mm512_add_epi64(_mm512_add_epi64(_mm512_slli_epi64(rest, 42), _mm512_slli_epi64(words[2], 10)),
                       _mm512_srli_epi64(words[1], 22));
  const __m512i last =
      _mm512_add_epi64(_mm512_slli_epi64(_mm512_and_si512(words[1], _mm512_set1_epi64(0x3fffff)), 31),
                       _mm512_srli_epi64(words[0], 1));
  return {_mm512_mul_pd(f1, _mm512_set1_pd(0x1p96 * unit)),
          _mm512_mul_pd(_mm512_cvtepi64_pd(middle), _mm512_set1_pd(0x1p54 * unit)),
          _mm512_mul_pd(_mm512_cvtepi64_pd(last), _mm512_set1_pd(2 * unit))};
}

// Rounds half h of row `row` to pairs hi + lo, and returns the lanes that are certain.
inline __mmask8 round_pairs(const __m512i (&sums)[PanelPairFractions::digits], const PanelResults& task,
                            int row, int column, int h, __m512d deviation, __m512d& hi, __m512d& lo) {
  const double unit = task.row_units[row];
  const PairFraction f = fraction_of_digits(sums, h, unit);
  const __m512d m1 = _mm512_loadu_pd(task.column_high + column + 8 * h);
  const __m512d m2 = _mm512_loadu_pd(task.column_low + column + 8 * h);
  const __m512d m3 = _mm512_loadu_pd(task.column_last + column + 8 * h);
  const SumAndError first = two_product(f.f1, m1);
  const SumAndError second = two_product(f.f1, m2);
  const SumAndError third = two_product(f.f2, m1);
  const SumAndError s = two_sum(first.error, second.sum);
  const SumAndError t = two_sum(s.sum, third.sum);
  __m512d small = _mm512_fmadd_pd(f.f1, m3, _mm512_fmadd_pd(f.f3, m1, _mm512_mul_pd(f.f2, m2)));
  small = _mm512_add_pd(
      small, _mm512_add_pd(_mm512_add_pd(second.error, third.error), _mm512_add_pd(s.error, t.error)));
  const SumAndError high = fast_two_sum(first.sum, t.sum);
  const SumAndError middle = two_sum(high.error, small);
  const SumAndError upper = fast_two_sum(high.sum, middle.sum);
  const SumAndError lower = two_sum(upper.error, middle.error);
  hi = upper.sum;
  lo = lower.sum;
  const __m512d most = _mm512_mul_pd(deviation, _mm512_set1_pd(0x1p116 * unit));
  const auto rounds_to_lo = [&](__m512d rest) {
    return _mm512_cmp_pd_mask(_mm512_add_pd(lo, rest), lo, _CMP_EQ_OQ);
  };
  const __m512d above = _mm512_mul_pd(lo, _mm512_set1_pd(1 + 0x1p-40));
  return rounds_to_lo(_mm512_add_pd(lower.error, most)) & rounds_to_lo(_mm512_sub_pd(lower.error, most)) &
         _mm512_cmp_pd_mask(_mm512_add_pd(hi, above), hi, _CMP_EQ_OQ);
}

enum class ElementKind { real, complex, pair };

// Recombines row `e` of a unit, as far as its elements are open. Returns those that stay open though exact
// integers probably prove them.
template <ElementKind kind>
inline __attribute__((always_inline)) unsigned recombine_row(const PanelResults& task,
                                                             const ResidueWords& words, int unit, int e) {
  constexpr int parts = kind == ElementKind::complex ? 2 : 1;
  const int row = (unit >> 3) * 16 + (unit & 3) * 4 + e;
  const int column = (unit >> 2 & 1) * 16;
  const auto open = static_cast<__mmask16>(task.open[row] >> column);
  if (open == 0) return 0;
  const bool updates = task.beta != 0;  // never for pairs
  RowOfC<kind != ElementKind::real> old;
  if (kind != ElementKind::pair && updates) load_row(task, row, column, open, old);
  const Deviations deviations = find_deviations(task, row, column);
  RowOfC<kind != ElementKind::real> result;
  unsigned certain = open;
  unsigned tiny = 0;
#pragma GCC unroll 2
  for (int part = 0; part < parts; ++part) {
    unsigned known = 0;
    if constexpr (kind == ElementKind::pair) {
      __m512i sums[PanelPairFractions::digits];
      add_digits(*task.pair_fractions, words, e, sums);
      for (int h = 0; h < 2; ++h) {
        known |= static_cast<unsigned>(round_pairs(sums, task, row, column, h, deviations.of_factor[h],
                                                   result.part[0][h], result.part[1][h]))
                 << 8 * h;
      }
    } else {
      for (__m512d& x : old.part[part]) {
        if (updates) x = _mm512_mul_pd(x, _mm512_set1_pd(task.beta));
      }
      __m512i sums[PanelFractions::digits];
      add_digits(*task.fractions[part], words, e, sums);
      const Row rounded = round_row(sums, task, row, column, deviations, updates, old.part[part]);
      known = rounded.certain[0] | rounded.certain[1] << 8U;
      tiny |= rounded.tiny[0] | rounded.tiny[1] << 8U;
      result.part[part][0] = rounded.value[0];
      result.part[part][1] = rounded.value[1];
    }
    const unsigned unknown = open & ~known & deviations.zero;
    if (unknown != 0) {
      const unsigned zeros =
          lanes_of_row(find_zeros<kind == ElementKind::complex>(task, unit, part), e) & unknown;
      for (int h = 0; h < 2; ++h) {
        // The sum 0 gives 0, or the old number if that is not 0, too.
        auto settled = static_cast<__mmask8>(zeros >> 8 * h);
        const __m512d x = old.part[part][h];
        if (updates) settled &= _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_NEQ_OQ);
        result.part[part][h] = _mm512_mask_mov_pd(result.part[part][h], settled, x);
        if (kind == ElementKind::pair) result.part[1][h] = _mm512_mask_mov_pd(result.part[1][h], settled, x);
        known |= static_cast<unsigned>(settled) << 8 * h;
      }
    }
    certain &= known;
  }
  if (task.writes) store_row(task, row, column, static_cast<__mmask16>(certain), result);
  task.open[row] &= ~(certain << column);
  return open & ~certain & (deviations.small | tiny);
}

// Recombines residues of four rows. Returns true if exact integers probably prove elements that stay open.
template <ElementKind kind>
bool recombine_residues(const PanelResults& task, int unit) {
  ResidueWords words;
  load_words(task, unit, words);
  unsigned undecided = 0;
  for (int e = 0; e < 4; ++e) undecided |= recombine_row<kind>(task, words, unit, e);
  return undecided != 0;
}

// Recombines digits of four rows: the weighted sum of the planes is exact in 64 bits.
void recombine_digits(const PanelResults& task, int unit) {
  const int row = (unit >> 3) * 16 + (unit & 3) * 4;
  const int column = (unit >> 2 & 1) * 16;
  for (int e = 0; e < 4; ++e) {
    const auto columns = static_cast<__mmask16>(task.open[row + e] >> column);
    if (columns == 0) continue;
    __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int g = 0; g < task.plane_count; ++g) {
      const __m512i shift = all32(static_cast<std::uint32_t>(task.row_shifts[g * panel_vectors + row + e]));
      const __m512i plane = _mm512_sub_epi32(
          _mm512_load_si512(task.planes + g * task.plane_stride + 256 * unit + 64 * e), shift);
      sums[0] = _mm512_add_epi64(_mm512_slli_epi64(sums[0], 8),
                                 _mm512_cvtepi32_epi64(_mm512_castsi512_si256(plane)));
      sums[1] = _mm512_add_epi64(_mm512_slli_epi64(sums[1], 8),
                                 _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(plane, 1)));
    }
    RowOfC<false> old;
    if (task.beta != 0) load_row(task, row + e, column, columns, old);
    RowOfC<false> results;
    for (int h = 0; h < 2; ++h) {
      const __m512d unscale = _mm512_mul_pd(_mm512_set1_pd(task.row_units[row + e]),
                                            _mm512_loadu_pd(task.column_units + column + 8 * h));
      const __m512d sum = _mm512_mul_pd(_mm512_cvtepi64_pd(sums[h]), _mm512_set1_pd(task.smallest_weight));
      __m512d& result = results.part[0][h];
      result = _mm512_mul_pd(_mm512_set1_pd(task.alpha), _mm512_mul_pd(sum, unscale));
      if (task.beta != 0)
        result = _mm512_add_pd(result, _mm512_mul_pd(_mm512_set1_pd(task.beta), old.part[0][h]));
    }
    store_row(task, row + e, column, columns, results);
  }
}

bool recombine(const PanelResults& task) {
  bool undecided = false;
  for (int u = 0; u < units; ++u) {
    const std::uint32_t* const open = task.open + (u >> 3) * 16 + (u & 3) * 4;
    if (static_cast<__mmask16>((open[0] | open[1] | open[2] | open[3]) >> (u >> 2 & 1) * 16) == 0) continue;
    if (task.pair_fractions != nullptr) {
      undecided |= recombine_residues<ElementKind::pair>(task, u);
    } else if (task.fractions[0] == nullptr) {
      recombine_digits(task, u);
    } else if (task.is_complex) {
      undecided |= recombine_residues<ElementKind::complex>(task, u);
    } else {
      undecided |= recombine_residues<ElementKind::real>(task, u);
    }
  }
  return undecided;
}

#if defined(__linux__)
// Products of pairs of tiles that are loaded each time: loads tell the two rates apart, which products of
// zeros or of tiles that stay in registers do not.
double measure_amx() {
  constexpr int rounds = 12;
  constexpr int steps = 16;
  alignas(64) std::byte tiles[4 * tile_bytes];
  for (std::int64_t i = 0; i < 4 * tile_bytes; ++i) tiles[i] = static_cast<std::byte>(37 * i);
  alignas(64) std::uint32_t sums[256];
  const auto seconds = [] {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const Amx unit;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  double least = 1;
  for (int round = 0; round < rounds; ++round) {
    const double begin = seconds();
    for (int s = 0; s < steps; ++s) {
      _tile_loadd(4, tiles, 64);
      _tile_loadd(6, tiles + 2 * tile_bytes, 64);
      _tile_dpbsud(0, 4, 6);
      _tile_loadd(7, tiles + 3 * tile_bytes, 64);
      _tile_dpbsud(1, 4, 7);
      _tile_loadd(5, tiles + tile_bytes, 64);
      _tile_dpbsud(2, 5, 6);
      _tile_dpbsud(3, 5, 7);
    }
    _tile_stored(0, sums, 64);
    const double end = seconds();
    // The first rounds wake the unit.
    if (round >= rounds / 3 && end - begin < least) least = end - begin;
  }
  constexpr double operations = 4.0 * 2 * 16 * 16 * 64;
  return steps * operations / least * 1e-12;
}
#endif

// ---------------------------------------------------------------- int8 slices in memory

constexpr std::int64_t line_bytes = 64;

// Inner indices of a panel: a right one stays in the L1 cache, all panels of a tile in the L2 cache.
constexpr std::int64_t slice_depth = 512;

// Edge of a tile of C, in vectors.
template <class Unit>
constexpr std::int64_t slice_tile = 128;
#if defined(__linux__)
template <>
inline constexpr std::int64_t slice_tile<Amx> = 256;
#endif

// Packs 16 vectors into the tiles of a panel: of the right operand, whose bytes become unsigned by 128 more,
// or of the left one, whose sums it adds up. Here bytes of both are in the order of the inner indices.
template <bool is_left>
void pack_vectors(const std::int8_t* vectors, std::int64_t stride, std::int64_t length, std::byte* tile,
                  std::int32_t* vector_sums) {
  alignas(64) std::byte rows[tile_bytes];
  __m512i sums[lanes];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::int64_t p = 0; p < length; p += panel_step, tile += 2 * tile_bytes) {
    const std::int64_t left = length - p;
    const __mmask64 inside = left >= panel_step ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    for (std::int64_t v = 0; v < lanes; ++v) {
      const __m512i row = _mm512_maskz_loadu_epi8(inside, vectors + v * stride + p);
      if (is_left) {
        _mm512_store_si512(tile + 64 * v, row);
        sums[v] = _mm512_dpbusd_epi32(sums[v], _mm512_set1_epi8(1), row);
      } else {
        _mm512_store_si512(rows + 64 * v, _mm512_xor_si512(row, _mm512_set1_epi8(-128)));
      }
    }
    if (!is_left) transpose(rows, tile, false);
  }
  for (std::int64_t v = 0; is_left && v < lanes; ++v) vector_sums[v] += _mm512_reduce_add_epi32(sums[v]);
}

// Int8Kernels::add_product. Columns of the sums belong to vectors of b, which is the left operand.
template <class Unit>
void add_product(const Int8Block& block, std::byte* packed, std::uint32_t* sums) {
  constexpr std::int64_t tile = slice_tile<Unit>;
  constexpr std::int64_t panel_bytes = panel_vectors * slice_depth;
  std::byte* const right = packed + (line_bytes - reinterpret_cast<std::uintptr_t>(packed) % line_bytes);
  std::byte* const left = right + tile * slice_depth;
  alignas(64) std::int32_t vector_sums[tile] = {};
  const auto half_panel = [](std::byte* panels, std::int64_t vector) {
    return panels + vector / panel_vectors * panel_bytes + vector / lanes % 2 * tile_bytes;
  };
  const auto padded = [](std::int64_t vectors) {
    return (vectors + panel_vectors - 1) / panel_vectors * panel_vectors;
  };
  const Unit unit;
  for (std::int64_t p = 0; p < block.length; p += slice_depth) {
    const std::int64_t length = block.length - p < slice_depth ? block.length - p : slice_depth;
    for (std::int64_t i = 0; i < padded(block.rows); i += lanes)
      pack_vectors<false>(block.a + i * block.stride + p, block.stride, length, half_panel(right, i),
                          nullptr);
    for (std::int64_t j = 0; j < padded(block.columns); j += lanes)
      pack_vectors<true>(block.b + j * block.stride + p, block.stride, length, half_panel(left, j),
                         vector_sums + j);
    const auto steps = static_cast<int>((length + panel_step - 1) / panel_step);
    for (std::int64_t i = 0; i < padded(block.rows); i += panel_vectors) {
      const std::byte* const right_panel = right + i * slice_depth;
      for (std::int64_t j = 0; j < padded(block.columns); j += panel_vectors) {
        const Sums target{.first = sums + j * tile + i,
                          .left_half = lanes * tile,
                          .right_half = lanes,
                          .row = tile,
                          .adds = true};
        Sums next = target;
        next.first += panel_vectors * tile;
        unit.multiply(left + j * slice_depth, right_panel, steps, target, {}, {left, right_panel, next});
      }
    }
  }
  // The right bytes are digits plus 128: 128 times the sum of the left vector is subtracted.
  for (std::int64_t j = 0; j < block.columns; ++j) {
    const __m512i shift = all32(static_cast<std::uint32_t>(vector_sums[j]) << 7);
    for (std::int64_t i = 0; i < padded(block.rows); i += lanes) {
      std::uint32_t* const sum = sums + j * tile + i;
      _mm512_storeu_si512(sum, _mm512_sub_epi32(_mm512_loadu_si512(sum), shift));
    }
  }
}

}  // namespace

const Int8Kernels int8_avx512{.name = "avx512",
                              .relative_rate = 3,
                              .tile = slice_tile<Vnni>,
                              .packed_bytes = 2 * slice_tile<Vnni> * slice_depth + line_bytes,
                              .add_product = add_product<Vnni>,
                              .panels = &panels_avx512};
#if defined(__linux__)
const Int8Kernels int8_amx{.name = "amx",
                           .relative_rate = 7,
                           .tile = slice_tile<Amx>,
                           .packed_bytes = 2 * slice_tile<Amx> * slice_depth + line_bytes,
                           .add_product = add_product<Amx>,
                           .panels = &panels_amx};
#endif

const PanelKernels panels_avx512{
    .measure_rate = nullptr, .split = split, .multiply = multiply<Vnni>, .recombine = recombine};
#if defined(__linux__)
const PanelKernels panels_amx{
    .measure_rate = measure_amx, .split = split, .multiply = multiply<Amx>, .recombine = recombine};
#endif

}  // namespace kintsugi::core

#endif
