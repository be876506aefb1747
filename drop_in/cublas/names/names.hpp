// Parts that all exported functions share. Each makes a Call of its arguments and passes it on together with
// a way to forward them unchanged. Scalars and matrices are void pointers, which the calling convention
// passes alike.
#pragma once

#include <cstdint>

#include "cublas/answer.hpp"
#include "cublas/sites/site.hpp"

// An exported function that passes its arguments, behind its symbol, to `function`.
#define KINTSUGI_CUBLAS_DEFINE(symbol_, parameters, function, ...)           \
  extern "C" __attribute__((visibility("default"))) int symbol_ parameters { \
    static constinit Symbol symbol(#symbol_);                                \
    return_address = __builtin_return_address(0);                            \
    return function(symbol, __VA_ARGS__);                                    \
  }
