// Answers calls: emulates a product, computes a routine by several products, or forwards the call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "call.hpp"
#include "core/decision.hpp"
#include "core/intercept.hpp"
#include "core/record.hpp"

namespace kintsugi::blas {

void answer(const Invocation& invocation, const Call& call, Forward forward);

// `count` products of one shape in a batch.
struct Group {
  Call product;  // the first product; its matrices are unset if the group has pointers
  std::int64_t count = 0;
  const void* const* a = nullptr;  // pointers to the matrices; nullptr: the matrices are stride_a bytes apart
  const void* const* b = nullptr;
  void* const* c = nullptr;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;

  Call item(std::int64_t index) const;
};

// A call of gemm_batch or gemm_batch_strided.
struct Batch {
  Layout layout = Layout::column_major;
  std::vector<Group> groups = {};
  BadArgument bad = {};  // the first wrong argument

  // Returns false if there is no memory for one more group. The batch can then only be forwarded.
  bool add(const Group& group) noexcept;
  bool is_complete = true;  // false: add() has failed
};

void answer(const Invocation& invocation, Batch batch, Forward forward);

// Returns the decision on a gemm whose arguments are right.
DecisionPointer decide(const Call& call);

// Computes a gemm whose arguments are right, emulated or native as decide() says. Returns false if the
// decision is native. Throws std::bad_alloc only before C is written.
bool multiply(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome);

// Computes a gemm by the next BLAS; without a next BLAS, by Kintsugi's native product. Writes a line to
// stderr if Kintsugi's product fails.
void multiply_natively(const Symbol& symbol, const Call& call, const Forward& forward);

// A call whose error is measured. Made before the call, it keeps a copy of C as the call reads it.
class ExactComparison {
 public:
  // Returns a comparison if the error of this call is to be measured (numbers_of_sample()); nullopt else, and
  // for trsm, which has no exact counterpart. The call must outlive the comparison.
  static std::optional<ExactComparison> begin(const Symbol& symbol, const Call& call) noexcept;

  // Computes the call exactly in the copy of C, and records the error of the caller's C; writes the product
  // to files if the error exceeds the limit of KINTSUGI_DUMP. Must be called after the call, while a
  // CallUnderWay exists. Does nothing if the exact call cannot be computed. `program` is what multiplied; "":
  // the next BLAS.
  void finish(std::string_view program) noexcept;

 private:
  ExactComparison(const Symbol& symbol, const Call& call, const SampleNumbers& numbers);
  bool compute_exactly();
  void dump(std::string_view program, double error);

  const Symbol* symbol_;
  const Call* call_;
  SampleNumbers numbers_;
  std::vector<char> c_;       // lines of C without gaps; the exact result from compute_exactly() on
  std::vector<char> c_read_;  // C as the call reads it, if the call may be written to files
};

// ------------------------------------------------------------------ routines of levels 1 and 2

// Answers a routine with vectors whose arguments are right (vectors.cpp). Throws std::bad_alloc only before
// anything is written.
void answer_vectors(const Symbol& symbol, const Call& call, const Forward& forward);

// Answers a call whose arguments are right, and records it.
void answer_checked(const Symbol& symbol, const Call& call, const Forward& forward);

// Other routines are not emulated: they are counted and forwarded (jumps.cpp), as are those with vectors if
// Settings::answers_vectors() is false.

// Returns the number of calls of each exported name that was called. Calls are counted if there is a report.
std::map<std::string, std::int64_t> uncovered_calls();

// "gemv 12 calls, dot 3: not emulated; ..."; "" if no routine was called.
std::string uncovered_sentence();

// Sets all numbers to 0, in the child of a fork.
void forget_uncovered_calls();

}  // namespace kintsugi::blas
