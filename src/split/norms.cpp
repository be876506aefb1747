#include "split/norms.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <type_traits>

#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Elements of one vector that are processed together.
constexpr int lanes = 64;

// Vectors whose lanes are on the stack together.
constexpr std::int64_t vectors_in_lanes = 8;

// Eight numbers. (The compiler does not vectorise loops with as many sums by itself.)
constexpr int vector_lanes = 8;
using Doubles [[gnu::vector_size(64)]] = double;
using Words [[gnu::vector_size(64)]] = std::uint64_t;
using Floats [[gnu::vector_size(32)]] = float;

[[gnu::always_inline]] inline void load(const double* source, Doubles& x) {
  __builtin_memcpy(&x, source, sizeof x);
}
[[gnu::always_inline]] inline void load(const float* source, Doubles& x) {
  Floats y;
  __builtin_memcpy(&y, source, sizeof y);
  x = __builtin_convertvector(y, Doubles);
}

// Inner indices whose elements are added to the sums of lanes, which are then exact.
constexpr std::int64_t most_added = std::int64_t{1} << 16;

// Ordinary vectors have no element that underflows when it is scaled (norm_scaling()), so that every non-zero
// one counts, and their first factor is the whole one.
struct OrdinaryNormSums : NormSums {};

// NormSums of eight lanes. Squares are integers of at most 2^30.
template <bool ordinary>
struct NormLanesOf {
  using Sums = std::conditional_t<ordinary, OrdinaryNormSums, NormSums>;

  Doubles squares{};
  Doubles magnitudes{};
  Words logarithms{};
  Words elements{};

  [[gnu::always_inline]] inline void add(const Doubles& x, const Doubles& first, const Doubles& second) {
    constexpr std::uint64_t all_but_sign = ~std::uint64_t{0} >> 1;
    const auto magnitude = reinterpret_cast<Doubles>(reinterpret_cast<Words>(x) & all_but_sign);
    const auto one = reinterpret_cast<Words>(Doubles{} + 1);
    const Doubles scaled = ordinary ? magnitude * first : magnitude * first * second;
    const Doubles nearest = (scaled + 0x1p52) - 0x1p52;
    auto is_below = reinterpret_cast<Words>(nearest < scaled);
    const Words upper = reinterpret_cast<Words>(scaled) >> 32;
    if constexpr (ordinary) {
      const Doubles above = nearest + reinterpret_cast<Doubles>(is_below & one);
      squares += above * above;
      magnitudes += above;
      logarithms += upper;
      elements -= reinterpret_cast<Words>(scaled != 0);
      return;
    }
    is_below |= reinterpret_cast<Words>(magnitude != 0) & reinterpret_cast<Words>(scaled == 0);
    const Doubles above = nearest + reinterpret_cast<Doubles>(is_below & one);
    const auto is_normal = reinterpret_cast<Words>(upper >= norm_detail::upper_half_of_normal);
    squares += above * above;
    magnitudes += above;
    logarithms += upper & is_normal;
    elements -= is_normal;
  }

  void add_lane_to(NormSums& sums, int i) const {
    sums.add({static_cast<std::uint64_t>(squares[i]), static_cast<std::uint64_t>(magnitudes[i]),
              logarithms[i], elements[i]});
  }
};

using NormLanes = NormLanesOf<false>;
using OrdinaryNormLanes = NormLanesOf<true>;

// The same sums over ordinary FP32 vectors, in 16 lanes of FP32. The scaled elements' exponents are between
// -least_exponent and norm_digits.
using Singles [[gnu::vector_size(64)]] = float;
using SingleWords [[gnu::vector_size(64)]] = std::uint32_t;
using SingleIntegers [[gnu::vector_size(64)]] = std::int32_t;
constexpr int single_lanes = 16;

