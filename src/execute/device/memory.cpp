#include "execute/device/memory.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "base/status.hpp"
#include "base/threads.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/steps.hpp"
#include "engines/cuda/transfers.hpp"
#include "planner/steps.hpp"

namespace kintsugi::core {

DeviceBuffer::DeviceBuffer(const Plan& plan, const Queue& queue, std::size_t bytes, std::size_t graph_limit)
    : allocator_(plan.allocator), engine_(plan.engine), queue_(queue), bytes_(bytes) {
  if (bytes == 0) return;
  context_ = cuda::current_context();
  pointer_ = allocator_.allocate != nullptr ? allocator_.allocate(allocator_.user, bytes, workspace_alignment)
                                            : cuda::allocate(queue, bytes, graph_limit);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : allocator_(other.allocator_), engine_(other.engine_), context_(other.context_), queue_(other.queue_),
      pointer_(std::exchange(other.pointer_, nullptr)), bytes_(other.bytes_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(engine_, other.engine_);
  std::swap(context_, other.context_);
  std::swap(queue_, other.queue_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void DeviceBuffer::free() noexcept {
  const cuda::ContextScope scope(context_);
  if (allocator_.allocate != nullptr) {
    allocator_.deallocate(allocator_.user, pointer_, bytes_);
  } else if (scope.entered()) {  // If it is false, the memory was freed together with its context.
    cuda::deallocate(queue_, pointer_);
  }
}

void DeviceBuffer::forget_queue() { queue_ = {}; }

void release_device_caches() noexcept {
  cuda::release_kept_transfers();
  release_kept_operands();
  cuda::release_kept_memory();
}

DeviceBuffer allocate_on_device(const Plan& plan, std::size_t bytes, const char* what) {
  DeviceBuffer buffer(plan, plan.queue, bytes);
  if (buffer.pointer() == nullptr && bytes > 0)
    fail(Status::out_of_memory, "the device's allocator has no {} bytes for {}", bytes, what);
  return buffer;
}

namespace {

// Reports the program with the exponents of residuals that the device chose, if they differ from the plan's.
void report_fit(const Plan& plan, const ResidualFit& fit, Report& report) {
  const Candidate& candidate = plan.candidates.front();
  if (candidate.scheme == nullptr || !candidate.scheme->fits_residuals()) return;
  Program program = candidate.program;
  program.set_residual_fit(fit, candidate.scheme->fitted_groups);
  if (program.split_a == candidate.program.split_a) return;
  report.set_adapted(candidate, program, plan.problem.products());
}

// Reports the numbers of blocks and slices, and the program with the fewest slices, which decides the bound.
void report_slices(const Plan& plan, const DeviceSliceCounts& found, Report& report) {
  Ozaki1Counts& counts = report.ozaki1;
  counts.blocks += found.blocks;
  counts.slices_a += found.slices_a;
  counts.slices_b += found.slices_b;
  counts.products += found.products;
  counts.fast_blocks += found.fast_blocks;
  counts.min_slices =
      std::min(counts.min_slices, Ozaki1Parameters::max_slices - found.fewest_slices_below_most);
  counts.max_products = std::max(counts.max_products, found.max_products);
  const Candidate& candidate = plan.candidates.front();
  if (candidate.scheme == nullptr) return;
  Program program = candidate.program;
  program.ozaki1.min_slices = counts.min_slices;
  program.ozaki1.max_products = counts.max_products;
  program.split_a.slices = program.split_b.slices = counts.min_slices;
  report.set_adapted(candidate, program, plan.problem.products());
}

}  // namespace

void read_device_report(const Plan& plan, const DeviceReport* device, Report& report) {
  LongDeviceReport all;
  cuda::synchronize();
  cuda::copy_to_host({}, &all, device, sizeof all);
  cuda::synchronize(Queue{});
  const DeviceReport& found = all.report;
  static_assert(LongDeviceReport::max_candidates <= Plan::max_candidates);
  // Selections from shorter chains neither write nor clear the later counts.
  const std::size_t counted =
      has_long_chain(plan) ? LongDeviceReport::max_candidates : DeviceReport::max_candidates;
  for (std::size_t c = 0; c < counted; ++c) report.items[c] += all.items(c);
  report.items_scaled += found.scaled;
  report.items_unreachable += found.unreachable;
  report.items_with_special_values += found.special;
  report.recomputed_elements += found.recomputed;
  report.ranges_known = std::any_of(plan.candidates.begin(), plan.candidates.end(),
                                    [](const Candidate& candidate) { return candidate.scheme != nullptr; });
  report.dynamic_range_a = found.dynamic_range_a;
  report.dynamic_range_b = found.dynamic_range_b;
  report.tiles_a += found.tiles_a;
  report.tiles_b += found.tiles_b;
  if (found.fitted > 0) report_fit(plan, found.fit, report);
  if (found.slices.blocks > 0) report_slices(plan, found.slices, report);
}

namespace {

// Device memory of reports whose handles were destroyed. Later handles use it again.
class SpareReports {
 public:
  void keep(const DeviceContext& context, DeviceReport* memory) noexcept try {
    const std::lock_guard lock(mutex_);
    spare_.emplace_back(context, memory);
  } catch (...) {  // No host memory for the list: a few bytes of device memory are lost.
  }

  // Returns memory in the context; nullptr if there is none. Drops memory of contexts that were destroyed.
  DeviceReport* take(const DeviceContext& context) {
    const std::lock_guard lock(mutex_);
    std::erase_if(spare_, [&](const Spare& spare) { return !cuda::ContextScope(spare.first).entered(); });
    const auto found = std::ranges::find(spare_, context, &Spare::first);
    if (found == spare_.end()) return nullptr;
    DeviceReport* memory = found->second;
    spare_.erase(found);
    return memory;
  }

 private:
  using Spare = std::pair<DeviceContext, DeviceReport*>;

  std::mutex mutex_;
  std::vector<Spare> spare_;
};

// Never destroyed, since a handle may be destroyed after static objects were destroyed.
SpareReports& spare_reports() {
  static auto* instance = new SpareReports;
  return *instance;
}

DeviceReport* allocate_report() {
  constexpr std::size_t bytes = aligned_size(sizeof(LongDeviceReport));
  auto* memory = reinterpret_cast<DeviceReport*>(cuda::allocate({}, bytes, 0));
  if (memory == nullptr) fail(Status::out_of_memory, "the device has no {} bytes for a report", bytes);
  return memory;
}

}  // namespace

// Waits for the device before the memory is cleared, since queued work of a previous handle may still write
// to it.
DeviceReportMemory::DeviceReportMemory()
    : context_(cuda::current_context()), memory_(spare_reports().take(context_)) {
  cuda::synchronize();
  if (memory_ == nullptr) memory_ = allocate_report();
  cuda::clear({}, memory_, sizeof(LongDeviceReport));
  cuda::synchronize(Queue{});
}

DeviceReportMemory::~DeviceReportMemory() { spare_reports().keep(context_, memory_); }

void DeviceReportMemory::read(Report& report) const {
  const cuda::ContextScope scope(context_);
  if (!scope.entered()) {
    fail(Status::device_error,
         "the context of {} that the last execution ran in is gone, and with it its report",
         cuda::text_of_device(context_.device));
  }
  read_device_report(*report.plan, memory_, report);
}

std::shared_ptr<const DeviceReportMemory> DeviceReports::of_caller(const Queue& queue) {
  const DeviceContext current = cuda::current_context();
  const auto found =
      std::ranges::find(reports_, current, [](const auto& report) { return report->context(); });
  if (found != reports_.end()) return *found;
  if (cuda::is_captured(queue)) {
    fail(Status::invalid_argument,
         "the stream is being captured, and the handle has no report for {} yet, which would be allocated: "
         "make the plan with this handle, before the capture",
         cuda::text_of_device(current.device));
  }
  std::erase_if(reports_,
                [&](const auto& report) { return !cuda::ContextScope(report->context()).entered(); });
  return reports_.emplace_back(std::make_shared<DeviceReportMemory>());
}

// ---------------------------------------------------------------- operands kept for later calls

namespace {

struct KeptOperands {
  std::mutex mutex;
  std::list<KeptOperand> operands;
};

// Never destroyed, since a call may be made after static objects were.
KeptOperands& kept_operands() {
  static auto* instance = new KeptOperands;
  return *instance;
}

// Moves an operand out of the list, whose mutex is locked.
std::list<KeptOperand> extract(std::list<KeptOperand>& operands, const KeptOperandKey& key) {
  std::list<KeptOperand> extracted;
  const auto found = std::ranges::find(operands, key, &KeptOperand::key);
  if (found != operands.end()) extracted.splice(extracted.end(), operands, found);
  return extracted;
}

}  // namespace

std::optional<KeptOperand> take_kept_operand(const KeptOperandKey& key) {
  KeptOperands& kept = kept_operands();
  const std::lock_guard lock(kept.mutex);
  std::list<KeptOperand> found = extract(kept.operands, key);
  if (found.empty()) return {};
  return std::move(found.front());
}

void keep_operand(KeptOperand operand) {
  operand.memory.forget_queue();
  KeptOperands& kept = kept_operands();
  std::list<KeptOperand> older;  // freed without the lock
  const std::lock_guard lock(kept.mutex);
  older = extract(kept.operands, operand.key);
  kept.operands.push_back(std::move(operand));
}

// In a forked child another thread of the parent may have locked the mutex, and the driver frees nothing.
bool release_kept_operands() noexcept {
  if (fork_depth() > 0) return false;
  KeptOperands& kept = kept_operands();
  std::list<KeptOperand> released;
  const std::lock_guard lock(kept.mutex);
  released.swap(kept.operands);
  return !released.empty();
}

}  // namespace kintsugi::core
