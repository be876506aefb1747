#include "plan/device.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.hpp"
#include "plan/operand.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t sums_multiple = 16;  // of rows and columns: aligned for any of the vendor's kernels

EntryType entry_type(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? EntryType::c32 : EntryType::c64;
  return problem.type == OperandType::f32 ? EntryType::f32 : EntryType::f64;
}

DeviceMatrix matrix_of(const Problem& problem, const void* data, Op op, std::int64_t rows,
                       std::int64_t columns, std::int64_t ld, std::int64_t stride) {
  const auto view = matrix_view<const char>(nullptr, problem.layout, op, rows, columns, ld);
  return {.data = data,
          .pointers = problem.batch_kind == BatchKind::pointers,
          .type = entry_type(problem),
          .batch_stride = stride,
          .rows = rows,
          .columns = columns,
          .row_stride = view.row_stride,
          .column_stride = view.column_stride,
          .conjugated = op == Op::conjugate_transpose};
}

// Whether the unit stride runs from vector to vector, not along k. Where both strides are 1, the one of more than one
// element is the unit's.
bool vectors_are_strided(const DeviceMatrix& matrix) {
  return matrix.row_stride == 1 && (matrix.column_stride != 1 || matrix.rows <= 1);
}

std::int64_t leading_dimension(const DeviceMatrix& matrix) {
  return vectors_are_strided(matrix) ? matrix.column_stride : matrix.row_stride;
}

// Memory of one block's products, piece by piece.
struct BlockPieces {
  Slices a;
  Slices b;
  Accumulators sums;
  std::size_t scratch = 0;
};

// Of C's columns, so that the products' columns are no more than a tile.
std::int64_t tile_columns(const Plan& plan) { return plan.engine->device()->tile() / plan.problem.parts(); }

BlockPieces block_pieces(const Plan& plan, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  const Program& program = plan.rungs.front().program;
  const auto slices_of = [&](const SplitRule& rule, std::int64_t vectors) {
    return make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, problem.products());
  };
  const std::int64_t rows = round_up(std::min(blocking.m, plan.engine->device()->tile()), sums_multiple);
  const std::int64_t columns =
      round_up(problem.parts() * std::min(blocking.n, tile_columns(plan)), sums_multiple);
  return {slices_of(program.split_a, blocking.m), slices_of(program.split_b, problem.parts() * blocking.n),
          make_accumulators(program.sum_type(true), rows, columns, program.schedule.sums()),
          plan.engine->device()->scratch_bytes(program.schedule, program.format().id, rows, columns)};
}

bool is_native(const Plan& plan) { return plan.rungs.front().scheme == nullptr; }

// The first rung takes operands up to this exponent; beyond it would have to be fitted to them, which the host cannot.
// Fails where it is fitted to any.
std::int32_t largest_exponent(const Rung& rung, std::int64_t k) {
  constexpr std::int32_t any = 1 << 20;
  if (rung.scheme->adapt == nullptr) return any;
  const auto unchanged = [&](std::int32_t exponent) {
    Program program = rung.program;
    RangeSummary summary;
    summary.largest = exponent;
    try {
      rung.scheme->adapt(program, summary, summary, k);
    } catch (const Error&) {
      return false;
    }
    return program.split_a == rung.program.split_a && program.split_b == rung.program.split_b;
  };
  std::int32_t exponent = 127;
  while (exponent > -149 && !unchanged(exponent)) --exponent;
  if (unchanged(exponent)) return exponent;
  fail(Status::not_supported,
       "scheme {} is fitted to the operands' exponents, which the host does not know of matrices in device "
       "memory",
       rung.scheme->name);
}

// One call on its way through the queue.
class DeviceCall {
 public:
  DeviceCall(const Plan& plan, const Operands& operands, const Queue& queue, const Blocking& blocking)
      : plan_(plan), engine_(*plan.engine->device()), queue_(queue), blocking_(blocking),
        a_(operand(Side::a, operands.a, operands.prepared_a)),
        b_(operand(Side::b, operands.b, operands.prepared_b)), c_(device_result(plan.problem, operands.c)),
        scalars_(scalars_of(operands)), report_(operands.device_report),
        prepared_a_(device_part(operands.prepared_a)), prepared_b_(device_part(operands.prepared_b)) {}

