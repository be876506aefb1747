#include "lab/numerics/ascend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kintsugi::lab::ascend {
namespace {

constexpr int cube_edge = 16;
constexpr int terms = 3;
constexpr int residual_operations = 5;  // to half, to single, difference, scaling, to half

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

// ------------------------------------------------------------- operations

enum class Kind : std::uint8_t {
  load_a,
  split_a,
  store_a,
  load_b,
  split_b,
  store_b,
  to_l0b,
  to_l0a,
  multiply,
  take_c,
  load_c,
  add_c,
  store_c
};

// Place of an operation's data: block of k of its group, column of blocks, slots of what it reads and writes.
struct Place {
  std::int64_t block = 0;
  std::int64_t column = 0;
  int from = 0;
  int to = 0;
  std::int64_t first = 0;  // part of C: its first element and number of elements
  std::int64_t count = 0;
};

struct Operation {
  Kind kind;
  Pipe pipe;
  double cycles = 0;
  double memory_bytes = 0;  // of this core's share of main memory
  std::array<int, 4> after = {-1, -1, -1, -1};
  Place place;
};

// A buffer's slot: who wrote it last, and who reads it last.
struct Slot {
  int written = -1;
  int read = -1;
};

// Slots that are used in turn.
class Ring {
 public:
  explicit Ring(int count) : slots_(static_cast<std::size_t>(count)) {}
  int next() { return turn_ = (turn_ + 1) % static_cast<int>(slots_.size()); }
  Slot& at(int i) { return slots_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<Slot> slots_;
  int turn_ = -1;
};

// Schedule of one core: operations start in the order of time, each pipe's in the order of the program.
class Pipes {
 public:
  Pipes(const Core& core, Times& times) : core_(core), times_(times) {}

  // Runs the operations and calls execute(operation) in the order of their starts. Returns the last one's
  // end.
  template <class Execute>
  double run(const std::vector<Operation>& operations, double begin, const Execute& execute) {
    std::array<std::vector<int>, pipes> queues;
    for (int i = 0; i < static_cast<int>(operations.size()); ++i)
      queues[static_cast<std::size_t>(operations[static_cast<std::size_t>(i)].pipe)].push_back(i);
    std::array<std::size_t, pipes> heads{};
    std::array<double, pipes> free;
    free.fill(begin);
    constexpr double unknown = -1;
    std::vector<double> ends(operations.size(), unknown);
    double memory_free = begin, last = begin;
    for (std::size_t left = operations.size(); left > 0; --left) {
      int chosen = -1;
      double start = std::numeric_limits<double>::infinity();
      for (std::size_t p = 0; p < pipes; ++p) {
        if (heads[p] == queues[p].size()) continue;
        const int head = queues[p][heads[p]];
        double ready = free[p];
        for (const int before : operations[static_cast<std::size_t>(head)].after) {
          if (before < 0) continue;
          const double end = ends[static_cast<std::size_t>(before)];
          ready = end == unknown ? std::numeric_limits<double>::infinity() : std::max(ready, end);
        }
        if (ready < start) start = ready, chosen = head;
      }
      const Operation& operation = operations[static_cast<std::size_t>(chosen)];
      double end = start + operation.cycles;
      if (operation.memory_bytes > 0) {
        memory_free = std::max(memory_free, start) + operation.memory_bytes / core_.memory;
        end = std::max(end, memory_free);
      }
      const auto pipe = static_cast<std::size_t>(operation.pipe);
      ends[static_cast<std::size_t>(chosen)] = free[pipe] = end;
      ++heads[pipe];
      times_.busy[pipe] += end - start;
      last = std::max(last, end);
      execute(operation);
    }
    return last;
  }

 private:
  const Core& core_;
  Times& times_;
};

// -------------------------------------------------------------- Algorithm 1

// Operations of one block row of A and one term.
class Program {
 public:
  Program(const Core& core, const Problem& problem, int term, bool skips_waits)
      : core_(core), problem_(problem), blocks_(problem.blocks), term_(term), skips_waits_(skips_waits),
        slots_(problem.buffering == Buffering::single ? 1 : 2), staging_(slots_), halves_(slots_),
        l1_(slots_), l0a_(slots_), l0b_(slots_), l0c_(slots_of_l0c()), ub_c_(slots_) {
    const std::int64_t fused = fused_blocks(blocks_, core.l1_elements);
    fused_ = problem.max_fused > 0 ? std::min(fused, problem.max_fused) : fused;
    l1_a_.resize(static_cast<std::size_t>(fused_));
  }

