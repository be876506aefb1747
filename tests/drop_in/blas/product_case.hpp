// A random gemm: what a name of it, or a batch, is called with, and what is right afterwards.
#pragma once

#include <string>

#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/matrix.hpp"

namespace kintsugi::test {

struct Shape {
  std::int64_t m, n, k;
};

inline Shape draw_shape(Random& random) {
  const auto side = [&] { return draw_side(random, {0, 1, 1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 47}); };
  const auto length = [&] { return random() % 8 == 0 ? draw_side(random, {64, 65, 127, 200}) : side(); };
  const std::int64_t m = side();
  const std::int64_t n = side();
  return {m, n, length()};
}

// Properties that the products of a group share.
template <class T>
struct Group {
  bool row_major;
  Shape shape;
  char op_a, op_b;
  std::int64_t padding_a, padding_b, padding_c;
  T alpha, beta;

  Group(Random& random, bool is_row_major)
      : row_major(is_row_major), shape(draw_shape(random)), op_a(one_of(random, {'N', 'N', 'T', 'C'})),
        op_b(one_of(random, {'N', 'N', 'T', 'C'})), padding_a(draw_padding(random)),
        padding_b(draw_padding(random)), padding_c(draw_padding(random)), alpha(draw_scalar<T>(random)),
        beta(draw_scalar<T>(random)) {}
};

template <class T>
class ProductCase {
 public:
  // `forwarded`: see check_random.
  ProductCase(Random& random, const Group<T>& group, bool forwarded)
      : group_(group), forwarded_(forwarded),
        a_(rows_of_a(group), columns_of_a(group), group.row_major, group.padding_a),
        b_(rows_of_b(group), columns_of_b(group), group.row_major, group.padding_b),
        c_(group.shape.m, group.shape.n, group.row_major, group.padding_c), a_before_(a_), b_before_(b_),
        c_before_(c_) {
    const Distribution distribution = draw_distribution(random);
    const int specials = random() % 6 == 0 ? 1 + static_cast<int>(random() % 2) : 0;
    a_.fill(random, distribution, specials);
    b_.fill(random, distribution, random() % 2 == 0 ? specials : 0);
    c_.fill(random, distribution, 0);
    if (group_.beta == T(0)) c_.fill_with_nan();
    a_before_ = a_;
    b_before_ = b_;
    c_before_ = c_;
  }

  Arguments arguments() {
    return {.row_major = group_.row_major,
            .op_a = group_.op_a,
            .op_b = group_.op_b,
            .m = group_.shape.m,
            .n = group_.shape.n,
            .k = group_.shape.k,
            .alpha = &group_.alpha,
            .a = a_.data(),
            .lda = a_.ld(),
            .b = b_.data(),
            .ldb = b_.ld(),
            .beta = &group_.beta,
            .c = c_.data(),
            .ldc = c_.ld()};
  }
  Matrix<T>& a() { return a_; }
  Matrix<T>& b() { return b_; }
  Matrix<T>& c() { return c_; }

  // Puts NaN and infinities into A, B and, if it is read, C: one to three each into some of them, and into
  // one of them at least.
  void place_special_values(Random& random) {
    const int first = static_cast<int>(random() % 3);
    const auto count = [&](int matrix) {
      return matrix == first || random() % 3 == 0 ? 1 + static_cast<int>(random() % 3) : 0;
    };
    a_.place_special_values(random, count(0));
    b_.place_special_values(random, count(1));
    if (const int specials = count(2); group_.beta != T(0)) c_.place_special_values(random, specials);
    a_before_ = a_;
    b_before_ = b_;
    c_before_ = c_;
  }

  // Returns a description of the failure; "" if there is none.
  std::string check() const {
    if (!a_.has_bits_of(a_before_) || !b_.has_bits_of(b_before_)) return "A or B was written";
    const std::string wrong = first_wrong_element();
    if (!wrong.empty()) return wrong;
    const bool inside = c_.differs_only(c_before_, [](std::int64_t, std::int64_t) { return true; });
    return inside ? "" : "an element outside C was written";
  }

  std::string text() const {
    return std::string(group_.row_major ? "row-major " : "column-major ") + group_.op_a + group_.op_b +
           " m = " + std::to_string(group_.shape.m) + " n = " + std::to_string(group_.shape.n) +
           " k = " + std::to_string(group_.shape.k);
  }

 private:
  static std::int64_t rows_of_a(const Group<T>& group) {
    return group.op_a == 'N' ? group.shape.m : group.shape.k;
  }
  static std::int64_t columns_of_a(const Group<T>& group) {
    return group.op_a == 'N' ? group.shape.k : group.shape.m;
  }
  static std::int64_t rows_of_b(const Group<T>& group) {
    return group.op_b == 'N' ? group.shape.k : group.shape.n;
  }
  static std::int64_t columns_of_b(const Group<T>& group) {
    return group.op_b == 'N' ? group.shape.n : group.shape.k;
  }

  std::string first_wrong_element() const {
    const Shape& shape = group_.shape;
    const Vectors<T> rows(shape.m, shape.k,
                          [&](std::int64_t i, std::int64_t l) { return a_before_.at(group_.op_a, i, l); });
    const Vectors<T> columns(shape.n, shape.k,
                             [&](std::int64_t j, std::int64_t l) { return b_before_.at(group_.op_b, l, j); });
    for (std::int64_t j = 0; j < shape.n; ++j) {
      for (std::int64_t i = 0; i < shape.m; ++i) {
        ElementOracle<T> oracle;
        oracle.add(rows[i], columns[j]);
        const Expected expected = oracle.result(group_.alpha, group_.beta, c_before_.at(i, j));
        if (meets(c_.at(i, j), expected)) continue;
        const Expected read_for_zero = oracle.result(group_.alpha, group_.beta, c_before_.at(i, j), true);
        if (forwarded_ && meets(c_.at(i, j), read_for_zero)) continue;
        return difference(i, j, wide(c_.at(i, j)), expected);
      }
    }
    return "";
  }

  Group<T> group_;
  bool forwarded_;
  Matrix<T> a_, b_, c_, a_before_, b_before_, c_before_;
};

}  // namespace kintsugi::test
