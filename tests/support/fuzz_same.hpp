// Two results of one FuzzCase side by side.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include "tests/support/fuzz_data.hpp"

namespace kintsugi::test {

// The first element of C that has other bits in the second image, NaN of any kind being the same; "": there
// is none.
template <class T>
std::string first_difference(const FuzzData<T>& data, const std::byte* one, const std::byte* other) {
  using Word = std::conditional_t<std::is_same_v<PartOf<T>, float>, float, double>;
  for (std::int64_t item = 0; item < data.test().batch; ++item) {
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      for (std::int64_t i = 0; i < data.test().m; ++i) {
        Word x[sizeof(T) / sizeof(Word)], y[sizeof(T) / sizeof(Word)];
        const T first = data.c(one, item, i, j), second = data.c(other, item, i, j);
        std::memcpy(x, &first, sizeof(T)), std::memcpy(y, &second, sizeof(T));
        for (std::size_t w = 0; w < std::size(x); ++w) {
          if (std::memcmp(&x[w], &y[w], sizeof(Word)) == 0 || (std::isnan(x[w]) && std::isnan(y[w])))
            continue;
          return fmt::format("C[{}, {}] of item {}, word {}: {:a} beside {:a}", i, j, item, w, x[w], y[w]);
        }
      }
    }
  }
  return "";
}

}  // namespace kintsugi::test