  int l0c_slots() const { return slots_of_l0c(); }
  int slots() const { return slots_; }
  std::int64_t fused() const { return fused_; }

  // Returns the operations of a group of `count` blocks of k, on the first columns of blocks.
  const std::vector<Operation>& group(std::int64_t count, std::int64_t columns) {
    operations_.clear();
    forget();
    for (std::int64_t i = 0; i < count; ++i) load_a(i);
    for (std::int64_t column = 0; column < columns; ++column) {
      l0c_slot_ = l0c_.next();
      const std::size_t waiting = waiting_.size();
      std::size_t sent = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        multiply(i, column, i == 0);
        // Parts of the column before leave evenly between the blocks of this one.
        for (; sent < waiting * static_cast<std::size_t>(i + 1) / static_cast<std::size_t>(count); ++sent)
          add_part(waiting_[sent]);
      }
      waiting_.clear();
      for (const Place& part : parts(column)) {
        if (problem_.buffering == Buffering::overlapped && l0c_slots() > 1)
          waiting_.push_back(part);
        else
          add_part(part);
      }
    }
    for (const Place& part : waiting_) add_part(part);
    waiting_.clear();
    return operations_;
  }

 private:
  int slots_of_l0c() const {
    const bool two =
        problem_.buffering == Buffering::overlapped && 2 * blocks_.m * blocks_.n <= core_.l0c_elements;
    return two ? 2 : 1;
  }

  // A group begins when the one before has ended.
  void forget() {
    for (Ring* ring : {&staging_, &halves_, &l1_, &l0a_, &l0b_, &l0c_, &ub_c_})
      for (int s = 0; s < slots_; ++s)
        if (ring != &l0c_ || s < slots_of_l0c()) ring->at(s) = {};
    std::fill(l1_a_.begin(), l1_a_.end(), Slot{});
    last_product_.assign(2, -1);
  }

  int add(Kind kind, Pipe pipe, double cycles, double memory_bytes, std::array<int, 4> after,
          const Place& place) {
    operations_.push_back({kind, pipe, cycles, memory_bytes, after, place});
    return static_cast<int>(operations_.size()) - 1;
  }
  // The operation to wait for before a slot is overwritten.
  int reader(const Slot& slot) const { return skips_waits_ ? -1 : slot.read; }

  // Loads a block into UB, makes FP16 numbers of it and stores them in L1.
  void convert(std::array<Kind, 3> kinds, std::int64_t elements, bool residual, double share_of_memory,
               Slot& target, Place place, int target_slot) {
    const auto count = static_cast<double>(elements);
    const int in = staging_.next(), half = halves_.next();
    place.to = in;
    const int load = add(kinds[0], Pipe::mte2, 4 * count / core_.l2_to_ub, 4 * count * share_of_memory,
                         {reader(staging_.at(in)), -1, -1, -1}, place);
    place.from = in, place.to = half;
    const double work =
        count * (residual ? residual_operations : 1) / static_cast<double>(core_.vector_lanes);
    const int split = add(kinds[1], Pipe::vector, work, 0, {load, reader(halves_.at(half)), -1, -1}, place);
    staging_.at(in).read = split;
    place.from = half, place.to = target_slot;
    const int store =
        add(kinds[2], Pipe::mte3, 2 * count / core_.ub_to_l1, 0, {split, reader(target), -1, -1}, place);
    halves_.at(half).read = store;
    target.written = store;
  }

  void load_a(std::int64_t i) {
    convert({Kind::load_a, Kind::split_a, Kind::store_a}, blocks_.m * blocks_.k, term_ == 0, 1,
            l1_a_[static_cast<std::size_t>(i)], {.block = i}, static_cast<int>(i));
  }

