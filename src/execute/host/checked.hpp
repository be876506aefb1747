// Checked programs on the host. Every element that they compute is checked against the contract.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>

#include "arith/residue/residue_scale.hpp"
#include "execute/blocks.hpp"
#include "execute/host/acceptance.hpp"
#include "execute/host/operand.hpp"
#include "planner/expected_times.hpp"
#include "planner/memory.hpp"
#include "planner/steps.hpp"
#include "recombine/recombine.hpp"
#include "schemes/bound.hpp"
#include "schemes/magnitudes.hpp"
#include "schemes/ozaki2.hpp"
#include "split/equilibrate.hpp"
#include "split/norms.hpp"

namespace kintsugi::core {

// The main candidate is the first candidate that leaves at most one of `one_open_in` elements open. The limit
// does not depend on an engine's speed, since the main candidate decides the bits of C. It is lower for
// double-double elements, whose exact sums cost four times as much.
template <class T>
inline constexpr std::int64_t one_open_in = is_double_double<T> ? 64 : 16;

// Smallest decrease of dynamic ranges, in binades, that justifies the additional pass of an equilibration
// over the operands.
inline constexpr int min_equilibration_gain = 16;

// C = alpha * A * B + beta * C by the checked candidates of a plan:
//
// - The main candidate computes all of C, and every element is checked (recombine/recombine.hpp).
// - Elements that do not pass the check are recomputed and correctly rounded: by wider candidates if their
//   result is proved to be correctly rounded, and at last by a superaccumulator.
//
// Under `exact` all candidates give the same bits, so the main candidate is the one that is fastest on the
// first tile of C. Under other contracts it is the first one that proves most elements. This choice depends
// on A and B, but not on blocks or threads. Elements that `grid` accepts are not computed.
template <class T>
class CheckedProduct {
 public:
  CheckedProduct(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                 const Operands& operands, const MatrixView<T>& c, const Workspace& workspace,
                 const GridElements* grid)
      : plan_(plan), blocking_(blocking), a_(a), b_(b), alpha_(scalar<T>(operands.alpha)),
        beta_(scalar<T>(operands.beta)), c_(c), first_(first_checked(plan)),
        count_(plan.candidates.size() - first_), workspace_(workspace),
        check_memory_(lay_out_check(plan, blocking, workspace_)),
        exact_sum_times_(expected_exact_sums(*plan.engine, plan.problem, has_real_scalars())), grid_(grid) {}

  // Chooses the main candidate, and returns its index in the plan. Sets `program` to its program, with the
  // moduli that these operands need.
  std::size_t choose(Program& program) {
    if (sums_all_exactly()) {
      main_ = count_ - 1;
      program = candidate(main_).program;
      return first_ + main_;
    }
    equilibrate();
    leave_out_moduli();
    main_ = allows_error() ? find_proved_candidate() : find_fastest_candidate();
    forget_slices();
    program = is_superaccumulator(main_) ? candidate(main_).program : programs_[main_];
    return first_ + main_;
  }

  // Computes one block. Returns the number of elements that the main candidate left open.
  std::int64_t multiply_block(const ResultBlock& block) {
    if (is_superaccumulator(main_)) {
      open_elements(grid_, /*accepted=*/false, block, check_memory_.states);
      recompute(block);
      return 0;
    }
    // If one block is all of C, find_proved_candidate() may have proved this block with the main candidate
    // last. Its states are then still valid.
    const bool is_already_proved = allows_error() && is_all_of_c(block) && current_ == main_;
    use_candidate(main_);
    if (!allows_error()) {
      open_elements(grid_, /*accepted=*/false, block, check_memory_.states);
    } else if (!is_already_proved) {
      prove(main_, block);
    }
    const std::int64_t open = multiply(main_, block, plan_.contract.checked_coefficient, Write::proved);
    std::int64_t still_open = open;
    for (std::size_t index = main_ + 1;
         !is_superaccumulator(index) && wider_candidate_pays(index, still_open, block); ++index) {
      use_candidate(index);
      still_open = multiply(index, block, correctly_rounded, Write::proved);
    }
    if (still_open > 0) recompute(block);
    return open;
  }

 private:
  static std::size_t first_checked(const Plan& plan) {
    return static_cast<std::size_t>(plan.checked_candidate() - plan.candidates.data());
  }

  bool has_real_scalars() const {
    if constexpr (is_complex<T>) return alpha_.imag() == 0 && beta_.imag() == 0;
    return true;
  }

  // True if exact sums of all complex elements are expected to be fastest, which depends on alpha and beta.
  // For real elements the plan decides: it has no checked candidates then.
  bool sums_all_exactly() const {
    return is_complex<T> && has_real_scalars() && !allows_error() &&
           exact_sums_pay(*plan_.engine, candidate(0).program, plan_.problem, plan_.conditions(),
                          /*has_real_scalars=*/true);
  }

