// The accuracy of a call: that of its type, or a stricter one that was asked for.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <string>

namespace kintsugi::drop_in {

constexpr bool is_single(kintsugi_type type) { return type == KINTSUGI_F32 || type == KINTSUGI_C32; }
constexpr bool is_complex(kintsugi_type type) { return type == KINTSUGI_C32 || type == KINTSUGI_C64; }

// Returns the accuracy of the type's own contract: fp32 or fp64.
const char* own_accuracy(kintsugi_type type);

// Returns the accuracy `asked` if it is stricter than the type's own contract of a product with inner
// dimension k; else the type's own accuracy.
std::string stricter_accuracy(const std::string& asked, kintsugi_type type, std::int64_t k);

// Makes a plan with options.accuracy set to stricter_accuracy(). If no program for the type is proved to keep
// that accuracy, such as a tolerance meant for another type, the plan has the type's own accuracy.
kintsugi_status make_fitting_plan(const kintsugi_problem& problem, kintsugi_options options,
                                  const std::string& asked, kintsugi_plan* plan);

}  // namespace kintsugi::drop_in