struct SingleNormLanes {
  static constexpr int least_exponent = 100;
  // The upper halves of a double's bits have 20 of its significand, and another bias.
  static constexpr std::uint64_t bias_of_doubles = std::uint64_t{1023 - 127} << 20;
  // Additions after which fold() must be called: squares are at most 2^30, logarithms are below 2^28.
  static constexpr int most_unfolded = 3;

  // Sums of 32 bits, and those in which they are added up.
  struct Folded {
    SingleWords latest{};
    Words even{}, odd{};

    [[gnu::always_inline]] inline void fold() {
      const auto pairs = reinterpret_cast<Words>(latest);
      even += pairs & 0xffffffff;
      odd += pairs >> 32;
      latest = SingleWords{};
    }
    std::uint64_t lane(int i) const { return i % 2 == 0 ? even[i / 2] : odd[i / 2]; }
  };

  SingleWords magnitudes{};
  SingleWords elements{};
  Folded logarithms;
  Folded squares;

  [[gnu::always_inline]] inline void add(const Singles& x, const Singles& factor) {
    constexpr std::uint32_t all_but_sign = ~0U >> 1;
    const auto magnitude = reinterpret_cast<Singles>(reinterpret_cast<SingleWords>(x) & all_but_sign);
    const Singles scaled = magnitude * factor;
    // Comparisons would move masks to vectors; signs of differences are vectors already.
    const auto truncated = __builtin_convertvector(scaled, SingleIntegers);
    const Singles rest = __builtin_convertvector(truncated, Singles) - scaled;
    const auto is_below = reinterpret_cast<SingleWords>(rest) >> 31;
    const SingleWords integer = reinterpret_cast<SingleWords>(truncated) + is_below;
    const auto bits = reinterpret_cast<SingleWords>(scaled);
    magnitudes += integer;
    elements += -bits >> 31;
    logarithms.latest += bits >> 3;
    squares.latest += integer * integer;
  }

  [[gnu::always_inline]] inline void fold() {
    logarithms.fold();
    squares.fold();
  }

  void add_lane_to(NormSums& sums, int i) const {
    const std::uint64_t count = elements[i];
    sums.add({squares.lane(i), magnitudes[i], logarithms.lane(i) + count * bias_of_doubles, count});
  }
};

// RoundingBound of eight lanes.
struct BoundLanes {
  using Sums = RoundingBound;

  Doubles inexact{};
  Doubles magnitudes{};

  [[gnu::always_inline]] inline void add(const Doubles& x, const Doubles& first, const Doubles& second) {
    constexpr std::uint64_t all_but_sign = ~std::uint64_t{0} >> 1;
    const auto magnitude = reinterpret_cast<Doubles>(reinterpret_cast<Words>(x) & all_but_sign);
    const Doubles scaled = magnitude * first * second;
    const Doubles nearest = (scaled + 0x1p52) - 0x1p52;
    const auto has_fraction = reinterpret_cast<Words>(scaled < 0x1p52);
    const Doubles integer = reinterpret_cast<Doubles>((reinterpret_cast<Words>(nearest) & has_fraction) |
                                                      (reinterpret_cast<Words>(scaled) & ~has_fraction));
    // A non-zero element far below 1/2 may underflow to zero when it is scaled; it also differs from its
    // integer.
    const auto is_rounded = reinterpret_cast<Words>(integer != scaled);
    const auto is_lost = reinterpret_cast<Words>(magnitude != 0) & reinterpret_cast<Words>(scaled == 0);
    const auto one = reinterpret_cast<Words>(Doubles{} + 1);
    inexact += reinterpret_cast<Doubles>((is_rounded | is_lost) & one);
    magnitudes += integer;
  }

  void add_lane_to(RoundingBound& sums, int i) const {
    sums.inexact += inexact[i];
    sums.magnitudes += magnitudes[i];
  }
};

