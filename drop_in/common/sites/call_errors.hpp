// Errors of a call site: each measured call beside the same call in exact arithmetic on the same operands.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace kintsugi::drop_in {

// Sums of squares over the elements of C. Squares of FP64 numbers neither overflow nor underflow in them.
struct CallNorms {
  long double difference = 0;  // of computed and exact elements
  long double exact = 0;
};

// Adds `count` elements of C. An element is left out if both are NaN or the same infinity. If only one is, or
// the infinities differ, the difference becomes infinite. Parts of complex elements count as elements.
void add_elements(CallNorms& norms, kintsugi_type type, const void* computed, const void* exact,
                  std::int64_t count);

// Relative error in the Frobenius norm (MixPert, Eq. 10): |computed - exact| / |exact|. 0 if both norms
// are 0, infinite if only the second one is.
double relative_error(const CallNorms& norms);

// Selects the calls of a site that are measured, and holds their norms. Every d-th call is measured, the
// first one included: d is 1 at first. Whenever twice `samples` calls are held, every other one is
// dropped, and d doubles.
class CallErrors {
 public:
  // Counts a call. Returns its number if it must be measured, else -1.
  std::int64_t number_of_sample();
  void add(std::int64_t number, const CallNorms& norms, std::int64_t samples);

  // Returns the member `error` of a site in the reports; null if no call was measured. The error of all held
  // calls is that of their results taken as one matrix.
  nlohmann::ordered_json json() const;

 private:
  struct Sample {
    std::int64_t number;
    CallNorms norms;
  };
  std::int64_t calls_ = 0, distance_ = 1;
  std::vector<Sample> samples_;
};

}  // namespace kintsugi::drop_in