  void scale_all() const {
    for (std::int64_t entry = 0; entry < plan_.problem.batch_count; ++entry)
      engine_.scale(queue_, c_, entry, scalars_, {});
  }

  void multiply_natively(Workspace workspace) const {
    engine_.native(queue_, blas_product(), workspace.take(engine_.native_scratch_bytes()));
  }

  void multiply_all(const Workspace& workspace) {
    for (std::int64_t entry = 0; entry < plan_.problem.batch_count; ++entry) multiply_entry(entry, workspace);
  }

 private:
  // What a step works on, of one entry.
  struct Entry {
    DeviceSide a;
    DeviceSide b;
    DeviceChoice* choice = nullptr;
    BlockPieces pieces;
    std::byte* scratch = nullptr;
    const DevicePrepared::Entry* prepared_a = nullptr;  // whose slices are those of the program
    const DevicePrepared::Entry* prepared_b = nullptr;
    bool looked_at = false;  // ranges and choice are there before the first split
  };

  DeviceMatrix operand(Side side, const void* data, const Prepared* prepared) const {
    return prepared != nullptr ? prepared->device->matrix : device_operand(plan_.problem, side, data);
  }
  static const DevicePrepared* device_part(const Prepared* prepared) {
    return prepared == nullptr ? nullptr : prepared->device.get();
  }
  static DeviceScalars scalars_of(const Operands& operands) {
    return {operands.alpha, operands.beta, operands.device_alpha, operands.device_beta};
  }

  const Program& program() const { return plan_.rungs.front().program; }

  const DevicePrepared::Entry* usable(const DevicePrepared* prepared, const SplitRule& rule,
                                      std::int64_t entry) const {
    if (prepared == nullptr || prepared->entries.empty() || !(prepared->rule == rule)) return nullptr;
    return &prepared->entries[prepared->entries.size() == 1 ? 0 : static_cast<std::size_t>(entry)];
  }

  DeviceSide side_of(const DeviceMatrix& matrix, std::int64_t entry, const DevicePrepared::Entry* prepared,
                     Workspace& workspace) const {
    auto* ranges =
        reinterpret_cast<VectorRange*>(workspace.take(array_bytes(matrix.vectors(), 1, sizeof(VectorRange))));
    return {matrix, entry, prepared != nullptr ? prepared->ranges : ranges};
  }

  Entry entry_of(std::int64_t index, Workspace workspace) const {
    Entry entry;
    entry.prepared_a = usable(prepared_a_, program().split_a, index);
    entry.prepared_b = usable(prepared_b_, program().split_b, index);
    entry.a = side_of(a_, index, entry.prepared_a, workspace);
    entry.b = side_of(b_, index, entry.prepared_b, workspace);
    entry.choice = reinterpret_cast<DeviceChoice*>(workspace.take(sizeof(DeviceChoice)));
    entry.pieces = block_pieces(plan_, blocking_);
    entry.pieces.a.data = workspace.take(entry.pieces.a.bytes());
    entry.pieces.b.data = workspace.take(entry.pieces.b.bytes());
    entry.pieces.sums.data = workspace.take(entry.pieces.sums.bytes());
    entry.scratch = workspace.take(entry.pieces.scratch);
    return entry;
  }

  DeviceRungs rungs() const {
    DeviceRungs result;
    result.count = static_cast<int>(plan_.rungs.size());
    for (int r = 0; r < result.count; ++r) {
      const Rung& rung = plan_.rungs[static_cast<std::size_t>(r)];
      result.spans[r] = rung.largest_span;
      result.exponents[r] =
          rung.scheme == nullptr ? Rung::any_span : largest_exponent(rung, plan_.problem.products());
    }
    return result;
  }

