// Values that are made once for a key and kept as long as the program lives, such as plans of problems.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "lock.hpp"

namespace kintsugi::drop_in {

// A value that is kept as long as the program lives, or the caller's own where too many are.
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

// A library has one for each pair of types. Key has operator==, Hash the members of std::hash.
template <class Key, class Value, class Hash>
class Kept {
 public:
  constexpr explicit Kept(ForkSafeMutex& mutex) : mutex_(mutex) {}

  // Returns the value of the key; make() makes it without the lock, since that may take long, and it is kept
  // if keeps(value) says so.
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

  // A plan takes some kilobytes.
  static constexpr std::size_t max_values = 4096;

  // The thread's last values, found without a lock. Without a destructor, since calls may come after those of
  // a thread's objects.
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

  // Returns the value that is kept for the key, this one or an earlier one; nullptr, and `made` stays the
  // caller's, where too many are kept.
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