template <class Lanes, class T>
[[gnu::always_inline]] inline void add_along(const T* vector, std::int64_t length, const TwoFactors& factors,
                                             typename Lanes::Sums& sums) {
  const Doubles first = Doubles{} + factors.first;
  const Doubles second = Doubles{} + factors.second;
  Lanes lanes_of_vector;
  std::int64_t p = 0;
  for (; p + vector_lanes <= length; p += vector_lanes) {
    Doubles x;
    load(vector + p, x);
    lanes_of_vector.add(x, first, second);
  }
  if (p < length) {
    T rest[vector_lanes] = {};
    for (std::int64_t i = 0; p + i < length; ++i) rest[i] = vector[p + i];
    Doubles x;
    load(rest, x);
    lanes_of_vector.add(x, first, second);
  }
  for (int i = 0; i < vector_lanes; ++i) lanes_of_vector.add_lane_to(sums, i);
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void add_across(const T* block, std::int64_t step, std::int64_t length,
                                              const TwoFactors* factors, typename Lanes::Sums* sums) {
  constexpr int groups = vectors_per_block / vector_lanes;
  Doubles first[groups];
  Doubles second[groups];
  Lanes lanes_of_group[groups];
  for (int v = 0; v < vectors_per_block; ++v) {
    first[v / vector_lanes][v % vector_lanes] = factors[v].first;
    second[v / vector_lanes][v % vector_lanes] = factors[v].second;
  }
  for (std::int64_t p = 0; p < length; ++p) {
    prefetch_row(block + (p + rows_ahead) * step, vectors_per_block);
#pragma GCC unroll 2
    for (int g = 0; g < groups; ++g) {
      Doubles x;
      load(block + p * step + g * vector_lanes, x);
      lanes_of_group[g].add(x, first[g], second[g]);
    }
  }
  for (int v = 0; v < vectors_per_block; ++v)
    lanes_of_group[v / vector_lanes].add_lane_to(sums[v], v % vector_lanes);
}

#define INSTANTIATE(Lanes, T)                                                                              \
  KINTSUGI_VECTORIZED void add_contiguous(const T* vector, std::int64_t length, const TwoFactors& factors, \
                                          Lanes::Sums& sums) {                                             \
    add_along<Lanes>(vector, length, factors, sums);                                                       \
  }                                                                                                        \
  KINTSUGI_VECTORIZED void add_whole_block(const T* block, std::int64_t step, std::int64_t length,         \
                                           const TwoFactors* factors, Lanes::Sums* sums) {                 \
    add_across<Lanes>(block, step, length, factors, sums);                                                 \
  }
INSTANTIATE(NormLanes, float)
INSTANTIATE(NormLanes, double)
INSTANTIATE(OrdinaryNormLanes, double)
INSTANTIATE(BoundLanes, float)
INSTANTIATE(BoundLanes, double)
#undef INSTANTIATE

KINTSUGI_VECTORIZED void add_contiguous(const float* vector, std::int64_t length, const TwoFactors& factors,
                                        OrdinaryNormSums& sums) {
  constexpr std::int64_t most = SingleNormLanes::most_unfolded * single_lanes;
  const Singles factor = Singles{} + static_cast<float>(factors.first);
  SingleNormLanes sums_of_lanes;
  for (std::int64_t begin = 0; begin < length; begin += most) {
    const std::int64_t end = std::min(length, begin + most);
    std::int64_t p = begin;
    Singles x;
    for (; p + single_lanes <= end; p += single_lanes) {
      __builtin_memcpy(&x, vector + p, sizeof x);
      sums_of_lanes.add(x, factor);
    }
    if (p < end) {
      float rest[single_lanes] = {};
      for (std::int64_t i = 0; p + i < end; ++i) rest[i] = vector[p + i];
      __builtin_memcpy(&x, rest, sizeof x);
      sums_of_lanes.add(x, factor);
    }
    sums_of_lanes.fold();
  }
  for (int i = 0; i < single_lanes; ++i) sums_of_lanes.add_lane_to(sums, i);
}

// Adds `groups` times 16 interleaved vectors.
template <int groups>
[[gnu::always_inline]] inline void add_singles_across(const float* block, std::int64_t step,
                                                      std::int64_t length, const TwoFactors* factors,
                                                      OrdinaryNormSums* sums) {
  Singles factor[groups];
  SingleNormLanes lanes_of_group[groups];
  for (int v = 0; v < groups * single_lanes; ++v)
    factor[v / single_lanes][v % single_lanes] = static_cast<float>(factors[v].first);
  for (std::int64_t begin = 0; begin < length; begin += SingleNormLanes::most_unfolded) {
    const std::int64_t end = std::min<std::int64_t>(length, begin + SingleNormLanes::most_unfolded);
    for (std::int64_t p = begin; p < end; ++p) {
      prefetch_row(block + (p + rows_ahead) * step, groups * single_lanes);
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) {
        Singles x;
        __builtin_memcpy(&x, block + p * step + g * single_lanes, sizeof x);
        lanes_of_group[g].add(x, factor[g]);
      }
    }
    for (SingleNormLanes& lanes_of_vectors : lanes_of_group) lanes_of_vectors.fold();
  }
  for (int v = 0; v < groups * single_lanes; ++v)
    lanes_of_group[v / single_lanes].add_lane_to(sums[v], v % single_lanes);
}

