// Two results of one FuzzCase side by side.
#pragma once

#include <cmath>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "tests/support/fuzz_data.hpp"

namespace kintsugi::test {

// Whether two images of C have the same bits in all elements, NaN of any kind being the same.
template <class T>
bool same_elements(const FuzzData<T>& data, const std::byte* one, const std::byte* other) {
  using Word = std::conditional_t<std::is_same_v<PartOf<T>, float>, float, double>;
  for (std::int64_t item = 0; item < data.test().batch; ++item) {
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      for (std::int64_t i = 0; i < data.test().m; ++i) {
        Word x[sizeof(T) / sizeof(Word)], y[sizeof(T) / sizeof(Word)];
        const T first = data.c(one, item, i, j), second = data.c(other, item, i, j);
        std::memcpy(x, &first, sizeof(T)), std::memcpy(y, &second, sizeof(T));
        for (std::size_t w = 0; w < std::size(x); ++w) {
          if (std::memcmp(&x[w], &y[w], sizeof(Word)) != 0 && !(std::isnan(x[w]) && std::isnan(y[w])))
            return false;
        }
      }
    }
  }
  return true;
}

}  // namespace kintsugi::test