  // Where a choice is to be made before anything is split. Ranges of a prepared operand are there.
  void look_at(Entry& entry) const {
    const DeviceRungs choices = rungs();
    entry.looked_at = choices.count > 1 || scalars_.on_device() || choices.exponents[0] < Rung::any_span;
    if (!entry.looked_at) return;
    engine_.find_ranges(queue_, entry.prepared_a == nullptr ? entry.a : DeviceSide{},
                        entry.prepared_b == nullptr ? entry.b : DeviceSide{}, scalars_);
    engine_.choose(queue_, entry.a, entry.b, scalars_, choices, entry.choice, report_);
  }

  DeviceCondition on_rung(const Entry& entry, std::int32_t rung) const {
    return {entry.looked_at ? entry.choice : nullptr, rung};
  }

  // ranges, choice, split, multiply, recombine; then what the other choices ask for.
  void multiply_entry(std::int64_t index, const Workspace& workspace) const {
    Entry entry = entry_of(index, workspace);
    look_at(entry);
    multiply_blocks(entry);
    if (!entry.looked_at) {
      if (report_ != nullptr)
        engine_.choose(queue_, entry.a, entry.b, scalars_, rungs(), entry.choice, report_);
      return;
    }
    if (scalars_.on_device())
      engine_.scale(queue_, c_, index, scalars_, {entry.choice, DeviceChoice::scaled});
    const bool fails = rungs().exponents[0] < Rung::any_span;
    if (plan_.rungs.size() > 1 || fails)
      engine_.multiply_plainly(
          queue_, tile_of(entry, 0, 0, c_.rows, c_.columns, fails ? DeviceChoice::none : std::int32_t{1}));
  }

  // Vectors of one side from `first` on, of which there are `vectors`, as slices; nothing is added to `splits` where
  // they are prepared.
  Slices plan_split(const DeviceSide& side, const DevicePrepared::Entry* prepared, const SplitRule& rule,
                    const Slices& memory, std::int64_t first, std::int64_t vectors, bool looked_at,
                    std::vector<DeviceSplit>& splits) const {
    if (prepared != nullptr) return prepared->slices.block(first, vectors);
    Slices slices = memory;
    slices.vectors = vectors;
    splits.push_back({side, first, &rule, slices, looked_at});
    return slices;
  }

  void multiply_blocks(const Entry& entry) const {
    const std::int64_t parts = plan_.problem.parts();
    Slices a;
    for (std::int64_t j = 0; j < c_.columns; j += blocking_.n) {
      const std::int64_t columns = std::min(blocking_.n, c_.columns - j);
      std::vector<DeviceSplit> splits;
      splits.reserve(2);
      const Slices b = plan_split(entry.b, entry.prepared_b, program().split_b, entry.pieces.b, parts * j,
                                  parts * columns, entry.looked_at, splits);
      for (std::int64_t i = 0; i < c_.rows; i += blocking_.m) {
        const std::int64_t rows = std::min(blocking_.m, c_.rows - i);
        if (j == 0 || blocking_.m < c_.rows)
          a = plan_split(entry.a, entry.prepared_a, program().split_a, entry.pieces.a, i, rows,
                         entry.looked_at, splits);
        if (!splits.empty()) engine_.split(queue_, splits, on_rung(entry, 0));
        splits.clear();
        multiply_tiles(entry, a, b, i, j, rows, columns);
      }
    }
  }

  void multiply_tiles(const Entry& entry, const Slices& a, const Slices& b, std::int64_t first_row,
                      std::int64_t first_column, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t parts = plan_.problem.parts();
    for (std::int64_t j = 0; j < columns; j += tile_columns(plan_)) {
      const std::int64_t tile_n = std::min(tile_columns(plan_), columns - j);
      for (std::int64_t i = 0; i < rows; i += engine_.tile()) {
        const std::int64_t tile_m = std::min(engine_.tile(), rows - i);
        Accumulators sums = entry.pieces.sums;
        sums.rows = round_up(tile_m, sums_multiple);
        sums.columns = round_up(parts * tile_n, sums_multiple);
        engine_.multiply(queue_, program().schedule, a.block(i, tile_m), b.block(parts * j, parts * tile_n),
                         sums, entry.scratch);
        recombine(sums, tile_of(entry, first_row + i, first_column + j, tile_m, tile_n, 0));
      }
    }
  }

