// Contents of the record for a call site beside counts: the sites whose results it reads, its last C, its
// errors.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/call.hpp"
#include "place.hpp"

namespace kintsugi::drop_in {

// ------------------------------------------------------------------ inputs

// Inputs of one site: for each site whose results it has read, the number of calls that read them. A call
// reads an earlier call's result if the memory of its input overlaps the memory of that call's output.
using SiteInputs = std::map<const Place*, std::int64_t>;

// Outputs of the latest calls. Flow does not see what the program does between calls: it does not follow
// copies, and memory that the program has reused for other data still counts as the output.
class Flow {
 public:
  // Adds the sites whose outputs a call of `site` reads to `found`, then notes the call's output. The site
  // must live as long as the object.
  void add(const Place& site, const std::vector<Region>& inputs, const Region& output, SiteInputs& found);

 private:
  struct Output {
    Region region;
    const Place* site;
  };
  // Largest number of outputs that are kept. The oldest one is dropped first.
  static constexpr std::size_t most_outputs = 4096;
  std::vector<Output> outputs_;  // the oldest first; without outputs that a later output covers
};

// Returns the member `inputs` of a site in the reports.
nlohmann::ordered_json inputs_json(const SiteInputs& inputs);

// ------------------------------------------------------------------ the last C

// Written as a .npy file.
class SiteOutput {
 public:
  // Copies C after a call. If the routine writes one triangle, the other triangle of the copy is zero.
  void save(const Call& call);
  bool is_empty() const { return rows_ == 0 || columns_ == 0; }
  // Returns the contents of a .npy file, version 1, in Fortran's order.
  std::string npy() const;

 private:
  void clear_other_triangle(Uplo uplo);

  kintsugi_type type_ = KINTSUGI_F64;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<char> elements_;  // C, or its transpose if `is_transposed_`; column-major, contiguous
  bool is_transposed_ = false;  // true for row-major calls
};

// ------------------------------------------------------------------ errors

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

// Selects the calls of a site or problem that are measured, beside the same call in exact arithmetic on the
// same operands, and holds their norms. Every d-th call is measured, the first one included: d is 1 at first.
// Whenever twice `samples` calls are held, every other one is dropped, and d doubles.
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
