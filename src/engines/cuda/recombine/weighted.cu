// Recombination of one tile with power-of-two weights, special values included. The host's counterpart is
// src/recombine/weighted.cpp.
#include "arith/weighted_sum.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "recombine/special_values.hpp"

#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

namespace {

// Recombination of accumulators of type Part, which is float or std::int64_t.
template <class T, class Part>
class Weighted {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);

  __device__ Weighted(const WeightedSums& sums, const DeviceCondition& condition)
      : sums_(sums), selection_(condition.selection) {}

  __device__ static bool takes(const Scalars<T>& scalars) { return scalars.alpha != T(0); }

  __device__ typename TileBlock<T>::Elements write_block(const TileBlock<T>& block,
                                                         const Scalars<T>& scalars) const {
    block.begin(scalars.beta != T(0));
#pragma unroll 1
    for (int first = 0; first < TileBlock<T>::columns_each; first += columns_together) {
      Sum sums[columns_together][parts][rows_each];
      add_up(block, first, sums);
#pragma unroll
      for (int e = 0; e < columns_together; ++e) {
        if (block.has_element(first + e)) write_column(block, first + e, sums[e], scalars);
      }
    }
    block.end();
    return 0;
  }

  __device__ void write_finite(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                               const Scalars<T>& scalars, T* element) const {
    double product[parts];
#pragma unroll
    for (int p = 0; p < parts; ++p) {
      Sum sum(sums_.smallest_exponent);
      const Part* part = data(i, j) + p * sums_.rows;
      for (int g = 0; g < sums_.groups; ++g) sum.add(weight_exponent(g), part[g * sums_.group_stride]);
      product[p] = times_power_of_two(sum.value(), -(row_scale + column[p].scale));
    }
    *element = element_of(product, scalars, scalars.beta == T(0) ? nullptr : element);
  }

 private:
  // A weighted sum of accumulators with a default constructor, which elements of an array need.
  struct Sum : WeightedSumOf<Part>::type {
    __device__ explicit Sum(int smallest_exponent = 0) : WeightedSumOf<Part>::type(smallest_exponent) {}
  };

  // Number of a thread's columns whose accumulators are loaded together: as many as registers allow.
  static constexpr int columns_together =
      std::max<int>(1, (sizeof(Part) == 4 ? 4 : 2) / parts / (sizeof(T) == 16 ? 2 : 1));
  static_assert(TileBlock<T>::columns_each % columns_together == 0);

  // Exponent of the weight of a group. The split may have scaled residuals by a power of two that was fitted
  // to the batch item's operands. Then the selection has this power, and the weight undoes it.
  __device__ int weight_exponent(int group) const {
    const int exponent = sums_.exponents[group];
    return exponent == fitted_exponent ? -selection_->fit.residual.residual_exponent : exponent;
  }
  // Address of the first group's accumulator of element (i, j) of the tile; of its real part for complex
  // elements.
  __device__ const Part* data(std::int64_t i, std::int64_t j) const {
    return static_cast<const Part*>(sums_.data) + i + parts * j * sums_.rows;
  }

  // Adds up the accumulators of all groups for columns_together columns of the thread, from column `first`
  // on.
  __device__ void add_up(const TileBlock<T>& block, int first,
                         Sum (&sums)[columns_together][parts][rows_each]) const {
    const Part* column[columns_together];
#pragma unroll
    for (int e = 0; e < columns_together; ++e) {
      column[e] = data(block.row_in_tile(), block.column_in_tile(first + e));
      for (auto& part : sums[e]) {
        for (Sum& sum : part) sum = Sum(sums_.smallest_exponent);
      }
    }
#pragma unroll 1
    for (int g = 0; g < sums_.groups; ++g) {
      const int exponent = weight_exponent(g);
      RowsOfThread<Part> loaded[columns_together][parts];
#pragma unroll
      for (int e = 0; e < columns_together; ++e) {
#pragma unroll
        for (int p = 0; p < parts; ++p)
          loaded[e][p] = *reinterpret_cast<const RowsOfThread<Part>*>(column[e] + p * sums_.rows);
        column[e] += sums_.group_stride;
      }
#pragma unroll
      for (int e = 0; e < columns_together; ++e) {
#pragma unroll
        for (int p = 0; p < parts; ++p) {
#pragma unroll
          for (int r = 0; r < rows_each; ++r) sums[e][p][r].add(exponent, loaded[e][p].rows[r]);
        }
      }
    }
  }

  __device__ static void write_column(const TileBlock<T>& block, int e, const Sum (&sums)[parts][rows_each],
                                      const Scalars<T>& scalars) {
    RowsOfThread<T> elements{};
    const auto set = [&](auto reads_c) {
#pragma unroll
      for (int r = 0; r < rows_each; ++r) {
        double product[parts];
#pragma unroll
        for (int p = 0; p < parts; ++p)
          product[p] = sums[p][r].value() * power_of_two(block.exponent(r, e, p));
        elements.rows[r] = element_of(product, scalars, reads_c ? &elements.rows[r] : nullptr);
      }
    };
    if (scalars.beta == T(0)) {
      set(std::false_type());
    } else {
      elements = block.read(e);
      set(std::true_type());
    }
    block.write(e, elements);
  }

  // Returns alpha times the product plus beta c, rounded once; c is nullptr if beta is 0.
  __device__ static T element_of(const double (&product)[parts], const Scalars<T>& scalars, const T* c) {
    if constexpr (is_complex<T>) {
      return epilogue(Complex<double>(product[0], product[1]), scalars.alpha, scalars.beta, c);
    } else {
      return epilogue(product[0], scalars.alpha, scalars.beta, c);
    }
  }

  const WeightedSums& sums_;
  const DeviceSelection* selection_;
};

// Recombines a tile of accumulators of one of the types `Parts`.
template <class T, class... Parts>
__device__ void recombine_weighted(const DeviceTile& tile, const WeightedSums& sums) {
  const auto recombine = [&]<class Part>() {
    if (sizeof...(Parts) == 1 || sums.are_floats == std::is_same_v<Part, float>)
      recombine_tile<T>(tile, Weighted<T, Part>(sums, tile.condition));
  };
  (recombine.template operator()<Parts>(), ...);
}

}  // namespace

// `blocks` is the least number of thread blocks per SM: as many as registers allow.
#define KINTSUGI_WEIGHTED(name, T, blocks, ...)                                                  \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                            \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ WeightedSums sums) { \
    recombine_weighted<T, __VA_ARGS__>(tile, sums);                                              \
  }
KINTSUGI_WEIGHTED(recombine_f32_weighted_floats, float, 3, float)
KINTSUGI_WEIGHTED(recombine_f32_weighted_integers, float, 2, std::int64_t)
KINTSUGI_WEIGHTED(recombine_f64_weighted, double, 2, float, std::int64_t)
KINTSUGI_WEIGHTED(recombine_c32_weighted, Complex<float>, 2, float, std::int64_t)
KINTSUGI_WEIGHTED(recombine_c64_weighted, Complex<double>, 2, float, std::int64_t)
#undef KINTSUGI_WEIGHTED

}  // namespace kintsugi::core::cuda
