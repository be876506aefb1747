#include "bench/device.hpp"

#include <algorithm>

#include "bench/contestant.hpp"
#include "tools/measure/probes/probe_kernels.hpp"

namespace kintsugi::tools {

namespace {

// Returns the size rounded up, so that every set is aligned for all kernels.
std::size_t aligned_bytes(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

// Returns the number of sets. All sets together have twice the size of the cache, so that the lines of a set
// are evicted before its next use. More than `max_sets` sets would not fit in one graph.
int sets_for(std::size_t set_bytes, std::int64_t cache_bytes) {
  constexpr std::size_t max_sets = 1024;
  const std::size_t wanted = (2 * static_cast<std::size_t>(cache_bytes) + set_bytes - 1) / set_bytes;
  return static_cast<int>(std::clamp<std::size_t>(wanted, 1, max_sets));
}

}  // namespace

void require_device() {
  const Json engines = describe_engines();
  for (const Json& engine : engines.at("engines")) {
    if (engine.at("name") == "cuda" && engine.at("available") == false)
      fail("--memory", "device: the engine cuda cannot be used: {}", cell(engine, "reason"));
  }
  const std::string reason = measure::probes_missing_reason();
  if (!reason.empty()) fail("--memory", "device: {}", reason);
}

BenchDevice::BenchDevice(bool measures_ceilings)
    : facts_(measure::device_facts()), monitor_(facts_.pci_address) {
  if (measures_ceilings) ceilings_ = measure::measure_ceilings(stream_, facts_, monitor_);
}

Json BenchDevice::description() const {
  const measure::DeviceLimits limits = monitor_.limits();
  return {{"name", facts_.name},
          {"compute_capability", fmt::format("{}.{}", facts_.major, facts_.minor)},
          {"driver", fmt::format("{}.{}", facts_.driver_version / 1000, facts_.driver_version % 1000 / 10)},
          {"multiprocessors", facts_.sms},
          {"l2_bytes", facts_.l2_bytes},
          {"power_limit_watts", number_or_null(limits.power_watts)},
          {"clock_limit_mhz", number_or_null(limits.clock_mhz)},
          {"memory_clock_limit_mhz", number_or_null(limits.memory_clock_mhz)}};
}

Json BenchDevice::ceilings() const {
  Json result;
  for (const measure::Ceiling& ceiling : ceilings_) {
    Json& json = result[ceiling.name] = {{"rate", ceiling.rate},
                                         {"lowest", ceiling.lowest},
                                         {"highest", ceiling.highest},
                                         {"way", ceiling.method}};
    json.update(state_document(ceiling.state));
  }
  return result;
}

double BenchDevice::ceiling(const std::string& name) const {
  const auto found = std::find_if(ceilings_.begin(), ceilings_.end(),
                                  [&](const measure::Ceiling& ceiling) { return ceiling.name == name; });
  return found == ceilings_.end() ? 0 : found->rate;
}

Json state_document(const measure::DeviceState& state) {
  return {{"power_watts", number_or_null(state.power_watts)}, {"clock_mhz", number_or_null(state.clock_mhz)}};
}

template <class T>
DeviceOperands<T>::DeviceOperands(const BenchDevice& device, const BenchMatrices<T>& matrices)
    : device_(device), bytes_a_(aligned_bytes(matrices.a.size() * sizeof(T))),
      bytes_b_(aligned_bytes(matrices.b.size() * sizeof(T))),
      bytes_c_(aligned_bytes(matrices.c.size() * sizeof(T))) {
  sets_ = sets_for(set_bytes(), device.facts().l2_bytes);
  memory_ = std::make_unique<measure::DeviceMemory>(static_cast<std::size_t>(sets_) * set_bytes());
  const measure::DeviceStream& stream = device.stream();
  stream.upload(memory_->data(), matrices.a.data(), matrices.a.size() * sizeof(T));
  stream.upload(memory_->data() + bytes_a_, matrices.b.data(), matrices.b.size() * sizeof(T));
  for (int set = 1; set < sets_; ++set)
    stream.copy(memory_->data() + static_cast<std::size_t>(set) * set_bytes(), memory_->data(),
                bytes_a_ + bytes_b_);
  stream.synchronize();
}

template class DeviceOperands<float>;
template class DeviceOperands<double>;

}  // namespace kintsugi::tools
