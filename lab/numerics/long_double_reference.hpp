// The reference of fp16-emulation-study: sums in 80-bit long double. Its own relative error is about k 2^-64,
// more where sums cancel; tools/measure/reference/exact.hpp has the exact reference.
#pragma once

#include <cfloat>
#include <vector>

#include "base/view.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::lab {

// False if long double is another format, such as double or IEEE binary128.
inline constexpr bool has_80_bit_long_double = LDBL_MANT_DIG == 64;

// Returns (A B)_ij at the elements' positions: products and sums in long double, in the order of k.
template <class T>
std::vector<long double> long_double_sums(core::MatrixView<const T> a, core::MatrixView<const T> b,
                                          const std::vector<measure::ElementError>& elements);

// Returns the mean |C - S| / |S| of the elements over their sums S, without those where S is 0, NaN or
// infinite; 0 if none is left.
double mean_relative_error(const std::vector<measure::ElementError>& elements,
                           const std::vector<long double>& sums);

extern template std::vector<long double> long_double_sums(core::MatrixView<const float>,
                                                          core::MatrixView<const float>,
                                                          const std::vector<measure::ElementError>&);
extern template std::vector<long double> long_double_sums(core::MatrixView<const double>,
                                                          core::MatrixView<const double>,
                                                          const std::vector<measure::ElementError>&);

}  // namespace kintsugi::lab
