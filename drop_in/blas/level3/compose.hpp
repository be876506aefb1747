// Computes level-3 routines by products. For most routines each element of C comes from one product. For
// syr2k and her2k it is the sum of two products. For trsm substitution solves blocks of equations, and
// products update the right sides of the others.
#pragma once

#include "blas/call.hpp"
#include "products.hpp"

namespace kintsugi::blas {

// Returns the largest product of the call. The decision on this product decides whether the whole call is
// emulated or forwarded.
Call largest_product(const Call& call);

// Computes a call whose arguments are right. Throws std::bad_alloc only before anything is written.
void compose(const Call& call, Products& products);

// ------------------------------------------------------------------ by type, for column-major calls

// gemmt, syrk, herk.
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
