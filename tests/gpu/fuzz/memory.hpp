// The memory of one case in a lane: the images of A, B and C, the scalars and the arrays of pointers lie side
// by side, so that one copy uploads them and one copy downloads them. The workspace lies between guard zones.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/view.hpp"
#include "gpu/fuzz/lane.hpp"
#include "tests/support/fuzz_data.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::test {

class CaseMemory {
 public:
  CaseMemory(const Lane& lane, bool on_device) : lane_(lane), on_device_(on_device) {}

  // For the allocator callback: a part of the lane's workspace that the case has not used yet.
  void* allocate(std::size_t bytes, std::size_t alignment) {
    const std::size_t first = (used_ + alignment - 1) / alignment * alignment;
    if (bytes > Lane::workspace_bytes || first > Lane::workspace_bytes - bytes) return nullptr;
    used_ = first + bytes;
    return lane_.workspace() + first;
  }

  // Gives the case a workspace of that size, poisoned and between guard zones; none where the lane's memory
  // is too small.
  void guard_workspace(std::size_t bytes) {
    if (bytes + 2 * guard_bytes > Lane::workspace_bytes) return;
    lane_.fill(lane_.workspace(), static_cast<unsigned char>(guard_byte), bytes + 2 * guard_bytes);
    lane_.synchronize();
    workspace_size_ = bytes;
    workspace_ = lane_.workspace() + guard_bytes;
  }
  void* workspace() const { return workspace_; }
  std::size_t workspace_size() const { return workspace_size_; }
  bool workspace_damaged() const {
    if (workspace_ == nullptr) return false;
    std::array<std::byte, 2 * guard_bytes> guards{};
    lane_.download(guards.data(), lane_.workspace(), guard_bytes);
    lane_.download(guards.data() + guard_bytes, workspace_ + workspace_size_, guard_bytes);
    lane_.synchronize();
    return sabotaged_workspace_ || std::ranges::any_of(guards, [](std::byte x) { return x != guard_byte; });
  }

  // Writes the first contents of all matrices: before the call, and again before a graph's second launch.
  void put() const {
    if (!on_device_) {
      std::memcpy(base(), before_.data(), before_.size());
      return;
    }
    lane_.upload(base(), before_.data(), before_.size());
    lane_.synchronize();
  }
  // Reads all matrices back.
  void fetch() {
    after_.resize(before_.size());
    if (!on_device_) {
      std::memcpy(after_.data(), base(), after_.size());
      return;
    }
    lane_.download(after_.data(), base(), after_.size());
    lane_.synchronize();
  }
  bool changed() const { return before_ != after_; }

 protected:
  std::byte* base() const { return on_device_ ? lane_.matrices() : lane_.host_matrices(); }

  const Lane& lane_;
  const bool on_device_;
  std::vector<std::byte> before_, after_;
  bool sabotaged_workspace_ = false;

 private:
  std::size_t used_ = 0;
  std::byte* workspace_ = nullptr;
  std::size_t workspace_size_ = 0;
};

template <class T>
class CaseMemoryOf : public CaseMemory {
 public:
  CaseMemoryOf(const Lane& lane, const FuzzData<T>& data)
      : CaseMemory(lane, data.test().memory == "device"), data_(data) {
    a_ = append(data.a().bytes.data(), data.a().bytes.size());
    b_ = append(data.b().bytes.data(), data.b().bytes.size());
    c_ = append(data.c().bytes.data(), data.c().bytes.size());
    const T alpha = data.alpha(), beta = data.beta();
    alpha_ = append(&alpha, sizeof alpha);
    beta_ = append(&beta, sizeof beta);
    pointers_a_ = append_pointers(a_, data.a().place);
    pointers_b_ = append_pointers(b_, data.b().place);
    pointers_c_ = append_pointers(c_, data.c().place);
    put();
  }

  void* a() const { return base() + (by_pointers() ? pointers_a_ : first(a_, data_.a())); }
  void* b() const { return base() + (by_pointers() ? pointers_b_ : first(b_, data_.b())); }
  void* c() const { return base() + (by_pointers() ? pointers_c_ : first(c_, data_.c())); }
  void* first_a() const { return base() + first(a_, data_.a()); }
  void* first_b() const { return base() + first(b_, data_.b()); }
  void* alpha() const { return base() + alpha_; }
  void* beta() const { return base() + beta_; }
  const std::byte* c_image() const { return after_.data() + c_; }

  // FNV-1a of C's image.
  std::uint64_t hash_of_c() const {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (std::size_t i = 0; i < data_.c().bytes.size(); ++i)
      hash = (hash ^ static_cast<std::uint64_t>(after_[c_ + i])) * 0x100000001b3U;
    return hash;
  }

  // Says which byte of A, B, the scalars or the pointers was written to; "" if none was. The judge checks C's
  // image.
  std::string damage() const {
    const std::size_t end_of_c = c_ + data_.c().bytes.size();
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (i == c_) i = end_of_c;
      if (i >= before_.size() || before_[i] == after_[i]) continue;
      const auto written_byte = [&](const char* name, std::size_t begin) {
        return "byte " + std::to_string(i - begin) + " of " + name + " was written";
      };
      if (i < b_) return written_byte("A's image", a_);
      if (i < c_) return written_byte("B's image", b_);
      return written_byte("scalars and pointers", alpha_);
    }
    return "";
  }

  // Makes a mistake on purpose in what was read back, to test that it is found.
  void sabotage(const std::string& how) {
    sabotaged_workspace_ = how == "workspace";
    if (how == "padding") after_[c_] ^= std::byte{1};
    if (how == "operand") after_[first(a_, data_.a()) - 1] ^= std::byte{1};
    if (how == "element") spoil(0);
    if (how == "inner")
      spoil(data_.test().m / 2 * data_.c().place.row_stride +
            data_.test().n / 2 * data_.c().place.column_stride);
  }

 private:
  // Flips the leading bit of the fraction of an element's first part, if C has elements.
  void spoil(std::int64_t element) {
    constexpr std::size_t part = sizeof(PartOf<T>);
    if (data_.test().m == 0 || data_.test().n == 0 || data_.test().batch == 0) return;
    const std::size_t offset = first(c_, data_.c()) + static_cast<std::size_t>(element) * sizeof(T);
    after_[offset + part - 2] ^= std::byte{part == 4 ? 0x40 : 0x08};
  }

  bool by_pointers() const { return data_.test().batches == "pointers"; }
  static std::size_t first(std::size_t image, const Image& operand) { return image + operand.place.first; }

  std::size_t append(const void* bytes, std::size_t count) {
    const auto offset =
        static_cast<std::size_t>(core::round_up(static_cast<std::int64_t>(before_.size()), 256));
    before_.resize(offset + count, guard_byte);
    std::memcpy(before_.data() + offset, bytes, count);
    if (before_.size() > Lane::matrix_bytes)
      throw std::length_error("the case is larger than a lane's memory");
    return offset;
  }

  std::size_t append_pointers(std::size_t image, const Placement& place) {
    std::vector<std::byte*> pointers;
    for (std::int64_t item = 0; item < data_.test().batch; ++item)
      pointers.push_back(base() + image + place.offset(item, sizeof(T)));
    return append(pointers.data(), pointers.size() * sizeof(std::byte*));
  }

  const FuzzData<T>& data_;
  std::size_t a_ = 0, b_ = 0, c_ = 0, alpha_ = 0, beta_ = 0;
  std::size_t pointers_a_ = 0, pointers_b_ = 0, pointers_c_ = 0;
};

}  // namespace kintsugi::test
