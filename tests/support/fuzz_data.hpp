// The matrices of a FuzzCase as images of memory. Guard zones, gaps and padding around the elements have all
// bits set, which is NaN in every type, so that reading there shows in C, and writing there is found.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/view.hpp"
#include "formats/double_double.hpp"
#include "kintsugi/kintsugi.h"
#include "tests/support/fuzz_case.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::test {

inline constexpr std::size_t guard_bytes = 256;
inline constexpr std::byte guard_byte{0xff};

// Layout of one matrix of every batch item in an image, in elements.
struct Placement {
  std::int64_t rows = 0, columns = 0;  // of op(X)
  std::int64_t row_stride = 1, column_stride = 1, leading = 1;
  std::int64_t item_stride = 0;
  std::int64_t items = 0;  // number that lie in memory; if it is 1, all batch items share that one
  std::size_t first = 0;   // bytes before item 0's first element
  std::size_t bytes = 0;   // of the whole image

  std::size_t offset(std::int64_t item, std::size_t element) const {
    return first + static_cast<std::size_t>(std::min(item, items - 1) * item_stride) * element;
  }
};

struct Image {
  Placement place;
  std::vector<std::byte> bytes;
};

template <class T>
inline constexpr bool is_complex_element = false;
template <class Real>
inline constexpr bool is_complex_element<std::complex<Real>> = true;

template <class T>
struct RealPart {
  using type = T;
};
template <class Real>
struct RealPart<std::complex<Real>> {
  using type = Real;
};
// The real type of a complex element's parts; for other elements, their own type.
template <class T>
using PartOf = typename RealPart<T>::type;

template <class T>
constexpr kintsugi_type type_number() {
  if constexpr (std::is_same_v<T, core::DoubleDouble>) return KINTSUGI_DD;
  constexpr bool is_single = std::is_same_v<PartOf<T>, float>;
  if constexpr (is_complex_element<T>) return is_single ? KINTSUGI_C32 : KINTSUGI_C64;
  return is_single ? KINTSUGI_F32 : KINTSUGI_F64;
}

// Returns call.template operator()<T>() with the element type T of a case.
template <class Call>
decltype(auto) with_type(const std::string& type, const Call& call) {
  if (type == "f32") return call.template operator()<float>();
  if (type == "f64") return call.template operator()<double>();
  if (type == "c32") return call.template operator()<std::complex<float>>();
  if (type == "c64") return call.template operator()<std::complex<double>>();
  if (type == "dd") return call.template operator()<core::DoubleDouble>();
  throw std::invalid_argument("there is no type '" + type + "', only f32, f64, c32, c64 and dd");
}

template <class T>
T scalar_value(const std::string& text) {
  char* end = nullptr;
  const double first = std::strtod(text.c_str(), &end);
  const double second = *end == ',' ? std::strtod(end + 1, nullptr) : 0;
  if constexpr (std::is_same_v<T, core::DoubleDouble>) {
    return {first, second};
  } else if constexpr (is_complex_element<T>) {
    return {static_cast<PartOf<T>>(first), static_cast<PartOf<T>>(second)};
  } else {
    return static_cast<T>(first);
  }
}

inline kintsugi_op op_number(char op) {
  return op == 'N' ? KINTSUGI_OP_N : op == 'T' ? KINTSUGI_OP_T : KINTSUGI_OP_C;
}

template <class T>
class FuzzData {
 public:
  explicit FuzzData(const FuzzCase& test) : test_(test) {
    const std::int64_t shared_items = std::min<std::int64_t>(test.batch, 1);
    const auto items = [&](std::int64_t reuse, const std::string& prepared) {
      return reuse != 0 || prepared == "one" ? shared_items : test.batch;
    };
    a_ = image(test.ops[0], test.m, test.k, test.pad_a, test.gap_a, test.shift_a,
               items(test.reuse_a, test.prepared_a));
    b_ = image(test.ops[1], test.k, test.n, test.pad_b, test.gap_b, test.shift_b,
               items(test.reuse_b, test.prepared_b));
    c_ = image('N', test.m, test.n, test.pad_c, test.gap_c, test.shift_c, test.batch);
    // An operand that was prepared for one item does not change the batch's own stride.
    if (test.reuse_a != 0) a_.place.item_stride = 0;
    if (test.reuse_b != 0) b_.place.item_stride = 0;
    fill(a_, measure::Side::a, test.values_a, 0, test.special_a);
    fill(b_, measure::Side::b, test.values_b, 0, test.special_b);
    if (scalar_value<T>(test.beta) != T(0)) fill(c_, measure::Side::a, test.values_c, 77, test.special_c);
  }

  const FuzzCase& test() const { return test_; }
  const Image& a() const { return a_; }
  const Image& b() const { return b_; }
  const Image& c() const { return c_; }  // before the product
  T alpha() const { return scalar_value<T>(test_.alpha); }
  T beta() const { return scalar_value<T>(test_.beta); }

  // Elements of op(A), op(B) and an image of C, of one batch item.
  T a(std::int64_t item, std::int64_t i, std::int64_t p) const {
    return conjugated(test_.ops[0], read(a_.place, a_.bytes.data(), item, i, p));
  }
  T b(std::int64_t item, std::int64_t p, std::int64_t j) const {
    return conjugated(test_.ops[1], read(b_.place, b_.bytes.data(), item, p, j));
  }
  T c(const std::byte* bytes, std::int64_t item, std::int64_t i, std::int64_t j) const {
    return read(c_.place, bytes, item, i, j);
  }

