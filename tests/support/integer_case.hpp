// Random products of small integers through the C ABI, whose sums are exact in any order. Shapes, layouts,
// ops, batches, leading dimensions down to 1 and the preparation of operands vary. Lengths of 1 come often,
// since the library cannot tell then from the strides whether a matrix is stored by rows or by columns.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/embedding.hpp"
#include "base/text/format_text.hpp"
#include "kintsugi/kintsugi.h"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {

// Draws the properties of one case.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(last - first + 1));
  }
  bool once_in(std::int64_t times) { return between(1, times) == 1; }
  std::int64_t length() { return once_in(3) ? 1 : between(1, 6); }
  kintsugi_op op() { return static_cast<kintsugi_op>(between(0, 2)); }
  kintsugi_layout layout() { return static_cast<kintsugi_layout>(between(0, 1)); }
  kintsugi_batch_kind kind() { return static_cast<kintsugi_batch_kind>(between(0, 1)); }
  template <class T>
  T element() {
    const auto part = [&] { return static_cast<core::RealOf<T>>(between(-4, 4)); };
    if constexpr (core::is_complex<T>) {
      return {part(), part()};
    } else {
      return part();
    }
  }

 private:
  std::mt19937_64 random_;
};

// Memory in which a case runs: the host's itself, or another's into which put() copies and from which fetch()
// copies back.
struct Place {
  kintsugi_memory memory = KINTSUGI_HOST;
  kintsugi_queue queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  const char* engine = nullptr;
  const char* policy = "native";

  virtual ~Place() = default;
  virtual void* put(void* data, std::size_t) { return data; }
  virtual void fetch() {}
};

// op(X) of all items of a batch in memory, with NaN between and behind them.
template <class T>
class StoredIntegers {
 public:
  StoredIntegers(Draws& draws, std::int64_t rows, std::int64_t columns, std::int64_t items, kintsugi_op op,
                 kintsugi_layout layout)
      : op_(op), layout_(layout), items_(items) {
    const bool unit_row_stride = (layout == KINTSUGI_COLUMN_MAJOR) == (op == KINTSUGI_OP_N);
    ld_ = (unit_row_stride ? rows : columns) + (draws.once_in(4) ? draws.between(1, 3) : 0);
    row_stride_ = unit_row_stride ? 1 : ld_;
    column_stride_ = unit_row_stride ? ld_ : 1;
    stride_ = ld_ * (unit_row_stride ? columns : rows) + 3;
    memory_.assign(static_cast<std::size_t>((items + 3) * stride_), poison_of<T>());
    for (std::int64_t t = 0; t < items; ++t) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) memory_[index(t, i, j)] = draws.element<T>();
      }
    }
  }

  std::size_t index(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(item * stride_ + i * row_stride_ + j * column_stride_);
  }
  T value(std::int64_t item, std::int64_t i, std::int64_t j) const {
    const T x = memory_[index(items_ == 1 ? 0 : item, i, j)];
    if constexpr (core::is_complex<T>) {
      return op_ == KINTSUGI_OP_C ? std::conj(x) : x;
    } else {
      return x;
    }
  }
  void set(std::int64_t item, std::int64_t i, std::int64_t j, T x) { memory_[index(item, i, j)] = x; }

  // The pointer that a call of `batch` items gets for this operand; a single item serves all of them.
  void* put(Place& place, kintsugi_batch_kind kind, std::int64_t batch) {
    auto* first = static_cast<T*>(place.put(memory_.data(), memory_.size() * sizeof(T)));
    if (kind == KINTSUGI_BATCH_STRIDED) return first;
    table_.clear();
    for (std::int64_t t = 0; t < batch; ++t) table_.push_back(first + (items_ == 1 ? 0 : t * stride_));
    return place.put(table_.data(), table_.size() * sizeof(T*));
  }

  kintsugi_op op() const { return op_; }
  kintsugi_layout layout() const { return layout_; }
  std::int64_t items() const { return items_; }
  std::int64_t ld() const { return ld_; }
  std::int64_t stride() const { return stride_; }
  const std::vector<T>& memory() const { return memory_; }

 private:
  kintsugi_op op_;
  kintsugi_layout layout_;
  std::int64_t items_;
  std::int64_t ld_ = 0, row_stride_ = 0, column_stride_ = 0, stride_ = 0;
  std::vector<T> memory_;
  std::vector<T*> table_;
};

