// The next BLAS: where its functions are, and its gemm.
#include <dlfcn.h>

#include <limits>
#include <string>
#include <string_view>

#include "call.hpp"

namespace kintsugi {

constinit const drop_in::DropIn drop_in::this_drop_in = {.library = "BLAS",
                                                         .is_cublas = false,
                                                         .report_format = "kintsugi.blas-report",
                                                         .member = "next_blas",
                                                         .known_function = "dgemm_"};

namespace {

bool is_any(std::string_view) { return true; }

// True if the program's own calls reach the drop-in, which then was preloaded or linked. False for a drop-in
// that was loaded with RTLD_LOCAL, as backends are.
bool answers_program() {
  void* const program = ::dlopen(nullptr, RTLD_LAZY);
  const void* const found = ::dlsym(program, drop_in::this_drop_in.known_function);
  ::dlclose(program);
  return found != nullptr && drop_in::is_own(found);
}

// False for a library whose functions may call the drop-in back. FlexiBLAS and libblastrampoline (LBT) export
// the names of BLAS and call their backend, which is the drop-in where it does not answer the program itself.
// dlsym() searches the libraries that the library needs, too.
bool may_be_next(std::string_view path) {
  void* const library = ::dlopen(std::string(path).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return true;
  const bool has_backends =
      ::dlsym(library, "flexiblas_current_backend") != nullptr || ::dlsym(library, "lbt_forward") != nullptr;
  ::dlclose(library);
  return !has_backends || answers_program();
}

void* if_it_may_be_next(void* found) {
  return found != nullptr && may_be_next(drop_in::file_of(found)) ? found : nullptr;
}

void* find_in_process(const char* name) {
  void* const found = if_it_may_be_next(drop_in::find_behind(name));
  return found != nullptr ? found : drop_in::find_in_loaded(name, may_be_next);
}

}  // namespace

void* drop_in::find_next(const char* name) {
  if (void* found = find_in_process(name)) return found;
  void* library = ::dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL);
  return library != nullptr ? if_it_may_be_next(find_in(library, name)) : nullptr;
}

namespace blas {

const char* loaded_blas() {
  for (const char* name : {"dgemm_", "cblas_dgemm", "dgemm_64_", "scipy_dgemm_64_", "scipy_cblas_dgemm64_"})
    if (const void* found = find_in_loaded(name, is_any)) return file_of(found);
  return "";
}

namespace {

using GetThreads = int();

int unknown_threads() { return 0; }

GetThreads* find_get_threads(const char* name) {
  void* const next = find_in_process(name);
  void* const library = next != nullptr ? ::dlopen(file_of(next), RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (library == nullptr) return unknown_threads;
  void* found = nullptr;
  for (const char* candidate :
       {"openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
        "scipy_openblas_get_num_threads64_", "MKL_Get_Max_Threads"}) {
    if (found == nullptr) found = find_in(library, candidate);
  }
  ::dlclose(library);
  return found != nullptr ? reinterpret_cast<GetThreads*>(found) : unknown_threads;
}

}  // namespace

int next_threads(Symbol& symbol) {
  GetThreads* get = symbol.get_threads.load(std::memory_order_relaxed);
  if (get == nullptr)
    symbol.get_threads.store(get = find_get_threads(symbol.name()), std::memory_order_relaxed);
  return get();
}

namespace {

using FortranGemm = void(const char*, const char*, const std::int32_t*, const std::int32_t*,
                         const std::int32_t*, const void*, const void*, const std::int32_t*, const void*,
                         const std::int32_t*, const void*, void*, const std::int32_t*, std::size_t,
                         std::size_t);

FortranGemm* next_gemm(kintsugi_type type) {
  static constinit Symbol s("sgemm_", "SGEMM "), d("dgemm_", "DGEMM "), c("cgemm_", "CGEMM "),
      z("zgemm_", "ZGEMM ");
  switch (type) {
    case KINTSUGI_F32: return s.next<FortranGemm>();
    case KINTSUGI_F64: return d.next<FortranGemm>();
    case KINTSUGI_C32: return c.next<FortranGemm>();
    default: return z.next<FortranGemm>();
  }
}

const char* letter_of(Op op) { return op == Op::n ? "N" : op == Op::t ? "T" : "C"; }

}  // namespace

bool call_next_gemm(const Call& written) {
  const Call call = as_column_major(written);
  for (const std::int64_t size : {call.m, call.n, call.k, call.lda, call.ldb, call.ldc})
    if (size > std::numeric_limits<std::int32_t>::max()) return false;
  FortranGemm* const next = next_gemm(call.type);
  if (next == nullptr) return false;
  const auto m = static_cast<std::int32_t>(call.m), n = static_cast<std::int32_t>(call.n);
  const auto k = static_cast<std::int32_t>(call.k), lda = static_cast<std::int32_t>(call.lda);
  const auto ldb = static_cast<std::int32_t>(call.ldb), ldc = static_cast<std::int32_t>(call.ldc);
  next(letter_of(call.op_a), letter_of(call.op_b), &m, &n, &k, call.alpha, call.a, &lda, call.b, &ldb,
       call.beta, call.c, &ldc, 1, 1);
  return true;
}

}  // namespace blas

}  // namespace kintsugi
