// The stack that calls take, which threads of a program may have little of.
#include "tests/drop_in/blas/stacks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/matrix.hpp"
#include "tests/support/painted_stack.hpp"

namespace kintsugi::test {

namespace {

constexpr std::int64_t orders[] = {1, 2, 5, 17, 33, 129};
constexpr std::int64_t largest_order = 129;
// Longest sums of products whose k is free: exact sums of wide data take long.
constexpr std::int64_t largest_k = 33;
constexpr std::int64_t batch_count = 2;

// Matrices of numbers of either precision, with ranges that the narrow programs do not cover.
struct Data {
  Data() {
    Random random(7);
    for (auto* numbers : {&a, &b})
      for (double& x : *numbers) x = draw_real<double>(random, Distribution::wide);
    for (float& x : single_a) x = draw_real<float>(random, Distribution::wide);
    for (float& x : single_b) x = draw_real<float>(random, Distribution::wide);
  }

  static constexpr std::size_t size = largest_order * largest_order * 2 * batch_count;
  std::vector<double> a = std::vector<double>(size), b = a, c = a;
  std::vector<float> single_a = std::vector<float>(size), single_b = single_a;
};

// The name as Fortran and C programs write it, with 32-bit integers. CBLAS has no symv of complex matrices.
bool is_plain(const Entry& entry) {
  if (entry.is("symv") && entry.is_cblas && (entry.type == 'c' || entry.type == 'z')) return false;
  const std::string name = entry.type + std::string(entry.routine);
  return std::strcmp(entry.name, "dsdot_") == 0 || std::strcmp(entry.name, "sdsdot_") == 0 ||
         entry.name == name + "_" || entry.name == "cblas_" + name;
}

void call(const Entry& entry, Data& data, std::int64_t n) {
  static constexpr double double_scalars[] = {0.75, 0.5};
  static constexpr float single_scalars[] = {0.75f, 0.5f};
  const bool is_single = entry.type == 's' || entry.type == 'c' || entry.is("dsdot");
  const void* const scalar = is_single ? static_cast<const void*>(single_scalars) : double_scalars;
  const std::string_view routine = entry.routine;
  const bool has_vectors = std::ranges::any_of(std::initializer_list<std::string_view>{"ger", "dot"},
                                               [&](auto part) { return routine.find(part) != routine.npos; });
  const bool has_vector_b = routine.ends_with("mv");
  const auto a = is_single ? static_cast<const void*>(data.single_a.data()) : data.a.data();
  const auto b = is_single ? static_cast<const void*>(data.single_b.data()) : data.b.data();
  Arguments arguments{.m = n,
                      .n = n,
                      .k = std::min(n, largest_k),
                      .alpha = scalar,
                      .a = a,
                      .lda = has_vectors ? 1 : n,
                      .b = b,
                      .ldb = has_vectors || has_vector_b ? 1 : n,
                      .beta = scalar,
                      .c = data.c.data(),
                      .ldc = has_vector_b ? 1 : n,
                      .count = batch_count,
                      .stride_a = n * n,
                      .stride_b = n * n,
                      .stride_c = n * n};
  if (entry.call != nullptr) return entry.call(arguments);
  BatchArguments batch{.group_count = 1, .groups = {arguments}, .alpha = scalar, .beta = scalar};
  const std::size_t bytes = (is_single ? 4u : 8u) * (entry.type == 'c' || entry.type == 'z' ? 2u : 1u);
  for (std::size_t i = 0; i < batch_count; ++i) {
    const std::size_t offset = i * static_cast<std::size_t>(n * n) * bytes;
    batch.a.push_back(static_cast<const char*>(a) + offset);
    batch.b.push_back(static_cast<const char*>(b) + offset);
    batch.c.push_back(reinterpret_cast<char*>(data.c.data()) + offset);
  }
  entry.call_batch(batch);
}

template <class Visit>
void for_each_call(const Visit& visit) {
  Data data;
  for (const auto list : {entries(), vector_entries()})
    for (const Entry& entry : list)
      for (const std::int64_t n : orders)
        if (is_plain(entry)) visit(entry, n, [&] { call(entry, data, n); });
}

}  // namespace

int print_stacks() {
  for_each_call([](const Entry& entry, std::int64_t n, const std::function<void()>& work) {
    std::printf("%s %d %zu\n", entry.name, static_cast<int>(n), stack_bytes_of(work));
  });
  return 0;
}

int call_with_stack(std::size_t bytes) {
  for_each_call([&](const Entry& entry, std::int64_t n, const std::function<void()>& work) {
    std::printf("%s %d\n", entry.name, static_cast<int>(n));
    std::fflush(stdout);  // the last line names the call that ended the program
    run_with_stack(bytes, work);
  });
  return 0;
}

}  // namespace kintsugi::test