// True for equal values, whatever the bits of NaNs and the signs of zeros.
template <class T>
bool same_values(const std::vector<T>& x, const std::vector<T>& y) {
  const auto same = [](auto a, auto b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (std::size_t i = 0; i < x.size(); ++i) {
    if constexpr (core::is_complex<T>) {
      if (!same(x[i].real(), y[i].real()) || !same(x[i].imag(), y[i].imag())) return false;
    } else {
      if (!same(x[i], y[i])) return false;
    }
  }
  return true;
}

template <class T>
class IntegerCase {
 public:
  explicit IntegerCase(std::uint64_t seed) : IntegerCase(Draws(seed)) {}

  std::string text() const {
    const auto of = [](const StoredIntegers<T>& stored, bool prepared) {
      return fmt::format("op {} ld {} layout {} items {} prepared {}", int{stored.op()}, stored.ld(),
                         int{stored.layout()}, stored.items(), prepared);
    };
    return fmt::format("m {} n {} k {} batch {} of kind {}, layout {}; A: {}; B: {}; prepared of kind {}, {}",
                       m_, n_, k_, batch_, int{kind_}, int{layout_}, of(a_, prepared_a_), of(b_, prepared_b_),
                       int{prepared_kind_}, borrows_ ? "borrowed" : "copied");
  }

  // False if cuBLAS has no such product: of an operand that is conjugated without being transposed, or with
  // pointers for one operand and strides for another. False, too, for an alpha by which cuBLAS may multiply
  // an operand; all sides of C are short.
  bool is_of_blas() const {
    if (alpha_ != T(1) && alpha_ != T(-1)) return false;
    const auto fits = [&](const StoredIntegers<T>& stored, bool prepared) {
      const bool conjugated = core::is_complex<T> && stored.op() == KINTSUGI_OP_C;
      return !prepared || (kind_ == prepared_kind_ && !(conjugated && stored.layout() != layout_));
    };
    return fits(a_, prepared_a_) && fits(b_, prepared_b_);
  }
  // True if a prepared operand is a table of one pointer in device memory, which cannot serve several items.
  bool is_refused_on_device() const {
    const auto refused = [&](const StoredIntegers<T>& stored, bool prepared) {
      return prepared && prepared_kind_ == KINTSUGI_BATCH_POINTERS && stored.items() == 1 && batch_ > 1;
    };
    return refused(a_, prepared_a_) || refused(b_, prepared_b_);
  }

  // Puts an infinity into one row of A.
  void make_special(std::uint64_t seed) {
    Draws draws(seed);
    a_.set(draws.between(0, a_.items() - 1), draws.between(0, m_ - 1), draws.between(0, k_ - 1),
           std::numeric_limits<core::RealOf<T>>::infinity());
  }

  kintsugi_status run(Place& place) {
    kintsugi_problem problem = problem_of(place, layout_, kind_, batch_);
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha_;
    operands.beta = &beta_;
    const Owned prepared_a = prepared_a_ ? prepare(place, KINTSUGI_A) : nullptr;
    const Owned prepared_b = prepared_b_ ? prepare(place, KINTSUGI_B) : nullptr;
    operands.prepared_a = prepared_a.get();
    operands.prepared_b = prepared_b.get();
    if (!prepared_a_) {
      describe(a_, a_.items() == 1 ? 0 : a_.stride(), problem.op_a, problem.lda, problem.stride_a);
      operands.a = a_.put(place, kind_, batch_);
    }
    if (!prepared_b_) {
      describe(b_, b_.items() == 1 ? 0 : b_.stride(), problem.op_b, problem.ldb, problem.stride_b);
      operands.b = b_.put(place, kind_, batch_);
    }
    problem.ldc = c_.ld();
    problem.stride_c = c_.stride();
    operands.c = c_.put(place, kind_, batch_);
    const kintsugi_options options = options_of(place);
    const kintsugi_status status = kintsugi_gemm(nullptr, &problem, &options, &operands);
    place.fetch();
    return status;
  }

  // The memory of C after a right call: its elements by a loop, everything else unchanged.
  std::vector<T> expected() const {
    std::vector<T> memory = c_.memory();
    for (std::int64_t t = 0; t < batch_; ++t) {
      for (std::int64_t i = 0; i < m_; ++i) {
        for (std::int64_t j = 0; j < n_; ++j) {
          T sum = 0;
          for (std::int64_t p = 0; p < k_; ++p) sum += a_.value(t, i, p) * b_.value(t, p, j);
          T& element = memory[c_.index(t, i, j)];
          element = beta_ == T(0) ? alpha_ * sum : alpha_ * sum + beta_ * element;
        }
      }
    }
    return memory;
  }
  const std::vector<T>& result() const { return c_.memory(); }

 private:
  struct Destroy {
    void operator()(kintsugi_prepared prepared) const { kintsugi_prepared_destroy(prepared); }
  };
  using Owned = std::unique_ptr<std::remove_pointer_t<kintsugi_prepared>, Destroy>;

  explicit IntegerCase(Draws draws)
      : m_(draws.length()), n_(draws.length()), k_(draws.length()),
        batch_(draws.once_in(2) ? 1 : draws.between(2, 3)), layout_(draws.layout()), kind_(draws.kind()),
        prepared_a_(draws.once_in(3)), prepared_b_(draws.once_in(3)), prepared_kind_(draws.kind()),
        borrows_(draws.once_in(2) || prepared_kind_ == KINTSUGI_BATCH_POINTERS),
        a_(draws, m_, k_, draws.once_in(3) ? 1 : batch_, draws.op(), prepared_a_ ? draws.layout() : layout_),
        b_(draws, k_, n_, draws.once_in(3) ? 1 : batch_, draws.op(), prepared_b_ ? draws.layout() : layout_),
        c_(draws, m_, n_, batch_, KINTSUGI_OP_N, layout_), alpha_(draws.element<T>()),
        beta_(draws.once_in(2) ? T(0) : draws.element<T>()) {
    if (alpha_ == T(0)) alpha_ = T(1);
    if (!draws.once_in(4)) alpha_ = draws.once_in(2) ? T(1) : T(-1);
  }

  static kintsugi_options options_of(const Place& place) {
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.engine = place.engine;
    options.policy = place.policy;
    options.queue = place.queue;
    return options;
  }
  // A problem with dense operands; the caller may change that.
  kintsugi_problem problem_of(const Place& place, kintsugi_layout layout, kintsugi_batch_kind kind,
                              std::int64_t batch) const {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    const bool by_columns = layout == KINTSUGI_COLUMN_MAJOR;
    problem.m = m_;
    problem.n = n_;
    problem.k = k_;
    problem.lda = by_columns ? m_ : k_;
    problem.ldb = by_columns ? k_ : n_;
    problem.ldc = by_columns ? m_ : n_;
    problem.stride_c = m_ * n_;
    problem.layout = layout;
    problem.memory = place.memory;
    problem.batch_kind = kind;
    problem.batch_count = batch;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type_of<T>();
    return problem;
  }
  template <class Op>
  static void describe(const StoredIntegers<T>& stored, std::int64_t given_stride, Op& op, std::int64_t& ld,
                       std::int64_t& stride) {
    op = stored.op();
    ld = stored.ld();
    stride = given_stride;
  }

  // Prepares by a plan of as many items as are stored, with a stride even if it is one.
  Owned prepare(Place& place, kintsugi_side side) {
    StoredIntegers<T>& stored = side == KINTSUGI_A ? a_ : b_;
    kintsugi_problem problem = problem_of(place, stored.layout(), prepared_kind_, stored.items());
    if (side == KINTSUGI_A) describe(stored, stored.stride(), problem.op_a, problem.lda, problem.stride_a);
    if (side == KINTSUGI_B) describe(stored, stored.stride(), problem.op_b, problem.ldb, problem.stride_b);
    const kintsugi_options options = options_of(place);
    kintsugi_plan plan = nullptr;
    EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    kintsugi_prepared prepared = nullptr;
    const auto make = borrows_ ? kintsugi_prepare_borrowed : kintsugi_prepare;
    EXPECT_EQ(make(nullptr, plan, side, stored.put(place, prepared_kind_, stored.items()), &prepared),
              KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    kintsugi_plan_destroy(plan);
    return Owned(prepared);
  }

  std::int64_t m_, n_, k_, batch_;
  kintsugi_layout layout_;
  kintsugi_batch_kind kind_;  // of the call
  bool prepared_a_, prepared_b_;
  kintsugi_batch_kind prepared_kind_;
  bool borrows_;
  StoredIntegers<T> a_, b_, c_;
  T alpha_, beta_;
};

}  // namespace kintsugi::test
