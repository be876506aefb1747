// Level-3 routines, which are divided into steps by recursion. The order of the triangular or symmetric
// matrix is halved. Each off-diagonal block becomes a product. Each diagonal block becomes a smaller call of
// the same routine, which is divided again or left to cuBLAS.
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "answer.hpp"
#include "core/settings.hpp"

namespace kintsugi::cublas {

namespace {

// True if every version of cuBLAS accepts the op for the routine. (Some versions also accept op = C for real
// matrices.)
bool has_valid_op(const Call& call) {
  switch (call.routine) {
    case Routine::syrk:
    case Routine::syr2k:
    case Routine::syrkx: return call.op_a == Op::n || call.op_a == Op::t;
    case Routine::herk:
    case Routine::her2k:
    case Routine::herkx: return call.op_a == Op::n || call.op_a == Op::c;
    case Routine::trmm:
    case Routine::trsm: return call.op_a <= (is_complex(call.type) ? Op::c : Op::t);
    default: return true;
  }
}

bool has_valid_modes(const Call& call) {
  return has_valid_op(call) && call.side != Side::invalid && call.uplo != Uplo::invalid &&
         call.diag != Diag::invalid;
}

// syrk, herk and the like add products to one triangle of C.
bool is_update(const Call& call) { return writes_triangle(call.routine); }
// syr2k and her2k add two products.
bool adds_two_products(const Call& call) {
  return call.routine == Routine::syr2k || call.routine == Routine::her2k;
}
bool is_trsm(const Call& call) { return call.routine == Routine::trsm; }

bool has_b(const Call& call) {
  return call.routine != Routine::syrk && call.routine != Routine::herk && !is_trsm(call);
}
bool has_beta(const Call& call) { return !has_diag(call.routine); }

bool has_valid_sizes(const Call& call) {
  const std::int64_t rows_of_a = is_update(call) && call.op_a != Op::n ? call.k : order_of_a(call);
  return call.m >= 0 && call.n >= 0 && call.k >= 0 && is_ld(call.lda, rows_of_a) && is_ld(call.ldc, call.m) &&
         (!has_b(call) || is_ld(call.ldb, is_update(call) ? rows_of_a : call.m));
}

// Returns the reason why cuBLAS must answer the call under all settings; nullptr: there is none. An argument
// that may be invalid is such a reason, so that the caller gets cuBLAS's own status.
const char* reason_in_arguments(const Call& call) {
  if (!has_valid_modes(call) || !has_valid_sizes(call)) return "arguments that cuBLAS answers with a status";
  if (call.m == 0 || call.n == 0 || (is_update(call) && call.k == 0)) return "a size is 0";
  const bool lacks_one = call.alpha == nullptr || call.a == nullptr || call.c == nullptr ||
                         (has_b(call) && call.b == nullptr) || (has_beta(call) && call.beta == nullptr);
  return lacks_one ? "a pointer is null" : nullptr;
}

// Returns the reason why alpha, beta or their memory (host or device) leave the call to cuBLAS; nullptr:
// there is none. Accepts scalars in device memory only for syrk and syrkx, whose products use nothing but the
// caller's alpha and beta. Products of the other routines also use StepScalars, which are in host memory, and
// a call of cuBLAS takes both scalars from the same memory.
const char* reason_in_scalars(const Call& call, int pointer_mode) {
  if (pointer_mode != KINTSUGI_SCALARS_ON_HOST)
    return call.routine == Routine::syrk || call.routine == Routine::syrkx
               ? nullptr
               : "scalars of this routine are in device memory";
  const kintsugi_type type = call.routine == Routine::herk ? real_type(call.type) : call.type;
  return is_zero(call.alpha, type) ? "alpha is 0" : nullptr;
}

// Return the address of element (i, j) of a column-major matrix.
const void* element_of(const void* matrix, kintsugi_type type, std::int64_t ld, std::int64_t i,
                       std::int64_t j) {
  return static_cast<const char*>(matrix) + (i + j * ld) * element_bytes(type);
}
void* element_of(void* matrix, kintsugi_type type, std::int64_t ld, std::int64_t i, std::int64_t j) {
  return static_cast<char*>(matrix) + (i + j * ld) * element_bytes(type);
}

// ------------------------------------------------------------------ steps

bool is_on_left(const Call& call) { return call.side == Side::left; }

struct Step {
  std::optional<Call> native;  // a smaller call, which cuBLAS answers; nothing: the step is `product`
  Call product = {};
  std::optional<DecisionPointer> decision = {};  // decision on `product`
  bool emulates = false;                         // true: the product is emulated; false: cuBLAS multiplies
};

// Scalars of the matrices' type in host memory. Products of all routines use `one` and `minus_one`. Only
// hermitian updates use the others: `alpha` and `beta`, complex copies of the caller's real scalars, and
// `conjugate_alpha`, of her2k's alpha. All others are the caller's alpha and beta themselves.
struct StepScalars {
  struct alignas(16) Scalar {
    std::array<std::byte, 16> bytes;
  };
  Scalar one, minus_one, alpha, conjugate_alpha, beta;