KINTSUGI_VECTORIZED void add_whole_block(const float* block, std::int64_t step, std::int64_t length,
                                         const TwoFactors* factors, OrdinaryNormSums* sums) {
  add_singles_across<vectors_per_block / single_lanes>(block, step, length, factors, sums);
}
KINTSUGI_VECTORIZED void add_strip(const float* block, std::int64_t step, std::int64_t length,
                                   const TwoFactors* factors, OrdinaryNormSums* sums) {
  add_singles_across<vectors_per_strip / single_lanes>(block, step, length, factors, sums);
}

// Adds the elements of vectors first ... last - 1, at most a strip, which must be finite where the sums are
// used. Of interleaved vectors some lines of each inner index stay in the L2 cache until all are added.
template <class T, class Sums>
void add_vectors(const MatrixView<const T>& operand, std::int64_t first, std::int64_t last,
                 const TwoFactors* factors, Sums* sums) {
  constexpr std::int64_t resident = 128;
  const bool is_interleaved = operand.row_stride == 1;
  if constexpr (std::is_same_v<Sums, OrdinaryNormSums> && std::is_same_v<T, float>) {
    if (is_interleaved && last - first == vectors_per_strip && operand.columns <= most_added)
      return add_strip(&operand(first, 0), operand.column_stride, operand.columns, factors, sums);
  }
  const std::int64_t whole = is_interleaved ? (last - first) / vectors_per_block * vectors_per_block : 0;
  for (std::int64_t begin = 0; begin < operand.columns && whole > 0; begin += resident) {
    const std::int64_t length = std::min(resident, operand.columns - begin);
    for (std::int64_t v = 0; v < whole; v += vectors_per_block)
      add_whole_block(&operand(first + v, begin), operand.column_stride, length, factors + v, sums + v);
  }
  first += whole;
  factors += whole;
  sums += whole;
  for (std::int64_t begin = 0; begin < operand.columns; begin += most_added) {
    const std::int64_t length = std::min(most_added, operand.columns - begin);
    for (std::int64_t v = first; v < last; ++v) {
      if (operand.column_stride == 1) {
        add_contiguous(&operand(v, begin), length, factors[v - first], sums[v - first]);
        continue;
      }
      for (std::int64_t p = begin; p < begin + length; p += lanes) {
        const std::int64_t count = std::min<std::int64_t>(lanes, begin + length - p);
        T elements[lanes];
        for (std::int64_t i = 0; i < count; ++i) elements[i] = operand(v, p + i);
        add_contiguous(elements, count, factors[v - first], sums[v - first]);
      }
    }
  }
}

