#include "products.hpp"

#include <exception>

#include "blas/next_blas/next.hpp"
#include "blas/settings.hpp"
#include "blas/sites/site.hpp"

namespace kintsugi::blas {

void Products::run(const Call& product) noexcept {
  if (product.m == 0 || product.n == 0) return;
  const auto forward = [&product] { return call_next_gemm(product); };
  CallOutcome part;
  try {
    blas::multiply(symbol_, product, Forward(forward), part);
  } catch (const std::exception&) {  // No memory; C is not written yet.
    part = {};
    multiply_natively(symbol_, product, Forward(forward));
  }
  add(part, static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k));
}

bool Products::are_reproducible() const {
  const std::string& accuracy = site_ != nullptr ? site_->rule.accuracy : settings().accuracy;
  return accuracy == "reproducible";
}

void Products::note_substitution() {
  outcome_.only_scaled = false;
  outcome_.program = "substitution";  // does not throw, since the text fits std::string's inline buffer
}

void Products::add(const CallOutcome& part, double multiplications) {
  outcome_.recomputed_elements += part.recomputed_elements;
  outcome_.has_special_values |= part.has_special_values;
  outcome_.failed |= part.failed;
  if (part.only_scaled && !outcome_.only_scaled) return;
  const bool is_first = outcome_.only_scaled && !part.only_scaled;
  if (!is_first && multiplications <= largest_) return;
  largest_ = multiplications;
  outcome_.only_scaled = part.only_scaled;
  try {
    outcome_.program = part.program;
    outcome_.why = part.why;
  } catch (const std::exception&) {  // No memory: the record has no names for this call.
  }
}

}  // namespace kintsugi::blas
