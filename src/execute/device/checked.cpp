#include "execute/device/steps.hpp"

#include "planner/steps.hpp"
#include "schemes/bound.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

DeviceCheckedChain CheckedSteps::chain() const {
  // An exact sum computes four products for two complex elements; a term computes one. Open real FP64
  // elements are summed in two doubles, of which one in thousands needs an exact sum. Shares of its time
  // (lab/results/log/2026-11-27-exact-without-another-read.md): 0.43, and 0.12 where bands of
  // adjacent vectors are read.
  const bool sums_in_pairs = plan_.problem.type == OperandType::f64 && !plan_.problem.complex;
  const double share_of_sum_in_pairs = a_.matrix.row_stride == 1 || b_.matrix.row_stride == 1 ? 0.15 : 0.45;
  const double sums = plan_.problem.complex ? 4 : sums_in_pairs ? share_of_sum_in_pairs : 1;
  DeviceCheckedChain chain;
  chain.first = static_cast<std::int32_t>(plan_.checked_candidate() - plan_.candidates.data());
  chain.exact_sum_cost = sums * cuda::thresholds().exact_sum_terms;
  for (const Candidate& candidate :
       product_candidates(plan_).subspan(static_cast<std::size_t>(chain.first))) {
    const Program& program = candidate.program;
    chain.terms[chain.count] = static_cast<double>(program.schedule.terms.size());
    chain.top_a[chain.count] = program.split_a.top_exponent;
    chain.top_b[chain.count] = program.split_b.top_exponent;
    if (program.split_a.scales == ScaleRule::norm) chain.sum_bits[chain.count] = program.split_a.sum_bits;
    ++chain.count;
  }
  return chain;
}

void CheckedSteps::choose() const {
  cuda::choose_checked(queue_, a_, b_, chain(), selection_, memory_.open_elements.state, report_);
}

void CheckedSteps::begin() const { cuda::begin_checks(queue_, selection_, memory_.open_elements.state); }

void CheckedSteps::split_magnitudes(const ResultBlock& block) const {
  const std::int64_t parts = plan_.problem.parts();
  split(b_, memory_.ranges_b, magnitude_program.split_b, memory_.slices_b,
        {parts * block.column, parts * block.columns});
  split(a_, memory_.ranges_a, magnitude_program.split_a, memory_.slices_a, {block.row, block.rows});
}

void CheckedSteps::split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
                         const Interval& vectors) const {
  slices.vectors = vectors.count;
  const DeviceSplit split{.side = {.matrix = side.matrix, .item = side.item, .ranges = ranges},
                          .first = vectors.first,
                          .rule = &rule,
                          .slices = slices};
  cuda::split(queue_, {&split, 1}, condition());
}

void CheckedSteps::find_rounding_errors(const ResultBlock& block) const {
  const std::int64_t parts = plan_.problem.parts();
  cuda::find_rounding_errors(
      queue_, {.side = a_, .errors = memory_.rounding_errors_a, .first = block.row, .vectors = block.rows},
      {.side = b_,
       .errors = memory_.rounding_errors_b,
       .first = parts * block.column,
       .vectors = parts * block.columns},
      condition());
}

void CheckedSteps::multiply_magnitudes(const ResultBlock& block, const ResultBlock& tile,
                                       std::byte* scratch) const {
  constexpr const DeviceFit* no_fit = nullptr;
  const std::int64_t parts = plan_.problem.parts();
  Accumulators sums = memory_.sums;
  sums.rows = round_up(tile.rows, sums_multiple);
  sums.columns = round_up(parts * tile.columns, sums_multiple);
  cuda::multiply(queue_, magnitude_program.schedule, Accumulator::int32,
                 memory_.slices_a.block(tile.row - block.row, tile.rows),
                 memory_.slices_b.block(parts * (tile.column - block.column), parts * tile.columns), sums,
                 scratch, no_fit, condition());
}

DeviceCheck CheckedSteps::check() const {
  const Program& program = this->program();
  const int top = program.split_a.top_exponent + program.split_b.top_exponent;
  const int top_of_magnitudes =
      magnitude_program.split_a.top_exponent + magnitude_program.split_b.top_exponent;
  return {.rows = memory_.rounding_errors_a,
          .columns = memory_.rounding_errors_b,
          .demand = {plan_.contract.checked_coefficient, unit_roundoff(plan_.problem.type), plan_.rounding},
          .magnitudes = reinterpret_cast<const std::int64_t*>(memory_.sums.data),
          // A sum of magnitudes times magnitude_unit has the scale of the candidate's sums.
          .magnitude_unit = power_of_two(top - top_of_magnitudes)};
}

DeviceOpenElements CheckedSteps::open_elements(const ResultBlock& block) const {
  DeviceOpenElements open = memory_.open_elements;
  open.masks_per_column = DeviceOpenElements::masks_for_rows(block.rows);
  return open;
}

void CheckedSteps::recombine(const Accumulators& sums, const DeviceTile& tile,
                             const ResultBlock& block) const {
  const DeviceOpenElements open =
      open_elements(block).tile(tile.first_row - block.row, tile.first_column - block.column);
  cuda::recombine_checked(queue_, sums, program().residue_system(), check(), tile, open);
}

void CheckedSteps::advance(const ResultBlock& block) const {
  const DeviceCheckedChain chain = this->chain();
  cuda::advance_checks(queue_, chain, candidate_ - chain.first, block.elements(),
                       memory_.open_elements.state);
}

void CheckedSteps::recompute(const DeviceTile& tile, const ResultBlock& block) const {
  cuda::recompute(queue_, tile, open_elements(block), report_);
}

}  // namespace kintsugi::core
