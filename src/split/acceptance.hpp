// Acceptance test of a candidate. The test decides for which operands the candidate keeps the contract. Host
// and device decide by the same integers of the operands' ranges, so that their decisions are equal.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {

struct Acceptance {
  static constexpr std::int32_t any = 1 << 20;  // larger than any operand's dynamic range

  // Dynamic range of a row or column, in binades, up to which the candidate is proved; `any` for the native
  // product and for a scheme that the caller named.
  std::int32_t dynamic_range = 0;
  // Operands of wider ranges are also accepted up to this mean depth (are_within_depth()). 0: by range alone.
  std::int32_t mean_depth = 0;
  // Largest exponent of an operand's magnitudes that the program allows.
  std::int32_t exponent = any;
  // For residues scaled by norms. norm_bits is R of arith/residue/residue_scale.hpp; 0: norms are not used.
  // norm_top_exponent is the largest exponent to which a vector's largest magnitude is scaled. If norms are
  // used, they must prove every element (arith/residue/norm_proof.hpp). The same holds for digits of a grid,
  // on the host: norm_bits is then not 0, and norm_top_exponent that of the grid's integers.
  std::int32_t norm_bits = 0;
  std::int32_t norm_top_exponent = 0;
  // True for exponents per tile, since several rows share a tile. dynamic_range is then a limit for the whole
  // operand instead of a limit for each row.
  bool whole_operand = false;

  constexpr bool any_range() const { return dynamic_range == any; }
  constexpr bool by_norms() const { return norm_bits > 0; }

  bool operator==(const Acceptance&) const = default;
};

inline constexpr Acceptance accepts_all{Acceptance::any};

// True if the candidate keeps the contract for the product of operands with these ranges, whose vectors have
// k elements. `proved_by_norms`: the result of the proof by norms, used if acceptance.by_norms().
KINTSUGI_HOST_DEVICE constexpr bool accepts(const Acceptance& acceptance, const RangeSummary& a,
                                            const RangeSummary& b, std::int64_t k,
                                            bool proved_by_norms = false) {
  if (acceptance.by_norms() && !proved_by_norms) return false;
  if (std::max(a.largest, b.largest) > acceptance.exponent) return false;
  const std::int32_t range_a = acceptance.whole_operand ? a.largest - a.smallest : a.dynamic_range;
  const std::int32_t range_b = acceptance.whole_operand ? b.largest - b.smallest : b.dynamic_range;
  return std::max(range_a, range_b) <= acceptance.dynamic_range ||
         are_within_depth(a, b, k, acceptance.mean_depth);
}

}  // namespace kintsugi::core
