#pragma once

namespace kintsugi::test {

// Number of calls with wrong arguments that were not reported as the reference BLAS does; a line for each.
int check_arguments();

}  // namespace kintsugi::test
