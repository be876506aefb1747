// Routines with vectors: gemv, symv, hemv, ger and dot. Each is answered as the product that it is, of
// vectors that are contiguous.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "answer.hpp"
#include "core/settings.hpp"

namespace kintsugi::blas {

namespace {

// A vector as a product takes it: the caller's own if its increment is 1, else a copy. As in BLAS, a negative
// increment goes through the vector from its end, and the increment 0 repeats one element.
class Vector {
 public:
  Vector(const void* data, std::int64_t length, std::int64_t increment, kintsugi_type type)
      : length_(length), step_(increment * element_bytes(type)), bytes_(element_bytes(type)),
        caller_(const_cast<char*>(static_cast<const char*>(data))) {
    if (increment < 0 && length > 0) caller_ -= (length - 1) * step_;
    if (increment != 1)
      copy_ = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(length * bytes_));
  }

  void* data() const { return copy_ != nullptr ? copy_.get() : caller_; }

  // Copy the caller's elements, and copy them back.
  void load() const {
    if (copy_ == nullptr) return;
    for (std::int64_t i = 0; i < length_; ++i) copy_element(copy_.get() + i * bytes_, caller_ + i * step_);
  }
  void store() const {
    if (copy_ == nullptr) return;
    for (std::int64_t i = 0; i < length_; ++i) copy_element(caller_ + i * step_, copy_.get() + i * bytes_);
  }

 private:
  void copy_element(char* target, const char* source) const {
    std::memcpy(target, source, static_cast<std::size_t>(bytes_));
  }

  std::int64_t length_, step_, bytes_;
  char* caller_;  // the first element
  std::unique_ptr<char[]> copy_;
};

// Answers gemv, symv or hemv. x is not read if alpha = 0, y if beta = 0.
void answer_matrix_and_vectors(const Symbol& symbol, const Call& call, const Forward& forward) {
  const bool has_rows = call.routine != Routine::gemv || call.op_a == Op::n;
  const Vector x(call.b, has_rows ? call.n : call.m, call.ldb, call.type);
  const Vector y(call.c, has_rows ? call.m : call.n, call.ldc, call.type);
  if (!is_zero(call.alpha, call.type)) x.load();
  if (reads_c(call)) y.load();
  Call contiguous = call;
  contiguous.b = x.data();
  contiguous.c = y.data();
  contiguous.ldb = contiguous.ldc = 1;
  const auto forward_and_load = [&] {
    if (!forward()) return false;
    y.load();
    return true;
  };
  answer_checked(symbol, product_of_vectors(contiguous), Forward(forward_and_load));
  y.store();
}

// Answers ger or dot, which read both vectors.
void answer_two_vectors(const Symbol& symbol, const Call& call, const Forward& forward) {
  const Vector x(call.a, call.routine == Routine::ger ? call.m : call.n, call.lda, call.type);
  const Vector y(call.b, call.n, call.ldb, call.type);
  x.load();
  y.load();
  Call contiguous = call;
  contiguous.a = x.data();
  contiguous.b = y.data();
  contiguous.lda = contiguous.ldb = 1;
  answer_checked(symbol, product_of_vectors(contiguous), forward);
}

std::vector<double> widened(const void* data, std::int64_t length, std::int64_t increment) {
  const Vector contiguous(data, length, increment, KINTSUGI_F32);
  contiguous.load();
  const auto* const first = static_cast<const float*>(contiguous.data());
  return std::vector<double>(first, first + length);
}

// Answers dsdot or sdsdot, whose FP32 products are exact in FP64, as dot of FP64. An exact sdsdot is a dot of
// FP32, since a sum that was rounded to FP64 before would be rounded twice.
void answer_wide_dot(const Symbol& symbol, const Call& call, const Forward& forward) {
  const bool has_single_result = call.routine == Routine::sdsdot;
  auto* const single_result = static_cast<float*>(call.c);
  Call dot = call;
  dot.routine = Routine::dot;
  const float single_one = 1;
  if (has_single_result && settings().accuracy == "exact") {
    *single_result = *static_cast<const float*>(call.beta);
    dot.beta = &single_one;
    return answer_two_vectors(symbol, dot, forward);
  }
  const double one = 1;
  double wide_result = has_single_result ? *static_cast<const float*>(call.beta) : 0;
  const std::vector<double> x = widened(call.a, call.n, call.lda), y = widened(call.b, call.n, call.ldb);
  dot.type = KINTSUGI_F64;
  dot.a = x.data();
  dot.b = y.data();
  dot.lda = dot.ldb = 1;
  dot.beta = has_single_result ? &one : nullptr;
  dot.c = has_single_result ? &wide_result : static_cast<double*>(call.c);
  const auto forward_and_load = [&] {
    if (!forward()) return false;
    if (has_single_result) wide_result = *single_result;
    return true;
  };
  answer_checked(symbol, product_of_vectors(dot), Forward(forward_and_load));
  if (has_single_result) *single_result = static_cast<float>(wide_result);
}

}  // namespace

void answer_vectors(const Symbol& symbol, const Call& written, const Forward& forward) {
  if (leaves_result(written)) return;
  Call call = written;
  call.n = std::max<std::int64_t>(call.n, 0);  // of dot, which takes a negative length for 0
  switch (call.routine) {
    case Routine::ger:
    case Routine::dot: return answer_two_vectors(symbol, call, forward);
    case Routine::dsdot:
    case Routine::sdsdot: return answer_wide_dot(symbol, call, forward);
    default: return answer_matrix_and_vectors(symbol, call, forward);
  }
}

}  // namespace kintsugi::blas
