// Exact sums, rounded once, of all elements of a tile or of its open elements. The host's counterpart is
// src/recombine/exact_sums.cpp. A warp computes one element at a time: each lane sums a share of the products
// in its own digits, and the digits of all lanes are added at the end. Open elements may be summed in their
// own type (FP32 or FP64) instead; the lanes have the same shares then. Open real FP64 elements are first
// summed in two doubles each; nearly all of these sums are certain.
#include <type_traits>

#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/recombine/checked/open_elements.cuh"

namespace kintsugi::core::cuda {

namespace {

// True if few_digits hold all sums of element (i, j) of the whole matrix.
template <class T>
__device__ bool fits_few_digits(const DeviceTile& tile, std::int64_t i, std::int64_t j) {
  if constexpr (few_digits<T> == all_digits<T>) return true;
  bool fits = true;
#pragma unroll
  for (int p = 0; p < static_cast<int>(parts_of<T>); ++p) {
    fits = fits && exact_window<RealOf<T>>(tile.a.ranges[i], tile.b.ranges[parts_of<T> * j + p],
                                           products_of_sum(tile))
                           .digits <= few_digits<T>;
  }
  return fits;
}

// Computes elements; a warp calls it. `Digits` digits must hold the exact sums.
template <class T, int Digits>
class ExactSummation {
 public:
  using Real = RealOf<T>;
  using Widths = ExactWidths<Real>;
  static constexpr int parts = static_cast<int>(parts_of<T>);

  __device__ ExactSummation(const DeviceTile& tile, bool in_own_arithmetic, ExactLanes<T, Digits>& memory)
      : tile_(tile), a_(operand_view<T>(tile.a)), b_(operand_view<T>(tile.b)), scalars_(tile.scalars),
        memory_(memory), lane_(static_cast<int>(threadIdx.x) % exact_lanes),
        in_own_arithmetic_(in_own_arithmetic) {}

  // Computes element (i, j) of the whole matrix and writes it. All lanes must call it together.
  __device__ void recompute(std::int64_t i, std::int64_t j, T& element) const {
    if (in_own_arithmetic_ && can_use_own_arithmetic<T>(tile_, i, j)) {
      sum_in_own_arithmetic(i, j, element);
    } else {
      sum_exactly(i, j, element);
    }
  }

 private:
  // Exponent of the first digit of the sum of row i and vector v. The number of products does not change it;
  // so exact_window() gets an arbitrary one.
  __device__ int bottom(std::int64_t i, std::int64_t v) const {
    constexpr std::int64_t any_number_of_products = 1;
    return Digits == all_digits<T>
               ? Widths::sum_bottom
               : exact_window<Real>(tile_.a.ranges[i], tile_.b.ranges[v], any_number_of_products).bottom;
  }

  __device__ void sum_in_own_arithmetic(std::int64_t i, std::int64_t j, T& element) const {
    Real sum[parts] = {};
#pragma unroll
    for (int p = 0; p < parts; ++p) {
      for_each_product<Real>(a_, b_, i, parts * j + p, lane_,
                             [&](Real x, Real y) { sum[p] = fma(x, y, sum[p]); });
      sum[p] = sum_over_lanes(sum[p]);
    }
    if (lane_ == 0) element = epilogue_of(sum, scalars_.beta == T(0) ? nullptr : &element);
  }

  __device__ void sum_exactly(std::int64_t i, std::int64_t j, T& element) const {
    Real special[parts];
    int first[parts];
    int last[parts];
#pragma unroll
    for (int p = 0; p < parts; ++p)
      special[p] = sum_part(i, parts * j + p, memory_.part[p], first[p], last[p]);
    if (lane_ == 0) round_once(i, j, special, first, last, element);
    __syncwarp();
  }

