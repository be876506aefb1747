#include "execute/device/offload/on_device.hpp"

#include <algorithm>
#include <utility>

#include "base/memory.hpp"
#include "engines/device_transfers.hpp"
#include "execute/device/matrix.hpp"
#include "planner/offload/offload.hpp"

namespace kintsugi::core {

namespace {

// Returns the operand's memory without const, since copies in both directions use the same type. The operand
// is only read.
std::byte* bytes_of(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

// Returns the description of a strip in device memory for this host matrix, without the strip's address.
StoredMatrix strip_of(const StoredMatrix& host, std::int64_t rows, std::int64_t columns) {
  return {nullptr, strip_pitch(host.rows_are_lines ? columns : rows), host.rows_are_lines,
          host.element_bytes};
}

void synchronize_quietly(const DeviceEngine& device, const Queue& queue) {
  try {
    device.synchronize(queue);
  } catch (const Error&) {  // An earlier call has caused and reported this error.
  }
}

constexpr std::size_t report_bytes = aligned_size(sizeof(DeviceReport));

}  // namespace

HostMatrices host_matrices(const Problem& problem, const Operands& operands) {
  const OperandStorage a = operand_storage(problem, Side::a);
  const OperandStorage b = operand_storage(problem, Side::b);
  const std::size_t bytes = problem.element_bytes();
  return {.a = {bytes_of(operands.a), a.ld, a.along_k, bytes},
          .b = {bytes_of(operands.b), b.ld, b.along_k, bytes},
          .c = {bytes_of(operands.c), problem.ldc, problem.layout == Layout::row_major, bytes}};
}

OffloadPipeline::OnDevice::OnDevice(const Plan& plan, const Operands& operands, const OffloadLayout& layout,
                                    const std::vector<OffloadStep>& steps, std::size_t max_bytes,
                                    const CopyThreads& threads)
    : plan_(plan), operands_(operands), device_(*plan.engine->device()), transfers_(*device_.transfers()),
      host_(host_matrices(plan.problem, operands)), to_device_(transfers_, *plan.engine->contexts()),
      products_(transfers_, *plan.engine->contexts()), to_host_(transfers_, *plan.engine->contexts()) {
  device_.prepare();
  const auto strips = [](const StoredMatrix& host, int count, std::int64_t rows, std::int64_t columns) {
    return std::vector<StoredMatrix>(static_cast<std::size_t>(count), strip_of(host, rows, columns));
  };
  strips_a_ = strips(host_.a, layout.strips_a, layout.rows, layout.inner);
  strips_b_ = strips(host_.b, layout.strips_b, layout.columns, layout.inner);
  strips_c_ = strips(host_.c, layout.strips_c, layout.rows, layout.columns);
  readers_a_.resize(strips_a_.size());
  readers_b_.resize(strips_b_.size());
  results_.resize(strips_c_.size());
  make_plans(steps, layout, max_bytes);
  lay_out(layout, steps.size());
  const DeviceContexts& contexts = *plan.engine->contexts();
  const DeviceContext context = contexts.current();
  uploads_.emplace(transfers_, contexts, context, to_device_.get(), CopyDirection::to_device,
                   threads.to_device);
  downloads_.emplace(transfers_, contexts, context, to_host_.get(), CopyDirection::to_host, threads.to_host);
}

OffloadPipeline::OnDevice::~OnDevice() {
  uploads_.reset();
  downloads_.reset();
  for (const OwnedQueue* queue : {&to_device_, &products_, &to_host_})
    synchronize_quietly(device_, queue->get());
}

Problem OffloadPipeline::OnDevice::problem_of(const OffloadStep& step) const {
  Problem problem = plan_.problem;
  problem.memory = MemorySpace::device;
  problem.m = step.rows.count;
  problem.n = step.columns.count;
  problem.k = step.inner.count;
  problem.lda = strips_a_.front().ld;
  problem.ldb = strips_b_.front().ld;
  problem.ldc = strips_c_.front().ld;
  return problem;
}

// Steps with all inner indices have the candidates of the call's plan, whatever their shape. C then has the
// bits of one product.
void OffloadPipeline::OnDevice::make_plans(const std::vector<OffloadStep>& steps, const OffloadLayout& layout,
                                           std::size_t max_bytes) {
  const std::size_t other_bytes = strip_bytes(plan_.problem, layout) + steps.size() * report_bytes;
  const std::size_t limit = plan_.request.workspace_limit;
  std::size_t max_workspace = max_bytes > other_bytes ? max_bytes - other_bytes : 1;
  if (limit > 0) max_workspace = std::min(max_workspace, limit);
  const DeviceContext context = plan_.engine->contexts()->current();
  for (const OffloadStep& step : steps) {
    if (!step.multiplies()) continue;
    const Problem problem = problem_of(step);
    const Shape shape{problem.m, problem.n, problem.k};
    if (plans_.contains(shape)) continue;
    if (!plans_by_inner_.contains(problem.k))
      plans_by_inner_.emplace(problem.k,
                              problem.k == plan_.problem.k ? plan_ : plan_of_inner_indices(plan_, problem.k));
    Plan made = plan_of_step(plans_by_inner_.at(problem.k), problem, max_workspace);
    made.context = context;
    workspace_bytes_ = std::max(workspace_bytes_, made.workspace_bytes);
    plans_.emplace(shape, std::move(made));
  }
}

void OffloadPipeline::OnDevice::lay_out(const OffloadLayout& layout, std::size_t steps) {
  const std::size_t bytes =
      strip_bytes(plan_.problem, layout) + aligned_size(workspace_bytes_) + steps * report_bytes;
  memory_ = DeviceBuffer(plans_.begin()->second, products_.get(), bytes);
  if (memory_.pointer() == nullptr)
    fail(Status::out_of_memory, "the device has no {} bytes for strips of {} x {} elements of C", bytes,
         layout.rows, layout.columns);
  Workspace memory(memory_.pointer(), memory_.bytes());
  const auto take = [&](std::vector<StoredMatrix>& strips, std::int64_t rows, std::int64_t columns) {
    for (StoredMatrix& strip : strips)
      strip.data = memory.take(array_bytes(strip_pitch(rows), strip_pitch(columns), strip.element_bytes));
  };
  take(strips_a_, layout.rows, layout.inner);
  take(strips_b_, layout.columns, layout.inner);
  take(strips_c_, layout.rows, layout.columns);
  workspace_ = memory.take(workspace_bytes_);
  reports_ = memory.take(steps * report_bytes);
  // The memory is there when the queue of products has allocated it.
  const OwnedEvent& allocated = events_.emplace_back(transfers_);
  allocated.record(products_.get());
  allocated.make_wait(to_device_.get());
}

void OffloadPipeline::OnDevice::add_load(CopyGroup group, const void* host) {
  group.is_pinned = transfers_.is_pinned(host);
  for (const CopyPiece& piece : group.pieces) uploaded_bytes_ += static_cast<std::int64_t>(piece.bytes());
  uploads_->add(loads_.emplace_back(std::move(group)));
}

void OffloadPipeline::OnDevice::begin_loads(const OffloadStep& step) {
  for (const OffloadLoad& load : step.loads) {
    const bool is_a = load.side == Side::a;
    const auto strip = static_cast<std::size_t>(load.strip);
    const OwnedEvent* reader = (is_a ? readers_a_ : readers_b_)[strip];
    if (load.replaces && reader != nullptr) {
      // The queue waits below for a product that may need earlier copies. These copies must be in the queue
      // before.
      for (CopyGroup& group : loads_) uploads_->wait_for(group);
      reader->make_wait(to_device_.get());
    }
    const StoredMatrix& host = is_a ? host_.a : host_.b;
    add_load({.pieces = cut_into_pieces(host, load.vectors, load.inner, (is_a ? strips_a_ : strips_b_)[strip],
                                        load.position, 0, PinnedChunk::bytes)},
             host.data);
  }
}

void OffloadPipeline::OnDevice::begin_result_load(const OffloadStep& step) {
  if (!step.multiplies() || !step.is_first || operands_.beta.is_zero()) return;
  const auto strip = static_cast<std::size_t>(step.strip_c);
  if (step.begins_strip && results_[strip] != nullptr) downloads_->wait_for(*results_[strip]);
  add_load({.pieces = cut_into_pieces(host_.c, step.rows, step.columns, strips_c_[strip], step.row,
                                      step.column, PinnedChunk::bytes)},
           host_.c.data);
}

void OffloadPipeline::OnDevice::finish_loads() {
  for (CopyGroup& group : loads_) uploads_->wait_for(group);
  loads_.clear();
  const OwnedEvent& loaded = events_.emplace_back(transfers_);
  loaded.record(to_device_.get());
  loaded.make_wait(products_.get());
}

void OffloadPipeline::OnDevice::multiply(const OffloadStep& step) {
  const auto a = static_cast<std::size_t>(step.strip_a);
  const auto b = static_cast<std::size_t>(step.strip_b);
  const auto c = static_cast<std::size_t>(step.strip_c);
  if (step.begins_strip && results_[c] != nullptr) downloads_->wait_for(*results_[c]);
  const Problem problem = problem_of(step);
  const Plan& plan = plans_.at({problem.m, problem.n, problem.k});
  auto* found = reinterpret_cast<DeviceReport*>(reports_ + made_.size() * report_bytes);
  Product& product = made_.emplace_back(Product{&plan, found, {}});
  Operands operands = operands_;
  if (!step.is_first) operands.beta = 1;
  operands.a = strips_a_[a].at(step.row, 0);
  operands.b = strips_b_[b].at(step.column, 0);
  operands.c = strips_c_[c].at(step.row, step.column);
  operands.workspace = workspace_bytes_ > 0 ? workspace_ : nullptr;
  operands.workspace_size = workspace_bytes_;
  operands.queue = products_.get();
  operands.device_report = found;
  execute(plan, operands, product.report);
  const OwnedEvent& multiplied = events_.emplace_back(transfers_);
  multiplied.record(products_.get());
  readers_a_[a] = readers_b_[b] = &multiplied;
}

void OffloadPipeline::OnDevice::store(const OffloadStep& step, CopyGroup& result) {
  const auto strip = static_cast<std::size_t>(step.strip_c);
  result.pieces = cut_into_pieces(host_.c, step.rows, step.columns, strips_c_[strip], step.row, step.column,
                                  PinnedChunk::bytes);
  result.is_pinned = transfers_.is_pinned(host_.c.data);
  for (const CopyPiece& piece : result.pieces) downloaded_bytes_ += static_cast<std::int64_t>(piece.bytes());
  events_.back().make_wait(to_host_.get());  // recorded after the product
  downloads_->add(result);
  results_[strip] = &result;
}

bool OffloadPipeline::OnDevice::overwrites(const OffloadStep& next, const OffloadStep& step) {
  return std::ranges::any_of(next.loads, [&](const OffloadLoad& load) {
    return load.replaces && load.strip == (load.side == Side::a ? step.strip_a : step.strip_b);
  });
}

void OffloadPipeline::OnDevice::add_to_report(Report& report) const {
  for (const Product& product : made_) {
    Report found = product.report;
    found.plan = nullptr;
    read_device_report(*product.plan, product.found, found);
    for (std::size_t r = 0; r < report.items.size(); ++r) report.items[r] += found.items[r];
    report.items_with_special_values += found.items_with_special_values;
    report.recomputed_elements += found.recomputed_elements;
    report.ranges_known = found.ranges_known;
    report.dynamic_range_a = std::max(report.dynamic_range_a, found.dynamic_range_a);
    report.dynamic_range_b = std::max(report.dynamic_range_b, found.dynamic_range_b);
    report.blocking = found.blocking;
    if (found.adapted) report.adapted = found.adapted;
  }
  OffloadReport& offload = report.offload.emplace();
  offload.devices = 1;
  offload.products = static_cast<std::int64_t>(made_.size());
  offload.uploaded_bytes = uploaded_bytes_;
  offload.downloaded_bytes = downloaded_bytes_;
  offload.device_bytes = static_cast<std::int64_t>(memory_.bytes());
}

}  // namespace kintsugi::core
