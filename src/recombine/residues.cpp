#include "recombine/residues.hpp"

#include <array>

#include "arith/complex.hpp"
#include "arith/exact_rounding.hpp"
#include "arith/residue.hpp"
#include "recombine/finite_entries.hpp"

namespace kintsugi::core {

namespace {

// The product of all moduli has 342 bits, sums of 49 multiples of its parts 348.
using Integer = WideInteger<6>;

// The constants of `count` moduli. With M their product and q_t the inverse of M / m_t mod m_t,
//   N = sum over t of ((r_t q_t) mod m_t) (M / m_t)   mod M.
class ChineseRemainder {
 public:
  explicit ChineseRemainder(int count) : count_(count), product_(product_without(-1)) {
    limbs_ = (product_.length() + 6 + 63) / 64;
    for (int t = 0; t < count; ++t) {
      parts_[t] = product_without(t);
      inverses_[t] = inverse_of_part(t);
    }
  }

  // The integer of magnitude below M / 4 with these residues; sum(t) is congruent to it mod m_t.
  template <class Sum>
  ExactNumber<6> operator()(const Sum& sum) const {
    Integer total;
    std::uint64_t quotient = 0;  // of total / M, in units of 2^-48
    for (int t = 0; t < count_; ++t) {
      const std::uint32_t factor = reduce(std::uint64_t{reduce_signed(sum(t), t)} * inverses_[t], t);
      total.add_multiple(parts_[t], factor, limbs_);
      quotient += (std::uint64_t{factor} << 48) / static_cast<unsigned>(moduli[t]);
    }
    // 49 divisions lose less than 2^-42 together; total / M is within 1/4 of an integer.
    Integer multiple;
    multiple.add_multiple(product_, (quotient + (std::uint64_t{1} << 47)) >> 48, limbs_);
    ExactNumber<6> result;
    result.negative = total.less_than(multiple);
    result.magnitude = result.negative ? multiple : total;
    result.magnitude.subtract(result.negative ? total : multiple);
    return result;
  }

 private:
  Integer product_without(int left_out) const {
    Integer product{{1}};
    for (int t = 0; t < count_; ++t) {
      if (t == left_out) continue;
      Integer next;
      next.add_multiple(product, static_cast<std::uint64_t>(moduli[t]));
      product = next;
    }
    return product;
  }

  std::uint32_t inverse_of_part(int t) const {
    std::uint32_t part = 1;
    for (int s = 0; s < count_; ++s) {
      if (s != t) part = reduce(std::uint64_t{part} * static_cast<unsigned>(moduli[s]), t);
    }
    std::uint32_t inverse = 1;
    while (count_ > 1 && reduce(std::uint64_t{part} * inverse, t) != 1) ++inverse;
    return inverse;
  }

  int count_;
  int limbs_ = 0;
  Integer product_;
  std::array<Integer, most_moduli> parts_{};
  std::array<std::uint32_t, most_moduli> inverses_{};
};

}  // namespace

template <class T>
void recombine_residues(const Accumulators& sums, std::span<const VectorRange> rows,
                        std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                        int threads) {
  const ChineseRemainder remainder(sums.groups);
  const auto product = [&](std::int64_t i, std::int64_t v) {
    const std::int64_t* first = sums.group<std::int64_t>(0) + i + v * sums.rows;
    ExactNumber<6> exact = remainder([&](int t) { return first[t * sums.group_stride()]; });
    exact.exponent = -(rows[i].scale + columns[v].scale);
    return exact;
  };
  for_each_finite_entry(rows, columns, c, threads, [&](std::int64_t i, std::int64_t j, T& entry) {
    const T* old = beta == T(0) ? nullptr : &entry;
    if constexpr (is_complex<T>) {
      entry = exact_epilogue(product(i, 2 * j), product(i, 2 * j + 1), alpha, beta, old);
    } else {
      entry = exact_epilogue(product(i, j), alpha, beta, old);
    }
  });
}

template void recombine_residues(const Accumulators&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, float, float, const MatrixView<float>&, int);
template void recombine_residues(const Accumulators&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, double, double, const MatrixView<double>&,
                                 int);

template void recombine_residues(const Accumulators&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<float>, std::complex<float>,
                                 const MatrixView<std::complex<float>>&, int);
template void recombine_residues(const Accumulators&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<double>, std::complex<double>,
                                 const MatrixView<std::complex<double>>&, int);

}  // namespace kintsugi::core