  // Sums the products of row i and vector v exactly into the digits `target`. Digits outside first ... last
  // are zero. Returns the sum of the products with a factor that is NaN or infinite; these are not in the
  // digits.
  __device__ Real sum_part(std::int64_t i, std::int64_t v, std::int64_t* target, int& first,
                           int& last) const {
    ExactDigits<exact_lanes> sum(&memory_.lanes[0][lane_], bottom(i, v));
    Real special = 0;  // if it is not 0, it alone decides the result
    for_each_product<Real>(a_, b_, i, v, lane_, [&](Real x, Real y) {
      if (x - x == Real(0) && y - y == Real(0)) {
        sum.add_product(x, y);
      } else {
        special += x * y;
      }
    });
    sum.carry();
    first = __reduce_min_sync(all_lanes, sum.first());
    last = __reduce_max_sync(all_lanes, sum.last());
    __syncwarp();
    const int last_reached = min(last + 2, Digits - 1);  // last digit that a carry can reach
    for (int d = first + lane_; d <= last_reached; d += exact_lanes) {
      std::int64_t total = 0;
#pragma unroll 8
      for (int l = 0; l < exact_lanes; ++l) {
        // Lanes begin with different columns, so that they access different banks.
        std::int64_t& digit = memory_.lanes[d][(l + lane_) % exact_lanes];
        total += digit;
        digit = 0;
      }
      target[d] = total;
    }
    __syncwarp();
    return sum_over_lanes(special);
  }

  // Writes the element. If there were NaN or infinities, it is computed by IEEE arithmetic; else the exact
  // result is rounded once. One lane must call it.
  __device__ void round_once(std::int64_t i, std::int64_t j, const Real (&special)[parts],
                             const int (&first)[parts], const int (&last)[parts], T& element) const {
    const T* old = scalars_.beta == T(0) ? nullptr : &element;
    if (special[0] != Real(0)) {
      element = epilogue_of(special, old);
      return;
    }
    const RoundingMode rounding = tile_.scalars.rounding;
    const T before = old == nullptr ? T(0) : *old;
    const auto with_sign = [&](Real result, int part) {
      return with_sign_of_zero(result, rounding, a_, b_, i, parts * j + part, scalars_.alpha, scalars_.beta,
                               old == nullptr ? nullptr : &before, part);
    };
    ExactPart re = part(0, bottom(i, parts * j), first[0], last[0]);
    if constexpr (is_complex<T>) {
      ExactPart im = part(1, bottom(i, parts * j + 1), first[1], last[1]);
      element = exact_epilogue(re, im, scalars_.alpha, scalars_.beta, old, memory_.result, rounding);
      element = {with_sign(element.real(), 0), with_sign(element.imag(), 1)};
    } else {
      element = exact_epilogue(re, scalars_.alpha, scalars_.beta, old, memory_.result, rounding);
      element = with_sign(element, 0);
    }
  }

  // Returns part p of the sum as sign and magnitude. bottom, first and last belong to its digits.
  __device__ ExactPart part(int p, int bottom, int first, int last) const {
    ExactPart result{.magnitude = ExactDigits<1>(memory_.part[p], bottom), .negative = false};
    result.magnitude.set_bounds(first, last);
    result.negative = result.magnitude.make_magnitude();  // returns true if the sum was negative
    return result;
  }

  // Returns alpha times the sum plus beta C, each operation rounded in the element's own type.
  __device__ T epilogue_of(const Real (&parts_of_sum)[parts], const T* old) const {
    T sum;
    if constexpr (is_complex<T>) {
      sum = {parts_of_sum[0], parts_of_sum[1]};
    } else {
      sum = parts_of_sum[0];
    }
    const T product = times(scalars_.alpha, sum);
    return old == nullptr ? product : product + times(scalars_.beta, *old);
  }