void add_to(NormSums& sums, const NormSums& others) { sums.add(others); }
void add_to(RoundingBound& sums, const RoundingBound& others) {
  sums.inexact += others.inexact;
  sums.magnitudes += others.magnitudes;
}

template <class T, class Sums>
void add_vectors(const EmbeddedView<T>& operand, std::int64_t first, std::int64_t last,
                 const TwoFactors* factors, Sums* sums) {
  const NumberVectors<T> numbers = numbers_of(operand);
  const std::int64_t each = numbers.each;
  if (each == 0) {
    for (std::int64_t v = first; v < last; ++v) {
      for (std::int64_t p = 0; p < operand.columns; p += lanes) {
        const std::int64_t count = std::min<std::int64_t>(lanes, operand.columns - p);
        T elements[lanes];
        for (std::int64_t i = 0; i < count; ++i) elements[i] = operand(v, p + i);
        add_contiguous(elements, count, factors[v - first], sums[v - first]);
      }
    }
    return;
  }
  const std::int64_t embedded = embedded_each(operand);
  for_each_group(first, last, each, embedded, [&](std::int64_t group, std::int64_t count) {
    std::array<TwoFactors, vectors_per_strip> real_factors{};
    std::array<Sums, vectors_per_strip> real_sums{};
    for (std::int64_t i = 0; i < each * count; ++i)
      real_factors[i] = factors[embedded * (group + i / each) - first];
    add_vectors(numbers.vectors, each * group, each * (group + count), real_factors.data(), real_sums.data());
    for (std::int64_t i = 0; i < embedded * count; ++i) {
      for (std::int64_t part = 0; part < each; ++part)
        add_to(sums[embedded * group + i - first], real_sums[each * (i / embedded) + part]);
    }
  });
}

// Norms of double-double vectors: of the numbers rounded away from zero. The logarithms grow by far less than
// the proof has room for (arith/residue/norm_proof.hpp).
template <class Sums>
void add_vectors(const MatrixView<const DoubleDouble>& operand, std::int64_t first, std::int64_t last,
                 const TwoFactors* factors, Sums* sums) {
  const bool across = operand.column_stride != 1;  // vectors are read together, index by index
  for (std::int64_t begin = 0; begin < operand.columns; begin += lanes) {
    const std::int64_t count = std::min<std::int64_t>(lanes, operand.columns - begin);
    double elements[vectors_per_block][lanes];
    const std::int64_t vectors = last - first;
    for (std::int64_t x = 0; x < count * vectors; ++x) {
      const std::int64_t v = across ? x % vectors : x / count;
      const std::int64_t i = across ? x / vectors : x % count;
      elements[v][i] = finite_above(operand(first + v, begin + i));
    }
    for (std::int64_t v = 0; v < vectors; ++v) add_contiguous(elements[v], count, factors[v], sums[v]);
  }
}

bool are_finite(std::span<const VectorRange> ranges, std::int64_t first, std::int64_t last) {
  return std::ranges::all_of(ranges.subspan(first, last - first),
                             [](const VectorRange& range) { return range.finite(); });
}

// Adds the squares of magnitude_above() of `lanes` elements. The scale is the product of two factors, since
// it may exceed double's range (it is below 2^1089).
KINTSUGI_VECTORIZED void add_squares(const double* x, TwoFactors factors, std::uint64_t* squares) {
  for (int e = 0; e < lanes; ++e) {
    const double magnitude = x[e] < 0 ? -x[e] : x[e];
    const double scaled = magnitude * factors.first * factors.second;
    const auto truncated = static_cast<std::int32_t>(scaled);
    const int round_up = static_cast<int>(static_cast<double>(truncated) < scaled) |
                         (static_cast<int>(truncated == 0) & static_cast<int>(magnitude != 0));
    const auto digits = static_cast<std::uint32_t>(truncated + round_up);
    squares[e] += static_cast<std::uint64_t>(digits) * digits;
  }
}

