// Decisions, each on one problem: emulation by a plan, or the hidden library. Each drop-in keeps its
// decisions for later calls.
#pragma once

#include <atomic>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "call.hpp"
#include "lock.hpp"

namespace kintsugi::drop_in {

// ------------------------------------------------------------------ kept values

// Pointer to a value that Kept keeps. If Kept could not keep the value, the pointer owns it.
template <class Value>
class ValuePointer {
 public:
  explicit ValuePointer(const Value* kept) : value_(kept) {}
  explicit ValuePointer(std::unique_ptr<const Value> own) : value_(own.get()), own_(std::move(own)) {}
  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_; }

 private:
  const Value* value_;
  std::unique_ptr<const Value> own_;
};

// Map from keys to values, which are kept as long as the program lives. A library may have only one object
// for each pair of types Key and Value, since objects of one type share `recent_`.
template <class Key, class Value, class Hash>
class Kept {
 public:
  constexpr explicit Kept(ForkSafeMutex& mutex) : mutex_(mutex) {}

  // Returns the value of the key. If there is none yet, make() makes it; the mutex is not locked meanwhile,
  // since make() may take long. The new value is kept if keeps(value) is true and the map is not full.
  template <class Make, class Keeps>
  ValuePointer<Value> get(const Key& key, const Make& make, const Keeps& keeps) {
    Recent& latest = recent_[Hash()(key) % recent_count];
    if (latest.value != nullptr && latest.key == key) return ValuePointer(latest.value);
    const Value* kept = find(key);
    if (kept == nullptr) {
      auto made = std::make_unique<const Value>(make());
      if (keeps(*made)) kept = keep(key, made);
      if (kept == nullptr) return ValuePointer<Value>(std::move(made));
    }
    latest = {key, kept};
    return ValuePointer(kept);
  }

  // Returns the value of the key if the thread has used it recently, else nullptr.
  const Value* find_recent(const Key& key) const {
    const Recent& latest = recent_[Hash()(key) % recent_count];
    return latest.value != nullptr && latest.key == key ? latest.value : nullptr;
  }

  // Returns the value of the key, or nullptr.
  const Value* find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values().find(key);
    return found == values().end() ? nullptr : found->second.get();
  }

 private:
  using Values = std::unordered_map<Key, std::unique_ptr<const Value>, Hash>;

  // Bounds the memory: a plan takes 6 KB. Of further problems each call is decided anew.
  static constexpr std::size_t max_values = 16384;

  // A value that the thread has used recently. The thread finds it without a lock. Recent must not have a
  // destructor, since calls may come after the destructors of thread_local objects have run.
  struct Recent {
    Key key;
    const Value* value;
  };
  static constexpr std::size_t recent_count = 16;
  static inline constinit thread_local Recent recent_[recent_count] = {};

  // Keeps `made`, unless another thread has kept a value for the key meanwhile. Returns the kept value. If
  // the map is full, returns nullptr and leaves `made` unchanged.
  const Value* keep(const Key& key, std::unique_ptr<const Value>& made) {
    const std::lock_guard lock(mutex_);
    if (values().size() >= max_values) return nullptr;
    return values().try_emplace(key, std::move(made)).first->second.get();
  }

  // Never destroyed, since calls may come from other libraries' destructors.
  Values& values() {
    if (values_ == nullptr) values_ = new Values;
    return *values_;
  }

  ForkSafeMutex& mutex_;
  Values* values_ = nullptr;  // guarded by mutex_
};

// ------------------------------------------------------------------ decisions

struct PlanDeleter {
  void operator()(kintsugi_plan plan) const { kintsugi_plan_destroy(plan); }
};

struct Decision {
  bool is_offloaded = false;  // GPUs multiply matrices in host memory
  bool emulates = false;  // Kintsugi multiplies, by an emulation or on GPUs; false: the hidden library does
  bool may_be_native = false;  // the plan multiplies operands natively that no emulation accepts
  std::unique_ptr<kintsugi_plan_s, PlanDeleter> plan;  // nullptr unless `emulates`
  double native_seconds = 0;  // of a native product, estimated by the profile; 0: not known
  std::string candidates;     // names of the plan's programs, cheapest first; "": there is no plan
  std::string why;            // one sentence
  std::string not_kept;       // what of the settings the decision does not keep, and why; "": it keeps them
  bool is_final = true;       // false if the next call of the problem may be decided otherwise
  // Set if there was no memory for a call that a CUDA graph captures. Later captured calls are forwarded,
  // too: a program that updates an executable graph captures its calls again, and must get the same kernels.
  std::unique_ptr<std::atomic<bool>> forwards_captured = std::make_unique<std::atomic<bool>>(false);
};

using DecisionPointer = ValuePointer<Decision>;

// Everything that the plan of a product depends on, if scalars and matrices are in host memory.
struct ProblemKey {
  std::int16_t type;
  std::int16_t threads;   // of kintsugi_options
  std::uint8_t rounding;  // a plan rounds in the mode in which it was made
  Layout layout;
  Op op_a, op_b;
  std::int64_t m, n, k, lda, ldb, ldc;
  const Site* site;

  bool operator==(const ProblemKey&) const = default;
};
// Keys of the last calls are in static TLS, of which there is little (intercept.hpp).
static_assert(sizeof(ProblemKey) == 64);

inline std::uint8_t rounding_mode() {
  const int mode = std::fegetround();
  return mode == FE_TONEAREST ? 0 : mode == FE_UPWARD ? 1 : mode == FE_DOWNWARD ? 2 : 3;
}
inline ProblemKey problem_key(const Call& call, int threads = 0) {
  return {static_cast<std::int16_t>(call.type),
          static_cast<std::int16_t>(threads),
          rounding_mode(),
          call.layout,
          call.op_a,
          call.op_b,
          call.m,
          call.n,
          call.k,
          call.lda,
          call.ldb,
          call.ldc,
          call.site};
}

struct ProblemKeyHash {
  std::size_t operator()(const ProblemKey& key) const {
    const auto product = [](std::int64_t number, std::size_t factor) {
      return static_cast<std::size_t>(number) * factor;
    };
    // The products do not depend on each other, so they run in parallel. Every forwarded call computes a
    // hash.
    std::size_t hash = product(key.m, 0x9e3779b97f4a7c15u) + product(key.n, 0xbf58476d1ce4e5b9u) +
                       product(key.k, 0x94d049bb133111ebu) + product(key.lda, 0xd6e8feb86659fd93u) +
                       product(key.ldb, 0xa0761d6478bd642fu) + product(key.ldc, 0xe7037ed1a0b428dbu);
    hash += static_cast<std::size_t>(key.type) * 64 + static_cast<std::size_t>(key.layout) * 16 +
            static_cast<std::size_t>(key.op_a) * 4 + static_cast<std::size_t>(key.op_b) +
            static_cast<std::size_t>(key.threads) * 256;
    hash ^= reinterpret_cast<std::uintptr_t>(key.site) >> 4;
    return hash ^ (hash >> 32);
  }
};

// Makes a decision by a new plan: by the rule of the call's site, or by the settings if the call has no site.
// `handle` has further settings.
Decision new_decision(const Call& call, const kintsugi_problem& problem, kintsugi_options options,
                      kintsugi_handle handle = nullptr);

// Makes the decision on a call whose site has the rule `native`, or no rule.
Decision decision_of_native_site(const Site& site);

// Tells the user if a decision on a call of `symbol` has no plan or does not keep the settings.
void note_decision(const char* symbol, const Decision& decision);

}  // namespace kintsugi::drop_in
