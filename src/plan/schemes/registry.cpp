// The registry of schemes: a new one is a header in this folder, its include and its line here.
#include <array>
#include <string>

#include "plan/program.hpp"
#include "plan/schemes/bf16.hpp"
#include "plan/schemes/bf16x3.hpp"
#include "plan/schemes/bf16x6.hpp"
#include "plan/schemes/bf16x9.hpp"
#include "plan/schemes/egemm.hpp"
#include "plan/schemes/fp16.hpp"
#include "plan/schemes/fp16x3.hpp"
#include "plan/schemes/fp16x3_wide.hpp"
#include "plan/schemes/h2sgemm.hpp"
#include "plan/schemes/h2sgemm_element.hpp"
#include "plan/schemes/legemm.hpp"
#include "plan/schemes/markidis.hpp"
#include "plan/schemes/ootomo.hpp"
#include "plan/schemes/ootomo_tf32.hpp"
#include "plan/schemes/tf32.hpp"
#include "plan/schemes/tf32x3.hpp"

namespace kintsugi::core {

namespace {

constexpr std::array registry{
    &schemes::fp16,        &schemes::bf16,
    &schemes::tf32,        &schemes::markidis,
    &schemes::egemm,       &schemes::ootomo,
    &schemes::ootomo_tf32, &schemes::legemm,
    &schemes::h2sgemm,     &schemes::h2sgemm_element,
    &schemes::tf32x3,      &schemes::bf16x3,
    &schemes::fp16x3,      &schemes::fp16x3_wide,
    &schemes::bf16x6,      &schemes::bf16x9,
};

}  // namespace

std::span<const Scheme* const> all_schemes() { return registry; }

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme* scheme : registry) {
    if (scheme->name == name) return scheme;
  }
  return nullptr;
}

std::string scheme_names() {
  std::string names;
  for (const Scheme* scheme : registry) {
    if (!names.empty()) names += ", ";
    names += scheme->name;
  }
  return names;
}

}  // namespace kintsugi::core
