// Values that are made once for a key and kept as long as the program lives, such as plans of problems.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "lock.hpp"

namespace kintsugi::drop_in {

// Pointer to a value that Kept keeps as long as the program lives; or owner of a value that is not kept.
template <class Value>
class Found {
 public:
  explicit Found(const Value* kept) : value_(kept) {}
  explicit Found(std::unique_ptr<const Value> own) : value_(own.get()), own_(std::move(own)) {}
  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_; }

 private:
  const Value* value_;
  std::unique_ptr<const Value> own_;
};

// Values by their keys. A library has at most one object for each pair of Key and Value, since the objects
// would share `recent_`. Key has operator==, Hash the members of std::hash.
template <class Key, class Value, class Hash>
class Kept {
 public:
  constexpr explicit Kept(ForkSafeMutex& mutex) : mutex_(mutex) {}

  // Returns the value of the key. If there is none yet, make() makes it, without the lock, since that may
  // take long; it is kept if keeps(value) is true and not too many values are kept already.
  template <class Make, class Keeps>
  Found<Value> get(const Key& key, const Make& make, const Keeps& keeps) {
    Recent& latest = recent_[Hash()(key) % recent_count];
    if (latest.value != nullptr && latest.key == key) return Found(latest.value);
    const Value* kept = find(key);
    if (kept == nullptr) {
      auto made = std::make_unique<const Value>(make());
      if (keeps(*made)) kept = keep(key, made);
      if (kept == nullptr) return Found<Value>(std::move(made));
    }
    latest = {key, kept};
    return Found(kept);
  }

 private:
  using Values = std::unordered_map<Key, std::unique_ptr<const Value>, Hash>;

  // Bounds the memory, of which a plan takes some kilobytes.
  static constexpr std::size_t max_values = 4096;

  // The values that the thread used last, which are found without a lock. Recent has no destructor: calls may
  // come when the destructors of the thread's objects have run.
  struct Recent {
    Key key;
    const Value* value;
  };
  static constexpr std::size_t recent_count = 16;
  static inline constinit thread_local Recent recent_[recent_count] = {};

  const Value* find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values().find(key);
    return found == values().end() ? nullptr : found->second.get();
  }

  // Keeps `made`, unless another thread's value is kept for the key meanwhile. Returns the value that is
  // kept; nullptr, and leaves `made` to the caller, if too many are kept.
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

}  // namespace kintsugi::drop_in
