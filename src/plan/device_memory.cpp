#include "plan/device_memory.hpp"

#include <algorithm>
#include <utility>

#include "base/status.hpp"

namespace kintsugi::core {

DeviceBlock::DeviceBlock(const Plan& plan, const Queue& queue, std::size_t bytes)
    : allocator_(plan.allocator), engine_(plan.engine->device()), queue_(queue), bytes_(bytes) {
  if (bytes == 0) return;
  pointer_ = allocator_.allocate != nullptr ? allocator_.allocate(allocator_.user, bytes, workspace_alignment)
                                            : engine_->allocate(queue, bytes);
}

DeviceBlock::DeviceBlock(DeviceBlock&& other) noexcept
    : allocator_(other.allocator_), engine_(other.engine_), queue_(other.queue_),
      pointer_(std::exchange(other.pointer_, nullptr)), bytes_(other.bytes_) {}

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(engine_, other.engine_);
  std::swap(queue_, other.queue_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBlock::~DeviceBlock() {
  if (pointer_ == nullptr) return;
  if (allocator_.allocate != nullptr) {
    allocator_.deallocate(allocator_.user, pointer_, bytes_);
  } else {
    engine_->deallocate(queue_, pointer_);
  }
}

void DeviceBlock::wait_before_freeing() { queue_ = {}; }

DeviceBlock allocate_on_device(const Plan& plan, std::size_t bytes, const char* what) {
  DeviceBlock block(plan, plan.queue, bytes);
  if (block.pointer() == nullptr && bytes > 0)
    fail(Status::out_of_memory, "the device's allocator has no {} bytes for {}", bytes, what);
  return block;
}

std::shared_ptr<DeviceReport> make_device_report(const Engine& engine) {
  const DeviceEngine& device = *engine.device();
  device.prepare();
  auto* report = reinterpret_cast<DeviceReport*>(device.allocate({}, aligned_size(sizeof(DeviceReport))));
  if (report == nullptr)
    fail(Status::out_of_memory, "the device has no {} bytes for a report",
         aligned_size(sizeof(DeviceReport)));
  device.clear({}, report, sizeof(DeviceReport));
  device.synchronize(Queue{});
  return {report, [&device](DeviceReport* pointer) {
            device.synchronize_quietly();
            device.deallocate({}, pointer);
          }};
}

namespace {

// As the host's report has it: a program that is not the planned one.
void report_fit(const ResidualFit& fit, Report& report) {
  const Rung& rung = report.rungs.front();
  if (rung.scheme == nullptr || !rung.scheme->fits_residuals()) return;
  Program program = rung.program;
  program.set_residual_fit(fit, rung.scheme->fitted_groups);
  if (program.split_a == rung.program.split_a) return;
  report.adapted.scheme = rung.scheme;
  report.adapted.accumulator = rung.accumulator;
  report.adapted.program = program;
}

// Blocks and their slices, and the program with so many: what the bound needs to know.
void report_slices(const DeviceSliceCounts& found, Report& report) {
  ErrorFreeCounts& counts = report.error_free;
  counts.blocks += found.blocks;
  counts.slices_a += found.slices_a;
  counts.slices_b += found.slices_b;
  counts.products += found.products;
  counts.fast_blocks += found.fast_blocks;
  counts.least_slices =
      std::min(counts.least_slices, ErrorFree::most_slices - found.fewest_slices_below_most);
  counts.most_products = std::max(counts.most_products, found.most_products);
  const Rung& rung = report.rungs.front();
  if (rung.scheme == nullptr) return;
  Program program = rung.program;
  program.error_free.least_slices = counts.least_slices;
  program.error_free.most_products = counts.most_products;
  program.split_a.slices = program.split_b.slices = counts.least_slices;
  report.adapted.scheme = rung.scheme;
  report.adapted.accumulator = rung.accumulator;
  report.adapted.program = program;
}

}  // namespace

void read_device_report(const Engine& engine, const DeviceReport* device, Report& report) {
  DeviceReport found;
  engine.device()->synchronize();
  engine.device()->copy_to_host({}, &found, device, sizeof found);
  engine.device()->synchronize(Queue{});
  static_assert(DeviceReport::most_rungs <= Plan::most_rungs);
  for (std::size_t r = 0; r < DeviceReport::most_rungs; ++r) report.entries[r] += found.entries[r];
  report.entries_scaled += found.scaled;
  report.entries_unreachable += found.unreachable;
  report.entries_with_special_values += found.special;
  report.mended_entries += found.mended;
  report.ranges_known = std::any_of(report.rungs.begin(), report.rungs.end(),
                                    [](const Rung& rung) { return rung.scheme != nullptr; });
  report.largest_span_a = found.largest_span_a;
  report.largest_span_b = found.largest_span_b;
  if (found.fitted > 0) report_fit(found.fit, report);
  if (found.slices.blocks > 0) report_slices(found.slices, report);
}

}  // namespace kintsugi::core
