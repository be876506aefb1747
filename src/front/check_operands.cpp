#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/cuda/cuda_driver.hpp"
#include "front/check.hpp"
#include "front/handles.hpp"
#include "front/read_struct.hpp"

namespace kintsugi::core {

namespace {

static_assert(sizeof(DoubleDouble) == sizeof(kintsugi_dd) && offsetof(kintsugi_dd, lo) == sizeof(double));

CallScalar read_scalar(const Problem& problem, const void* pointer) {
  return with_element_type(problem, [&]<class T>() { return CallScalar(*static_cast<const T*>(pointer)); });
}

kintsugi_operands read_operands(const kintsugi_operands* given) {
  return read_struct(given, kintsugi_operands KINTSUGI_OPERANDS_INIT, "operands");
}

const Prepared* prepared_of(kintsugi_prepared prepared) {
  return prepared == nullptr ? nullptr : &prepared->prepared;
}

std::string text_of(const cuda::PointerLocation& location) {
  if (!location.on_device) return "in host memory";
  if (location.managed) return fmt::format("in managed memory of device {}", location.device);
  if (location.context == nullptr) return fmt::format("on device {}", location.device);
  return fmt::format("on device {} (context {})", location.device, fmt::ptr(location.context));
}

// The matrices that a call reads or writes, and where they lie.
class UsedMatrices {
 public:
  // Adds a matrix or a batch. Null pointers are left out, since check_operands() refuses them where they must
  // not be null. In an array of pointers on the host the first one is looked at, too: it may be a device's.
  void add(const Problem& problem, const char* name, const char* first_name, const void* data) {
    if (data == nullptr) return;
    const cuda::PointerLocation location = add_pointer(name, data);
    if (problem.batch_kind != BatchKind::pointers || location.on_device) return;
    if (const void* first = *static_cast<const void* const*>(data)) add_pointer(first_name, first);
  }

  // Returns the place of all matrices; fails if there is none.
  const cuda::PointerLocation& common_place() const {
    const std::span<const Used> used(used_.data(), count_);
    if (std::all_of(used.begin(), used.end(), [&](const Used& each) { return is_in_place(each.location); }))
      return place_;
    std::string places;
    for (const Used& each : used)
      places += fmt::format("{}{} lies {}", places.empty() ? "" : ", ", each.name, text_of(each.location));
    fail(
        Status::invalid_argument,
        "{}: all of them must be in host memory, or all on one device, in one context; copy what is elsewhere",
        places);
  }

 private:
  struct Used {
    const char* name;
    cuda::PointerLocation location;
  };

  cuda::PointerLocation add_pointer(const char* name, const void* data) {
    const cuda::PointerLocation location = cuda::location_of(data);
    used_[count_++] = {name, location};
    if (rank_of(location) > rank_of(place_)) place_ = location;
    return location;
  }

  // The location of the highest rank is that of the call: managed memory serves every device, and memory of
  // no context every context of its device.
  static int rank_of(const cuda::PointerLocation& location) {
    return !location.on_device ? 0 : location.managed ? 1 : location.context == nullptr ? 2 : 3;
  }
  bool is_in_place(const cuda::PointerLocation& location) const {
    if (location.on_device != place_.on_device) return false;
    if (!location.on_device || location.managed) return true;
    return location.device == place_.device &&
           (location.context == nullptr || location.context == place_.context);
  }

  std::array<Used, 6> used_{};
  std::size_t count_ = 0;
  cuda::PointerLocation place_;
};

// alpha and beta of a product on a device are read on the host, which cannot read the device's memory.
void check_scalar_is_on_host(const void* scalar, const char* name) {
  if (scalar == nullptr) return;
  const cuda::PointerLocation location = cuda::location_of(scalar);
  if (!location.on_device || location.managed) return;
  fail(Status::invalid_argument,
       "{} lies {} and is read on the host: for scalars on a device call kintsugi_gemm with "
       "KINTSUGI_SCALARS_ON_DEVICE",
       name, text_of(location));
}

}  // namespace

std::optional<DevicePlace> find_memory(const kintsugi_operands* operands, Problem& problem) {
  if (!cuda::is_driver_loaded() || problem.m == 0 || problem.n == 0 || problem.batch_count == 0)
    return std::nullopt;
  const kintsugi_operands caller = read_operands(operands);
  UsedMatrices used;
  used.add(problem, "c", "c[0]", caller.c);
  if (used.common_place().on_device) {
    check_scalar_is_on_host(caller.alpha, "alpha");
    check_scalar_is_on_host(caller.beta, "beta");
  }
  if (problem.k != 0 && caller.alpha != nullptr && !read_scalar(problem, caller.alpha).is_zero()) {
    if (caller.prepared_a == nullptr) used.add(problem, "a", "a[0]", caller.a);
    if (caller.prepared_b == nullptr) used.add(problem, "b", "b[0]", caller.b);
  }
  const cuda::PointerLocation& place = used.common_place();
  if (!place.on_device) return std::nullopt;
  problem.memory = MemorySpace::device;
  return DevicePlace{place.device, place.context};
}

void check_data(const Problem& problem, const void* data, const char* name) {
  check_not_null(data, name);
  if (problem.batch_kind != BatchKind::pointers || problem.memory == MemorySpace::device) return;
  const auto* pointers = static_cast<const void* const*>(data);
  for (std::int64_t item = 0; item < problem.batch_count; ++item) {
    if (pointers[item] == nullptr) fail(Status::invalid_argument, "{}[{}] is null", name, item);
  }
}

GivenPrepared given_prepared(const kintsugi_operands* operands) {
  const kintsugi_operands caller = read_operands(operands);
  return {prepared_of(caller.prepared_a), prepared_of(caller.prepared_b)};
}

void set_adds_to_c(const kintsugi_operands* operands, Problem& problem) {
  if (problem.memory != MemorySpace::device || problem.device_scalars) return;
  const kintsugi_operands caller = read_operands(operands);
  if (caller.beta == nullptr || caller.workspace != nullptr) return;
  problem.adds_to_c = !read_scalar(problem, caller.beta).is_zero();
}

Operands check_operands(const Problem& problem, const kintsugi_operands* given) {
  const kintsugi_operands caller = read_operands(given);
  check_not_null(caller.alpha, "alpha");
  check_not_null(caller.beta, "beta");
  Operands operands;
  if (problem.device_scalars) {
    operands.device_alpha = caller.alpha;
    operands.device_beta = caller.beta;
  } else {
    operands.alpha = read_scalar(problem, caller.alpha);
    operands.beta = read_scalar(problem, caller.beta);
  }
  operands.queue = check_queue(caller.queue, "operands.queue");
  check_queue_of(problem, operands.queue);
  operands.a = caller.a;
  operands.b = caller.b;
  operands.c = caller.c;
  operands.prepared_a = prepared_of(caller.prepared_a);
  operands.prepared_b = prepared_of(caller.prepared_b);
  operands.workspace = caller.workspace;
  operands.workspace_size = caller.workspace_size;
  if (caller.workspace == nullptr && caller.workspace_size != 0) {
    fail(Status::invalid_argument, "workspace is null and workspace_size = {}", caller.workspace_size);
  }
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return operands;
  check_data(problem, caller.c, "c");
  if (problem.k == 0 || problem.device_scalars || operands.alpha.is_zero()) return operands;
  if (operands.prepared_a == nullptr) check_data(problem, caller.a, "a");
  if (operands.prepared_b == nullptr) check_data(problem, caller.b, "b");
  return operands;
}

}  // namespace kintsugi::core
