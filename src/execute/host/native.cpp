#include "execute/host/native.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "execute/host/operand.hpp"
#include "recombine/check/native_check.hpp"

namespace kintsugi::core {

namespace {

template <class T>
class NativeRun {
 public:
  NativeRun(const Plan& plan, const Candidate& candidate, std::span<std::byte> scratch,
            const Operands& operands, std::int64_t item)
      : plan_(plan), fixed_order_(candidate.fixed_order),
        scratch_(scratch), check_{view_of_a<T>(plan.problem, operands.a, operands.prepared_a, item),
                                  view_of_b<T>(plan.problem, operands.b, operands.prepared_b, item),
                                  scalar<T>(operands.alpha),
                                  scalar<T>(operands.beta),
                                  view_of_c<T>(plan.problem, operands.c, item),
                                  plan.threads} {}

  // Multiplies, and returns the number of recomputed elements. There are two tests for unreliable sums: a
  // test of the operands before the product, which may prove all sums reliable, and a test of the sums after
  // the product. The test that reads less memory is made first. If beta != 0, recomputing an element needs
  // its old value of C. Then sums are written to tiles on the stack. Tiles are not needed if the test of the
  // operands has proved all sums, or if unreliable elements can be found after sums were added to C.
  std::int64_t run() const {
    if (plan_.contract.coefficient == 0) {  // the scheme `native` was named without an accuracy
      multiply(check_, check_.alpha, check_.beta, check_.c);
      return 0;
    }
    const std::int64_t operand_elements = (check_.c.rows + check_.c.columns) * plan_.problem.k;
    const std::int64_t c_elements = check_.c.rows * check_.c.columns;
    const bool overwrites = check_.beta == T(0);
    // If beta != 0, the test of the sums reads the sums and C.
    const bool tests_sums_first = (overwrites ? 1 : 2) * c_elements < operand_elements;
    if (!tests_sums_first && multiply_if_harmless()) return 0;
    if (overwrites) return multiply_in_place();
    if constexpr (!is_complex<T>) {
      if (tests_sums_first && is_sign(check_.alpha) && can_add_natively(check_)) {
        multiply(check_, check_.alpha, check_.beta, check_.c);
        return finish_native_totals(check_);
      }
    }
    if (tests_sums_first && multiply_if_harmless()) return 0;
    return multiply_in_tiles();
  }

 private:
  static constexpr std::int64_t tile_rows = 64;
  static constexpr std::int64_t tile_bytes = 32768;
  static constexpr std::int64_t tile_columns = tile_bytes / tile_rows / static_cast<std::int64_t>(sizeof(T));

  static bool is_sign(const T& x) { return x == T(1) || x == T(-1); }

  void multiply(const NativeCheck<T>& tile, const T& alpha, const T& beta, const MatrixView<T>& c) const {
    plan_.engine->native(NativeProduct<T>{.a = elements_of(tile.a),
                                          .b = elements_of(tile.b).transposed(),
                                          .c = c,
                                          .alpha = alpha,
                                          .beta = beta,
                                          .threads = plan_.threads,
                                          .conjugate_a = is_conjugated(tile.a),
                                          .conjugate_b = is_conjugated(tile.b),
                                          .fixed_order = fixed_order_,
                                          .scratch = scratch_});
  }

  // Multiplies if the operands prove that no sum is unreliable. Otherwise returns false and does nothing.
  bool multiply_if_harmless() const {
    if (!is_harmless_natively(check_)) return false;
    multiply(check_, check_.alpha, check_.beta, check_.c);
    return true;
  }

  // Multiplies with beta = 0 and tests the sums in C. The sums are multiplied by alpha after the test, so
  // that the result does not depend on where a library applies alpha. An alpha of 1 or -1 is left to the
  // library.
  std::int64_t multiply_in_place() const {
    const T alpha = is_sign(check_.alpha) ? check_.alpha : T(1);
    multiply(check_, alpha, T(0), check_.c);
    return finish_native_sums(check_, check_.c, is_sign(check_.alpha) ? T(1) : check_.alpha);
  }

  // Multiplies tile by tile into memory on the stack, tests the sums and adds them to C.
  std::int64_t multiply_in_tiles() const {
    alignas(64) std::array<std::byte, tile_bytes> memory;
    std::int64_t recomputed = 0;
    for (std::int64_t j = 0; j < check_.c.columns; j += tile_columns) {
      for (std::int64_t i = 0; i < check_.c.rows; i += tile_rows) {
        const NativeCheck<T> tile = check_.block(i, j, std::min(tile_rows, check_.c.rows - i),
                                                 std::min(tile_columns, check_.c.columns - j));
        const MatrixView<T> sums{reinterpret_cast<T*>(memory.data()), tile.c.rows, tile.c.columns, 1,
                                 tile.c.rows};
        multiply(tile, T(1), T(0), sums);
        recomputed += finish_native_sums(tile, sums, check_.alpha);
      }
    }
    return recomputed;
  }

  const Plan& plan_;
  bool fixed_order_;
  std::span<std::byte> scratch_;
  NativeCheck<T> check_;
};

}  // namespace

template <class T>
std::int64_t multiply_natively(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                               const Operands& operands, std::int64_t item, Workspace& workspace) {
  if constexpr (is_double_double<T>) {  // the engines test every sum themselves (engines/pair_element.hpp)
    const Problem& problem = plan.problem;
    plan.engine->native(
        NativeProduct<T>{.a = view_of_a<T>(problem, operands.a, operands.prepared_a, item),
                         .b = view_of_b<T>(problem, operands.b, operands.prepared_b, item).transposed(),
                         .c = view_of_c<T>(problem, operands.c, item),
                         .alpha = scalar<T>(operands.alpha),
                         .beta = scalar<T>(operands.beta),
                         .threads = plan.threads});
    return 0;
  } else {
    const std::size_t scratch = native_scratch_bytes(plan, candidate, blocking);
    return NativeRun<T>(plan, candidate, {workspace.take(scratch), scratch}, operands, item).run();
  }
}

#define KINTSUGI_NATIVELY(T)                                                                 \
  template std::int64_t multiply_natively<T>(const Plan&, const Candidate&, const Blocking&, \
                                             const Operands&, std::int64_t, Workspace&);
KINTSUGI_NATIVELY(float)
KINTSUGI_NATIVELY(double)
KINTSUGI_NATIVELY(DoubleDouble)
KINTSUGI_NATIVELY(std::complex<float>)
KINTSUGI_NATIVELY(std::complex<double>)
#undef KINTSUGI_NATIVELY

}  // namespace kintsugi::core
