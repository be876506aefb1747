// Recombination with power-of-two weights: src/recombine/weighted.cpp for one tile, special values included.
#include "arith/weighted_sum.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "recombine/special_entry.hpp"

#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

namespace {

// Part: of a group's sums, float or std::int64_t.
template <class T, class Part>
class Weighted {
 public:
  static constexpr int at_once = entries_each;  // as many loads are under way
  static constexpr int parts = static_cast<int>(parts_of<T>);

  struct Sums {
    double part[parts];
  };

  __device__ explicit Weighted(const WeightedSums& sums) : sums_(sums) {}

  __device__ void add_up(std::int64_t i, const std::int64_t (&j)[at_once], Sums (&result)[at_once]) const {
    using Sum = typename WeightedSumOf<Part>::type;
    Sum zero(sums_.smallest_exponent);
    Sum sums[at_once][2] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
    static_assert(at_once == 4 && parts <= 2);
    const Part* column[at_once];
    for (int e = 0; e < at_once; ++e)
      column[e] = static_cast<const Part*>(sums_.data) + i + parts * j[e] * sums_.rows;
    for (int g = 0; g < sums_.groups; ++g) {
      Part part[at_once][parts];
      for (int e = 0; e < at_once; ++e) {
        for (int p = 0; p < parts; ++p) part[e][p] = __ldg(column[e] + p * sums_.rows);
        column[e] += sums_.group_stride;
      }
      for (int e = 0; e < at_once; ++e) {
        for (int p = 0; p < parts; ++p) sums[e][p].add(sums_.exponents[g], part[e][p]);
      }
    }
    for (int e = 0; e < at_once; ++e) {
      for (int p = 0; p < parts; ++p) result[e].part[p] = sums[e][p].value();
    }
  }

  __device__ static void write(const Sums& sums, int row_scale, const VectorRange* columns,
                               const Scalars<T>& scalars, T* entry) {
    const T* old = scalars.beta == T(0) ? nullptr : entry;
    const auto exponent = [&](int p) { return -(row_scale + columns[p].scale); };
    if constexpr (is_complex<T>) {
      const Complex<double> product(times_power_of_two(sums.part[0], exponent(0)),
                                    times_power_of_two(sums.part[1], exponent(1)));
      *entry = epilogue(product, scalars.alpha, scalars.beta, old);
    } else {
      *entry = epilogue(sums.part[0], exponent(0), scalars.alpha, scalars.beta, old);
    }
  }

 private:
  const WeightedSums& sums_;
};

}  // namespace

// `blocks` on a multiprocessor at least: as many as there are registers for.
#define KINTSUGI_WEIGHTED(name, T, Part, blocks)                                                 \
  extern "C" __global__ void __launch_bounds__(tile_threads, blocks)                             \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ WeightedSums sums) { \
    recombine_tile<T>(tile, Weighted<T, Part>(sums));                                            \
  }
KINTSUGI_WEIGHTED(weighted_f32_of_floats, float, float, 3)
KINTSUGI_WEIGHTED(weighted_f64_of_floats, double, float, 3)
KINTSUGI_WEIGHTED(weighted_c32_of_floats, Complex<float>, float, 2)
KINTSUGI_WEIGHTED(weighted_c64_of_floats, Complex<double>, float, 2)
KINTSUGI_WEIGHTED(weighted_f32_of_integers, float, std::int64_t, 2)
KINTSUGI_WEIGHTED(weighted_f64_of_integers, double, std::int64_t, 2)
KINTSUGI_WEIGHTED(weighted_c32_of_integers, Complex<float>, std::int64_t, 2)
KINTSUGI_WEIGHTED(weighted_c64_of_integers, Complex<double>, std::int64_t, 2)
#undef KINTSUGI_WEIGHTED

}  // namespace kintsugi::core::cuda
