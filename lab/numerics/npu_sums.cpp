#include "lab/numerics/npu_sums.hpp"

#include <algorithm>
#include <cmath>

#include "lab/numerics/ascend.hpp"

namespace kintsugi::lab::npu {

namespace {

constexpr std::int64_t at_once = 16;
constexpr std::int64_t block = 64;          // b_k of the paper's best blocks
constexpr std::int64_t group = 44 * block;  // blocks of A in L1 at once, times b_k

// Adds x times the row y to sums.
template <class T>
void add_row(float x, const float* y, T* sums, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] += static_cast<T>(x) * static_cast<T>(y[j]);
}

void add_to(const std::vector<float>& more, std::vector<float>& sums) {
  std::transform(sums.begin(), sums.end(), more.begin(), sums.begin(),
                 [](float x, float y) { return x + y; });
}

}  // namespace

SplitProduct::SplitProduct(const Operands& operands, int sb)
    : m_(operands.m), n_(operands.n), k_(operands.k), weight_(std::ldexp(1.0F, -sb)),
      a_(split(operands.a, sb)), b_(split(operands.b, sb)) {}

SplitProduct::Slices SplitProduct::split(const std::vector<float>& matrix, int sb) {
  Slices slices;
  for (const float x : matrix) {
    slices.high.push_back(ascend::to_half(x));
    slices.low.push_back(ascend::to_half(std::ldexp(x - slices.high.back(), sb)));
  }
  return slices;
}

void SplitProduct::add(Order order, const Term& term, std::int64_t row, std::int64_t begin, std::int64_t end,
                       std::vector<float>& sums) const {
  const auto n = static_cast<std::size_t>(n_);
  const auto add_products = [&](std::int64_t from, std::int64_t to, auto* into) {
    for (std::int64_t p = from; p < to; ++p)
      add_row((*term[0])[static_cast<std::size_t>(row * k_ + p)],
              term[1]->data() + static_cast<std::size_t>(p * n_), into, n);
  };
  switch (order) {
    case Order::sequential:
      // Products of FP16 numbers are exact in FP32.
      add_products(begin, end, sums.data());
      return;
    case Order::sixteen_at_once:
      for (std::int64_t p = begin; p < end; p += at_once) {
        std::vector<double> exact(sums.begin(), sums.end());
        add_products(p, std::min(p + at_once, end), exact.data());
        std::transform(exact.begin(), exact.end(), sums.begin(),
                       [](double x) { return static_cast<float>(x); });
      }
      return;
    case Order::blocks_of_64:
      for (std::int64_t p = begin; p < end; p += block) {
        std::vector<float> of_block(n);
        add_products(p, std::min(p + block, end), of_block.data());
        add_to(of_block, sums);
      }
      return;
  }
}

std::vector<float> SplitProduct::summed(Order order, const Term& term, std::int64_t row) const {
  std::vector<float> sums(static_cast<std::size_t>(n_));
  for (std::int64_t p = 0; p < k_; p += group) {
    std::vector<float> of_group(sums.size());
    add(order, term, row, p, std::min(p + group, k_), of_group);
    add_to(of_group, sums);
  }
  return sums;
}

std::vector<float> SplitProduct::term_wise(Order order) const {
  std::vector<float> c;
  for (std::int64_t i = 0; i < m_; ++i) {
    std::array<std::vector<float>, 3> sums;
    for (std::size_t t = 0; t < sums.size(); ++t) sums[t] = summed(order, terms()[t], i);
    for (std::size_t j = 0; j < sums[0].size(); ++j) {
      const float low = sums[0][j] + sums[1][j];
      c.push_back(weight_ * low + sums[2][j]);
    }
  }
  return c;
}

std::vector<float> SplitProduct::element_wise(Order order, std::int64_t every) const {
  std::vector<float> c;
  for (std::int64_t i = 0; i < m_; ++i) {
    std::vector<float> row(static_cast<std::size_t>(n_));
    for (std::int64_t p = 0; p < k_; p += every) {
      for (const Term& term : terms()) {
        std::vector<float> sums(row.size());
        add(order, term, i, p, std::min(p + every, k_), sums);
        const float weight = term == terms()[2] ? 1 : weight_;
        for (std::size_t j = 0; j < row.size(); ++j) row[j] += weight * sums[j];
      }
    }
    c.insert(c.end(), row.begin(), row.end());
  }
  return c;
}

std::vector<float> SplitProduct::high_alone(Order order) const {
  std::vector<float> c;
  for (std::int64_t i = 0; i < m_; ++i) {
    const std::vector<float> row = summed(order, terms()[2], i);
    c.insert(c.end(), row.begin(), row.end());
  }
  return c;
}

}  // namespace kintsugi::lab::npu