  // Elements that multiply() writes: none, or the proved ones.
  enum class Write { nothing, proved };

  // Coefficient of a check that only correctly rounded elements pass. All candidates give these elements the
  // same bits.
  static constexpr double correctly_rounded = 0;

  // Returns the largest dynamic range of a row of A plus the largest dynamic range of a column of B.
  int total_dynamic_range() const {
    return summarize(a_.ranges).dynamic_range + summarize(b_.ranges).dynamic_range;
  }

  void find_ranges_of(SideOf<T>& side, std::span<const double> inner_factors) {
    side.inner_factors = inner_factors;
    find_ranges(side.view, candidate(0).program.split_a, side.ranges, plan_.threads, inner_factors);
  }

  // Equilibrates the inner dimension (split/equilibrate.hpp) if that narrows dynamic ranges by
  // min_equilibration_gain binades. Ranges and slices are then those of A D^-1 and D B.
  void equilibrate() {
    const int before = total_dynamic_range();
    if (before < min_equilibration_gain) return;
    find_inner_ranges(a_.view, check_memory_.inner_a, plan_.threads);
    find_inner_ranges(b_.view, check_memory_.inner_b, plan_.threads);
    if (is_complex<T>) merge_ranges_of_parts(check_memory_.inner_a);
    const int gain = find_inner_factors(check_memory_.inner_a, check_memory_.inner_b, check_memory_.factors_a,
                                        check_memory_.factors_b);
    if (gain < min_equilibration_gain) return;
    find_ranges_of(a_, check_memory_.factors_a);
    find_ranges_of(b_, check_memory_.factors_b);
    if (total_dynamic_range() + min_equilibration_gain <= before) return;
    find_ranges_of(a_, {});
    find_ranges_of(b_, {});
  }

  // Sets programs_ to the candidates' programs, without moduli that the sums do not need. The plan has moduli
  // for sums of k products of the largest integers. The operands' norms may prove that all sums are smaller.
  // Then fewer moduli represent the same integers (arith/residue/residue_scale.hpp), and no bit of C changes.
  void leave_out_moduli() {
    // norm_bits: bits of the product of the largest squared norms of A and B, for operands that are scaled to
    // integers of norm_digits bits. By the Cauchy-Schwarz inequality every sum has at most half as many bits.
    // A candidate with larger integers needs one more bit for each doubling.
    const int norm_bits = largest_norm_bits(a_.view, a_.ranges, a_.inner_factors, plan_.threads) +
                          largest_norm_bits(b_.view, b_.ranges, b_.inner_factors, plan_.threads);
    for (std::size_t index = 0; !is_superaccumulator(index); ++index) {
      programs_[index] = candidate(index).program;
      Program& program = programs_[index];
      const int doublings_a = program.split_a.top_exponent - norm_digits;
      const int doublings_b = program.split_b.top_exponent - norm_digits;
      if (doublings_a >= 0 && doublings_b >= 0)
        schemes::leave_out_moduli(program, (norm_bits + 1) / 2 + doublings_a + doublings_b);
    }
  }

  const Candidate& candidate(std::size_t index) const { return plan_.candidates[first_ + index]; }

  // The last candidate is the superaccumulator. All others multiply residues.
  bool is_superaccumulator(std::size_t index) const { return index + 1 == count_; }

  // True if the contract allows an error. Then a lower bound of |A||B| can prove elements.
  bool allows_error() const { return plan_.contract.checked_coefficient > 0; }

  bool is_all_of_c(const ResultBlock& block) const { return block.elements() == c_.rows * c_.columns; }

  template <class Visit>
  void for_each_block(const Visit& visit) const {
    core::for_each_block(blocking_, c_.rows, c_.columns, visit);
  }

  // Returns the first candidate that leaves few elements open (one_open_in). If there is none, returns the
  // last candidate that multiplies residues. All elements of C are counted, so that the result does not
  // depend on blocks.
  std::size_t find_proved_candidate() {
    const std::size_t last = count_ - 2;
    for (std::size_t index = 0; index < last; ++index) {
      use_candidate(index);
      std::int64_t open = 0;
      for_each_block([&](const ResultBlock& block) { open += prove(index, block); });
      if (open * one_open_in<T> <= c_.rows * c_.columns) return index;
    }
    return last;
  }

