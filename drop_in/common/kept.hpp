// Keeps values, such as plans of problems, by their keys as long as the program lives.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "lock.hpp"

namespace kintsugi::drop_in {

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

// Map from keys to values. A library may have only one object for each pair of types Key and Value, since
// objects of one type share `recent_`.
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

  // Returns the value of the key, or nullptr.
  const Value* find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values().find(key);
    return found == values().end() ? nullptr : found->second.get();
  }

 private:
  using Values = std::unordered_map<Key, std::unique_ptr<const Value>, Hash>;

  // Bounds the memory. A plan takes some kilobytes.
  static constexpr std::size_t max_values = 4096;

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

}  // namespace kintsugi::drop_in
