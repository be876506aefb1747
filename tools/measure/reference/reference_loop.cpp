#include "tools/measure/reference/reference_loop.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::measure {

namespace {

using core::MatrixView;

// ---- double-double ----

// Significant bits of a sum. A step loses at most 5 u^2 of |sum| + |product|, u = 2^-53, which is less than
// 2^-103: two-sum and the product are error-free; two additions of the low parts, each at most u of its high
// part, lose 3 u^2; and if sum and product nearly cancel, the last fast-two-sum, whose first number is then
// the smaller, loses another 2 u^2. A product below 2^-968 loses up to 2^-1074 more.
constexpr int double_double_bits = 103;

// Adds x times a row of B to the sums: the product and its error, two-sum, the low parts, and renormalization
// of the pair.
[[gnu::always_inline]] inline void add_multiple(double x, const double* __restrict b, std::int64_t n,
                                                double* __restrict high, double* __restrict low) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto product = core::two_product(x, b[j]);
    const auto sum = core::two_sum(high[j], product.value);
    const double correction = sum.error + (low[j] + product.error);
    high[j] = sum.value + correction;
    low[j] = correction - (high[j] - sum.value);
  }
}

[[gnu::always_inline]] inline void row(const double* a, const double* b, std::int64_t n, std::int64_t k,
                                       double* high, double* low) {
  std::fill_n(high, n, 0.0);
  std::fill_n(low, n, 0.0);
  for (std::int64_t l = 0; l < k; ++l) add_multiple(a[l], b + l * n, n, high, low);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,prefer-vector-width=512")]] void row_avx512(const double* a, const double* b,
                                                                   std::int64_t n, std::int64_t k,
                                                                   double* high, double* low) {
  row(a, b, n, k, high, low);
}

[[gnu::target("avx2,fma")]] void row_avx2(const double* a, const double* b, std::int64_t n, std::int64_t k,
                                          double* high, double* low) {
  row(a, b, n, k, high, low);
}
#endif

// Computes a row of C, n sums high + low along k: a (k) is the row of A, b (k,n) is row-major. Vectorized if
// the CPU has fused multiply-adds.
void double_double_row(const double* a, const double* b, std::int64_t n, std::int64_t k, double* high,
                       double* low) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return row_avx512(a, b, n, k, high, low);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return row_avx2(a, b, n, k, high, low);
#endif
  row(a, b, n, k, high, low);
}

__extension__ typedef __float128 Float128;

constexpr int max_mpfr_bits = 10000;

// ---- types of the language ----

// Returns the vectors along k, contiguous in memory.
template <class Wide, class T>
std::vector<Wide> widened(MatrixView<const T> vectors) {
  std::vector<Wide> result;
  result.reserve(static_cast<std::size_t>(vectors.rows * vectors.columns));
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    for (std::int64_t l = 0; l < vectors.columns; ++l) result.push_back(static_cast<Wide>(vectors(v, l)));
  }
  return result;
}

template <class Wide, class T>
void product_in(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, int threads) {
  const std::int64_t k = a.columns;
  const std::vector<Wide> rows = widened<Wide>(a);
  const std::vector<Wide> columns = widened<Wide>(b.transposed());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      Wide sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += rows[i * k + l] * columns[j * k + l];
      c(i, j) = static_cast<T>(sum);
    }
  }
}

double rounded(double high, double, double) { return high; }
// Rounds to the double with an odd last bit on the sum's side first, so that the second rounding gives the
// result of a single one.
float rounded(double high, double low, float) {
  const bool even = (std::bit_cast<std::uint64_t>(high) & 1) == 0;
  if (low != 0 && even) high = std::nextafter(high, low > 0 ? HUGE_VAL : -HUGE_VAL);
  return static_cast<float>(high);
}

// ---- MPFR ----

// MPFR is opened when one of its numbers is asked for, so that no program needs it to start. Its types and
// the values of its enumerations are those of MPFR 4's mpfr.h.
struct MpfrNumber {
  long precision;
  int sign;
  long exponent;
  unsigned long* limbs;
};

struct Mpfr {
  void (*init2)(MpfrNumber*, long);
  void (*clear)(MpfrNumber*);
  void (*set_zero)(MpfrNumber*, int);
  int (*set_d)(MpfrNumber*, double, int);
  int (*mul)(MpfrNumber*, const MpfrNumber*, const MpfrNumber*, int);
  int (*add)(MpfrNumber*, const MpfrNumber*, const MpfrNumber*, int);
  double (*get_d)(const MpfrNumber*, int);
  float (*get_flt)(const MpfrNumber*, int);
  void (*free_cache)();
};

Mpfr open_mpfr() {
  void* library = ::dlopen("libmpfr.so.6", RTLD_NOW | RTLD_LOCAL);
  Mpfr mpfr{};
  const auto find = [&](auto& function, const char* name) {
    if (library != nullptr)
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (library == nullptr || function == nullptr)
      core::fail(core::Status::bad_setting, "the arithmetic mpfr needs MPFR 4: {}",
                 std::string_view(::dlerror()));
  };
  find(mpfr.init2, "mpfr_init2");
  find(mpfr.clear, "mpfr_clear");
  find(mpfr.set_zero, "mpfr_set_zero");
  find(mpfr.set_d, "mpfr_set_d");
  find(mpfr.mul, "mpfr_mul");
  find(mpfr.add, "mpfr_add");
  find(mpfr.get_d, "mpfr_get_d");
  find(mpfr.get_flt, "mpfr_get_flt");
  find(mpfr.free_cache, "mpfr_free_cache");
  return mpfr;
}

const Mpfr& mpfr() {
  static const Mpfr functions = open_mpfr();
  return functions;
}