  // Tries candidates on the first tile of C, and returns the one that is expected to be fastest if it leaves
  // the same share of elements open in all of C. Stops when a candidate's products alone take longer than the
  // fastest candidate so far.
  std::size_t find_fastest_candidate() {
    const ResultBlock tile{0, 0, std::min(first_tile, c_.rows), std::min(first_tile, c_.columns)};
    const auto elements = static_cast<double>(tile.elements());
    std::size_t fastest = count_ - 1;
    double least_time = elements * exact_sum_times_.of_all;
    for (std::size_t index = 0; !is_superaccumulator(index) && elements * products_time(index) < least_time;
         ++index) {
      use_program(index);
      find_bounds(tile);
      std::fill_n(check_memory_.states, tile.elements(), ElementCheck::open);
      const auto open = static_cast<double>(multiply(index, tile, correctly_rounded, Write::nothing));
      const double time = elements * products_time(index) + open * exact_sum_times_.of_open;
      if (time < least_time) {
        fastest = index;
        least_time = time;
      }
    }
    return fastest;
  }

  // Returns the expected time of the candidate's residue products for one element.
  double products_time(std::size_t index) const {
    return expected_check(*plan_.engine, programs_[index], plan_.problem, plan_.conditions());
  }

  // True if multiplying the whole block by a wider candidate is expected to take less time than exact sums of
  // the open elements. Speed may decide here, since wider candidates write only correctly rounded elements.
  bool wider_candidate_pays(std::size_t index, std::int64_t open, const ResultBlock& block) const {
    return static_cast<double>(open) * exact_sum_times_.of_open >
           static_cast<double>(block.elements()) * products_time(index);
  }

  // Sets scales and memory for a candidate, and the rounding-error bounds of all vectors.
  void use_candidate(std::size_t index) {
    if (current_ == index) return;
    current_ = index;
    use_program(index);
    find_bounds({0, 0, c_.rows, c_.columns});
  }

  // Finds the rounding-error bounds of the vectors of a block of C.
  void find_bounds(const ResultBlock& block) {
    const auto find = [&](const SideOf<T>& side, std::int64_t first, std::int64_t count,
                          std::span<RoundingBound> bounds) {
      find_rounding_bounds(side.view.vectors(first, count), side.ranges.subspan(first, count),
                           side.inner_factors, bounds.subspan(first, count), plan_.threads);
    };
    find(a_, block.row, block.rows, check_memory_.rounding_bounds_a);
    find(b_, parts * block.column, parts * block.columns, check_memory_.rounding_bounds_b);
  }

  // Sets the program of both sides and lays out the block memory. Current slices become invalid.
  void use_program(std::size_t index) {
    set_program(programs_[index], a_, b_);
    Workspace cursor = workspace_;  // a copy, so that the blocks of all candidates use the same memory
    memory_ = take_block(plan_, programs_[index], blocking_, a_, b_, cursor);
    forget_slices();
  }

  void forget_slices() {
    rows_.forget();
    columns_.forget();
  }

  void recompute(const ResultBlock& block) {
    multiply_exactly(
        a_.view.vectors(block.row, block.rows), b_.view.vectors(parts * block.column, parts * block.columns),
        a_.ranges.subspan(block.row, block.rows),
        b_.ranges.subspan(parts * block.column, parts * block.columns), alpha_, beta_,
        c_.block(block.row, block.column, block.rows, block.columns), check_memory_.states,
        plan_.engine->host()->sum_kernels(), plan_.rounding, check_memory_.exact_scratch, plan_.threads);
  }

  ElementCheck check_of(const Program& program, const ResultBlock& block, double coefficient) const {
    return {.rows = check_memory_.rounding_bounds_a.subspan(block.row, block.rows),
            .columns = check_memory_.rounding_bounds_b.subspan(parts * block.column, parts * block.columns),
            .largest_a = power_of_two(program.split_a.top_exponent + 1),
            .largest_b = power_of_two(program.split_b.top_exponent + 1),
            .demand = {.coefficient = coefficient, .unit_roundoff = unit_roundoff(plan_.problem.type)}};
  }

  // Finds the elements that a lower bound of |A||B| proves before the candidate's products are computed.
  // Returns the number of elements that stay open.
  std::int64_t prove(std::size_t index, const ResultBlock& block) {
    std::fill_n(check_memory_.states, block.elements(), ElementCheck::open);
    set_program(magnitude_program, a_, b_);
    Workspace cursor = workspace_;  // a copy, so that magnitudes use the memory of the candidate's block
    const BlockMemory memory = take_block(plan_, magnitude_program, blocking_, a_, b_, cursor);
    const Slices slices_a = split_vectors(a_, {block.row, block.rows}, plan_.threads);
    const Slices slices_b = split_vectors(b_, {block.column, block.columns}, plan_.threads);
    const Accumulators sums =
        multiply_slices(plan_, magnitude_program, Accumulator::int32, slices_a, slices_b, memory);
    const Program& program = programs_[index];
    const int top_of_magnitudes =
        magnitude_program.split_a.top_exponent + magnitude_program.split_b.top_exponent;
    const double unit =
        power_of_two(program.split_a.top_exponent + program.split_b.top_exponent - top_of_magnitudes);
    const ElementCheck check = check_of(program, block, plan_.contract.checked_coefficient);
    prove_elements(sums, static_cast<int>(parts), check, unit, check_memory_.states, plan_.threads);
    use_program(index);  // restores the candidate's program and memory
    return std::count(check_memory_.states, check_memory_.states + block.elements(), ElementCheck::open);
  }

