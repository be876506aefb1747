// H2SGEMM's products with orders in which an Ascend 910A may add, none of which is published: h2sgemm Fig. 7,
// Algorithm 1. Partial sums are added outside the cube in FP32.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kintsugi::lab::npu {

// Order in which the cube adds products along k to an FP32 accumulator, to nearest.
enum class Order : std::uint8_t {
  sequential,       // one product after the other
  sixteen_at_once,  // 16 products and the accumulator, rounded once
  blocks_of_64,     // one after the other in blocks of 64, which are added to the accumulator
};

// Row-major matrices: A has m x k elements, B k x n.
struct Operands {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<float> a;
  std::vector<float> b;
};

// Products of FP16 slices: A and B in high slices and low ones, which are scaled by 2^sb.
class SplitProduct {
 public:
  SplitProduct(const Operands& operands, int sb);

  // Returns C by Fig. 7(b): each of the three terms is summed over k, in groups of 44 blocks of 64 that are
  // added in FP32, then the terms are added, small ones first.
  std::vector<float> term_wise(Order order) const;
  // Returns C by Fig. 7(a): sums of `every` products of each term are added to C, small ones first.
  std::vector<float> element_wise(Order order, std::int64_t every) const;
  // Returns the product of the high slices alone.
  std::vector<float> high_alone(Order order) const;

 private:
  struct Slices {
    std::vector<float> high;
    std::vector<float> low;
  };
  using Term = std::array<const std::vector<float>*, 2>;  // a slice of A and one of B

  static Slices split(const std::vector<float>& matrix, int sb);
  // Adds products of the inner indices from `begin` to `end` to a row of sums.
  void add(Order order, const Term& term, std::int64_t row, std::int64_t begin, std::int64_t end,
           std::vector<float>& sums) const;
  // Sums a term of a row of C over all of k.
  std::vector<float> summed(Order order, const Term& term, std::int64_t row) const;
  std::array<Term, 3> terms() const {
    return {{{&a_.low, &b_.high}, {&a_.high, &b_.low}, {&a_.high, &b_.high}}};
  }

  std::int64_t m_;
  std::int64_t n_;
  std::int64_t k_;
  float weight_;  // of terms with a low slice
  Slices a_;
  Slices b_;
};

}  // namespace kintsugi::lab::npu
