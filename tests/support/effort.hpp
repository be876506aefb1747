// Limits what tests run under the sanitizers, which are ten times slower.
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

// True for all schemes, but under the sanitizers only for five that together cover: one group and several,
// rescaled and joint sums, scaled and unscaled vectors, one to three slices, terms alternating and one by
// one.
constexpr bool worth_the_time(std::string_view scheme) {
  constexpr std::string_view chosen[] = {"fp16", "markidis", "fp16x3-wide", "h2sgemm-element", "bf16x6"};
  for (const std::string_view name : chosen) {
    if (name == scheme) return true;
  }
  return thorough;
}

// The whole list, or its first quarter under the sanitizers.
template <class T>
std::vector<T> a_part_of(std::initializer_list<T> all) {
  return {all.begin(), thorough ? all.end() : all.begin() + (all.size() + 3) / 4};
}

}  // namespace kintsugi::test