  StepScalars(const Call& call, int pointer_mode);
};

class Steps {
 public:
  // A matrix of an order below twice `min_order` is not divided.
  Steps(const CallState& state, const StepScalars& scalars, std::int64_t min_order)
      : state_(state), scalars_(scalars), min_order_(min_order) {}

  // Appends the steps of the call. If the largest product of the call would not be emulated, the call itself
  // is the only step.
  void add(const Call& call);

  const std::vector<Step>& all() const { return steps_; }
  // Returns the decision on the largest product. add() decides on that product first.
  const Decision& first_decision() const { return **first_decision_; }

 private:
  void add_update(const Call& call);
  void add_symmetric(const Call& call);
  void add_triangular(const Call& call);
  void add_solve(const Call& call);
  void add_native(const Call& call);
  void add_product(const Call& call);
  // Decides on the product, and stores the decision if it is the first one. Returns true if the product will
  // be emulated.
  bool decide_emulation(const Call& call);

  const CallState& state_;
  const StepScalars& scalars_;
  std::int64_t min_order_;
  std::vector<Step> steps_;
  std::optional<DecisionPointer> first_decision_;
};

// Returns half of an order. A half above 128 is rounded down to a multiple of 128, so that the second block
// is aligned like the matrix.
std::int64_t half_of(std::int64_t order) {
  constexpr std::int64_t multiple = 128;
  const std::int64_t half = order / 2;
  return half <= multiple ? half : half / multiple * multiple;
}

// Returns the call for the diagonal block of indices first ... end - 1, with the rows or columns of the other
// matrices that belong to these indices.
Call block_of(const Call& call, std::int64_t first, std::int64_t end) {
  Call block = call;
  const kintsugi_type type = call.type;
  if (is_update(call)) {
    block.m = end - first;
    block.n = end - first;
    const bool has_rows = call.op_a == Op::n;
    block.a = element_of(call.a, type, call.lda, has_rows ? first : 0, has_rows ? 0 : first);
    if (has_b(call)) block.b = element_of(call.b, type, call.ldb, has_rows ? first : 0, has_rows ? 0 : first);
    block.c = element_of(call.c, type, call.ldc, first, first);
    return block;
  }
  const bool is_left = is_on_left(call);
  std::int64_t& order_of_block = is_left ? block.m : block.n;
  order_of_block = end - first;
  block.a = element_of(call.a, type, call.lda, first, first);
  block.c = element_of(call.c, type, call.ldc, is_left ? first : 0, is_left ? 0 : first);
  if (has_b(call)) block.b = element_of(call.b, type, call.ldb, is_left ? first : 0, is_left ? 0 : first);
  return block;
}

// Names of the two off-diagonal blocks of A.
enum class OffDiagonal : std::uint8_t { lower_left, upper_right };

OffDiagonal stored_off_diagonal(const Call& call) {
  return call.uplo == Uplo::lower ? OffDiagonal::lower_left : OffDiagonal::upper_right;
}

// Returns the address of the off-diagonal block that is stored.
const void* stored_block(const Call& call, std::int64_t half) {
  const bool is_lower = stored_off_diagonal(call) == OffDiagonal::lower_left;
  return element_of(call.a, call.type, call.lda, is_lower ? half : 0, is_lower ? 0 : half);
}

StepScalars::StepScalars(const Call& call, int pointer_mode)
    : one{}, minus_one{}, alpha{}, conjugate_alpha{}, beta{} {
  const bool has_single_precision = is_single(call.type);
  const auto set = [&](Scalar& target, double real, double imaginary = 0) {
    const std::array<double, 2> parts{real, imaginary};
    const std::array<float, 2> singles{static_cast<float>(real), static_cast<float>(imaginary)};
    if (has_single_precision) {
      std::memcpy(target.bytes.data(), singles.data(), sizeof singles);
    } else {
      std::memcpy(target.bytes.data(), parts.data(), sizeof parts);
    }
  };
  set(one, 1);
  set(minus_one, -1);
  // Scalars in device memory cannot be read here. reason_in_scalars() has forwarded such calls.
  const bool is_hermitian_update = is_update(call) && is_hermitian(call.routine);
  if (!is_hermitian_update || pointer_mode != KINTSUGI_SCALARS_ON_HOST) return;
  const auto part_of = [&](const void* scalar, int part) {
    return has_single_precision ? static_cast<double>(static_cast<const float*>(scalar)[part])
                                : static_cast<const double*>(scalar)[part];
  };
  set(beta, part_of(call.beta, 0));
  if (call.routine == Routine::herk) set(alpha, part_of(call.alpha, 0));
  if (call.routine == Routine::her2k) set(conjugate_alpha, part_of(call.alpha, 0), -part_of(call.alpha, 1));
}

void Steps::add(const Call& call) {
  if (order_of_a(call) < 2 * min_order_) return add_native(call);
  if (is_update(call)) return add_update(call);
  if (call.routine == Routine::trmm) return add_triangular(call);
  return is_trsm(call) ? add_solve(call) : add_symmetric(call);
}

// Adds three steps: the update of the first diagonal block, the product for the off-diagonal block, and the
// update of the second diagonal block. A1 and A2 are the halves of op(A), and ' is the transpose (syrk) or
// the conjugate transpose (herk). The product is C21 := alpha A2 A1' + beta C21 for a lower triangle, and C12
// := alpha A1 A2' + beta C12 for an upper triangle. syrkx and herkx have the halves of op(B) in the place of
// A1' and A2'; syr2k and her2k also add the product with A and B exchanged.
void Steps::add_update(const Call& call) {
  const std::int64_t half = half_of(call.n);
  const bool is_lower = call.uplo == Uplo::lower, is_hermitian = drop_in::is_hermitian(call.routine);
  const Call first = block_of(call, 0, half), second = block_of(call, half, call.n);
  const Call& rows_of_c = is_lower ? second : first;
  const Call& columns_of_c = is_lower ? first : second;
  const Op transpose = is_hermitian ? Op::c : Op::t;
  const bool is_plain_a = call.op_a == Op::n;
  const void* alpha = call.routine == Routine::herk ? scalars_.alpha.bytes.data() : call.alpha;
  const void* beta = is_hermitian ? scalars_.beta.bytes.data() : call.beta;
  void* block_of_c = element_of(call.c, call.type, call.ldc, is_lower ? half : 0, is_lower ? 0 : half);
  const auto product_of = [&](const void* left, std::int64_t ld_left, const void* right,
                              std::int64_t ld_right, const void* factor, const void* factor_of_c) {
    return product(call.type, is_plain_a ? Op::n : transpose, is_plain_a ? transpose : Op::n, rows_of_c.n,
                   columns_of_c.n, call.k, factor, left, ld_left, right, ld_right, factor_of_c, block_of_c,
                   call.ldc);
  };
  const Call off_diagonal = has_b(call)
                                ? product_of(rows_of_c.a, call.lda, columns_of_c.b, call.ldb, alpha, beta)
                                : product_of(rows_of_c.a, call.lda, columns_of_c.a, call.lda, alpha, beta);
  if (!decide_emulation(off_diagonal)) return add_native(call);
  add(first);
  add_product(off_diagonal);
  if (adds_two_products(call))
    add_product(product_of(rows_of_c.b, call.ldb, columns_of_c.a, call.lda,
                           is_hermitian ? scalars_.conjugate_alpha.bytes.data() : call.alpha,
                           scalars_.one.bytes.data()));
  add(second);
}

// Computes both halves of C. With A on the left, a smaller call sets C1 := alpha A11 B1 + beta C1, and a
// product adds alpha A12 B2 to C1; likewise for C2. With A on the right, the factors are exchanged.
void Steps::add_symmetric(const Call& call) {
  const std::int64_t half = half_of(order_of_a(call)), rest = order_of_a(call) - half;
  const Op transpose = call.routine == Routine::hemm ? Op::c : Op::t;
  const Call first = block_of(call, 0, half), second = block_of(call, half, order_of_a(call));
  const void* a = stored_block(call, half);
  const auto product_with = [&](const Call& target, const Call& source, OffDiagonal block,
                                std::int64_t inner) {
    const Op op_a = block == stored_off_diagonal(call) ? Op::n : transpose;
    if (is_on_left(call))
      return product(call.type, op_a, Op::n, target.m, call.n, inner, call.alpha, a, call.lda, source.b,
                     call.ldb, scalars_.one.bytes.data(), target.c, call.ldc);
    return product(call.type, Op::n, op_a, call.m, target.n, inner, call.alpha, source.b, call.ldb, a,
                   call.lda, scalars_.one.bytes.data(), target.c, call.ldc);
  };
  // The upper right block of A multiplies the second half of B from the left, the first half from the right.
  const OffDiagonal block_for_first = is_on_left(call) ? OffDiagonal::upper_right : OffDiagonal::lower_left;
  const OffDiagonal block_for_second = is_on_left(call) ? OffDiagonal::lower_left : OffDiagonal::upper_right;
  const Call to_first = product_with(first, second, block_for_first, rest);
  const Call to_second = product_with(second, first, block_for_second, half);
  if (!decide_emulation(to_first)) return add_native(call);
  add(first);
  add(second);
  add_product(to_first);
  add_product(to_second);
}

// Adds three steps. The first computes the half of C that depends on both halves of B, as far as it depends
// on its own: C2 := alpha A22 B2 for a lower op(A) on the left. The product adds the rest: C2 += alpha A21
// B1. The last step computes the other half. In this order C may be B.
void Steps::add_triangular(const Call& call) {
  const std::int64_t order = order_of_a(call), half = half_of(order);
  const bool is_lower = (call.uplo == Uplo::lower) == (call.op_a == Op::n);  // op(A) is a lower triangle
  const bool starts_with_first = is_lower != is_on_left(call);
  const Call first = block_of(call, 0, half), second = block_of(call, half, order);
  const Call& dependent = starts_with_first ? first : second;
  const Call& other = starts_with_first ? second : first;
  const void* a = stored_block(call, half);  // op(a) is the off-diagonal block of op(A)
  const void* one = scalars_.one.bytes.data();
  const Call off_diagonal =
      is_on_left(call) ? product(call.type, call.op_a, Op::n, dependent.m, call.n, other.m, call.alpha, a,
                                 call.lda, other.b, call.ldb, one, dependent.c, call.ldc)
                       : product(call.type, Op::n, call.op_a, call.m, dependent.n, other.n, call.alpha,
                                 other.b, call.ldb, a, call.lda, one, dependent.c, call.ldc);
  if (!decide_emulation(off_diagonal)) return add_native(call);
  add(dependent);
  add_product(off_diagonal);
  add(other);
}

// Adds three steps. The first solves for the half of X that does not depend on the other half. The product
// updates the right sides of the other half: B2 := alpha B2 - A21 X1 for a lower op(A) on the left. The last
// step solves for the other half.
void Steps::add_solve(const Call& call) {
  const std::int64_t order = order_of_a(call), half = half_of(order);
  const bool is_lower = (call.uplo == Uplo::lower) == (call.op_a == Op::n);  // op(A) is a lower triangle
  const bool starts_with_first = is_lower == is_on_left(call);
  const Call first = block_of(call, 0, half), second = block_of(call, half, order);
  const Call& solved = starts_with_first ? first : second;
  Call other = starts_with_first ? second : first;
  const void* a = stored_block(call, half);  // op(a) is the off-diagonal block of op(A)
  const Call off_diagonal =
      is_on_left(call)
          ? product(call.type, call.op_a, Op::n, other.m, call.n, solved.m, scalars_.minus_one.bytes.data(),
                    a, call.lda, solved.c, call.ldc, call.alpha, other.c, call.ldc)
          : product(call.type, Op::n, call.op_a, call.m, other.n, solved.n, scalars_.minus_one.bytes.data(),
                    solved.c, call.ldc, a, call.lda, call.alpha, other.c, call.ldc);
  if (!decide_emulation(off_diagonal)) return add_native(call);
  add(solved);
  add_product(off_diagonal);
  other.alpha = scalars_.one.bytes.data();  // the product has multiplied the other right sides by alpha
  add(other);
}

void Steps::add_native(const Call& call) { steps_.push_back({.native = call}); }

void Steps::add_product(const Call& call) {
  DecisionPointer decision = decide(call, state_);
  const bool emulates = decision->emulates;
  steps_.push_back(
      {.native = std::nullopt, .product = call, .decision = std::move(decision), .emulates = emulates});
}

bool Steps::decide_emulation(const Call& call) {
  DecisionPointer decision = decide(call, state_);
  const bool emulates = decision->emulates;
  if (!first_decision_) first_decision_.emplace(std::move(decision));
  return emulates;
}

// ------------------------------------------------------------------ answer

// cuBLAS's gemm routines, for products that are not emulated. The index is a kintsugi_type.
constinit Symbol real_products[] = {Symbol("cublasSgemm_v2_64"), Symbol("cublasDgemm_v2_64"),
                                    Symbol("cublasCgemm_v2_64"), Symbol("cublasZgemm_v2_64")};

// Returns the smallest order that a half may have. Under the policy auto, smaller halves do not pay off.
// Times measured on an H200, relative to cuBLAS: FP32 trsm with 8192 right sides 0.93 if an order of 2048 is
// halved, but 1.06 if an order of 1024 is halved; FP32 syrk 0.78 if an order of 4096 is halved, but 1.3 for
// 2048.
std::int64_t min_order(const Call& call) {
  constexpr std::int64_t min_if_asked_for = 32;
  constexpr std::int64_t min_gaining_in_solve = 1024;
  constexpr std::int64_t min_gaining_elsewhere = 2048;
  if (settings().policy != Policy::automatic) return min_if_asked_for;
  return is_trsm(call) ? min_gaining_in_solve : min_gaining_elsewhere;
}

// True for FP64 trsm, for which cuBLAS spends most time in the diagonal blocks, which are not emulated. On an
// H200 with n = 8192, division gains at most 5 %; it costs 9 % if no emulation accepts the solution's ranges.
bool gains_too_little(const Call& call) {
  return settings().policy == Policy::automatic && is_trsm(call) && !is_single(call.type);
}

class Level3Answer {
 public:
  Level3Answer(const Symbol& symbol, Handle handle, const Call& call, const Forward& forward,
               const ForwardPart& forward_part)
      : symbol_(symbol), handle_(handle), call_(call), forward_(forward), forward_part_(forward_part) {
    recorded_.is_supported = false;  // the record names no type
    recorded_.op_a = call.op_a;
    recorded_.m = call.m;
    recorded_.n = call.n;
    recorded_.k = call.k;
  }