  DeviceTile tile_of(const Entry& entry, std::int64_t first_row, std::int64_t first_column, std::int64_t rows,
                     std::int64_t columns, std::int32_t rung) const {
    return {entry.a,      entry.b, c_,      entry.a.entry, first_row,
            first_column, rows,    columns, scalars_,      on_rung(entry, rung)};
  }

  void recombine(const Accumulators& sums, const DeviceTile& tile) const {
    if (program().recombination == Recombination::residues)
      return engine_.recombine_residues(queue_, sums, program().residue_system(), tile);
    std::array<int, max_groups> exponents{};
    for (int g = 0; g < program().schedule.sums(); ++g) exponents[g] = program().schedule.sum_exponent(g);
    engine_.recombine_weighted(queue_, sums, {exponents.data(), static_cast<std::size_t>(sums.groups)}, tile);
  }

  // A row-major C is the column-major C^T = B^T A^T.
  DeviceBlasProduct blas_product() const {
    const bool swap = plan_.problem.layout == Layout::row_major;
    const DeviceMatrix& left = swap ? b_ : a_;
    const DeviceMatrix& right = swap ? a_ : b_;
    DeviceBlasProduct product{.type = c_.type,
                              .m = left.rows,
                              .n = right.rows,
                              .k = plan_.problem.k,
                              .a = left.data,
                              .b = right.data,
                              .c = const_cast<void*>(c_.data),
                              .ldc = plan_.problem.ldc,
                              .pointers = c_.pointers,
                              .batch_stride_a = left.batch_stride,
                              .batch_stride_b = right.batch_stride,
                              .batch_stride_c = c_.batch_stride,
                              .batch_count = plan_.problem.batch_count,
                              .scalars = scalars_};
    // An operand's rows are vectors along k: those of the left one are rows of the product, those of the right one
    // columns. Only operands whose unit stride runs along k can be conjugated.
    const auto op_of = [](const DeviceMatrix& matrix, bool as_it_is) {
      return as_it_is ? 0 : matrix.conjugated ? 2 : 1;
    };
    product.op_a = op_of(left, vectors_are_strided(left));
    product.op_b = op_of(right, !vectors_are_strided(right));
    product.lda = leading_dimension(left);
    product.ldb = leading_dimension(right);
    return product;
  }

  const Plan& plan_;
  const DeviceEngine& engine_;
  Queue queue_;
  Blocking blocking_;
  DeviceMatrix a_, b_, c_;
  DeviceScalars scalars_;
  DeviceReport* report_;
  const DevicePrepared* prepared_a_;
  const DevicePrepared* prepared_b_;
};

// A failed allocation takes a smaller block with the same bits, else it is an error.
DeviceBlock allocate_workspace(const Plan& plan, const Queue& queue, Blocking& blocking) {
  for (;;) {
    DeviceBlock block(plan, queue, workspace_bytes(plan, blocking));
    if (block.pointer() != nullptr || block.bytes() == 0) return block;
    const Blocking smaller = smaller_blocking(blocking, block_multiple(plan));
    if (smaller.m == blocking.m && smaller.n == blocking.n) {
      fail(Status::out_of_memory,
           "the device's allocator has no {} bytes for the smallest block of m = {}, n = {}, k = {}",
           block.bytes(), plan.problem.m, plan.problem.n, plan.problem.k);
    }
    blocking = smaller;
  }
}

DeviceBlock allocate(const Plan& plan, std::size_t bytes, const char* what) {
  DeviceBlock block(plan, plan.queue, bytes);
  if (block.pointer() == nullptr && bytes > 0)
    fail(Status::out_of_memory, "the device's allocator has no {} bytes for {}", bytes, what);
  return block;
}

