// A call of cublasLtMatmul.
#pragma once

#include "tests/drop_in/cublas/entries.hpp"

namespace kintsugi::test {

// Calls cublasLtMatmul with C = D, with the stream and the pointer mode of the arguments' handle, which
// stands for cublasLt's own. Sets `changed` of the product's description, if it is not negative, to a 32-bit
// number.
struct MatmulChange {
  int attribute = -1;
  int value = 0;
};
int call_matmul(const Arguments& arguments, const MatmulChange& change = {});

}  // namespace kintsugi::test
