#include "engines/cpu/products.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/vectorised.hpp"
#include "engines/tile_loop.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core {

namespace {

static_assert(float_panel == Slices::panel_vectors);
static_assert(float_rows % float_panel == 0 && float_columns % float_panel == 0);

constexpr std::int64_t tile_elements = float_rows * float_columns;
constexpr std::size_t tile_bytes = tile_elements * sizeof(double);

// Number of products whose sum is exact in double. Each product is an integer of at most 2^24.
constexpr std::int64_t exact_length = std::int64_t{1} << 28;

KINTSUGI_VECTORIZED void add_sums(const double* segment, double* sums) {
  for (std::int64_t e = 0; e < tile_elements; ++e) sums[e] += segment[e];
}

KINTSUGI_VECTORIZED void store_floats(const double* source, std::int64_t count, float* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<float>(source[i]);
}

void add_integers(const double* source, std::int64_t count, bool is_first, std::int64_t* target) {
  for (std::int64_t i = 0; i < count; ++i)
    target[i] = (is_first ? 0 : target[i]) + static_cast<std::int64_t>(source[i]);
}

// True if every product of two elements is zero or a normal FP32 number.
bool has_normal_products(const Format& format) {
  return 2 * format.min_quantum() >= -126 && 2 * (format.max_exponent + 1) <= 127;
}

// The terms of one accumulator group, in the form that kernels take.
struct GroupTerms {
  // 64: products of split-n with eight slices a side, the most of any scheme with floating slices.
  std::array<FloatTerm, 64> terms;
  std::int64_t count = 0;

  GroupTerms(const Multiplication& task, int group) {
    for (const Term& term : task.schedule->terms) {
      if (term.group != group) continue;
      if (count == static_cast<std::int64_t>(terms.size())) {
        fail(Status::internal, "accumulator group {} has more than {} terms", group, terms.size());
      }
      terms[static_cast<std::size_t>(count++)] = {term.a * task.a.slice_stride(),
                                                  term.b * task.b.slice_stride(), term.rescales};
    }
  }
};

// Runs the schedule for one tile of C, as schedule/schedule.hpp defines it. Every group has its own sum, and
// is computed over all of k before the next group. With `joint` there is one sum, to which all groups are
// added in every k-block.
class FloatTile {
 public:
  FloatTile(const Multiplication& task, const FloatKernels& kernels, std::int64_t row, std::int64_t column,
            std::byte* scratch)
      : task_(task), schedule_(*task.schedule), kernels_(kernels), row_(row), column_(column),
        rows_(std::min(float_rows, task.sums.rows - row)),
        columns_(std::min(float_columns, task.sums.columns - column)),
        sums_(reinterpret_cast<double*>(scratch)) {}

  void run() {
    for (int sum = 0; sum < schedule_.sums(); ++sum) {
      if (task_.sums.type == SumType::i64) {
        add_in_integers(sum);
      } else {
        add_in_doubles(sum);
      }
    }
  }

 private:
  void add_in_doubles(int sum) {
    const std::int64_t k = task_.a.k;
    const std::int64_t segment = schedule_.segment_length(k);
    double* segment_sums = sums_ + tile_elements;
    compute_segment(sum, 0, std::min(segment, k), sums_);
    for (std::int64_t begin = segment; begin < k; begin += segment) {
      compute_segment(sum, begin, std::min(segment, k - begin), segment_sums);
      add_sums(segment_sums, sums_);
    }
    for_each_panel_column<float>(sum, store_floats);
  }

  void add_in_integers(int sum) {
    for (std::int64_t begin = 0; begin < task_.a.k; begin += exact_length) {
      compute_segment(sum, begin, std::min(exact_length, task_.a.k - begin), sums_);
      for_each_panel_column<std::int64_t>(
          sum, [&](const double* source, std::int64_t count, std::int64_t* target) {
            const bool is_first = begin == 0;
            add_integers(source, count, is_first, target);
          });
    }
  }

  // Computes the sums over one segment. Sums begin with -0, because -0 + x is x for every x, -0 included.
  // Sums of joint groups begin with 0.
  void compute_segment(int sum, std::int64_t first, std::int64_t length, double* sums) const {
    std::fill_n(sums, tile_elements, schedule_.joint ? 0.0 : -0.0);
    const std::int64_t block = schedule_.block_length(task_.a.k);
    const int groups = schedule_.joint ? schedule_.groups : 1;
    for (std::int64_t p = 0; p < length; p += block) {
      for (int group = sum; group < sum + groups; ++group)
        add_block(group, first + p, std::min(block, length - p), sums);
    }
  }

  void add_block(int group, std::int64_t begin, std::int64_t length, double* sums) const {
    const GroupTerms group_terms(task_, group);
    const FloatBlock block{
        .a = task_.a.vector<float>(0, row_) + begin * float_panel,
        .b = task_.b.vector<float>(0, column_) + begin * float_panel,
        .panel_stride = float_panel * task_.a.vector_stride(),
        .rows = rows_,
        .columns = columns_,
        .length = length,
        .step = schedule_.k_step == 0 ? length : schedule_.k_step,
        .terms = group_terms.terms.data(),
        .term_count = group_terms.count,
        .rescale = std::ldexp(1.0F, schedule_.rescale_exponent),
        .weight = schedule_.joint ? std::ldexp(1.0, schedule_.group_exponents[group]) : 1.0,
        .normal_products = has_normal_products(*task_.a.format)};
    kernels_.add_block(block, sums);
  }

  // Calls visit(sums, count, target) for each column of each panel of the tile. `count` is the number of rows
  // inside C, and `target` is the place of these sums in task_.sums.
  template <class Stored, class Visit>
  void for_each_panel_column(int sum, const Visit& visit) const {
    for (std::int64_t j = 0; j < columns_; ++j) {
      Stored* target = task_.sums.group<Stored>(sum) + row_ + (column_ + j) * task_.sums.rows;
      for (std::int64_t i = 0; i < rows_; i += float_panel)
        visit(sums_ + i * float_columns + j * float_panel, std::min(float_panel, rows_ - i), target + i);
    }
  }

  const Multiplication& task_;
  const Schedule& schedule_;
  const FloatKernels& kernels_;
  std::int64_t row_;
  std::int64_t column_;
  std::int64_t rows_;
  std::int64_t columns_;
  double* sums_;  // sums of the tile; sums of a segment follow
};

}  // namespace

double float_rate(const FloatKernels& kernels, FormatId format) {
  const auto has_id = [&](const Format* known) { return known->id == format; };
  return has_normal_products(**std::find_if(formats.begin(), formats.end(), has_id))
             ? kernels.relative_rate
             : kernels.relative_rate_fused;
}

std::size_t floats_worker_bytes(const Schedule& schedule) {
  return aligned_size(schedule.k_segment == 0 ? tile_bytes : 2 * tile_bytes);
}

void multiply_floats(const Multiplication& task, const FloatKernels& kernels) {
  for_each_tile({task.sums.rows, task.sums.columns, float_rows, float_columns}, task.threads, task.scratch,
                floats_worker_bytes(*task.schedule),
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  FloatTile(task, kernels, row, column, scratch).run();
                });
}

}  // namespace kintsugi::core
