// The accuracy of a call: that of its type, or a stricter one that was asked for.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <string>

namespace kintsugi::drop_in {

constexpr bool is_single(kintsugi_type type) { return type == KINTSUGI_F32 || type == KINTSUGI_C32; }
constexpr bool is_complex(kintsugi_type type) { return type == KINTSUGI_C32 || type == KINTSUGI_C64; }

// Accuracy of the type's own contract.
const char* own_accuracy(kintsugi_type type);

// Returns the accuracy `asked` where it is stricter than that of a product of this type and inner dimension
// k; else the type's own.
std::string stricter_accuracy(const std::string& asked, kintsugi_type type, std::int64_t k);

// Makes a plan with options.accuracy set to the stricter accuracy. A tolerance that no program for the type
// is proved to give does not fit the type, whose own accuracy is then asked for.
kintsugi_status make_fitting_plan(const kintsugi_problem& problem, kintsugi_options options,
                                  const std::string& asked, kintsugi_plan* plan);

}  // namespace kintsugi::drop_in
