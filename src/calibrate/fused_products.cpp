#include "calibrate/fused_products.hpp"

#include <algorithm>

namespace kintsugi::core::calibrate {

DeviceMatrix row_major_matrix(const Workbench& bench, std::int64_t vectors, std::int64_t k, int index) {
  return {.data = bench.matrix(static_cast<std::size_t>(vectors * k) * sizeof(float), index),
          .rows = vectors,
          .columns = k,
          .row_stride = k,
          .column_stride = 1};
}

SplitOperand::SplitOperand(const Workbench& bench, const SplitRule& rule, std::int64_t vectors,
                           std::int64_t k, int index)
    : ranges_(static_cast<std::size_t>(vectors) * sizeof(VectorRange)),
      slices_(make_slices(rule, SliceStorage::packed, vectors, k)), memory_(slices_.bytes()) {
  slices_.place_items(memory_.data(), 1);
  side_.matrix = row_major_matrix(bench, vectors, k, index);
  side_.ranges = reinterpret_cast<VectorRange*>(ranges_.data());
  const DeviceSplit split{.side = side_, .rule = &rule, .slices = slices_};
  bench.engine().split({}, {&split, 1}, {});
}

FusedProducts::FusedProducts(const Workbench& bench, const Program& program, const Shape& shape)
    : program_(program) {
  const std::size_t slice_bytes =
      static_cast<std::size_t>((shape.m + shape.n) * shape.k) * sizeof(std::uint16_t) * 2;
  for (int i = 0; i < std::max(2, matrices_beyond_caches(slice_bytes)); ++i) {
    a_.push_back(std::make_unique<SplitOperand>(bench, program_.split_a, shape.m, shape.k, 2 * i));
    b_.push_back(std::make_unique<SplitOperand>(bench, program_.split_b, shape.n, shape.k, 2 * i + 1));
    products_.push_back({.schedule = &program_.schedule,
                         .a = a_.back()->slices(),
                         .b = b_.back()->slices(),
                         .tile = {.a = a_.back()->side(),
                                  .b = b_.back()->side(),
                                  .c = {.data = bench.results(),
                                        .rows = shape.m,
                                        .columns = shape.n,
                                        .row_stride = shape.n,
                                        .column_stride = 1},
                                  .rows = shape.m,
                                  .columns = shape.n,
                                  .scalars = {},
                                  .condition = {}}});
  }
}

}  // namespace kintsugi::core::calibrate