  void multiply(std::int64_t i, std::int64_t column, bool is_first) {
    Place place{.block = i, .column = column};
    const int in_l1 = l1_.next();
    convert({Kind::load_b, Kind::split_b, Kind::store_b}, blocks_.k * blocks_.n, term_ == 1,
            1.0 / core_.cores, l1_.at(in_l1), place, in_l1);
    const int b = l0b_.next(), a = l0a_.next();
    place.from = in_l1, place.to = b;
    const auto bytes = [](std::int64_t x, std::int64_t y) { return 2.0 * static_cast<double>(x * y); };
    const int to_b = add(Kind::to_l0b, Pipe::mte1, bytes(blocks_.k, blocks_.n) / core_.l1_to_l0b, 0,
                         {l1_.at(in_l1).written, reader(l0b_.at(b)), -1, -1}, place);
    l1_.at(in_l1).read = to_b;
    Slot& of_a = l1_a_[static_cast<std::size_t>(i)];
    place.from = static_cast<int>(i), place.to = a;
    const int to_a = add(Kind::to_l0a, Pipe::mte1, bytes(blocks_.m, blocks_.k) / core_.l1_to_l0a, 0,
                         {of_a.written, reader(l0a_.at(a)), -1, -1}, place);
    of_a.read = to_a;
    place.from = a, place.to = l0c_slot_;  // A and B alternate alike
    const double cycles =
        static_cast<double>(blocks_.m * blocks_.k * blocks_.n) / static_cast<double>(core_.cube_products);
    const int product = add(Kind::multiply, Pipe::cube, cycles, 0,
                            {to_a, to_b, is_first ? reader(l0c_.at(l0c_slot_)) : -1, -1}, place);
    l0a_.at(a).read = l0b_.at(b).read = product;
    last_product_[static_cast<std::size_t>(l0c_slot_)] = product;
  }

  // Parts of a column's block of C that UB has room for beside the blocks of A and B.
  std::vector<Place> parts(std::int64_t column) const {
    const std::int64_t passing = 6 * slots_ * blocks_.k * std::max(blocks_.m, blocks_.n);
    const std::int64_t room = std::max<std::int64_t>((core_.ub_bytes - passing) / (8 * slots_), blocks_.n);
    const std::int64_t rows = std::max<std::int64_t>(room / blocks_.n, 1);
    std::vector<Place> all;
    for (std::int64_t row = 0; row < blocks_.m; row += rows)
      all.push_back({.column = column,
                     .from = l0c_slot_,
                     .first = row * blocks_.n,
                     .count = std::min(rows, blocks_.m - row) * blocks_.n});
    return all;
  }

  void add_part(Place place) {
    const auto count = static_cast<double>(place.count);
    const int l0c = place.from, ub = ub_c_.next();
    place.to = ub;
    const int load = add(Kind::load_c, Pipe::mte2, 4 * count / core_.l2_to_ub, 4 * count,
                         {reader(ub_c_.at(ub)), -1, -1, -1}, place);
    const int take = add(Kind::take_c, Pipe::vector, 4 * count / core_.l0c_to_ub, 0,
                         {last_product_[static_cast<std::size_t>(l0c)], reader(ub_c_.at(ub)), -1, -1}, place);
    l0c_.at(l0c).read = take;
    const int sum = add(Kind::add_c, Pipe::vector, count / static_cast<double>(core_.vector_lanes), 0,
                        {take, load, -1, -1}, place);
    const int store =
        add(Kind::store_c, Pipe::mte3, 4 * count / core_.ub_to_l2, 4 * count, {sum, -1, -1, -1}, place);
    ub_c_.at(ub).read = store;
  }

