// Norms of vectors on the host, and their comparison with a device's.
#pragma once

#include "arith/residue/norm_proof.hpp"
#include "gpu/split/split_cases.hpp"
#include "schemes/ozaki2.hpp"
#include "split/ranges.hpp"

namespace kintsugi::test {

// A rule whose ranges tests of norms find.
inline const SplitRule& rule_of_norms() {
  static const SplitRule rule = find_scheme("ozaki2:moduli=16")->program.split_a;
  return rule;
}

// Norms of all vectors, whose ranges are known.
template <class View>
std::vector<VectorNorm> norms_on_host(const View& view, const std::vector<VectorRange>& ranges) {
  std::vector<VectorNorm> norms;
  for (std::int64_t v = 0; v < view.rows; ++v) {
    const TwoFactors scaling = norm_scaling(ranges[static_cast<std::size_t>(v)]);
    NormSums sums;
    for (std::int64_t p = 0; p < view.columns; ++p) sums.add(view(v, p), scaling);
    norms.push_back(sums.norm(view.columns));
  }
  return norms;
}

// Compares the norms of vectors with the host's.
inline void expect_same_norms(const VectorNorm* got, const std::vector<VectorNorm>& wanted,
                              const std::string& text) {
  for (std::size_t v = 0; v < wanted.size(); ++v) {
    ASSERT_EQ(got[v].elements, wanted[v].elements) << text << ", vector " << v;
    ASSERT_EQ(got[v].bits, wanted[v].bits) << text << ", vector " << v;
    ASSERT_EQ(got[v].mean, wanted[v].mean) << text << ", vector " << v;
    ASSERT_EQ(got[v].mean_exponent, wanted[v].mean_exponent) << text << ", vector " << v;
    ASSERT_EQ(got[v].depth, wanted[v].depth) << text << ", vector " << v;
  }
}

// An operand, and the memory that a split by norms writes.
struct NormedOperand {
  NormedOperand(const Operand<double>& host, const SplitRule& rule)
      : operand(host), device(host, rule, 0), norms(device.ranges.host().size()) {}

  DeviceSplit split() const {
    DeviceSplit split = device.split();
    split.side.norms = norms.data();
    return split;
  }

  const Operand<double>& operand;
  DeviceOperand<double> device;
  DeviceArray<VectorNorm> norms;
};

inline std::vector<std::byte> bytes_of(const DeviceArray<VectorNorm>& norms) {
  const std::vector<VectorNorm> host = norms.host();
  std::vector<std::byte> bytes(host.size() * sizeof(VectorNorm));
  std::memcpy(bytes.data(), host.data(), bytes.size());
  return bytes;
}

// True if a vector of the operand rules the proof by norms out.
inline bool rules_proof_out(const NormedOperand& operand, double coefficient) {
  const std::vector<VectorRange> ranges = operand.device.ranges.host();
  const std::vector<VectorNorm> norms = operand.norms.host();
  const SplitRule& rule = *operand.split().rule;
  for (std::size_t v = 0; v < ranges.size(); ++v) {
    const bool has_norm = ranges[v].finite() && (ranges[v].flags & VectorRange::all_zero) == 0;
    const std::int32_t top = norm_top(rule.top_exponent, rule.sum_bits, norms[v].bits);
    if (has_norm && core::rules_proof_out(norms[v], top, operand.operand.view().columns, coefficient))
      return true;
  }
  return false;
}

// Redraws the vectors so that no proof is ruled out: elements of similar magnitude, zeros, some with a NaN.
inline void make_even(Operand<double>& operand, Random& random) {
  for (std::int64_t i = 0; i < operand.matrix.rows; ++i) {
    const std::int64_t kind = random.integer(0, 9);
    for (std::int64_t j = 0; j < operand.matrix.columns; ++j) {
      const auto index =
          static_cast<std::size_t>(i * operand.matrix.row_stride + j * operand.matrix.column_stride);
      operand.values[index] = kind == 0 ? 0 : kind == 1 && j == 0 ? NAN : random.symmetric();
    }
  }
}

inline SplitRule rule_by_norms(int moduli, std::int64_t length) {
  Program program = find_scheme(fmt::format("ozaki2:moduli={}:scale=norm", moduli))->program;
  schemes::fit_ozaki2(program, OperandType::f64, length);
  return program.split_a;
}

inline Operand<double> draw_operand(Random& random, std::int64_t vectors, std::int64_t length, bool even) {
  Operand<double> operand(random.integer(4, vectors), length,
                          random.flip() ? Layout::along_k : Layout::across, 0, random.bits());
  if (even) make_even(operand, random);
  return operand;
}

}  // namespace kintsugi::test
