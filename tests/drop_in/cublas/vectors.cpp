#include "tests/drop_in/cublas/vectors.hpp"

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "tests/drop_in/cublas/entries.hpp"
#include "tests/drop_in/cublas/host_engine.hpp"
#include "tests/drop_in/cublas/program.hpp"

namespace kintsugi::test {

namespace {

enum class Kind : std::uint8_t { gemv, batched, strided, symv, hemv, ger, dot };

struct VectorEntry {
  const char* name;
  Kind kind;
  kintsugi_type type;
  bool is_conjugated;  // gerc and dotc
  bool has_64_bit_integers;

  bool is_gemv() const { return kind <= Kind::strided; }
  bool is_symmetric() const { return kind == Kind::symv || kind == Kind::hemv; }
};

const std::vector<VectorEntry>& vector_entries() {
  static const std::vector<VectorEntry> all{
#define ENTRY(kind, op, type, integer, symbol) \
  {#symbol, Kind::kind, type, #op[0] == 'c', sizeof(integer) == 8},
#define KINTSUGI_CUBLAS_GEMV(...) ENTRY(gemv, n, __VA_ARGS__)
#define KINTSUGI_CUBLAS_GEMV_BATCHED(...) ENTRY(batched, n, __VA_ARGS__)
#define KINTSUGI_CUBLAS_GEMV_STRIDED(...) ENTRY(strided, n, __VA_ARGS__)
#define KINTSUGI_CUBLAS_SYMV(type, integer, routine, symbol) ENTRY(routine, n, type, integer, symbol)
#define KINTSUGI_CUBLAS_GER(type, integer, op, symbol) ENTRY(ger, op, type, integer, symbol)
#define KINTSUGI_CUBLAS_DOT(type, integer, op, symbol) ENTRY(dot, op, type, integer, symbol)
#include "drop_in/cublas/symbols.def"
  };
  return all;
}

template <class... Values>
int call_with(const VectorEntry& entry, Values... values) {
  return reinterpret_cast<int (*)(Values...)>(function_of(entry.name))(values...);
}

template <class T>
T conjugate_of(const T& x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return std::conj(x);
  }
}

template <class T>
T not_a_number() {
  return T(std::numeric_limits<double>::quiet_NaN());
}

// Vectors of equal length and increment, one after the other, with NaN between the elements.
template <class T>
struct VectorItems {
  std::int64_t length = 0, increment = 1, stride = 0;
  std::vector<T> memory = {};

  VectorItems() = default;
  VectorItems(std::int64_t elements, std::int64_t step, std::int64_t count)
      : length(elements), increment(step), stride(std::max<std::int64_t>(elements, 1) * std::abs(step) + 2),
        memory(static_cast<std::size_t>(stride * count), not_a_number<T>()) {}
  T& at(std::int64_t item, std::int64_t i) {
    const std::int64_t place = increment < 0 ? (i - length + 1) * increment : i * increment;
    return memory[static_cast<std::size_t>(item * stride + place)];
  }
  T* item(std::int64_t number) { return memory.data() + number * stride; }
};

template <class T>
class VectorCase {
 public:
  VectorCase(const VectorEntry& entry, std::mt19937_64& random) : entry_(entry), random_(random) {
    op_ = entry.is_gemv() ? static_cast<int>(draw(0, 2)) : 0;
    uplo_ = static_cast<int>(draw(0, 1));
    count_ = entry.kind == Kind::batched || entry.kind == Kind::strided ? draw(1, 4) : 1;
    m_ = draw(0, 15) == 0 ? 0 : draw(1, 40);
    n_ = entry.is_symmetric() || entry.kind == Kind::dot ? m_ : draw(1, 40);
    lda_ = std::max<std::int64_t>(m_, 1) + draw(0, 1) * draw(0, 5);
    alpha_ = draw(0, 7) == 0 ? T(0) : element();
    beta_ = draw(0, 2) == 0 ? T(0) : draw(0, 3) == 0 ? T(1) : element();
    const bool is_transposed = entry.is_gemv() && op_ != 0;
    const bool has_matrix_a = entry.is_gemv() || entry.is_symmetric();
    x_ = VectorItems<T>(has_matrix_a && !is_transposed ? n_ : m_, increment(), count_);
    y_ = VectorItems<T>(has_matrix_a && !is_transposed ? m_ : n_, increment(), count_);
    stride_a_ = lda_ * std::max<std::int64_t>(n_, 1) + 3;
    a_.assign(static_cast<std::size_t>(stride_a_ * count_), not_a_number<T>());
    fill();
  }