void run(const Plan& plan, const Operands& operands, const Queue& queue, Report& report) {
  const bool own = operands.workspace == nullptr;
  DeviceBlock memory;
  if (own) {
    memory = allocate_workspace(plan, queue, report.blocking);
  } else {
    check_workspace(plan, operands);
  }
  report.workspace_bytes = own ? memory.bytes() : plan.workspace_bytes;
  const Workspace workspace(own ? memory.pointer() : operands.workspace, report.workspace_bytes);
  DeviceCall call(plan, operands, queue, report.blocking);
  if (is_native(plan)) return call.multiply_natively(workspace);
  call.multiply_all(workspace);
}

}  // namespace

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

DevicePrepared::~DevicePrepared() { engine->synchronize_quietly(); }

DeviceMatrix device_operand(const Problem& problem, Side side, const void* data) {
  if (side == Side::a)
    return matrix_of(problem, data, problem.op_a, problem.m, problem.k, problem.lda, problem.stride_a);
  DeviceMatrix b =
      matrix_of(problem, data, problem.op_b, problem.k, problem.n, problem.ldb, problem.stride_b);
  std::swap(b.rows, b.columns);
  std::swap(b.row_stride, b.column_stride);
  b.right = true;
  return b;
}

DeviceMatrix device_result(const Problem& problem, const void* data) {
  return matrix_of(problem, data, Op::none, problem.m, problem.n, problem.ldc, problem.stride_c);
}

std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  if (is_native(plan)) return aligned_size(plan.engine->device()->native_scratch_bytes());
  const BlockPieces pieces = block_pieces(plan, blocking);
  return array_bytes(problem.m, 1, sizeof(VectorRange)) +
         array_bytes(problem.vectors_b(), 1, sizeof(VectorRange)) + aligned_size(sizeof(DeviceChoice)) +
         pieces.a.bytes() + pieces.b.bytes() + pieces.sums.bytes() + aligned_size(pieces.scratch);
}

void execute_on_device(const Plan& plan, const Operands& operands, Report& report) {
  const DeviceEngine& engine = *plan.engine->device();
  const Problem& problem = plan.problem;
  const Queue queue = operands.queue.kind == QueueKind::host ? plan.queue : operands.queue;
  engine.prepare();
  if (operands.device_report != nullptr) engine.clear(queue, operands.device_report, sizeof(DeviceReport));
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return;
  const bool scales = problem.k == 0 || (!problem.device_scalars && operands.alpha == 0.0);
  if (scales) {
    report.entries_scaled = problem.batch_count;
    DeviceCall(plan, operands, queue, report.blocking).scale_all();
  } else {
    if (is_native(plan)) report.entries[0] = problem.batch_count;
    run(plan, operands, queue, report);
  }
  if (queue.kind == QueueKind::host) engine.synchronize(queue);
}

