// Compares two results of one FuzzCase.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include "tests/support/fuzz_data.hpp"

namespace kintsugi::test {

// Describes the first element of C that has different bits in two images, where all NaN count as equal; "" if
// there is none.
template <class T>
std::string first_difference(const FuzzData<T>& data, const std::byte* image_x, const std::byte* image_y) {
  using Word = std::conditional_t<std::is_same_v<PartOf<T>, float>, float, double>;
  for (std::int64_t item = 0; item < data.test().batch; ++item) {
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      for (std::int64_t i = 0; i < data.test().m; ++i) {
        Word x[sizeof(T) / sizeof(Word)], y[sizeof(T) / sizeof(Word)];
        const T first = data.c(image_x, item, i, j), second = data.c(image_y, item, i, j);
        std::memcpy(x, &first, sizeof(T)), std::memcpy(y, &second, sizeof(T));
        for (std::size_t w = 0; w < std::size(x); ++w) {
          if (std::memcmp(&x[w], &y[w], sizeof(Word)) == 0 || (std::isnan(x[w]) && std::isnan(y[w])))
            continue;
          return fmt::format("C[{}, {}] of item {}, word {}: {:a} and {:a}", i, j, item, w, x[w], y[w]);
        }
      }
    }
  }
  return "";
}

}  // namespace kintsugi::test