  int run() {
    if (const char* reason = reason_in_arguments(call_)) return forward(reason);
    if (settings().is_malformed()) return forward(settings().malformed);
    if (settings().policy == Policy::native) return forward("policy native forwards every call");
    if (settings().sites) return forward("rules of call sites are for matrix products alone");
    if (order_of_a(call_) < 2 * min_order(call_))
      return forward("the blocks beside the diagonal are too small");
    if (gains_too_little(call_)) return forward("equations of FP64 gain too little");
    const HandleOrigin origin(handle_);
    if (const char* reason = read_state(origin, state_)) return forward(reason);
    if (const char* reason = reason_in_scalars(call_, state_.pointer_mode)) return forward(reason);
    if (const char* reason = origin.reason_in_arithmetic(call_.type)) return forward(reason);
    const CallSample sample(symbol_.name(), recorded_, state_.stream);  // measures all steps below
    const StepScalars scalars(call_, state_.pointer_mode);
    Steps steps(state_, scalars, min_order(call_));
    try {
      steps.add(call_);
      note_decision(symbol_.name(), steps.first_decision());
    } catch (const std::exception&) {  // No memory; C is as it was.
      return forward_();
    }
    const bool is_undivided = steps.all().size() == 1;
    return is_undivided ? forward(steps.first_decision().why) : run_steps(steps);
  }