constexpr int to_nearest = 0;  // MPFR_RNDN

float rounded(const MpfrNumber* value, float) { return mpfr().get_flt(value, to_nearest); }
double rounded(const MpfrNumber* value, double) { return mpfr().get_d(value, to_nearest); }

template <class T>
void double_double_product(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, int threads) {
  const std::int64_t k = a.columns;
  const std::vector<double> rows_of_a = widened<double>(a);
  const std::vector<double> rows_of_b = widened<double>(b);
#pragma omp parallel num_threads(threads)
  {
    std::vector<double> high(static_cast<std::size_t>(c.columns));
    std::vector<double> low(high.size());
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < c.rows; ++i) {
      double_double_row(rows_of_a.data() + i * k, rows_of_b.data(), c.columns, k, high.data(), low.data());
      for (std::int64_t j = 0; j < c.columns; ++j) c(i, j) = rounded(high[j], low[j], T{});
    }
  }
}

class MpfrVector {
 public:
  MpfrVector(std::size_t size, int bits) : values_(size) {
    for (auto& value : values_) mpfr().init2(&value, bits);
  }
  ~MpfrVector() {
    for (auto& value : values_) mpfr().clear(&value);
  }
  MpfrVector(const MpfrVector&) = delete;
  MpfrVector& operator=(const MpfrVector&) = delete;
  MpfrNumber* operator[](std::size_t i) { return &values_[i]; }

 private:
  std::vector<MpfrNumber> values_;
};

// Returns the precision of operands. MPFR multiplies numbers of one or two words fastest if all have the same
// precision, longer ones if operands keep their own (Zen 4, mpfr_mul and mpfr_add: 17 and 22 ns at 113 bits,
// 74 and 49 at 2048).
int operand_bits(int bits) {
  return bits <= 2 * std::numeric_limits<unsigned long>::digits ? bits : std::numeric_limits<double>::digits;
}

template <class T>
void assign(MatrixView<const T> vectors, MpfrVector& target) {
  std::size_t next = 0;
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    for (std::int64_t l = 0; l < vectors.columns; ++l)
      mpfr().set_d(target[next++], static_cast<double>(vectors(v, l)), to_nearest);
  }
}

template <class T>
void mpfr_product(int bits, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, int threads) {
  const std::int64_t k = a.columns;
  const Mpfr& library = mpfr();
  MpfrVector rows(static_cast<std::size_t>(c.rows * k), operand_bits(bits));
  MpfrVector columns(static_cast<std::size_t>(c.columns * k), operand_bits(bits));
  assign(a, rows);
  assign(b.transposed(), columns);
#pragma omp parallel num_threads(threads)
  {
    MpfrVector registers(2, bits);
    MpfrNumber* product = registers[0];
    MpfrNumber* sum = registers[1];
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        library.set_zero(sum, 1);
        for (std::int64_t l = 0; l < k; ++l) {
          library.mul(product, rows[i * k + l], columns[j * k + l], to_nearest);
          library.add(sum, sum, product, to_nearest);
        }
        c(i, j) = rounded(sum, T{});
      }
    }
    library.free_cache();
  }
}

[[noreturn]] void refuse(std::string_view text) {
  core::fail(
      core::Status::bad_setting, "arithmetic '{}' is not known{}", text,
      core::accepted_names(text, "accepted:",
                           fmt::format("long-double, double-double, float128, mpfr:P with P from {} to {}",
                                       std::numeric_limits<double>::digits, max_mpfr_bits)));
}

}  // namespace

Arithmetic parse_arithmetic(std::string_view text) {
  constexpr std::string_view prefix = "mpfr:";
  if (text == "long-double") return {ArithmeticKind::long_double, std::numeric_limits<long double>::digits};
  if (text == "double-double") return {ArithmeticKind::double_double, double_double_bits};
  if (text == "float128") return {ArithmeticKind::float128, 113};
  if (!text.starts_with(prefix)) refuse(text);
  int bits = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + prefix.size(), last, bits);
  if (error != std::errc() || end != last || bits < std::numeric_limits<double>::digits ||
      bits > max_mpfr_bits)
    refuse(text);
  mpfr();  // fails where MPFR is not installed
  return {ArithmeticKind::mpfr, bits};
}

std::string to_text(const Arithmetic& arithmetic) {
  switch (arithmetic.kind) {
    case ArithmeticKind::long_double: return "long-double";
    case ArithmeticKind::double_double: return "double-double";
    case ArithmeticKind::float128: return "float128";
    case ArithmeticKind::mpfr: break;
  }
  return fmt::format("mpfr:{}", arithmetic.significand_bits);
}

template <class T>
void reference_loop(const Arithmetic& arithmetic, MatrixView<const T> a, MatrixView<const T> b,
                    MatrixView<T> c, int threads) {
  switch (arithmetic.kind) {
    case ArithmeticKind::long_double: return product_in<long double>(a, b, c, threads);
    case ArithmeticKind::double_double: return double_double_product(a, b, c, threads);
    case ArithmeticKind::float128: return product_in<Float128>(a, b, c, threads);
    case ArithmeticKind::mpfr: return mpfr_product(arithmetic.significand_bits, a, b, c, threads);
  }
}

double reference_loop_bound(const Arithmetic& arithmetic, std::int64_t k) {
  const double ku = std::ldexp(static_cast<double>(k), -arithmetic.significand_bits);
  return ku / (1 - ku);
}

template void reference_loop(const Arithmetic&, MatrixView<const float>, MatrixView<const float>,
                             MatrixView<float>, int);
template void reference_loop(const Arithmetic&, MatrixView<const double>, MatrixView<const double>,
                             MatrixView<double>, int);

}  // namespace kintsugi::measure