  const DeviceTile& tile_;
  OperandView<T> a_;
  OperandView<T> b_;
  Scalars<T> scalars_;
  ExactLanes<T, Digits>& memory_;
  int lane_;
  bool in_own_arithmetic_;
};

// Sets the digits of a warp to zero and returns them. All lanes of the warp must call it together.
template <class T, int Digits>
__device__ ExactLanes<T, Digits>& clear_lanes(int warp) {
  extern __shared__ std::int64_t shared[];
  constexpr int size = static_cast<int>(sizeof(ExactLanes<T, Digits>) / sizeof(std::int64_t));
  std::int64_t* digits = shared + warp * size;
  for (int d = static_cast<int>(threadIdx.x) % exact_lanes; d < size; d += exact_lanes) digits[d] = 0;
  __syncwarp();
  return *reinterpret_cast<ExactLanes<T, Digits>*>(digits);
}

template <class T>
__device__ void compute_all_elements(const DeviceTile& tile) {
  if (!holds(tile.condition)) return;
  const std::int64_t elements = tile.rows * tile.columns;
  const int warp = static_cast<int>(threadIdx.x) / exact_lanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * exact_warps + warp;
  if (first >= elements) return;
  constexpr int digits = all_digits<T>;
  constexpr bool in_own_arithmetic = false;
  const ExactSummation<T, digits> summation(tile, in_own_arithmetic, clear_lanes<T, digits>(warp));
  const MatrixView<T> c = view_of<T>(tile.c, tile.item);
  for (std::int64_t index = first; index < elements; index += std::int64_t{gridDim.x} * exact_warps) {
    const std::int64_t i = tile.first_row + index % tile.rows;
    const std::int64_t j = tile.first_column + index / tile.rows;
    summation.recompute(i, j, c(i, j));
  }
}

// Recomputes those elements of the masks whose sums need all digits. Only warp 0 may call it, because all
// digits take the shared memory of all warps.
template <class T>
__device__ void recompute_wide_elements(const DeviceTile& tile, const DeviceOpenElements& open,
                                        const TakenMasks& taken) {
  constexpr int digits = all_digits<T>;
  constexpr int warp = 0;
  constexpr int warps = 1;
  const ExactSummation<T, digits> summation(tile, open.in_own_arithmetic, clear_lanes<T, digits>(warp));
  const MatrixView<T> c = view_of<T>(tile.c, tile.item);
  taken.for_each(warp, warps, [&](std::uint32_t mask_index, int bit) {
    const OpenPosition position(tile, open, mask_index, bit);
    if (!fits_few_digits<T>(tile, position.i, position.j))
      summation.recompute(position.i, position.j, c(position.i, position.j));
  });
}

// Recomputes the elements of a block of C that are still open, whose masks list_open_masks has listed. Counts
// in the report all elements that the last candidate left open.
template <class T>
__device__ void compute_listed_elements(const DeviceTile& tile, const DeviceOpenElements& open,
                                        DeviceReport* report) {
  if (report != nullptr && open.state->open != 0 && blockIdx.x == 0 && threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&report->recomputed),
              static_cast<unsigned long long>(open.state->open));
  const std::uint32_t listed = open.state->listed;
  if (listed == 0) return;
  __shared__ TakenMasks taken;
  constexpr int digits = few_digits<T>;
  const int warp = static_cast<int>(threadIdx.x) / exact_lanes;
  const ExactSummation<T, digits> summation(tile, open.in_own_arithmetic, clear_lanes<T, digits>(warp));
  const MatrixView<T> c = view_of<T>(tile.c, tile.item);
  for (take_masks(open, listed, taken); taken.count > 0; take_masks(open, listed, taken)) {
    if constexpr (std::is_same_v<T, double>) {
      if (!open.in_own_arithmetic) recompute_in_pairs(tile, open, taken);
    }
    bool has_wide_elements = false;
    taken.for_each(warp, exact_warps, [&](std::uint32_t mask_index, int bit) {
      const OpenPosition position(tile, open, mask_index, bit);
      if (fits_few_digits<T>(tile, position.i, position.j)) {
        summation.recompute(position.i, position.j, c(position.i, position.j));
      } else {
        has_wide_elements = true;
      }
    });
    if (__syncthreads_or(has_wide_elements ? 1 : 0) == 0) continue;
    if (warp == 0) recompute_wide_elements<T>(tile, open, taken);
    __syncthreads();
    clear_lanes<T, digits>(warp);  // wide elements used the same memory
  }
}

}  // namespace

// Computes all elements of a tile if `open` has no masks, else those that are open. `blocks` is the least
// number of thread blocks per SM: as many as registers allow.
#define KINTSUGI_RECOMPUTE(name, T, blocks)                                                          \
  extern "C" __global__ void __launch_bounds__(exact_warps* exact_lanes, blocks)                     \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ DeviceOpenElements open, \
           DeviceReport* report) {                                                                   \
    if (open.masks == nullptr) {                                                                     \
      compute_all_elements<T>(tile);                                                                 \
    } else {                                                                                         \
      compute_listed_elements<T>(tile, open, report);                                                \
    }                                                                                                \
  }
KINTSUGI_RECOMPUTE(recompute_f32, float, 8)
KINTSUGI_RECOMPUTE(recompute_f64, double, 7)
KINTSUGI_RECOMPUTE(recompute_c32, Complex<float>, 8)
KINTSUGI_RECOMPUTE(recompute_c64, Complex<double>, 4)
#undef KINTSUGI_RECOMPUTE

}  // namespace kintsugi::core::cuda