struct Lanes {
  alignas(64) std::uint64_t squares[lanes] = {};

  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t square : squares) sum += square;
    return sum;
  }
};

// Loads upper bounds of the magnitudes. These are the elements themselves, or double-double numbers rounded
// away from zero.
template <class View>
void load_bounds(const View& operand, std::span<const double> inner_factors, std::int64_t v,
                 std::int64_t begin, std::int64_t end, double* elements) {
  load_elements(operand, inner_factors, v, begin, end, elements);
}
void load_bounds(const MatrixView<const DoubleDouble>& operand, std::span<const double> inner_factors,
                 std::int64_t v, std::int64_t begin, std::int64_t end, double* elements) {
  for (std::int64_t p = begin; p < end; ++p)
    elements[p - begin] = finite_above(operand(v, p)) * (inner_factors.empty() ? 1 : inner_factors[p]);
}

// Calls visit(v, L) for vectors first ... last - 1 that are not zero. L is defined in residue_scale.hpp.
template <class View, class Visit>
void visit_norm_bits(const View& operand, std::span<const VectorRange> ranges,
                     std::span<const double> inner_factors, std::int64_t first, std::int64_t last,
                     const Visit& visit) {
  if (inner_factors.empty() && are_finite(ranges, first, last)) {
    std::array<TwoFactors, vectors_per_strip> factors{};
    std::array<NormSums, vectors_per_strip> sums{};
    for (std::int64_t v = first; v < last; ++v) factors[v - first] = norm_scaling(ranges[v]);
    add_vectors(operand, first, last, factors.data(), sums.data());
    for (std::int64_t v = first; v < last; ++v) {
      if ((ranges[v].flags & VectorRange::all_zero) == 0) visit(v, bits_of_sum(sums[v - first].squares));
    }
    return;
  }
  for (; first < last; first += vectors_in_lanes) {
    const std::int64_t end_of_vectors = std::min(last, first + vectors_in_lanes);
    std::array<Lanes, vectors_in_lanes> sums{};
    for (std::int64_t begin = 0; begin < operand.columns; begin += lanes) {
      const std::int64_t end = std::min(operand.columns, begin + lanes);
      for (std::int64_t v = first; v < end_of_vectors; ++v) {
        if ((ranges[v].flags & VectorRange::all_zero) != 0) continue;
        alignas(64) double elements[lanes] = {};
        load_bounds(operand, inner_factors, v, begin, end, elements);
        add_squares(elements, two_factors(norm_digits - ranges[v].largest),
                    sums[static_cast<std::size_t>(v - first)].squares);
      }
    }
    for (std::int64_t v = first; v < end_of_vectors; ++v) {
      if ((ranges[v].flags & VectorRange::all_zero) == 0)
        visit(v, bits_of_sum(sums[static_cast<std::size_t>(v - first)].total()));
    }
  }
}

}  // namespace

template <class View>
void scale_by_norms(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads) {
  for_each_vector_block(
      operand.rows, threads,
      [&](std::int64_t first, std::int64_t last) {
        visit_norm_bits(operand, ranges, {}, first, last, [&](std::int64_t v, int bits) {
          ranges[v].scale = norm_scale(ranges[v], rule, bits);
        });
      },
      vectors_at_once(operand, threads));
}

template <class View>
int largest_norm_bits(const View& operand, std::span<const VectorRange> ranges,
                      std::span<const double> inner_factors, int threads) {
  const std::int64_t each = vectors_at_once(operand, threads);
  const std::int64_t blocks = divide_up(operand.rows, each);
  int largest = 0;
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static) reduction(max : largest)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * each;
    visit_norm_bits(operand, ranges, inner_factors, first, std::min(operand.rows, first + each),
                    [&](std::int64_t, int bits) { largest = std::max(largest, bits); });
  }
  return largest;
}

