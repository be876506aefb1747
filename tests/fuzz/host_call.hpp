// Makes the call of a FuzzCase through the C ABI on host memory.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/floating_environment.hpp"
#include "tests/support/fuzz_data.hpp"

namespace kintsugi::test {

// A copy of an image at an address that is a multiple of 256, so that only the case's shifts misalign
// matrices.
class HostMemory {
 public:
  explicit HostMemory(const std::vector<std::byte>& image)
      : size_(image.size()),
        bytes_(
            static_cast<std::byte*>(std::aligned_alloc(guard_bytes, (size_ / guard_bytes + 1) * guard_bytes)),
            std::free) {
    if (bytes_ == nullptr) throw std::bad_alloc();
    std::memcpy(bytes_.get(), image.data(), size_);
  }
  std::byte* data() const { return bytes_.get(); }
  bool equals(const std::vector<std::byte>& image) const {
    return std::memcmp(bytes_.get(), image.data(), size_) == 0;
  }
  void overwrite(std::byte value) const { std::memset(bytes_.get(), static_cast<int>(value), size_); }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte, void (*)(void*)> bytes_;
};

// Outcome of a call. `broken` names a promise that it broke apart from the values of C; "" if none.
struct HostResult {
  kintsugi_status status = KINTSUGI_SUCCESS;
  std::string error;
  std::string broken;
  std::vector<std::byte> c;
  std::string plan, report;  // JSON; only of calls by a plan
};

template <class T>
class HostCall {
 public:
  explicit HostCall(const FuzzData<T>& data)
      : data_(data), a_(data.a().bytes), b_(data.b().bytes), c_(data.c().bytes), alpha_(data.alpha()),
        beta_(data.beta()) {
    kintsugi_create(&handle_);
  }
  ~HostCall() {
    kintsugi_prepared_destroy(prepared_[0]);
    kintsugi_prepared_destroy(prepared_[1]);
    kintsugi_plan_destroy(plan_);
    kintsugi_destroy(handle_);
  }
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  HostResult run() {
    const core::RoundingScope rounding(rounding_of(data_.test()));
    operands_.alpha = &alpha_, operands_.beta = &beta_;
    operands_.a = pointers(0, data_.a(), a_), operands_.b = pointers(1, data_.b(), b_);
    operands_.c = const_cast<void*>(pointers(2, data_.c(), c_));
    problem_ = data_.problem();
    options_ = options_of(data_.test());
    const std::string& via = data_.test().via;
    result_.status = via == "plan"   ? run_plan()
                     : via == "blas" ? run_blas()
                                     : kintsugi_gemm(handle_, &problem_, &options_, &operands_);
    if (result_.status != KINTSUGI_SUCCESS) result_.error = kintsugi_last_error();
    check_other_memory();
    result_.c.assign(c_.data(), c_.data() + data_.c().bytes.size());
    return result_;
  }

  // Executes the plan of run() again, with a C of its own. Any number of threads may do so at once.
  HostResult run_again() const {
    const HostMemory c(data_.c().bytes);
    const core::RoundingScope rounding(rounding_of(data_.test()));
    kintsugi_operands operands = operands_;
    operands.c = c.data() + data_.c().place.first;
    HostResult result;
    result.status = kintsugi_plan_execute(nullptr, plan_, &operands);
    if (result.status != KINTSUGI_SUCCESS) result.error = kintsugi_last_error();
    result.c.assign(c.data(), c.data() + data_.c().bytes.size());
    return result;
  }

 private:
  static kintsugi_options options_of(const FuzzCase& test) {
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    options.accuracy = text(test.accuracy), options.policy = text(test.policy);
    options.scheme = text(test.scheme), options.engine = text(test.engine);
    options.workspace_limit = test.limit;
    options.threads = static_cast<std::int32_t>(test.threads);
    return options;
  }

