// Runs a case of tests/support/gemm_case.hpp on matrices in device memory.
#pragma once

#include <memory>
#include <random>

#include "gpu/device_memory.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {

inline std::int64_t below(std::mt19937_64& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

// Draws sizes up to these, ops, layout, paddings and seed; the caller sets the other members.
inline GemmCase random_shape(std::mt19937_64& random, std::int64_t max_m, std::int64_t max_n,
                             std::int64_t max_k) {
  GemmCase test{.m = 1 + below(random, max_m), .n = 1 + below(random, max_n), .k = 1 + below(random, max_k)};
  test.op_a = static_cast<kintsugi_op>(below(random, 3));
  test.op_b = static_cast<kintsugi_op>(below(random, 3));
  test.layout = static_cast<kintsugi_layout>(below(random, 2));
  test.pad_a = below(random, 4);
  test.pad_b = below(random, 4);
  test.pad_c = below(random, 4);
  test.seed = random() % 1000000;
  return test;
}

struct DeviceRun {
  std::size_t offset = 0;  // elements by which matrices are off an aligned address
  bool pointers = false;   // the batch has pointer arrays
  bool device_scalars = false;
  kintsugi_queue queue = {0, 0, nullptr};
};

// The problem with its data copied to the device, including C's poison and padding.
template <class T>
class DeviceGemm {
 public:
  explicit DeviceGemm(GemmDataOf<T>& data, const DeviceRun& run = {})
      : data_(data), run_(run), a_(data.raw_a(), run.offset), b_(data.raw_b(), run.offset),
        c_(data.raw_c(), run.offset), scalars_(std::vector<T>{data.alpha(), data.beta()}),
        pointers_a_(pointers_to(a_, data.problem().stride_a)),
        pointers_b_(pointers_to(b_, data.problem().stride_b)),
        pointers_c_(pointers_to(c_, data.problem().stride_c)) {}

  kintsugi_problem problem() const {
    kintsugi_problem problem = data_.problem();
    problem.memory = KINTSUGI_DEVICE;
    problem.batch_kind = run_.pointers ? KINTSUGI_BATCH_POINTERS : KINTSUGI_BATCH_STRIDED;
    problem.pointer_mode = run_.device_scalars ? KINTSUGI_SCALARS_ON_DEVICE : KINTSUGI_SCALARS_ON_HOST;
    return problem;
  }
  kintsugi_options options() const {
    kintsugi_options options = data_.options();
    options.queue = run_.queue;
    return options;
  }
  kintsugi_operands operands() {
    kintsugi_operands operands = data_.operands();
    if (run_.device_scalars) {
      operands.alpha = scalars_.data();
      operands.beta = scalars_.data() + 1;
    }
    operands.a = run_.pointers ? static_cast<const void*>(pointers_a_.data()) : a_.data();
    operands.b = run_.pointers ? static_cast<const void*>(pointers_b_.data()) : b_.data();
    operands.c = run_.pointers ? static_cast<void*>(pointers_c_.data()) : c_.data();
    return operands;
  }

  kintsugi_status run(kintsugi_handle handle = nullptr) {
    const kintsugi_problem the_problem = problem();
    const kintsugi_options the_options = options();
    const kintsugi_operands the_operands = operands();
    return kintsugi_gemm(handle, &the_problem, &the_options, &the_operands);
  }

  // Copies C back into the case, and checks that A, B and C's padding are unchanged.
  void fetch() {
    const std::vector<T> before = data_.raw_c();
    EXPECT_EQ(bits_of(a_.host()), bits_of(data_.raw_a())) << "A was modified";
    EXPECT_EQ(bits_of(b_.host()), bits_of(data_.raw_b())) << "B was modified";
    data_.raw_c() = c_.host();
    const kintsugi_problem p = data_.problem();
    std::vector<bool> is_element(before.size());
    for (std::int64_t t = 0; t < p.batch_count; ++t) {
      const MatrixView<T> c = data_.c(t);
      for (std::int64_t j = 0; j < p.n; ++j) {
        for (std::int64_t i = 0; i < p.m; ++i)
          is_element[static_cast<std::size_t>(&c(i, j) - data_.raw_c().data())] = true;
      }
    }
    for (std::size_t i = 0; i < is_element.size(); ++i) {
      if (is_element[i] || bits_of(std::vector<T>{before[i]}) == bits_of(std::vector<T>{data_.raw_c()[i]}))
        continue;
      ADD_FAILURE() << "position " << i << " in the padding of C was written to";
      break;
    }
  }

  void run_well(kintsugi_handle handle = nullptr) {
    ASSERT_EQ(run(handle), KINTSUGI_SUCCESS) << kintsugi_last_error();
    fetch();
  }

  DeviceArray<T>& c() { return c_; }
  DeviceArray<T>& a() { return a_; }
  DeviceArray<T>& b() { return b_; }

 private:
  std::vector<T*> pointers_to(const DeviceArray<T>& array, std::int64_t stride) const {
    std::vector<T*> pointers;
    for (std::int64_t t = 0; t < data_.problem().batch_count; ++t)
      pointers.push_back(array.data() + t * stride);
    return pointers;
  }

  GemmDataOf<T>& data_;
  DeviceRun run_;
  DeviceArray<T> a_, b_, c_;
  DeviceArray<T> scalars_;
  DeviceArray<T*> pointers_a_, pointers_b_, pointers_c_;
};

// Returns the bits of C that the device computes for a case.
template <class T>
auto device_bits(const GemmCase& test, const DeviceRun& run = {}) {
  GemmDataOf<T> data(test);
  DeviceGemm<T>(data, run).run_well();
  return bits_of(data.result());
}

inline std::string describe(const GemmCase& test) {
  return test.scheme + test.policy + test.accuracy + " " + test.distribution + " m " +
         std::to_string(test.m) + " n " + std::to_string(test.n) + " k " + std::to_string(test.k) + " ops " +
         std::to_string(test.op_a) + std::to_string(test.op_b) + " layout " + std::to_string(test.layout) +
         " pads " + std::to_string(test.pad_a) + "," + std::to_string(test.pad_b) + "," +
         std::to_string(test.pad_c) + " batch " + std::to_string(test.batch) + " alpha " +
         std::to_string(test.alpha) + " beta " + std::to_string(test.beta) + " seed " +
         std::to_string(test.seed);
}

}  // namespace kintsugi::test
