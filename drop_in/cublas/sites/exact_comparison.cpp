#include "exact_comparison.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "common/accuracy.hpp"
#include "common/sites/call_errors.hpp"
#include "common/sites/rules.hpp"
#include "cublas/device/driver.hpp"
#include "cublas/record/record.hpp"
#include "cublas/settings.hpp"
#include "site.hpp"

namespace kintsugi::cublas {

namespace {

bool is_measurable(const Origin& origin, const Call& call, const CallState& state) {
  return call.site != nullptr && settings().sites->error_samples > 0 && records_calls() && !is_empty(call) &&
         call.batch != BatchKind::pointers && origin.computes_product(*call.type) &&
         !is_captured(state.stream);
}

std::size_t element_bytes(kintsugi_type type) {
  return (drop_in::is_single(type) ? std::size_t{4} : std::size_t{8}) *
         (drop_in::is_complex(type) ? std::size_t{2} : std::size_t{1});
}

// Columns of a matrix in device memory.
DeviceRows columns_of(const Call& call, void* c, std::int64_t ld, std::int64_t first, std::int64_t count) {
  const std::size_t bytes = element_bytes(*call.type);
  const std::size_t pitch = static_cast<std::size_t>(ld) * bytes;
  return {.first = static_cast<char*>(c) + static_cast<std::size_t>(first) * pitch,
          .pitch = pitch,
          .bytes = static_cast<std::size_t>(call.m) * bytes,
          .count = static_cast<std::size_t>(count)};
}

// Adds the elements of both matrices, which are copied to the host in pieces. Returns false if the driver
// refuses.
bool add_on_host(const Call& call, void* exact, void* stream, drop_in::CallNorms& norms) {
  constexpr std::size_t piece_bytes = std::size_t{1} << 25;
  const std::size_t line = static_cast<std::size_t>(call.m) * element_bytes(*call.type);
  const auto columns = std::clamp<std::int64_t>(static_cast<std::int64_t>(piece_bytes / line), 1, call.n);
  std::vector<char> one(static_cast<std::size_t>(columns) * line), other(one.size());
  for (std::int64_t first = 0; first < call.n; first += columns) {
    const std::int64_t count = std::min(columns, call.n - first);
    if (!copy_to_host(columns_of(call, call.c, call.ldc, first, count), one.data(), stream) ||
        !copy_to_host(columns_of(call, exact, call.m, first, count), other.data(), stream) ||
        !synchronize(stream))
      return false;
    drop_in::add_elements(norms, *call.type, one.data(), other.data(), count * call.m);
  }
  return true;
}

}  // namespace

ExactComparison::ExactComparison(const Origin& origin, const Call& call, const CallState& state)
    : call_(call), state_(state) {
  if (!is_measurable(origin, call, state)) return;
  const std::int64_t number = number_of_sample(*call.site);
  if (number < 0) return;
  const DeviceRows c = columns_of(call, call.c, call.ldc, 0, call.n);
  c_.emplace(state.device, c.bytes * c.count, state.stream);
  if (c_->pointer() != nullptr && copy_on_device(c, c_->pointer(), state.stream)) number_ = number;
}

bool ExactComparison::compute_exactly() const {
  Call exact = call_;
  exact.site = drop_in::exact_site<Site>();
  exact.batch = BatchKind::single;
  exact.count = 1;
  exact.stride_a = exact.stride_b = exact.stride_c = 0;
  exact.c = c_->pointer();
  exact.ldc = call_.m;
  const DecisionPointer decision = decide(exact, state_);
  return decision->emulates && emulate(*decision, exact, state_).empty();
}

void ExactComparison::finish(int status) const noexcept try {
  if (number_ < 0 || status != success || !compute_exactly()) return;
  drop_in::CallNorms norms;
  if (add_on_host(call_, c_->pointer(), state_.stream, norms)) record_error(*call_.site, number_, norms);
} catch (const std::exception&) {  // No memory: the site lacks this call's error.
}

}  // namespace kintsugi::cublas