  const Core& core_;
  const Problem& problem_;
  const Blocks& blocks_;
  int term_;
  bool skips_waits_;
  int slots_;
  std::int64_t fused_ = 0;
  Ring staging_, halves_, l1_, l0a_, l0b_, l0c_, ub_c_;
  std::vector<Slot> l1_a_;
  std::vector<int> last_product_;
  std::vector<Place> waiting_;
  std::vector<Operation> operations_;
  int l0c_slot_ = 0;
};

// ------------------------------------------------------------------ tiles

// Buffers of a core, and what operations do with them.
class Tiles {
 public:
  Tiles(const Problem& problem, const std::vector<float>& a, const std::vector<float>& b, int sb, Sum model,
        const Program& program)
      : problem_(problem), blocks_(problem.blocks), a_(a), b_(b), scale_(std::ldexp(1.0F, sb)),
        model_(model) {
    const auto slots = static_cast<std::size_t>(program.slots());
    const auto size = static_cast<std::size_t>(blocks_.k * std::max(blocks_.m, blocks_.n));
    const auto size_c = static_cast<std::size_t>(blocks_.m * blocks_.n);
    for (Buffers* buffers : {&staging_, &halves_, &l1_b_, &l0a_, &l0b_})
      buffers->assign(slots, std::vector<float>(size));
    l1_a_.assign(static_cast<std::size_t>(program.fused()), std::vector<float>(size));
    l0c_.assign(static_cast<std::size_t>(program.l0c_slots()), std::vector<float>(size_c));
    taken_.assign(slots, std::vector<float>(size_c));
    loaded_.assign(slots, std::vector<float>(size_c));
  }

  void begin(std::int64_t row, std::int64_t first_block, int term, std::vector<float>& c) {
    row_ = row, first_block_ = first_block, term_ = term, c_ = &c;
  }

  void execute(const Operation& operation) {
    const Place& at = operation.place;
    const auto from = static_cast<std::size_t>(at.from), to = static_cast<std::size_t>(at.to);
    const std::int64_t inner = (first_block_ + at.block) * blocks_.k, column = at.column * blocks_.n;
    switch (operation.kind) {
      case Kind::load_a:
        return load(a_, problem_.m, problem_.k, row_, inner, blocks_.m, blocks_.k, staging_[to]);
      case Kind::load_b:
        return load(b_, problem_.k, problem_.n, inner, column, blocks_.k, blocks_.n, staging_[to]);
      case Kind::split_a: return split(term_ == 0, staging_[from], halves_[to]);
      case Kind::split_b: return split(term_ == 1, staging_[from], halves_[to]);
      case Kind::store_a: l1_a_[to] = halves_[from]; return;
      case Kind::store_b: l1_b_[to] = halves_[from]; return;
      case Kind::to_l0a: l0a_[to] = l1_a_[from]; return;
      case Kind::to_l0b: l0b_[to] = l1_b_[from]; return;
      case Kind::multiply: return multiply(l0a_[from], l0b_[from], l0c_[to], at.block == 0);
      case Kind::take_c: return copy(l0c_[from], taken_[to], at);
      case Kind::load_c: return move_c(at, column, loaded_[to], false);
      case Kind::add_c:
        for (std::int64_t i = 0; i < at.count; ++i) loaded_[to][index(i)] += taken_[to][index(i)];
        return;
      case Kind::store_c: return move_c(at, column, loaded_[to], true);
    }
  }

 private:
  using Buffers = std::vector<std::vector<float>>;
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Copies a block; what lies beyond the matrix is 0.
  static void load(const std::vector<float>& matrix, std::int64_t rows, std::int64_t columns,
                   std::int64_t row, std::int64_t column, std::int64_t height, std::int64_t width,
                   std::vector<float>& target) {
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        const bool inside = row + i < rows && column + j < columns;
        target[index(i * width + j)] = inside ? matrix[index((row + i) * columns + column + j)] : 0.0F;
      }
  }

  void split(bool residual, const std::vector<float>& from, std::vector<float>& to) const {
    std::transform(from.begin(), from.end(), to.begin(), [&](float x) {
      const float high = to_half(x);
      return residual ? to_half((x - high) * scale_) : high;
    });
  }

  void multiply(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c,
                bool is_first) const {
    if (is_first) std::fill(c.begin(), c.end(), 0.0F);
    float column[cube_edge];
    for (std::int64_t p = 0; p < blocks_.k; p += cube_edge) {
      for (std::int64_t j = 0; j < blocks_.n; ++j) {
        for (std::int64_t q = 0; q < cube_edge; ++q) column[q] = b[index((p + q) * blocks_.n + j)];
        for (std::int64_t i = 0; i < blocks_.m; ++i) {
          float& sum = c[index(i * blocks_.n + j)];
          sum = add_products(model_, sum, &a[index(i * blocks_.k + p)], column);
        }
      }
    }
  }