  // Pointer that the call gets for a matrix: its address, or an array with the address of every batch item.
  const void* pointers(int number, const Image& image, const HostMemory& memory) {
    if (data_.test().batches != "pointers") return memory.data() + image.place.first;
    for (std::int64_t item = 0; item < data_.test().batch; ++item)
      pointer_tables_[number].push_back(memory.data() + image.place.offset(item, sizeof(T)));
    pointer_tables_[number].push_back(nullptr);
    return pointer_tables_[number].data();
  }

  kintsugi_status set_handle() {
    const FuzzCase& test = data_.test();
    const std::string limit = std::to_string(test.limit), threads = std::to_string(test.threads);
    for (const auto& [name, value] : {std::pair("accuracy", test.accuracy),
                                      {"policy", test.policy},
                                      {"scheme", test.scheme},
                                      {"engine", test.engine},
                                      {"workspace_limit", limit},
                                      {"threads", threads}}) {
      const kintsugi_status status = kintsugi_set(handle_, name, value.empty() ? nullptr : value.c_str());
      if (status != KINTSUGI_SUCCESS) return status;
    }
    return KINTSUGI_SUCCESS;
  }

  kintsugi_status run_blas() {
    const kintsugi_status status = set_handle();
    if (status != KINTSUGI_SUCCESS) return status;
    const kintsugi_problem& p = problem_;
    const auto call = [&](auto gemm, auto alpha, auto beta, auto element) {
      using Element = decltype(element);
      return gemm(handle_, static_cast<kintsugi_layout>(p.layout), static_cast<kintsugi_op>(p.op_a),
                  static_cast<kintsugi_op>(p.op_b), p.m, p.n, p.k, alpha,
                  static_cast<const Element*>(operands_.a), p.lda, static_cast<const Element*>(operands_.b),
                  p.ldb, beta, static_cast<Element*>(operands_.c), p.ldc);
    };
    if constexpr (std::is_same_v<T, float>) {
      return call(kintsugi_sgemm, alpha_, beta_, float());
    } else if constexpr (std::is_same_v<T, double>) {
      return call(kintsugi_dgemm, alpha_, beta_, double());
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      return call(kintsugi_cgemm, &alpha_, &beta_, T());
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
      return call(kintsugi_zgemm, &alpha_, &beta_, T());
    } else {
      const auto pair = [](const T& x) { return reinterpret_cast<const kintsugi_dd*>(&x); };
      return call(kintsugi_ddgemm, pair(alpha_), pair(beta_), kintsugi_dd());
    }
  }

  kintsugi_status run_plan() {
    problem_.prepared_a = data_.test().prepared_a != "no" ? 1 : 0;
    problem_.prepared_b = data_.test().prepared_b != "no" ? 1 : 0;
    kintsugi_status status = kintsugi_plan_create(handle_, &problem_, &options_, &plan_);
    if (status == KINTSUGI_SUCCESS)
      status = prepare(KINTSUGI_A, data_.test().prepared_a, operands_.a, operands_.prepared_a);
    if (status == KINTSUGI_SUCCESS)
      status = prepare(KINTSUGI_B, data_.test().prepared_b, operands_.b, operands_.prepared_b);
    if (status == KINTSUGI_SUCCESS) status = give_workspace();
    if (status == KINTSUGI_SUCCESS) status = kintsugi_plan_execute(handle_, plan_, &operands_);
    if (status == KINTSUGI_SUCCESS) describe();
    return status;
  }

