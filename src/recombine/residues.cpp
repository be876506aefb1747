#include "recombine/residues.hpp"

#include <atomic>

#include "arith/double_double.hpp"
#include "recombine/chinese_remainder.hpp"

namespace kintsugi::core {

namespace {

template <class T>
using Integers = ElementNumbers<T, residue_limbs>;

}  // namespace

template <class T>
void recombine_residues(const Accumulators& sums, const ResidueSystem& system,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads) {
  for_each_integer<parts_of<T>>(sums, system, rows, columns, threads,
                                [&](std::int64_t i, std::int64_t j, const Integers<T>& exact) {
                                  T& element = c(i, j);
                                  const T* old = beta == T(0) ? nullptr : &element;
                                  element = rounded_element<T, residue_limbs>(exact, alpha, beta, old);
                                });
}

template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, const ResidueSystem& system,
                                        std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const ElementCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* states,
                                        bool writes, int threads) {
  std::atomic<std::int64_t> still_open = 0;
  const auto visit = [&](std::int64_t i, std::int64_t j, const Integers<T>& exact) {
    std::uint8_t& state = states[i + j * sums.rows];
    if (state == ElementCheck::closed) return;
    // The deviation of an element that is proved already stays 0. round_if_proved() then accepts every
    // result.
    ElementDeviations<T> deviations{};
    if (state == ElementCheck::open) {
      for (std::int64_t part = 0; part < parts_of<T>; ++part) {
        deviations[part] = largest_deviation(check.rows[i], check.columns[parts_of<T> * j + part],
                                             check.largest_a, check.largest_b);
      }
    }
    T& element = c(i, j);
    const T* old = beta == T(0) ? nullptr : &element;
    T result;
    if (!round_if_proved<T, residue_limbs>(check.demand, exact, deviations, alpha, beta, old, result)) {
      still_open.fetch_add(1, std::memory_order_relaxed);
    } else if (writes) {
      element = result;
      state = ElementCheck::closed;
    }
  };
  for_each_integer<parts_of<T>>(sums, system, rows, columns, threads, visit);
  return still_open;
}

template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, float, float, const MatrixView<float>&, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, double, double, const MatrixView<double>&,
                                 int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const ElementCheck&, float, float, const MatrixView<float>&,
                                                 std::uint8_t*, bool, int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const ElementCheck&, double, double,
                                                 const MatrixView<double>&, std::uint8_t*, bool, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, DoubleDouble, DoubleDouble,
                                 const MatrixView<DoubleDouble>&, int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const ElementCheck&, DoubleDouble, DoubleDouble,
                                                 const MatrixView<DoubleDouble>&, std::uint8_t*, bool, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<float>, std::complex<float>,
                                 const MatrixView<std::complex<float>>&, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<double>, std::complex<double>,
                                 const MatrixView<std::complex<double>>&, int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const ElementCheck&, std::complex<float>,
                                                 std::complex<float>, const MatrixView<std::complex<float>>&,
                                                 std::uint8_t*, bool, int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const ElementCheck&, std::complex<double>,
                                                 std::complex<double>,
                                                 const MatrixView<std::complex<double>>&, std::uint8_t*, bool,
                                                 int);

}  // namespace kintsugi::core
