// The accuracy of a call: the accuracy of its type, or a stricter one that the user asked for.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <string>

namespace kintsugi::drop_in {

constexpr bool is_single(kintsugi_type type) { return type == KINTSUGI_F32 || type == KINTSUGI_C32; }
constexpr bool is_complex(kintsugi_type type) { return type == KINTSUGI_C32 || type == KINTSUGI_C64; }

// Returns the accuracy of the type's own contract: fp32 or fp64.
const char* own_accuracy(kintsugi_type type);

// Returns the stricter one of two accuracies of a product with inner dimension k: `asked` and the type's own.
std::string stricter_accuracy(const std::string& asked, kintsugi_type type, std::int64_t k);

struct FittingPlan {
  kintsugi_status status = KINTSUGI_SUCCESS;
  kintsugi_plan plan = nullptr;
  std::string not_kept;  // why the plan does not have the accuracy that was asked for; "": it has
};
// Makes a plan with the accuracy stricter_accuracy(). If no program is proved to keep that accuracy, as for a
// tolerance that is meant for another type, makes a plan with the type's own accuracy.
FittingPlan make_fitting_plan(const kintsugi_problem& problem, kintsugi_options options,
                              const std::string& asked);

}  // namespace kintsugi::drop_in
