// Kernel for double-double products one by one, for any CPU.
#include "engines/cpu/pairs/pair_loops.hpp"

namespace kintsugi::core {

namespace {

struct OneByOne : ScalarArithmetic {
  static constexpr std::int64_t lanes = 1;
  static Value load(const double* x) { return *x; }
  static void store(double* target, Value x) { *target = x; }
  static Value broadcast(double x) { return x; }
};

}  // namespace

const PairKernels pairs_generic{
    .name = "generic", .relative_time = 200, .add_products = add_pair_products<OneByOne, 4, 1>};

}  // namespace kintsugi::core