  // Multiplies one block of C by a candidate, recombines it and checks every element. Returns the number of
  // elements that stay open.
  std::int64_t multiply(std::size_t index, const ResultBlock& block, double coefficient, Write write) {
    const Program& program = programs_[index];
    if (const FusedKernel* kernel = fused_kernel(index)) return multiply_fused(*kernel, index, block, write);
    if (columns_.replace(block.column))
      slices_b_ = split_vectors(b_, {block.column, block.columns}, plan_.threads);
    if (rows_.replace(block.row)) slices_a_ = split_vectors(a_, {block.row, block.rows}, plan_.threads);
    const Accumulators sums =
        multiply_slices(plan_, program, candidate(index).accumulator, slices_a_, slices_b_, memory_);
    const ElementCheck check = check_of(program, block, coefficient);
    return recombine_checked_residues(
        sums, program.residue_system(), a_.ranges.subspan(block.row, block.rows),
        b_.ranges.subspan(parts * block.column, parts * block.columns), check, alpha_, beta_,
        c_.block(block.row, block.column, block.rows, block.columns), check_memory_.states,
        write == Write::proved, plan_.threads);
  }

  // Returns the fused kernel that computes the candidate's blocks; nullptr if there is none.
  const FusedKernel* fused_kernel(std::size_t index) const {
    return a_.inner_factors.empty() ? fused_checked_kernel(plan_, candidate(index)) : nullptr;
  }

  // Does the same as multiply() by a fused kernel.
  std::int64_t multiply_fused(const FusedKernel& kernel, std::size_t index, const ResultBlock& block,
                              Write write) {
    std::atomic<std::int64_t> open = 0;
    const Program& program = programs_[index];
    const bool is_tile = write == Write::nothing;
    const FusedProblem problem = fused_problem(plan_, candidate(index), program,
                                               is_tile ? Blocking{first_tile, first_tile} : blocking_);
    const ElementCheck elements = check_of(program, block, correctly_rounded);
    const FusedCheck check{
        .elements = elements, .states = check_memory_.states, .writes = !is_tile, .open = open};
    Workspace cursor = workspace_;  // a copy, so that all blocks use the same memory
    runner_of<T>(kernel)({.problem = problem,
                          .a = elements_of(a_.view.vectors(block.row, block.rows)),
                          .b = elements_of(b_.view.vectors(parts * block.column, parts * block.columns)),
                          .rows = a_.ranges.subspan(block.row, block.rows),
                          .columns = b_.ranges.subspan(parts * block.column, parts * block.columns),
                          .c = c_.block(block.row, block.column, block.rows, block.columns),
                          .alpha = alpha_,
                          .beta = beta_,
                          .scratch = cursor.take(kernel.scratch_bytes(problem, plan_.threads)),
                          .threads = plan_.threads,
                          .check = &check,
                          .conjugates_a = is_conjugated(a_.view),
                          .conjugates_b = is_conjugated(b_.view)});
    return open;
  }

  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::int64_t parts = parts_of<T>;  // vectors of B in a column of C

  const Plan& plan_;
  const Blocking& blocking_;
  SideOf<T>& a_;
  SideOf<T>& b_;
  T alpha_;
  T beta_;
  MatrixView<T> c_;
  std::size_t first_;  // index of the plan's first checked candidate, which has index 0 in this class
  std::size_t count_;  // number of checked candidates plus 1 for the superaccumulator
  Workspace workspace_;
  CheckMemory check_memory_;
  ExactSumTimes exact_sum_times_;  // expected times of an element by the superaccumulator
  const GridElements* grid_;  // elements that the grid of a reproducible product has computed; nullptr: none
  std::array<Program, Plan::max_candidates> programs_{};  // set by leave_out_moduli()
  std::size_t main_ = 0;                                  // the main candidate
  std::size_t current_ = none;  // candidate of the current scales, bounds and memory
  BlockMemory memory_{};
  Slices slices_a_{};
  Slices slices_b_{};
  SplitVectors rows_;
  SplitVectors columns_;
};

}  // namespace kintsugi::core
