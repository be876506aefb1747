// Number of cases that a test draws: under the sanitizers, which are ten times slower, only some of them.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace kintsugi::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool thorough = false;
#else
inline constexpr bool thorough = true;
#endif

// Schemes that between them take every path: one group and several, rescaled and joint sums, scaled
// and unscaled vectors, one to three slices, alternating and whole terms.
constexpr bool worth_the_time(std::string_view scheme) {
  constexpr std::string_view chosen[] = {"fp16", "markidis", "fp16x3-wide", "h2sgemm-element", "bf16x6"};
  for (const std::string_view name : chosen) {
    if (name == scheme) return true;
  }
  return thorough;
}

// All of a list, under the sanitizers the first quarter of it.
template <class T>
std::vector<T> a_part_of(std::initializer_list<T> all) {
  return {all.begin(), thorough ? all.end() : all.begin() + (all.size() + 3) / 4};
}

}  // namespace kintsugi::test