 private:
  int run_steps(const Steps& steps) {
    const Decision& decision = steps.first_decision();
    for (const Step& step : steps.all()) {
      const int status = run_step(step);
      if (status != success) return status;
    }
    if (failure_.empty()) {
      note(symbol_, recorded_, decision.candidates, decision.why);
    } else {
      note(symbol_, recorded_, "", failure_, true);
    }
    return success;
  }

  // Enqueues a step. A product whose emulation fails is multiplied by cuBLAS.
  int run_step(const Step& step) {
    if (step.native) return forward_part_(*step.native);
    if (!step.emulates) return multiply_natively(step.product);
    try {
      const std::string failure = emulate(**step.decision, step.product, state_);
      if (failure.empty()) return success;
      note_failure(symbol_.name(), failure);
      failure_ = failure;
    } catch (const std::exception&) {  // No memory for the message; C is not written yet.
    }
    return multiply_natively(step.product);
  }

  int multiply_natively(const Call& call) const {
    return call_real(real_products[call.type], handle_, static_cast<int>(call.op_a),
                     static_cast<int>(call.op_b), call.m, call.n, call.k, call.alpha, call.a, call.lda,
                     call.b, call.ldb, call.beta, call.c, call.ldc);
  }

  int forward(std::string_view why) const {
    note(symbol_, recorded_, "", why);
    return forward_();
  }

  const Symbol& symbol_;
  Handle handle_;
  const Call& call_;
  const Forward& forward_;
  const ForwardPart& forward_part_;
  Call recorded_;  // the call as the record shows it: a product of the same sizes
  CallState state_;
  std::string failure_;  // why an emulation has failed; "": none has
};

}  // namespace

int answer_level3(const Invocation& invocation, Handle handle, const Call& call, const Forward& forward,
                  const ForwardPart& forward_part) {
  const CallUnderWay under_way;
  return Level3Answer(invocation.symbol, handle, call, forward, forward_part).run();
}

}  // namespace kintsugi::cublas
