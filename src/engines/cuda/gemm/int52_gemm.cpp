#include "engines/cuda/gemm/int52_gemm.hpp"

#include <algorithm>

#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

void multiply_words(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums) {
  static const KernelName kernel{"int52_gemm", "multiply_int52"};
  const bool has_all_products =
      std::all_of(schedule.terms.begin(), schedule.terms.end(),
                  [](const Term& term) { return term.group == term.a + term.b; }) &&
      static_cast<int>(schedule.terms.size()) == schedule.slices_a * schedule.slices_b;
  if (!has_all_products || schedule.slices_a != schedule.slices_b || schedule.k_block != 0 ||
      sums.type != SumType::i128)
    fail(Status::internal, "engine cuda got {} terms of {} and {} words to multiply", schedule.terms.size(),
         schedule.slices_a, schedule.slices_b);
  const WordProducts products{.a = a.vector<std::int64_t>(0, 0),
                              .b = b.vector<std::int64_t>(0, 0),
                              .slice_stride_a = a.slice_stride(),
                              .slice_stride_b = b.slice_stride(),
                              .vector_stride = a.vector_stride(),
                              .words = schedule.slices_a,
                              .sums = sums.group<Integer128>(0),
                              .rows = sums.rows,
                              .columns = sums.columns};
  launch(kernel, {divide_up(sums.rows, integer_tile), divide_up(sums.columns, integer_tile), schedule.groups},
         integer_threads, no_shared_bytes, queue, products);
}

}  // namespace kintsugi::core::cuda