  int call(BlasHandle handle) {
    return entry_.has_64_bit_integers ? call_as<std::int64_t>(handle) : call_as<int>(handle);
  }

  // True if Kintsugi is to compute the call.
  bool is_answerable(int pointer_mode) const {
    if (m_ == 0 || n_ == 0 || x_.increment < 0 || y_.increment < 0) return false;
    if (pointer_mode != 0 && (entry_.is_symmetric() || entry_.kind == Kind::ger)) return false;
    const bool conjugates =
        !std::is_floating_point_v<T> &&
        ((entry_.is_gemv() && op_ == 2) || (entry_.kind == Kind::ger && entry_.is_conjugated));
    return !conjugates || y_.increment == 1;
  }

  // "" if everything is what it must be.
  std::string error() {
    if (entry_.kind == Kind::dot) return same(result_, expected_result_) ? "" : "the result differs";
    std::vector<T>& found = entry_.kind == Kind::ger ? a_ : y_.memory;
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!same(found[i], expected_[i])) return "element " + std::to_string(i) + " of the memory differs";
    return "";
  }

  std::string text() const {
    return std::string(entry_.name) + " op=" + std::to_string(op_) + " uplo=" + std::to_string(uplo_) +
           " m=" + std::to_string(m_) + " n=" + std::to_string(n_) + " lda=" + std::to_string(lda_) +
           " incx=" + std::to_string(x_.increment) + " incy=" + std::to_string(y_.increment) +
           " count=" + std::to_string(count_);
  }

 private:
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::int64_t increment() { return draw(0, 9) == 0 ? -draw(1, 3) : draw(0, 1) == 0 ? 1 : draw(1, 4); }
  T element() {
    const auto real = static_cast<double>(draw(-4, 4));
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(real);
    } else {
      return T(std::complex<double>(real, static_cast<double>(draw(-4, 4))));
    }
  }
  static bool same(const T& x, const T& y) {
    const std::complex<double> left(x), right(y);
    const auto equal = [](double a, double b) { return a == b || (a != a && b != b); };
    return equal(left.real(), right.real()) && equal(left.imag(), right.imag());
  }

  T& a(std::int64_t item, std::int64_t i, std::int64_t j) {
    return a_[static_cast<std::size_t>(item * stride_a_ + i + j * lda_)];
  }
  bool is_stored(std::int64_t i, std::int64_t j) const {
    return !entry_.is_symmetric() || (uplo_ == 0 ? i >= j : i <= j);
  }
  // An element of the matrix that multiplies x.
  T factor(std::int64_t item, std::int64_t i, std::int64_t l) {
    if (entry_.is_gemv())
      return op_ == 0 ? a(item, i, l) : op_ == 1 ? a(item, l, i) : conjugate_of(a(item, l, i));
    const bool is_hermitian = entry_.kind == Kind::hemv;
    if (is_stored(i, l)) return is_hermitian && i == l ? T(std::real(a(item, i, l))) : a(item, i, l);
    return is_hermitian ? conjugate_of(a(item, l, i)) : a(item, l, i);
  }

  void fill() {
    const bool reads = alpha_ != T(0) || entry_.kind == Kind::dot;
    for (std::int64_t t = 0; t < count_; ++t) {
      for (std::int64_t i = 0; i < x_.length && reads; ++i) x_.at(t, i) = element();
      const bool reads_y = entry_.kind == Kind::dot || (entry_.kind == Kind::ger ? reads : beta_ != T(0));
      for (std::int64_t i = 0; i < y_.length && reads_y; ++i) y_.at(t, i) = element();
      for (std::int64_t j = 0; j < n_; ++j)
        for (std::int64_t i = 0; i < m_; ++i)
          if (is_stored(i, j) && (reads || entry_.kind == Kind::ger)) a(t, i, j) = element();
    }
    expect();
  }