  // Overwrites the operand after its preparation, unless it is borrowed: the library must have copied it.
  kintsugi_status prepare(kintsugi_side side, const std::string& how, const void*& data,
                          kintsugi_prepared& prepared) {
    if (how == "no") return KINTSUGI_SUCCESS;
    kintsugi_plan plan = plan_;
    kintsugi_problem problem = problem_;
    if (how == "one") {
      problem.batch_count = std::min<std::int64_t>(problem.batch_count, 1);
      const kintsugi_status status = kintsugi_plan_create(handle_, &problem, &options_, &plan);
      if (status != KINTSUGI_SUCCESS) return status;
    }
    const kintsugi_status status = how == "borrowed"
                                       ? kintsugi_prepare_borrowed(handle_, plan, side, data, &prepared)
                                       : kintsugi_prepare(handle_, plan, side, data, &prepared);
    if (plan != plan_) kintsugi_plan_destroy(plan);
    prepared_[side] = prepared;
    if (status != KINTSUGI_SUCCESS || how == "borrowed") return status;
    const HostMemory& memory = side == KINTSUGI_A ? a_ : b_;
    if (!memory.equals(side == KINTSUGI_A ? data_.a().bytes : data_.b().bytes))
      result_.broken = "kintsugi_prepare changed its operand";
    memory.overwrite(std::byte{0x7f});
    overwritten_[side] = true;
    data = nullptr;
    return status;
  }

  kintsugi_status give_workspace() {
    if (data_.test().workspace != "exact") return KINTSUGI_SUCCESS;
    std::size_t bytes = 0;
    const kintsugi_status status = kintsugi_plan_workspace_size(plan_, &bytes);
    if (bytes % 256 != 0)
      result_.broken = "the workspace's size, " + std::to_string(bytes) + " bytes, is not a multiple of 256";
    if (status != KINTSUGI_SUCCESS || bytes == 0) return status;
    workspace_image_.assign(bytes + 2 * guard_bytes, guard_byte);
    workspace_ = std::make_unique<HostMemory>(workspace_image_);
    operands_.workspace = workspace_->data() + guard_bytes;
    operands_.workspace_size = bytes;
    return status;
  }

  void describe() {
    const auto text = [](auto call) {
      std::size_t needed = 0;
      call(nullptr, 0, &needed);
      std::string buffer(needed, ' ');
      call(buffer.data(), buffer.size(), nullptr);
      if (!buffer.empty()) buffer.pop_back();
      return buffer;
    };
    result_.plan = text([&](char* buffer, std::size_t size, std::size_t* needed) {
      kintsugi_plan_describe(plan_, buffer, size, needed);
    });
    result_.report = text([&](char* buffer, std::size_t size, std::size_t* needed) {
      kintsugi_report(handle_, buffer, size, needed);
    });
  }

  void check_other_memory() {
    if (!overwritten_[0] && !a_.equals(data_.a().bytes)) result_.broken = "A was changed";
    if (!overwritten_[1] && !b_.equals(data_.b().bytes)) result_.broken = "B was changed";
    if (result_.status != KINTSUGI_SUCCESS && !c_.equals(data_.c().bytes))
      result_.broken = "a call that failed wrote to C";
    if (workspace_ == nullptr) return;
    const std::byte* end = workspace_->data() + workspace_image_.size() - guard_bytes;
    for (const std::byte* guard : {const_cast<const std::byte*>(workspace_->data()), end}) {
      if (std::any_of(guard, guard + guard_bytes, [](std::byte x) { return x != guard_byte; }))
        result_.broken = "memory in front of or behind the workspace was written";
    }
  }

  const FuzzData<T>& data_;
  HostMemory a_, b_, c_;
  T alpha_, beta_;
  bool overwritten_[2] = {false, false};
  std::vector<const void*> pointer_tables_[3];
  std::vector<std::byte> workspace_image_;
  std::unique_ptr<HostMemory> workspace_;
  kintsugi_problem problem_ = KINTSUGI_PROBLEM_INIT;
  kintsugi_options options_ = KINTSUGI_OPTIONS_INIT;
  kintsugi_operands operands_ = KINTSUGI_OPERANDS_INIT;
  kintsugi_handle handle_ = nullptr;
  kintsugi_plan plan_ = nullptr;
  kintsugi_prepared prepared_[2] = {nullptr, nullptr};
  HostResult result_;
};

}  // namespace kintsugi::test