  static void copy(const std::vector<float>& from, std::vector<float>& to, const Place& at) {
    std::copy_n(from.begin() + at.first, at.count, to.begin());
  }

  // Moves a part of C from (or to) main memory.
  void move_c(const Place& at, std::int64_t column, std::vector<float>& part, bool stores) {
    for (std::int64_t i = 0; i < at.count; ++i) {
      const std::int64_t row = row_ + (at.first + i) / blocks_.n, j = column + (at.first + i) % blocks_.n;
      const bool inside = row < problem_.m && j < problem_.n;
      if (!inside) continue;
      float& element = (*c_)[index(row * problem_.n + j)];
      if (stores)
        element = part[index(i)];
      else
        part[index(i)] = element;
    }
  }

  const Problem& problem_;
  const Blocks& blocks_;
  const std::vector<float>& a_;
  const std::vector<float>& b_;
  float scale_;
  Sum model_;
  Buffers staging_, halves_, l1_a_, l1_b_, l0a_, l0b_, l0c_, taken_, loaded_;
  std::int64_t row_ = 0;
  std::int64_t first_block_ = 0;
  int term_ = 0;
  std::vector<float>* c_ = nullptr;
};

}  // namespace

// ------------------------------------------------------------- Eqs. 8 to 10

bool feasible(const Blocks& blocks) {
  for (const std::int64_t edge : {blocks.m, blocks.k, blocks.n})
    if (edge <= 0 || edge % cube_edge != 0) return false;
  constexpr std::int64_t l0_elements = 64 * 256;
  return blocks.m * blocks.k <= l0_elements && blocks.k * blocks.n <= l0_elements &&
         blocks.m * blocks.n * 6 <= ascend_910a.ub_bytes;
}

std::int64_t fused_blocks(const Blocks& blocks, std::int64_t l1_elements) {
  return (l1_elements - 2 * blocks.k * blocks.n) / (blocks.m * blocks.k);
}

double fused_share(const Blocks& blocks, std::int64_t l1_elements) {
  return static_cast<double>(fused_blocks(blocks, l1_elements) * blocks.m * blocks.k) /
         static_cast<double>(l1_elements);
}

double optimal_height(double share, const Core& core) {
  return std::sqrt(share * static_cast<double>(core.l1_elements) / (2 * core.cores));
}

// -------------------------------------------------------------- simulation

double Times::rate(const Problem& problem, const Core& core) const {
  const auto products =
      static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  return 2 * products * core.clock / cycles;
}

namespace {

// Columns of blocks that are simulated; the others take the time that the second half of these takes on the
// average.
constexpr std::int64_t simulated_columns = 32;

// Simulates one group and adds its times.
void add_group(Program& program, const Core& core, std::int64_t count, std::int64_t columns, int term,
               Times& times) {
  const auto run = [&](std::int64_t some) {
    Times group{};
    group.cycles = Pipes(core, group).run(program.group(count, some), 0, [](const Operation&) {});
    return group;
  };
  const Times all = run(std::min(columns, simulated_columns));
  const Times half = columns > simulated_columns ? run(simulated_columns / 2) : Times{};
  const double more =
      static_cast<double>(std::max(columns - simulated_columns, std::int64_t{0})) / (simulated_columns / 2);
  const double cycles = all.cycles + more * (all.cycles - half.cycles);
  times.cycles += cycles;
  times.of_terms[static_cast<std::size_t>(term)] += cycles;
  for (std::size_t p = 0; p < pipes; ++p) times.busy[p] += all.busy[p] + more * (all.busy[p] - half.busy[p]);
}

}  // namespace

