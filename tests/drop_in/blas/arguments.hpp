#pragma once

namespace kintsugi::test {

// Number of calls with wrong arguments that were not reported as the reference BLAS does; a line for each.
// `has_accuracy`: routines with vectors are answered, too.
int check_arguments(bool has_accuracy);

}  // namespace kintsugi::test
