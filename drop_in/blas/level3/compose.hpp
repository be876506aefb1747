// Level-3 routines as products: every element of C is one element of one product, but for syr2k and her2k
// (two) and trsm, whose products update what substitution solves.
#pragma once

#include "blas/call.hpp"
#include "products.hpp"

namespace kintsugi::blas {

// Returns the largest product that the call consists of, by whose decision the policy auto emulates or
// forwards the call.
Call largest_product(const Call& call);

// Computes a call whose arguments are right. Throws std::bad_alloc only before anything is written.
void compose(const Call& call, Products& products);

// ------------------------------------------------------------------ by type, for column-major calls

// gemmt, syrk, herk; `alpha` and `beta` are those of the call.
template <class T>
void update_triangle(const Call& call, const T& alpha, const T& beta, Products& products);

// syr2k, her2k.
template <class T>
void update_triangle_twice(const Call& call, const T& alpha, const T& beta, Products& products);

// symm, hemm.
template <class T>
void multiply_symmetric(const Call& call, const T& alpha, const T& beta, Products& products);

// trmm.
template <class T>
void multiply_triangular(const Call& call, const T& alpha, Products& products);

// trsm.
template <class T>
void solve_triangular(const Call& call, const T& alpha, Products& products);

#define KINTSUGI_BLAS_FOR_TYPES(instantiate) \
  instantiate(float) instantiate(double) instantiate(std::complex<float>) instantiate(std::complex<double>)

}  // namespace kintsugi::blas
