// Defines exported functions. An exported function makes a Call of its arguments. It passes the Call to
// answer(), together with a callable that calls the real cuBLAS with the unchanged arguments. Scalars and
// matrices are declared as void pointers, since the calling convention passes all pointers alike.
#pragma once

#include <cstdint>

#include "cublas/answer.hpp"
#include "cublas/sites/site.hpp"

// Defines an exported function, which stores its return address and calls `function` with its symbol and its
// arguments.
#define KINTSUGI_CUBLAS_DEFINE(symbol_, parameters, function, ...)           \
  extern "C" __attribute__((visibility("default"))) int symbol_ parameters { \
    static constinit Symbol symbol(#symbol_);                                \
    note_return_address(__builtin_return_address(0));                        \
    return function(symbol, __VA_ARGS__);                                    \
  }