namespace {

// Elements from the first to the last of one entry of the batch, with what lies between.
std::int64_t extent(const DeviceMatrix& matrix) {
  return (matrix.rows - 1) * matrix.row_stride + (matrix.columns - 1) * matrix.column_stride + 1;
}

std::size_t entry_bytes(EntryType type) {
  return (type == EntryType::f32 ? 4U : type == EntryType::c64 ? 16U : 8U);
}

// A copy of every entry, strided as the original is.
void copy_original(const Plan& plan, std::int64_t count, DevicePrepared& prepared) {
  DeviceMatrix& matrix = prepared.matrix;
  if (matrix.pointers) {
    fail(
        Status::not_supported,
        "operands of a batch given by pointers cannot be copied, since only the device knows where they are: "
        "kintsugi_prepare_borrowed leaves them where they are");
  }
  const std::size_t bytes = entry_bytes(matrix.type);
  const std::int64_t elements = matrix.rows == 0 || matrix.columns == 0 ? 0 : extent(matrix);
  prepared.copy = allocate(plan, array_bytes(count, elements, bytes), "a copy of a prepared operand");
  for (std::int64_t entry = 0; entry < count; ++entry) {
    plan.engine->device()->copy_on_device(
        plan.queue,
        static_cast<std::byte*>(prepared.copy.pointer()) + static_cast<std::size_t>(entry * elements) * bytes,
        static_cast<const std::byte*>(matrix.data) +
            static_cast<std::size_t>(entry * matrix.batch_stride) * bytes,
        static_cast<std::size_t>(elements) * bytes);
  }
  matrix.data = prepared.copy.pointer();
  matrix.batch_stride = count == 1 ? 0 : elements;
}

// Slices and ranges of every entry by the plan's first rung.
void split_entries(const Plan& plan, Side side, std::int64_t count, DevicePrepared& prepared) {
  const Program& program = plan.rungs.front().program;
  prepared.rule = side == Side::a ? program.split_a : program.split_b;
  const DeviceMatrix& matrix = prepared.matrix;
  const Slices slices = make_slices(*prepared.rule.format, SliceStorage::packed, prepared.rule.slices,
                                    matrix.vectors(), matrix.length());
  const std::size_t range_bytes = array_bytes(matrix.vectors(), 1, sizeof(VectorRange));
  const std::size_t bytes = range_bytes + slices.bytes();
  prepared.memory = allocate(plan, static_cast<std::size_t>(count) * bytes, "slices of a prepared operand");
  Workspace memory(prepared.memory.pointer(), prepared.memory.bytes());
  for (std::int64_t index = 0; index < count; ++index) {
    DevicePrepared::Entry entry{reinterpret_cast<VectorRange*>(memory.take(range_bytes)), slices};
    entry.slices.data = memory.take(slices.bytes());
    const DeviceSplit split{{matrix, index, entry.ranges}, 0, &prepared.rule, entry.slices, false};
    plan.engine->device()->split(plan.queue, {&split, 1}, {});
    prepared.entries.push_back(entry);
  }
}

}  // namespace

Prepared prepare_on_device(const Plan& plan, Side side, const void* data, bool borrow) {
  const Problem& problem = plan.problem;
  const Op op = side == Side::a ? problem.op_a : problem.op_b;
  plan.engine->device()->prepare();
  auto part = std::make_shared<DevicePrepared>(*plan.engine->device());
  part->matrix = device_operand(problem, side, data);
  const bool one_for_all = !part->matrix.pointers && part->matrix.batch_stride == 0;
  const std::int64_t count =
      one_for_all ? std::min<std::int64_t>(problem.batch_count, 1) : problem.batch_count;
  part->count = count;
  if (!borrow) copy_original(plan, count, *part);
  if (!is_native(plan) && problem.k > 0) split_entries(plan, side, count, *part);
  if (plan.queue.kind == QueueKind::host) plan.engine->device()->synchronize(plan.queue);
  part->copy.wait_before_freeing();
  part->memory.wait_before_freeing();
  return {side,
          problem.type,
          problem.complex,
          op == Op::conjugate_transpose,
          side == Side::a ? problem.m : problem.n,
          problem.k,
          {},
          part};
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

void read_device_report(const Engine& engine, const DeviceReport* device, Report& report) {
  DeviceReport found;
  engine.device()->synchronize();
  engine.device()->copy_to_host({}, &found, device, sizeof found);
  engine.device()->synchronize(Queue{});
  for (std::size_t r = 0; r < report.entries.size(); ++r) report.entries[r] += found.entries[r];
  report.entries_scaled += found.scaled;
  report.entries_unreachable += found.unreachable;
  report.entries_with_special_values += found.special;
  report.ranges_known = std::any_of(report.rungs.begin(), report.rungs.end(),
                                    [](const Rung& rung) { return rung.scheme != nullptr; });
  report.largest_span_a = found.largest_span_a;
  report.largest_span_b = found.largest_span_b;
}

}  // namespace kintsugi::core