#define INSTANTIATE(View)                                                                   \
  template void scale_by_norms(const View&, const SplitRule&, std::span<VectorRange>, int); \
  template int largest_norm_bits(const View&, std::span<const VectorRange>, std::span<const double>, int);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

// ---------------------------------------------------------------- norms and depths

template <class View>
void find_norms(const View& operand, std::span<const VectorRange> ranges, std::span<VectorNorm> norms,
                std::int64_t first, std::int64_t last) {
  const auto find = [&]<class Sums>(Sums /*type*/) {
    constexpr bool ordinary = std::is_same_v<Sums, OrdinaryNormSums>;
    std::array<TwoFactors, vectors_per_strip> factors{};
    std::array<Sums, vectors_per_strip> sums{};
    for (std::int64_t v = first; v < last; ++v) {
      factors[v - first] = norm_scaling(ranges[v]);
      if (ordinary) factors[v - first].first *= factors[v - first].second;
    }
    add_vectors(operand, first, last, factors.data(), sums.data());
    for (std::int64_t v = first; v < last; ++v) {
      if (ranges[v].flags == 0) norms[v] = sums[v - first].norm(operand.columns);
    }
  };
  constexpr bool is_single =
      std::is_same_v<View, MatrixView<const float>> || std::is_same_v<View, EmbeddedView<float>>;
  const auto is_ordinary = [](const VectorRange& range) {
    // Factors and scaled elements are normal numbers of the type in which sums are computed.
    constexpr int most = is_single ? SingleNormLanes::least_exponent : 1000;
    return range.finite() && ((range.flags & VectorRange::all_zero) != 0 ||
                              (std::abs(range.largest) < most && range.dynamic_range() < most));
  };
  const bool all_ordinary = std::ranges::all_of(ranges.subspan(first, last - first), is_ordinary);
  return all_ordinary ? find(OrdinaryNormSums{}) : find(NormSums{});
}

template <class View>
void find_norms(const View& operand, std::span<const VectorRange> ranges, std::span<VectorNorm> norms,
                int threads) {
  for_each_vector_block(operand.rows, threads, [&](std::int64_t first, std::int64_t last) {
    find_norms(operand, ranges, norms, first, last);
  });
}

#define INSTANTIATE(View)                                                                                  \
  template void find_norms(const View&, std::span<const VectorRange>, std::span<VectorNorm>, std::int64_t, \
                           std::int64_t);                                                                  \
  template void find_norms(const View&, std::span<const VectorRange>, std::span<VectorNorm>, int);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

// ---------------------------------------------------------------- rounding-error bounds