Times simulate(const Problem& problem, const Core& core) {
  Times times{};
  // All block rows take the same time, and so do all groups of a term with as many blocks.
  const std::int64_t rows = blocks_of(blocks_of(problem.m, problem.blocks.m), core.cores);
  const std::int64_t blocks = blocks_of(problem.k, problem.blocks.k),
                     columns = blocks_of(problem.n, problem.blocks.n);
  for (int term = 0; term < terms; ++term) {
    Program program(core, problem, term, false);
    for (const auto& [count, groups] : {std::pair{program.fused(), blocks / program.fused()},
                                        std::pair{blocks % program.fused(), std::int64_t{1}}}) {
      if (count == 0 || groups == 0) continue;
      Times group{};
      add_group(program, core, count, columns, term, group);
      const auto factor = static_cast<double>(rows * groups);
      times.cycles += factor * group.cycles;
      for (std::size_t p = 0; p < pipes; ++p) times.busy[p] += factor * group.busy[p];
      times.of_terms[static_cast<std::size_t>(term)] += factor * group.cycles;
    }
  }
  return times;
}

Times simulate(const Problem& problem, const std::vector<float>& a, const std::vector<float>& b, int sb,
               Sum model, Components& components, bool skips_waits) {
  Times times{};
  Pipes schedule(ascend_910a, times);
  for (auto& component : components) component.assign(static_cast<std::size_t>(problem.m * problem.n), 0.0F);
  const Program any(ascend_910a, problem, 0, skips_waits);
  Tiles tiles(problem, a, b, sb, model, any);
  const std::int64_t rows = blocks_of(problem.m, problem.blocks.m),
                     blocks = blocks_of(problem.k, problem.blocks.k);
  const std::int64_t columns = blocks_of(problem.n, problem.blocks.n);
  double end = 0;
  for (int term = 0; term < terms; ++term) {
    Program program(ascend_910a, problem, term, skips_waits);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t first = 0; first < blocks; first += program.fused()) {
        tiles.begin(row * problem.blocks.m, first, term, components[static_cast<std::size_t>(term)]);
        const double begin = end;
        end = schedule.run(program.group(std::min(program.fused(), blocks - first), columns), begin,
                           [&](const Operation& operation) { tiles.execute(operation); });
        times.of_terms[static_cast<std::size_t>(term)] += end - begin;
      }
    }
  }
  times.cycles = end;
  return times;
}

std::vector<float> combine(const Components& components, int sb, bool in_fp32) {
  const auto& [low_a, low_b, high] = components;
  std::vector<float> c(high.size());
  const double weight = std::ldexp(1.0, -sb);
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (in_fp32) {
      const float low = low_a[i] + low_b[i];
      c[i] = static_cast<float>(weight) * low + high[i];
    } else {
      c[i] = static_cast<float>(weight * low_a[i] + weight * low_b[i] + high[i]);
    }
  }
  return c;
}

// ----------------------------------------------------------------- numbers

float to_half(float x) {
  constexpr int min_exponent = -14;
  constexpr float largest = 65504;
  if (x == 0 || !std::isfinite(x)) return x;
  // Adding 1.5 * 2^(e + 42) rounds to multiples of 2^(e - 10), FP16's last place; FP64 has 52 bits after the
  // first.
  const double anchor = std::ldexp(1.5, std::max(std::ilogb(x), min_exponent) + 42);
  const auto rounded = static_cast<float>((static_cast<double>(x) + anchor) - anchor);
  return std::fabs(rounded) > largest ? std::copysign(HUGE_VALF, x) : rounded;
}

float add_products(Sum model, float sum, const float* a, const float* b) {
  switch (model) {
    case Sum::sequential:
      // Products of FP16 numbers are exact in FP32, so this is a fused multiply-add.
      for (int q = 0; q < cube_edge; ++q) sum += a[q] * b[q];
      return sum;
    case Sum::once: {
      // Products are multiples of 2^-48, and so is the accumulator: 80-bit numbers add them exactly below
      // 2^15.
      long double exact = sum;
      for (int q = 0; q < cube_edge; ++q) exact += a[q] * b[q];
      return static_cast<float>(exact);
    }
    case Sum::tree: {
      float level[cube_edge];
      for (int q = 0; q < cube_edge; ++q) level[q] = a[q] * b[q];
      for (int width = cube_edge / 2; width > 0; width /= 2)
        for (int q = 0; q < width; ++q) level[q] = level[2 * q] + level[2 * q + 1];
      return sum + level[0];
    }
  }
  return sum;
}

}  // namespace kintsugi::lab::ascend