  void expect() {
    expected_ = entry_.kind == Kind::ger ? a_ : y_.memory;
    if (entry_.kind == Kind::dot) return expect_dot();
    if (m_ == 0 || n_ == 0) return;
    if (entry_.kind == Kind::ger) return expect_ger();
    VectorItems<T> y = y_;
    for (std::int64_t t = 0; t < count_; ++t) {
      for (std::int64_t i = 0; i < y.length; ++i) {
        T sum(0);
        for (std::int64_t l = 0; l < x_.length && alpha_ != T(0); ++l) sum += factor(t, i, l) * x_.at(t, l);
        y.at(t, i) = beta_ == T(0) ? alpha_ * sum : alpha_ * sum + beta_ * y.at(t, i);
      }
    }
    expected_ = y.memory;
  }
  void expect_ger() {
    for (std::int64_t j = 0; j < n_ && alpha_ != T(0); ++j)
      for (std::int64_t i = 0; i < m_; ++i)
        expected_[static_cast<std::size_t>(i + j * lda_)] +=
            alpha_ * x_.at(0, i) * (entry_.is_conjugated ? conjugate_of(y_.at(0, j)) : y_.at(0, j));
  }
  void expect_dot() {
    for (std::int64_t i = 0; i < m_; ++i)
      expected_result_ += (entry_.is_conjugated ? conjugate_of(x_.at(0, i)) : x_.at(0, i)) * y_.at(0, i);
  }

  template <class Int>
  int call_as(BlasHandle handle) {
    const auto m = static_cast<Int>(m_), n = static_cast<Int>(n_), lda = static_cast<Int>(lda_);
    const auto incx = static_cast<Int>(x_.increment), incy = static_cast<Int>(y_.increment);
    const auto count = static_cast<Int>(count_);
    const void *const alpha = &alpha_, *const beta = &beta_, *const matrix = a_.data();
    const void* const x = x_.memory.data();
    void* const y = y_.memory.data();
    switch (entry_.kind) {
      case Kind::gemv:
        return call_with(entry_, handle, op_, m, n, alpha, matrix, lda, x, incx, beta, y, incy);
      case Kind::strided:
        return call_with(entry_, handle, op_, m, n, alpha, matrix, lda, static_cast<long long>(stride_a_), x,
                         incx, static_cast<long long>(x_.stride), beta, y, incy,
                         static_cast<long long>(y_.stride), count);
      case Kind::batched: {
        for (std::int64_t t = 0; t < count_; ++t) {
          matrices_.push_back(a_.data() + t * stride_a_);
          inputs_.push_back(x_.item(t));
          outputs_.push_back(y_.item(t));
        }
        return call_with(entry_, handle, op_, m, n, alpha, matrices_.data(), lda, inputs_.data(), incx, beta,
                         outputs_.data(), incy, count);
      }
      case Kind::symv:
      case Kind::hemv: return call_with(entry_, handle, uplo_, n, alpha, matrix, lda, x, incx, beta, y, incy);
      case Kind::ger:
        return call_with(entry_, handle, m, n, alpha, x, incx, static_cast<const void*>(y), incy,
                         static_cast<void*>(a_.data()), lda);
      case Kind::dot:
        return call_with(entry_, handle, n, x, incx, static_cast<const void*>(y), incy,
                         static_cast<void*>(&result_));
    }
    return -1;
  }

  const VectorEntry& entry_;
  std::mt19937_64& random_;
  int op_, uplo_;
  std::int64_t m_, n_, lda_, count_, stride_a_ = 0;
  alignas(16) T alpha_{};
  alignas(16) T beta_{};
  alignas(16) T result_ = not_a_number<T>();
  T expected_result_{};
  VectorItems<T> x_, y_;
  std::vector<T> a_, expected_;
  std::vector<const T*> matrices_, inputs_;
  std::vector<T*> outputs_;
};

template <class T>
void check_case(const VectorEntry& entry, ProgramHandle& handle, bool emulated, std::mt19937_64& random,
                Checks& checks) {
  VectorCase<T> one(entry, random);
  const int pointer_mode = static_cast<int>(random() % 2);
  handle.set_pointer_mode(pointer_mode);
  executions().count = 0;
  const int status = one.call(handle.get());
  const std::string text = one.text() + " pointer_mode=" + std::to_string(pointer_mode);
  checks.check(status == 0, text + ": status " + std::to_string(status) + " in place of 0");
  if (const std::string error = one.error(); !error.empty()) checks.check(false, text + ": " + error);
  const long expected = emulated && one.is_answerable(pointer_mode) ? 1 : 0;
  checks.check(executions().count == expected,
               text + ": " + std::to_string(executions().count) + " executions of Kintsugi");
}

