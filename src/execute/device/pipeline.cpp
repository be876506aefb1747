#include "execute/device/pipeline.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/memory.hpp"
#include "base/status.hpp"
#include "base/stopwatch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "execute/device/memory.hpp"
#include "planner/device_call.hpp"
#include "planner/offload.hpp"

namespace kintsugi::core {

namespace {

// Returns the operand's memory without const, since copies in both directions use the same type. The operand
// is only read.
std::byte* bytes_of(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

void synchronize_quietly(const Queue& queue) {
  try {
    cuda::synchronize(queue);
  } catch (const Error&) {  // An earlier call has caused and reported this error.
  }
}

constexpr std::size_t report_bytes = aligned_size(sizeof(LongDeviceReport));

}  // namespace

HostMatrices host_matrices(const Problem& problem, const Operands& operands, std::int64_t item) {
  const OperandStorage a = operand_storage(problem, Side::a);
  const OperandStorage b = operand_storage(problem, Side::b);
  const std::size_t bytes = problem.element_bytes();
  const auto first = [&](const void* data, std::int64_t stride) {
    if (problem.batch_kind == BatchKind::pointers)
      return bytes_of(static_cast<const void* const*>(data)[item]);
    return bytes_of(data) + item * stride * static_cast<std::int64_t>(bytes);
  };
  return {
      .a = {first(operands.a, problem.stride_a), a.ld, a.along_k, bytes},
      .b = {first(operands.b, problem.stride_b), b.ld, b.along_k, bytes},
      .c = {first(operands.c, problem.stride_c), problem.ldc, problem.layout == Layout::row_major, bytes}};
}

OffloadPipeline::OnDevice::OnDevice(const Plan& plan, const Operands& operands, const OffloadPart& part,
                                    const OffloadLayout& layout, const std::vector<OffloadStep>& steps,
                                    std::size_t max_bytes, const CopyThreads& threads)
    : plan_(plan), operands_(operands), layout_(layout) {
  cuda::prepare_device();
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item)
    host_.push_back(host_matrices(plan.problem, operands, item));
  stride_a_ = strip_stride(layout.rows, layout.inner);
  stride_b_ = strip_stride(layout.columns, layout.inner);
  stride_c_ = strip_stride(layout.rows, layout.columns);
  const auto strips = [](cuda::StoredMatrix of_host, int count) {
    of_host.data = nullptr;  // the strips' addresses follow
    return std::vector<cuda::StoredMatrix>(static_cast<std::size_t>(count), of_host);
  };
  strips_a_ = strips(host_.front().a, layout.strips_a);
  strips_b_ = strips(host_.front().b, layout.strips_b);
  strips_c_ = strips(host_.front().c, layout.strips_c);
  readers_a_.resize(strips_a_.size());
  readers_b_.resize(strips_b_.size());
  results_.resize(strips_c_.size());
  make_plans(steps, layout, max_bytes);
  find_kept_operands(part, layout, steps);
  lay_out(layout, steps.size());
  // The memory is there when the queue of products has allocated it.
  const cuda::OwnedEvent& allocated = events_.emplace_back();
  allocated.record(products_.get());
  allocated.make_wait(to_device_.get());
  const DeviceContext context = cuda::current_context();
  uploads_.emplace(context, to_device_.get(), cuda::CopyDirection::to_device, threads.to_device);
  downloads_.emplace(context, to_host_.get(), cuda::CopyDirection::to_host, threads.to_host);
}

OffloadPipeline::OnDevice::~OnDevice() {
  uploads_.reset();
  downloads_.reset();
  for (const cuda::OwnedQueue* queue : {&to_device_, &products_, &to_host_})
    synchronize_quietly(queue->get());
}

Problem OffloadPipeline::OnDevice::problem_of(const OffloadStep& step) const {
  Problem problem = plan_.problem;
  problem.memory = MemorySpace::device;
  problem.m = step.rows.count;
  problem.n = step.columns.count;
  problem.k = step.inner.count;
  problem.lda = matrix_a(step).ld;
  problem.ldb = matrix_b(step).ld;
  problem.ldc = matrix_c(step).ld;
  problem.batch_count = step.items.count;
  problem.batch_kind = BatchKind::strided;
  problem.stride_a = stride_a_;
  problem.stride_b = stride_b_;
  problem.stride_c = stride_c_;
  return problem;
}

cuda::StoredMatrix OffloadPipeline::OnDevice::part_of_operand(const cuda::StoredMatrix& strip,
                                                              std::int64_t position, const Interval& vectors,
                                                              const Interval& inner) const {
  return cuda::stored_in(strip, {position, 0, vectors.count, inner.count}, layout_.inner);
}

cuda::StoredMatrix OffloadPipeline::OnDevice::matrix_a(const OffloadStep& step) const {
  return part_of_operand(strips_a_[static_cast<std::size_t>(step.strip_a)], step.row, step.rows, step.inner);
}
cuda::StoredMatrix OffloadPipeline::OnDevice::matrix_b(const OffloadStep& step) const {
  return part_of_operand(strips_b_[static_cast<std::size_t>(step.strip_b)], step.column, step.columns,
                         step.inner);
}
cuda::StoredMatrix OffloadPipeline::OnDevice::matrix_c(const OffloadStep& step) const {
  const cuda::StoredMatrix& strip = strips_c_[static_cast<std::size_t>(step.strip_c)];
  return cuda::stored_in(strip, {step.row, step.column, step.rows.count, step.columns.count},
                         strip.rows_are_lines ? layout_.columns : layout_.rows);
}

OffloadPipeline::OnDevice::Shape OffloadPipeline::OnDevice::shape_of(const Problem& problem) {
  return {problem.m, problem.n, problem.k, problem.batch_count};
}

// Steps over all inner indices have the candidates of the call's plan, whatever their shape, so that C has
// the bits of one product.
void OffloadPipeline::OnDevice::make_plans(const std::vector<OffloadStep>& steps, const OffloadLayout& layout,
                                           std::size_t max_bytes) {
  const std::size_t other_bytes = strip_bytes(plan_.problem, layout) + steps.size() * report_bytes;
  const std::size_t limit = plan_.request.workspace_limit;
  std::size_t max_workspace = max_bytes > other_bytes ? max_bytes - other_bytes : 1;
  if (limit > 0) max_workspace = std::min(max_workspace, limit);
  const DeviceContext context = cuda::current_context();
  for (const OffloadStep& step : steps) {
    const Problem problem = problem_of(step);
    const Shape shape = shape_of(problem);
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
  OffloadLayout own = layout;  // without kept operands, which have memory of their own
  if (kept_a_) own.strips_a = 0;
  if (kept_b_) own.strips_b = 0;
  const std::size_t bytes =
      strip_bytes(plan_.problem, own) + aligned_size(workspace_bytes_) + steps * report_bytes;
  memory_ = DeviceBuffer(plans_.begin()->second, products_.get(), bytes);
  if (memory_.pointer() == nullptr)
    fail(Status::out_of_memory, "the device has no {} bytes for strips of {} x {} elements of C", bytes,
         layout.rows, layout.columns);
  Workspace memory(memory_.pointer(), memory_.bytes());
  const auto take = [&](std::vector<cuda::StoredMatrix>& strips, std::int64_t rows, std::int64_t columns) {
    for (cuda::StoredMatrix& strip : strips)
      strip.data = memory.take(array_bytes(layout.items, strip_stride(rows, columns), strip.element_bytes));
  };
  if (!kept_a_) take(strips_a_, layout.rows, layout.inner);
  if (!kept_b_) take(strips_b_, layout.columns, layout.inner);
  take(strips_c_, layout.rows, layout.columns);
  workspace_ = memory.take(workspace_bytes_);
  reports_ = memory.take(steps * report_bytes);
}

// Only operands that are on the device as a whole are kept, since each of their elements is copied once.
void OffloadPipeline::OnDevice::find_kept_operands(const OffloadPart& part, const OffloadLayout& layout,
                                                   const std::vector<OffloadStep>& steps) {
  std::int64_t loads_a = 0;
  std::int64_t loads_b = 0;
  for (const OffloadStep& step : steps) {
    for (const OffloadLoad& load : step.loads) ++(load.side == Side::a ? loads_a : loads_b);
  }
  if (plan_.request.keeps_a && layout.strips_a == 1)
    find_kept_operand(Side::a, part.rows, loads_a, strips_a_.front());
  if (plan_.request.keeps_b && layout.strips_b == 1)
    find_kept_operand(Side::b, part.columns, loads_b, strips_b_.front());
}

// If there is no memory for a kept operand, the operand is copied into its strip and is not kept.
void OffloadPipeline::OnDevice::find_kept_operand(Side side, const Interval& vectors, std::int64_t loads,
                                                  cuda::StoredMatrix& strip) {
  const bool is_a = side == Side::a;
  const cuda::StoredMatrix& host = is_a ? host_.front().a : host_.front().b;
  const KeptOperandKey key{.host = host.data,
                           .ld = host.ld,
                           .rows_are_lines = host.rows_are_lines,
                           .element_bytes = host.element_bytes,
                           .vectors = vectors,
                           .inner = plan_.problem.k,
                           .parts = host.rows_are_lines ? 1 : loads,
                           .context = cuda::current_context()};
  std::optional<KeptOperand>& kept = is_a ? kept_a_ : kept_b_;
  kept = take_kept_operand(key);
  (is_a ? has_a_ : has_b_) = kept.has_value();
  if (!kept) {
    const std::size_t bytes = array_bytes(1, strip_stride(key.vectors.count, key.inner), host.element_bytes);
    DeviceBuffer memory(plans_.begin()->second, products_.get(), bytes);
    if (memory.pointer() == nullptr) return;
    kept.emplace(KeptOperand{key, std::move(memory)});
  }
  strip.data = static_cast<std::byte*>(kept->memory.pointer());
}

void OffloadPipeline::OnDevice::keep_operands() {
  if (!kept_a_ && !kept_b_) return;
  cuda::synchronize(products_.get());
  if (kept_a_) keep_operand(std::move(*kept_a_));
  if (kept_b_) keep_operand(std::move(*kept_b_));
  kept_a_.reset();
  kept_b_.reset();
}

cuda::CopyGroup OffloadPipeline::OnDevice::copies(cuda::StoredMatrix HostMatrices::*matrix,
                                                  const Interval& items, const Interval& rows,
                                                  const Interval& columns,
                                                  const cuda::StoredMatrix& on_device) const {
  const std::int64_t stride = matrix == &HostMatrices::a   ? stride_a_
                              : matrix == &HostMatrices::b ? stride_b_
                                                           : stride_c_;
  cuda::CopyGroup group{.is_pinned = true};
  for (std::int64_t item = items.first; item < items.end(); ++item) {
    const cuda::StoredMatrix& host = host_[static_cast<std::size_t>(item)].*matrix;
    const cuda::StoredMatrix device = on_device.after((item - items.first) * stride);
    for (cuda::CopyPiece& piece :
         cuda::cut_into_pieces(host, rows, columns, device, cuda::PinnedChunk::bytes)) {
      piece.item = item;
      group.pieces.push_back(piece);
    }
    group.is_pinned = group.is_pinned && cuda::is_pinned(host.data);
  }
  return group;
}

void OffloadPipeline::OnDevice::add_load(cuda::CopyGroup group, std::size_t step) {
  for (const cuda::CopyPiece& piece : group.pieces)
    uploaded_bytes_ += static_cast<std::int64_t>(piece.bytes());
  uploads_->add(loads_.emplace_back(step, std::move(group)).group);
}

// If a load waits for a product, all operands of that product are in the queue already. The product never
// waits for a copy behind the load.
void OffloadPipeline::OnDevice::begin_loads(const OffloadStep& step, std::size_t number) {
  for (const OffloadLoad& load : step.loads) {
    const bool is_a = load.side == Side::a;
    if (is_a ? has_a_ : has_b_) continue;
    const auto strip = static_cast<std::size_t>(load.strip);
    const cuda::StoredMatrix on_device =
        part_of_operand((is_a ? strips_a_ : strips_b_)[strip], load.position, load.vectors, load.inner);
    cuda::CopyGroup group =
        copies(is_a ? &HostMatrices::a : &HostMatrices::b, load.items, load.vectors, load.inner, on_device);
    if (load.replaces) group.after = (is_a ? readers_a_ : readers_b_)[strip];
    add_load(std::move(group), number);
  }
}

void OffloadPipeline::OnDevice::begin_result_load(const OffloadStep& step, std::size_t number) {
  if (!step.is_first || operands_.beta.is_zero()) return;
  const auto strip = static_cast<std::size_t>(step.strip_c);
  if (step.begins_strip && results_[strip] != nullptr) downloads_->wait_for(*results_[strip]);
  add_load(copies(&HostMatrices::c, step.items, step.rows, step.columns, matrix_c(step)), number);
}

void OffloadPipeline::OnDevice::finish_loads(std::size_t number) {
  for (Load& load : loads_) {
    if (load.step <= number) uploads_->wait_for(load.group);
  }
  std::erase_if(loads_, [&](const Load& load) { return load.step <= number; });
  const cuda::OwnedEvent& loaded = events_.emplace_back();
  loaded.record(to_device_.get());
  loaded.make_wait(products_.get());
}

void OffloadPipeline::OnDevice::multiply(const OffloadStep& step) {
  const auto a = static_cast<std::size_t>(step.strip_a);
  const auto b = static_cast<std::size_t>(step.strip_b);
  const auto c = static_cast<std::size_t>(step.strip_c);
  if (step.begins_strip && results_[c] != nullptr) downloads_->wait_for(*results_[c]);
  const Problem problem = problem_of(step);
  const Plan& plan = plans_.at(shape_of(problem));
  auto* found = reinterpret_cast<DeviceReport*>(reports_ + made_.size() * report_bytes);
  Product& product = made_.emplace_back(Product{&plan, found, {}});
  Operands operands = operands_;
  if (!step.is_first) operands.beta = 1;
  operands.a = matrix_a(step).data;
  operands.b = matrix_b(step).data;
  operands.c = matrix_c(step).data;
  operands.workspace = workspace_bytes_ > 0 ? workspace_ : nullptr;
  operands.workspace_size = workspace_bytes_;
  operands.queue = products_.get();
  operands.device_report = found;
  operands.launches_singly = true;
  execute(plan, operands, product.report);
  const cuda::OwnedEvent& multiplied = events_.emplace_back();
  multiplied.record(products_.get());
  readers_a_[a] = readers_b_[b] = &multiplied;
}

void OffloadPipeline::OnDevice::store(const OffloadStep& step, cuda::CopyGroup& result) {
  const auto strip = static_cast<std::size_t>(step.strip_c);
  result = copies(&HostMatrices::c, step.items, step.rows, step.columns, matrix_c(step));
  for (const cuda::CopyPiece& piece : result.pieces)
    downloaded_bytes_ += static_cast<std::int64_t>(piece.bytes());
  // Not a wait of the queue now: copies of earlier steps that come later would wait for this product too.
  result.after = &events_.back();  // recorded after the product
  downloads_->add(result);
  results_[strip] = &result;
}

bool OffloadPipeline::OnDevice::overwrites(const OffloadStep& next, const OffloadStep& step) {
  return std::ranges::any_of(next.loads, [&](const OffloadLoad& load) {
    return load.replaces && load.strip == (load.side == Side::a ? step.strip_a : step.strip_b);
  });
}

void OffloadPipeline::OnDevice::add_to_report(Report& report, OffloadSeconds& seconds) {
  seconds.uploads = uploads_->end_and_sum_times();
  seconds.downloads = downloads_->end_and_sum_times();
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

namespace {

// Returns the bytes of device memory that a call may use.
std::size_t usable_bytes(const Plan& plan) {
  if (plan.request.offload_memory > 0) return plan.request.offload_memory;
  return cuda::free_memory() / 10 * 9;
}

// Returns the layout whose strips leave a quarter of the memory to workspaces. If the operands do not fit,
// kept operands of earlier calls are freed first.
OffloadLayout layout_for(const Plan& plan, const OffloadPart& part, std::size_t& bytes) {
  const auto fit = [&] { return fit_layout(plan.problem, part, bytes / 4 * 3, may_cut_k(plan)); };
  OffloadLayout layout = fit();
  if ((layout.strips_a != 1 || layout.strips_b != 1) && release_kept_operands()) {
    bytes = usable_bytes(plan);
    layout = fit();
  }
  if (layout.rows == 0)
    fail(Status::out_of_memory, "{} bytes of a device are too few for strips of 128 rows and columns", bytes);
  return layout;
}

}  // namespace

OffloadPipeline::OffloadPipeline(const Plan& plan, const Operands& operands, const OffloadPart& part,
                                 int device, const CopyThreads& threads)
    : plan_(plan), operands_(operands), part_(part), device_(device), threads_(threads) {}

OffloadPipeline::~OffloadPipeline() = default;

void OffloadPipeline::run() {
  const cuda::ContextScope scope(cuda::primary_context(device_));
  if (!scope.entered()) fail(Status::device_error, "the context of device {} is gone", device_);
  std::size_t bytes = usable_bytes(plan_);
  const OffloadLayout layout = layout_for(plan_, part_, bytes);
  steps_ = offload_steps(plan_.problem, part_, layout);
  OffloadSeconds seconds;
  std::optional<OnDevice> on_device;
  {
    const Stopwatch watch(seconds.preparation);
    on_device.emplace(plan_, operands_, part_, layout, steps_, bytes, threads_);
  }
  run_steps(*on_device, seconds);
  {
    const Stopwatch watch(seconds.end);
    on_device->add_to_report(report_, seconds);
    on_device->keep_operands();
    on_device.reset();
  }
  report_.offload->inner_parts = divide_up(plan_.problem.k, layout.inner);
  report_.offload->seconds = seconds;
}

void OffloadPipeline::run_steps(OnDevice& on_device, OffloadSeconds& seconds) {
  std::size_t begun = 0;  // steps whose copies to the device were begun
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const OffloadStep& step = steps_[i];
    {
      const Stopwatch watch(seconds.load_waits);
      // The first step of a strip loads C only now: its memory is then free. begin_loads() begins the others.
      if (step.begins_strip) on_device.begin_result_load(step, i);
      begun = begin_loads(on_device, begun, i);
      on_device.finish_loads(i);
    }
    const Stopwatch watch(seconds.launches);
    on_device.multiply(step);
    if (step.is_last) on_device.store(step, results_.emplace_back());
  }
  const Stopwatch watch(seconds.result_waits);
  for (cuda::CopyGroup& result : results_) on_device.wait_for(result);
}

// Begins the copies for step `present`, and for later steps as long as no earlier step needs their strips any
// more. The threads then always have pieces to copy. Returns the number of steps whose copies have begun.
std::size_t OffloadPipeline::begin_loads(OnDevice& on_device, std::size_t begun, std::size_t present) {
  for (; begun < steps_.size(); ++begun) {
    const auto needs = [&](const OffloadStep& step) { return OnDevice::overwrites(steps_[begun], step); };
    const std::span before(steps_.begin() + static_cast<std::ptrdiff_t>(present), begun - present);
    if (std::ranges::any_of(before, needs)) break;
    on_device.begin_loads(steps_[begun], begun);
    if (!steps_[begun].begins_strip) on_device.begin_result_load(steps_[begun], begun);
  }
  return begun;
}

std::vector<OffloadPart> OffloadPipeline::unwritten() const {
  if (steps_.empty()) return {part_};
  std::vector<OffloadPart> parts;
  auto result = results_.begin();
  for (const OffloadStep& step : steps_) {
    if (!step.is_last) continue;
    if (result == results_.end()) {
      parts.push_back({step.rows, step.columns, step.items});
      continue;
    }
    if (result->is_copied.empty()) {  // its copy was not started
      parts.push_back({step.rows, step.columns, step.items});
      ++result;
      continue;
    }
    for (std::size_t piece = 0; piece < result->pieces.size(); ++piece) {
      const cuda::CopyPiece& copy = result->pieces[piece];
      if (!result->is_copied[piece]) parts.push_back({copy.rows, copy.columns, {copy.item, 1}});
    }
    ++result;
  }
  return parts;
}

}  // namespace kintsugi::core
