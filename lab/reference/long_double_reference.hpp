// The reference that fp16-emulation-study measures against: sums in 80-bit long double. Its own relative
// error is about k 2^-64, more where sums cancel; lab/reference/exact.hpp has the reference without any.
#pragma once

#include <cfloat>
#include <vector>

#include "base/view.hpp"
#include "lab/metrics.hpp"

namespace kintsugi::lab {

// False where long double is another format, such as double or IEEE binary128.
inline constexpr bool has_80_bit_long_double = LDBL_MANT_DIG == 64;

// (A B)_ij at the elements' places: products and sums in long double, one after the other along k.
template <class T>
std::vector<long double> long_double_sums(core::MatrixView<const T> a, core::MatrixView<const T> b,
                                          const std::vector<ElementError>& elements);

// Mean |C - S| / |S| of the elements over their sums S. Left out: S that is 0, NaN or infinite. 0 where all
// are.
double mean_relative_error(const std::vector<ElementError>& elements, const std::vector<long double>& sums);

extern template std::vector<long double> long_double_sums(core::MatrixView<const float>,
                                                          core::MatrixView<const float>,
                                                          const std::vector<ElementError>&);
extern template std::vector<long double> long_double_sums(core::MatrixView<const double>,
                                                          core::MatrixView<const double>,
                                                          const std::vector<ElementError>&);

}  // namespace kintsugi::lab