// The row (1, 1e20, -1e20) times ones, as gemv, dot and symv; cuBLAS's own sums are 0.
void check_cancelling_row(ProgramHandle& handle, bool emulated, Checks& checks) {
  const double row[] = {1, 1e20, -1e20}, ones[] = {1, 1, 1}, one = 1, zero = 0;
  const double lower[] = {1, 1e20, -1e20, 0, 0, 0, 0, 0, 0};
  const double right = emulated ? 1 : 0;
  double results[3] = {7, 7, 7};
  handle.set_pointer_mode(0);
  const auto call = [&](const char* name, auto... values) {
    return reinterpret_cast<int (*)(BlasHandle, decltype(values)...)>(function_of(name))(handle.get(),
                                                                                         values...);
  };
  call("cublasDdot_v2", 3, &row[0], 1, &ones[0], 1, &results[0]);
  checks.check(results[0] == right, "cublasDdot_v2 gives " + std::to_string(results[0]));
  call("cublasDgemv_v2", 1, 3, 1, &one, &row[0], 3, &ones[0], 1, &zero, &results[0], 1);
  checks.check(results[0] == right, "cublasDgemv_v2 gives " + std::to_string(results[0]));
  call("cublasDsymv_v2", 0, 3, &one, &lower[0], 3, &ones[0], 1, &zero, &results[0], 1);
  checks.check(results[0] == right && results[1] == 1e20 && results[2] == -1e20,
               "cublasDsymv_v2 gives " + std::to_string(results[0]));
}

// Wrong arguments have cuBLAS's status and write nothing.
void check_wrong_arguments(ProgramHandle& handle, Checks& checks) {
  constexpr int not_initialized = 1, invalid_value = 7;
  const std::vector<double> a(50, 1), x(50, 1);
  std::vector<double> y(50, 7);
  const double one[2] = {1, 0};
  const auto gemv = [&](BlasHandle blas, int op, int m, int lda, int incx, int incy, const double* alpha) {
    return reinterpret_cast<int (*)(BlasHandle, int, int, int, const double*, const double*, int,
                                    const double*, int, const double*, double*, int)>(
        function_of("cublasDgemv_v2"))(blas, op, m, 4, alpha, a.data(), lda, x.data(), incx, one, y.data(),
                                       incy);
  };
  executions().count = 0;
  checks.check(gemv(nullptr, 0, 4, 4, 1, 1, one) == not_initialized, "gemv without a handle");
  checks.check(gemv(handle.get(), 5, 4, 4, 1, 1, one) == invalid_value, "gemv with op 5");
  checks.check(gemv(handle.get(), 0, -1, 4, 1, 1, one) == invalid_value, "gemv with m = -1");
  checks.check(gemv(handle.get(), 0, 4, 3, 1, 1, one) == invalid_value, "gemv with lda = 3");
  checks.check(gemv(handle.get(), 0, 4, 4, 0, 1, one) == invalid_value, "gemv with incx = 0");
  checks.check(gemv(handle.get(), 0, 4, 4, 1, 0, one) == invalid_value, "gemv with incy = 0");
  checks.check(gemv(handle.get(), 0, 4, 4, 1, 1, nullptr) == invalid_value, "gemv without alpha");
  checks.check(executions().count == 0 && y == std::vector<double>(50, 7), "a wrong call was computed");
}

}  // namespace

const std::vector<const char*>& vector_names() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> list;
    for (const VectorEntry& entry : vector_entries()) list.push_back(entry.name);
    return list;
  }();
  return names;
}

int check_vectors(std::uint64_t seed, long long cases, bool emulated) {
  make_context_current();
  ProgramHandle handle;
  Checks checks;
  check_wrong_arguments(handle, checks);
  check_cancelling_row(handle, emulated, checks);
  for (long long number = 0; number < cases; ++number) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(number));
    const VectorEntry& entry = vector_entries()[random() % vector_entries().size()];
    switch (entry.type) {
      case KINTSUGI_F32: check_case<float>(entry, handle, emulated, random, checks); break;
      case KINTSUGI_F64: check_case<double>(entry, handle, emulated, random, checks); break;
      case KINTSUGI_C32: check_case<std::complex<float>>(entry, handle, emulated, random, checks); break;
      default: check_case<std::complex<double>>(entry, handle, emulated, random, checks);
    }
  }
  return checks.failures();
}

}  // namespace kintsugi::test