  // The problem of the call; the caller says where memory lies.
  kintsugi_problem problem() const {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = test_.m, problem.n = test_.n, problem.k = test_.k;
    problem.lda = a_.place.leading, problem.ldb = b_.place.leading, problem.ldc = c_.place.leading;
    problem.batch_count = test_.batch;
    problem.stride_a = a_.place.item_stride;
    problem.stride_b = b_.place.item_stride;
    problem.stride_c = c_.place.item_stride;
    problem.op_a = op_number(test_.ops[0]), problem.op_b = op_number(test_.ops[1]);
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type_number<T>();
    problem.layout = test_.layout == "col" ? KINTSUGI_COLUMN_MAJOR : KINTSUGI_ROW_MAJOR;
    problem.batch_kind = test_.batches == "pointers" ? KINTSUGI_BATCH_POINTERS : KINTSUGI_BATCH_STRIDED;
    return problem;
  }

  // Index of the first byte outside C's elements that the call changed; -1 if it changed none.
  std::int64_t damage(const std::byte* after) const {
    std::vector<std::byte> outside(after, after + c_.bytes.size());
    for (std::int64_t item = 0; item < c_.place.items; ++item) {
      for (std::int64_t j = 0; j < test_.n; ++j) {
        for (std::int64_t i = 0; i < test_.m; ++i) {
          const std::size_t offset = position(c_.place, item, i, j);
          std::memcpy(outside.data() + offset, c_.bytes.data() + offset, sizeof(T));
        }
      }
    }
    const auto found = std::mismatch(outside.begin(), outside.end(), c_.bytes.begin());
    return found.first == outside.end() ? -1 : found.first - outside.begin();
  }

 private:
  Image image(char op, std::int64_t rows, std::int64_t columns, std::int64_t pad, std::int64_t gap,
              std::int64_t shift, std::int64_t items) const {
    Placement place;
    place.rows = rows, place.columns = columns;
    const bool unit_row_stride = (test_.layout == "col") == (op == 'N');
    place.leading = std::max<std::int64_t>(unit_row_stride ? rows : columns, 1) + pad;
    (unit_row_stride ? place.column_stride : place.row_stride) = place.leading;
    const std::int64_t lines = unit_row_stride ? columns : rows;
    // The last line has no padding, so that the guard zone follows its last element.
    const std::int64_t extent = rows * columns == 0 ? 0 : place.leading * (lines - 1) + place.leading - pad;
    place.items = items;
    place.item_stride = std::max<std::int64_t>(extent + gap, 1);
    place.first = guard_bytes + static_cast<std::size_t>(shift) * sizeof(PartOf<T>);
    const std::int64_t span = place.items == 0 ? 0 : (place.items - 1) * place.item_stride + extent;
    place.bytes = place.first + static_cast<std::size_t>(span) * sizeof(T) + guard_bytes;
    return {place, std::vector<std::byte>(place.bytes, guard_byte)};
  }

  static std::size_t position(const Placement& place, std::int64_t item, std::int64_t i, std::int64_t j) {
    return place.offset(item, sizeof(T)) +
           static_cast<std::size_t>(i * place.row_stride + j * place.column_stride) * sizeof(T);
  }
  static T read(const Placement& place, const std::byte* bytes, std::int64_t item, std::int64_t i,
                std::int64_t j) {
    T value;
    std::memcpy(&value, bytes + position(place, item, i, j), sizeof(T));
    return value;
  }
  static T conjugated(char op, T x) {
    if constexpr (is_complex_element<T>) return op == 'C' ? std::conj(x) : x;
    return x;
  }

  // Real and imaginary parts of complex elements are drawn as two matrices, each with a seed of its own.
  void fill(Image& image, measure::Side side, const std::string& values, std::uint64_t salt,
            std::int64_t specials) {
    using Part = PartOf<T>;
    constexpr std::int64_t parts = is_complex_element<T> ? 2 : 1;
    const measure::Distribution distribution = measure::parse_distribution(values);
    const Placement& place = image.place;
    std::vector<Part> dense(static_cast<std::size_t>(place.rows * place.columns * parts));
    for (std::int64_t item = 0; item < place.items; ++item) {
      const std::uint64_t seed = test_.seed + salt + 1009U * static_cast<std::uint64_t>(item);
      for (std::int64_t part = 0; part < parts; ++part)
        measure::fill(distribution, side, seed + 7919U * static_cast<std::uint64_t>(part),
                      core::MatrixView<Part>{dense.data() + part, place.rows, place.columns, parts,
                                             place.rows * parts});
      add_specials(dense, specials, measure::Random(seed, side == measure::Side::a ? 5 : 6));
      for (std::int64_t j = 0; j < place.columns; ++j) {
        for (std::int64_t i = 0; i < place.rows; ++i)
          std::memcpy(image.bytes.data() + position(place, item, i, j),
                      dense.data() + (i + j * place.rows) * parts, sizeof(T));
      }
    }
  }

  template <class Part>
  // Overwrites random elements with special values.
  static void add_specials(std::vector<Part>& dense, std::int64_t specials, measure::Random random) {
    using limits =
        std::numeric_limits<std::conditional_t<std::is_same_v<Part, core::DoubleDouble>, double, Part>>;
    if (dense.empty()) return;
    for (std::int64_t s = 0; s < specials; ++s) {
      const auto values = {
          limits::quiet_NaN(),  limits::infinity(), -limits::infinity(), decltype(limits::max())(0),
          limits::denorm_min(), limits::min(),      limits::max(),       -limits::max()};
      const auto value = values.begin()[random.integer(0, std::ssize(values) - 1)];
      dense[static_cast<std::size_t>(random.integer(0, std::ssize(dense) - 1))] = Part(value);
    }
  }

  FuzzCase test_;
  Image a_, b_, c_;
};

}  // namespace kintsugi::test