namespace {

KINTSUGI_VECTORIZED void add_rounding_bounds(const double* x, TwoFactors factors, double* inexact,
                                             double* magnitudes) {
  for (int e = 0; e < lanes; ++e) {
    const double scaled = x[e] * factors.first * factors.second;
    const double integer = nearest_integer(scaled);
    // A non-zero element far below 1/2 may underflow to zero when it is scaled; it also differs from its
    // integer.
    const int differs = (integer != scaled) | ((integer == 0) & (x[e] != 0));
    inexact[e] += differs;
    magnitudes[e] += integer < 0 ? -integer : integer;
  }
}

// Like add_rounding_bounds(), for double-double numbers, rounded as in split/residues.cpp.
KINTSUGI_VECTORIZED void add_pair_rounding_bounds(const double* high, const double* low, TwoFactors factors,
                                                  double* inexact, double* magnitudes) {
  for (int e = 0; e < lanes; ++e) {
    const double scaled = high[e] * factors.first * factors.second;
    const double upper = nearest_integer(scaled);
    const double remainder = (scaled - upper) + low[e] * factors.first * factors.second;
    const double lower = nearest_integer(remainder);
    // If `scaled` is not an integer, `remainder` is not an integer either, however it was rounded: `low` is
    // less than half of the last place of `high`.
    const int differs =
        (lower != remainder) | ((lower == 0) & (low[e] != 0)) | ((upper == 0) & (high[e] != 0));
    const double integer = upper + lower;
    inexact[e] += differs;
    magnitudes[e] += integer < 0 ? -integer : integer;
  }
}

struct BoundsOfLanes {
  alignas(64) double inexact[lanes] = {};
  alignas(64) double magnitudes[lanes] = {};
};

RoundingBound total(const BoundsOfLanes& sums) {
  RoundingBound bound;
  for (int e = 0; e < lanes; ++e) {
    bound.inexact += sums.inexact[e];
    bound.magnitudes += sums.magnitudes[e];
  }
  return bound;
}

template <class View>
void add_vector_rounding_bounds(const View& operand, std::span<const double> inner_factors, std::int64_t v,
                                std::int64_t begin, std::int64_t end, TwoFactors factors,
                                BoundsOfLanes& sums) {
  alignas(64) double elements[lanes] = {};
  load_elements(operand, inner_factors, v, begin, end, elements);
  add_rounding_bounds(elements, factors, sums.inexact, sums.magnitudes);
}

void add_vector_rounding_bounds(const MatrixView<const DoubleDouble>& operand,
                                std::span<const double> inner_factors, std::int64_t v, std::int64_t begin,
                                std::int64_t end, TwoFactors factors, BoundsOfLanes& sums) {
  alignas(64) double high[lanes] = {};
  alignas(64) double low[lanes] = {};
  load_elements(operand, inner_factors, v, begin, end, high, low);
  add_pair_rounding_bounds(high, low, factors, sums.inexact, sums.magnitudes);
}

template <class View>
void find_block_rounding_bounds(const View& operand, std::span<const VectorRange> ranges,
                                std::span<const double> inner_factors, std::span<RoundingBound> bounds,
                                std::int64_t first, std::int64_t last) {
  if constexpr (has_numbers<View>) {
    if (inner_factors.empty() && are_finite(ranges, first, last)) {
      std::array<TwoFactors, vectors_per_strip> factors{};
      for (std::int64_t v = first; v < last; ++v) {
        factors[v - first] = two_factors(ranges[v].scale);
        bounds[v] = {};
      }
      add_vectors(operand, first, last, factors.data(), &bounds[first]);
      return;
    }
  }
  for (; first < last; first += vectors_in_lanes) {
    const std::int64_t end_of_vectors = std::min(last, first + vectors_in_lanes);
    std::array<BoundsOfLanes, vectors_in_lanes> sums{};
    for (std::int64_t begin = 0; begin < operand.columns; begin += lanes) {
      const std::int64_t end = std::min(operand.columns, begin + lanes);
      for (std::int64_t v = first; v < end_of_vectors; ++v) {
        add_vector_rounding_bounds(operand, inner_factors, v, begin, end, two_factors(ranges[v].scale),
                                   sums[static_cast<std::size_t>(v - first)]);
      }
    }
    for (std::int64_t v = first; v < end_of_vectors; ++v)
      bounds[v] = total(sums[static_cast<std::size_t>(v - first)]);
  }
}

}  // namespace

template <class View>
void find_rounding_bounds(const View& operand, std::span<const VectorRange> ranges,
                          std::span<const double> inner_factors, std::span<RoundingBound> bounds,
                          int threads) {
  for_each_vector_block(
      operand.rows, threads,
      [&](std::int64_t first, std::int64_t last) {
        find_block_rounding_bounds(operand, ranges, inner_factors, bounds, first, last);
      },
      vectors_at_once(operand, threads));
}

#define INSTANTIATE(View)                                                                                \
  template void find_rounding_bounds(const View&, std::span<const VectorRange>, std::span<const double>, \
                                     std::span<RoundingBound>, int);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
