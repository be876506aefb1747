// Fused products of the engine cpu: from FP32 and FP64 operands to C by int8 slices, which are made panel by
// panel and multiplied, reduced and recombined before they leave the caches (byte_panels.hpp).
//
// Loops, from outside: blocks of right vectors; blocks of left vectors; the panels of both are split, each
// once; then threads take tiles of the block. A tile goes through all slices, all k and all pairs of panels
// (PanelKernels::multiply), and is recombined into C. Sizes follow from the caches as in H2SGEMM (Eqs. 8 to
// 10): a right panel in two thirds of L1, the tile's left panels of one slice in three eighths of L2.
#include <omp.h>

#if defined(__linux__)
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "arith/residue/complex_residue.hpp"
#include "arith/residue/fraction_sums.hpp"
#include "arith/residue/pair_fractions.hpp"
#include "arith/residue/residue.hpp"
#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/threads.hpp"
#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/products.hpp"
#include "formats/double_double.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/recombine.hpp"

namespace kintsugi::core {

namespace {

constexpr int max_residues = 28;                                      // of real elements
constexpr int max_pair_residues = 4 * PanelPairFractions::max_words;  // of double-double elements
constexpr int max_slices = 4 * PanelFractions::max_words;             // residues of complex elements
constexpr int max_digits = 4;
constexpr int max_planes = 2 * max_digits - 1;         // of digits
static_assert(max_digits * max_digits <= max_slices);  // terms
using Fractions = FractionTable<max_slices>;

// ---------------------------------------------------------------- constants of residues

int symmetric(std::int64_t x, int modulus) {
  const auto rest = static_cast<int>((x % modulus + modulus) % modulus);
  return rest > modulus / 2 ? rest - modulus : rest;
}

// Weights congruent to factor 256^i, one a byte, and the least and the greatest possible weighted sums of
// bytes.
struct Weights {
  ByteWeights packed{};
  std::int64_t least = 0;
  std::int64_t greatest = 0;
};

// `last_byte`: largest value of the last byte.
Weights weights_of(int factor, int bytes, std::int64_t last_byte, int modulus) {
  Weights weights;
  std::int64_t power = factor;
  for (int i = 0; i < bytes; ++i, power = power * 256 % modulus) {
    const int weight = symmetric(power, modulus);
    weights.packed.word[i / 4] |= std::uint32_t{static_cast<std::uint8_t>(weight)} << 8 * (i % 4);
    (weight < 0 ? weights.least : weights.greatest) += (i + 1 < bytes ? 255 : last_byte) * weight;
  }
  return weights;
}

// Returns the least number that is at least `least` and congruent to x.
std::uint32_t bias_of(std::int64_t least, std::int64_t x, int modulus) {
  const std::int64_t rest = ((x - least) % modulus + modulus) % modulus;
  return static_cast<std::uint32_t>(least + rest);
}

// Bytes of sums and of operands' integers, and the bits that the integers may have.
constexpr int most_fraction_bits = 196;  // of fraction_table(): the product of the moduli is below 2^200
constexpr int sum_bytes = 4;
constexpr int most_narrow_bits = 62;
constexpr int most_wide_bits = 94;
constexpr int most_pair_bits = 114;  // so that the parts of a double-double number fit 64 bits

// Factors of the integers of a complex element in a slice; of a real one the second is 0.
struct PartFactors {
  int re;
  int im;
};

// Constants for integers of `bytes` bytes to which 2^(8 bytes - 1) was added.
ByteReduction reduction_of(int modulus, int bytes, PartFactors factors = {1, 0}) {
  ByteReduction reduction{};
  reduction.modulus = static_cast<std::uint32_t>(modulus);
  const Weights first = weights_of(factors.re, bytes, 255, modulus);
  const Weights imaginary = weights_of(factors.im, bytes, 255, modulus);
  reduction.weights = first.packed;
  reduction.imaginary = imaginary.packed;
  if (modulus == 256) return reduction;
  std::int64_t offset = 128;
  for (int i = 1; i < bytes; ++i) offset = offset * 256 % modulus;
  reduction.first_bias =
      bias_of(-first.least - imaginary.least, -offset * (factors.re + factors.im), modulus);
  const std::int64_t greatest = first.greatest + imaginary.greatest + reduction.first_bias;
  const Weights last = weights_of(-65536 % modulus, 3, greatest >> 16, modulus);
  reduction.last = last.packed.word[0];
  reduction.last_bias = bias_of(-last.least, 0, modulus);
  // tests/engines: at most 43,066 for real elements, and below 2^16 for complex ones.
  if (last.greatest + reduction.last_bias > 65'535)
    fail(Status::internal, "sums modulo {} overflow", modulus);
  std::uint32_t inverse = 1;  // Newton's iteration doubles the number of right bits
  for (int i = 0; i < 4; ++i) inverse *= 2 - reduction.modulus * inverse;
  reduction.inverse = inverse & 0xffffU;
  return reduction;
}

// Sets the digits of residues' weights, and where the sums of digits begin for residues less 128;
// `first_sum`: where they begin for residues.
template <class Digits, class FirstSum, class Panel>
void set_digits(const Digits& digits, const FirstSum& first_sum, Panel& panel) {
  for (std::size_t d = 0; d < digits.size(); ++d) {
    panel.first[d] = first_sum(static_cast<int>(d));
    for (std::size_t w = 0; w < digits[d].size(); ++w) {
      panel.digit[d][w] = digits[d][w];
      for (int byte = 0; byte < 4; ++byte) panel.first[d] += 128 * (digits[d][w] >> 8 * byte & 0xffU);
    }
  }
}

PanelFractions panel_fractions(const Fractions& table) {
  PanelFractions result{};
  result.residues = table.count;
  set_digits(table.digits, first_digit_sum, result);
  return result;
}

// Constants of residues of real elements, or of complex ones.
struct ResidueTables {
  using Reductions = std::array<ByteReduction, max_slices>;
  std::array<Reductions, 3> split;  // of operands' integers, by their width
  Reductions sums;

  const Reductions& split_of(IntegerWidth width) const {
    return split[static_cast<std::size_t>(words_of(width) - words_of(IntegerWidth::narrow))];
  }
};

// Constants of recombination for a number of real residues or for a complex basis.
struct Recombination {
  FractionFactor factor;
  std::array<PanelFractions, 2> digits;  // of the two parts
};

// Constants of recombination for a number of residues of double-double elements.
struct PairRecombination {
  PairFractions table;
  PanelPairFractions digits;
};

struct RealTables : ResidueTables {
  std::array<Recombination, max_residues + 1> fractions;  // by the number of residues
  std::array<PairRecombination, max_pair_residues + 1> pairs;
};

struct ComplexTables : ResidueTables {
  ComplexBasis basis;
  Recombination fractions;
};

void set_reductions(ResidueTables& tables, int slice, int modulus, PartFactors factors = {1, 0}) {
  const auto s = static_cast<std::size_t>(slice);
  for (int width = 0; width < 3; ++width) {
    tables.split[static_cast<std::size_t>(width)][s] =
        reduction_of(modulus, 4 * (words_of(IntegerWidth::narrow) + width), factors);
  }
  tables.sums[s] = reduction_of(modulus, sum_bytes);
}

RealTables make_real_tables() {
  RealTables tables{};
  for (int t = 0; t < max_pair_residues; ++t) set_reductions(tables, t, moduli[static_cast<std::size_t>(t)]);
  for (int count = 2; count <= max_residues; ++count) {
    const Fractions table = fraction_table<max_slices>(count);
    tables.fractions[static_cast<std::size_t>(count)] = {table.factor, {panel_fractions(table)}};
  }
  for (int count = 2; count <= max_pair_residues; ++count) {
    PairRecombination& pairs = tables.pairs[static_cast<std::size_t>(count)];
    pairs.table = pair_fractions(count);
    set_digits(
        pairs.table.digit, [](int) { return 0U; }, pairs.digits);
    pairs.digits.residues = count;
  }
  return tables;
}

const RealTables& real_tables() {
  static constinit MadeOnce<RealTables> tables(make_real_tables);
  return tables.get();
}

ComplexTables make_complex_tables(const ComplexBasis& basis) {
  ComplexTables tables{};
  tables.basis = basis;
  std::array<std::array<WeightedResidue, max_slices>, 2> residues{};
  for (int t = 0; t < basis.count(); ++t) {
    const int first = basis.first_slice(t);
    const int root = basis.root(t);
    const std::array<PartFactors, 3> factors = basis.has_root(t)
                                                   ? std::array<PartFactors, 3>{{{1, root}, {1, -root}}}
                                                   : std::array<PartFactors, 3>{{{1, 0}, {0, 1}, {1, 1}}};
    const std::array weights{basis.part_weights(0, t), basis.part_weights(1, t)};
    for (int s = 0; s < (basis.has_root(t) ? 2 : 3); ++s) {
      const auto slice = static_cast<std::size_t>(first + s);
      set_reductions(tables, first + s, basis.modulus(t), factors[static_cast<std::size_t>(s)]);
      for (std::size_t part = 0; part < 2; ++part)
        residues[part][slice] = {t, weights[part][static_cast<std::size_t>(s)]};
    }
  }
  const auto count = static_cast<std::size_t>(basis.slices());
  for (std::size_t part = 0; part < 2; ++part) {
    const Fractions table =
        fraction_table<max_slices>(ResidueSystem{0, basis}, std::span(residues[part]).first(count));
    tables.fractions.factor = table.factor;
    tables.fractions.digits[part] = panel_fractions(table);
  }
  return tables;
}

// Tables of the cheapest bases for the bits of 2, 3, ... real residues, as far as their slices are few
// enough.
std::vector<ComplexTables> make_all_complex_tables() {
  std::vector<ComplexTables> all;
  for (int count = 2; count <= max_residues && residue_bits(count) <= most_fraction_bits; ++count) {
    const ComplexBasis basis = cheapest_basis(residue_bits(count));
    if (basis.empty() || basis.slices() > max_slices || residue_bits(basis) > most_fraction_bits) break;
    all.push_back(make_complex_tables(basis));
  }
  return all;
}

const std::vector<ComplexTables>& complex_tables() {
  static constinit MadeOnce<std::vector<ComplexTables>> tables(make_all_complex_tables);
  return tables.get();
}

// Returns the tables of a basis; nullptr if there are none.
const ComplexTables* find_tables(const ComplexBasis& basis) {
  for (const ComplexTables& tables : complex_tables()) {
    if (tables.basis == basis) return &tables;
  }
  return nullptr;
}

const ResidueTables& tables_of(const SplitRule& rule) {
  if (rule.complex_basis.empty()) return real_tables();
  return *find_tables(rule.complex_basis);
}

// ---------------------------------------------------------------- sizes

struct Caches {
  std::int64_t l1 = 32 << 10;
  std::int64_t l2 = 1 << 20;
};

Caches find_caches() {
  Caches caches;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE); l1 > 0) caches.l1 = l1;
  if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) caches.l2 = l2;
#endif
  return caches;
}

const Caches& caches() {
  static constinit MadeOnce<Caches> found(find_caches);
  return found.get();
}

bool is_by_residues(const FusedProblem& problem) { return problem.split_a.kind == SplitKind::residues; }

// Panels of a block of one operand that a cache may hold.
constexpr std::size_t most_cached_bytes = std::size_t{32} << 20;

int integer_bits(const FusedProblem& problem) {
  return std::max(problem.split_a.integer_bits(), problem.split_b.integer_bits());
}

// Memory of the panels of a block of both operands, unless the smallest block has more.
constexpr std::int64_t preferred_panel_bytes = std::int64_t{512} << 20;

struct Sizes {
  int slices;
  int planes;
  std::int64_t depth;       // inner indices of a panel
  std::int64_t depths;      // panels along k
  std::int64_t left_block;  // vectors, multiples of panel_vectors
  std::int64_t right_block;
  std::int64_t left_tile;
  std::int64_t right_tile;

  // Panels are ordered by slice, then by depth, then by vectors.
  std::int64_t panel_bytes() const { return panel_vectors * depth; }
  std::int64_t depth_stride(std::int64_t block) const { return block * depth; }
  // Slices are a few cache lines apart from a multiple of a page, so that those of one element are in
  // different sets of the caches.
  static constexpr std::int64_t set_padding = 5 * 64;
  std::int64_t slice_stride(std::int64_t block) const { return depths * depth_stride(block) + set_padding; }
  std::size_t panels_bytes(std::int64_t block) const {
    return static_cast<std::size_t>(slices * slice_stride(block));
  }
  // Sums of the vectors of left digits.
  std::size_t vector_sums_bytes() const {
    return aligned_size(static_cast<std::size_t>(depths * left_block * slices) * sizeof(std::int32_t));
  }
  std::int64_t plane_bytes(bool by_residues) const {
    return left_tile * right_tile * (by_residues ? 1 : 4) + set_padding;
  }
  // Planes of a tile, or tiles that are to be transposed; behind them the residues of a pair of panels, one
  // slice after the other, which are recombined exactly.
  std::int64_t planes_bytes(bool by_residues) const {
    return std::max(planes * plane_bytes(by_residues), slices * std::int64_t{1024});
  }
  std::size_t worker_bytes(bool by_residues) const {
    return static_cast<std::size_t>(planes_bytes(by_residues) + (by_residues ? slices * sums_of_panels : 0));
  }
};

// Inner indices of a panel.
std::int64_t depth_of_panels() {
  std::int64_t depth = panel_depth;
  while (depth > panel_step * 4 && panel_vectors * depth > caches().l1 * 2 / 3) depth /= 2;
  return depth;
}

// Left vectors of a tile, of which so many slices meet a right panel: one of residues, all of digits.
std::int64_t left_vectors(std::int64_t depth, int slices) {
  const std::int64_t resident = caches().l2 * 3 / 8 / (depth * slices);
  return std::clamp<std::int64_t>(resident / 128 * 128, 128, 512);
}

// Right vectors of a tile. Sums of digits are four times as large as residues; half the tile stays in L2.
constexpr std::int64_t right_vectors(bool by_residues) { return by_residues ? 1024 : 512; }

// `left` and `right`: numbers of vectors. `slices`: those of the problem, or fewer residues.
Sizes sizes_of(const FusedProblem& problem, std::int64_t left, std::int64_t right, int slices, int threads,
               const PanelStudy& study) {
  const bool by_residues = is_by_residues(problem);
  Sizes sizes{};
  sizes.slices = slices;
  sizes.planes = by_residues ? slices : problem.schedule.sums();
  // Panels along k have about the same depth.
  const std::int64_t k = std::max<std::int64_t>(problem.k, 1);
  const std::int64_t most_depth = study.depth > 0 ? study.depth : depth_of_panels();
  sizes.depth = round_up(divide_up(k, divide_up(k, most_depth)), panel_step);
  sizes.depths = divide_up(problem.k, sizes.depth);
  left = round_up(left, panel_vectors);
  right = round_up(right, panel_vectors);
  sizes.left_tile = std::min(left, left_vectors(sizes.depth, by_residues ? 1 : sizes.slices));
  sizes.right_block = std::min<std::int64_t>(right, threads > 1 ? 4096 : 2048);
  const std::int64_t vector_bytes = sizes.slices * sizes.depths * sizes.depth;
  const std::int64_t left_limit = preferred_panel_bytes / vector_bytes - sizes.right_block;
  sizes.left_block =
      std::min(left, std::max<std::int64_t>(left_limit / panel_vectors * panel_vectors, 4 * sizes.left_tile));
  sizes.right_tile = std::min(sizes.right_block, right_vectors(by_residues));
  // Every thread must get some tiles.
  const auto tiles = [&] {
    return divide_up(sizes.left_block, sizes.left_tile) * divide_up(sizes.right_block, sizes.right_tile);
  };
  const auto divide = [&](std::int64_t least_tiles, std::int64_t least_edge) {
    while (tiles() < least_tiles && std::max(sizes.left_tile, sizes.right_tile) > least_edge) {
      std::int64_t& longer = sizes.right_tile >= sizes.left_tile ? sizes.right_tile : sizes.left_tile;
      longer = round_up(divide_up(longer, 2), panel_vectors);
    }
  };
  if (threads > 1) {
    divide(8 * threads, 256);  // cores may differ in speed by a factor of three
    divide(threads, 64);
  }
  const auto take = [](std::int64_t given, std::int64_t most, std::int64_t& size) {
    size = std::min(given > 0 ? given : size, most);
  };
  take(study.left_block, left, sizes.left_block);
  take(study.right_block, right, sizes.right_block);
  take(study.left_tile, sizes.left_block, sizes.left_tile);
  take(study.right_tile, sizes.right_block, sizes.right_tile);
  return sizes;
}

std::size_t scratch_of(const Sizes& sizes, bool by_residues, int threads) {
  return aligned_size(sizes.panels_bytes(sizes.left_block)) +
         aligned_size(sizes.panels_bytes(sizes.right_block)) + sizes.vector_sums_bytes() +
         static_cast<std::size_t>(std::max(threads, 1)) * aligned_size(sizes.worker_bytes(by_residues));
}

// Returns the largest of several sizes: only C tells which operand is the left one, and operands may need
// fewer residues than were planned (schemes::leave_out_moduli()).
std::size_t scratch_of_study(const FusedProblem& problem, int threads, const PanelStudy& study) {
  tables_of(problem.split_a);  // made by plans, so that executions allocate nothing
  const bool by_residues = is_by_residues(problem);
  const int most = problem.split_a.slices;
  std::size_t bytes = 0;
  for (int slices = by_residues ? 1 : most; slices <= most; ++slices) {
    for (const auto& [left, right] : {std::pair(problem.m, problem.n), std::pair(problem.n, problem.m)})
      bytes = std::max(
          bytes, scratch_of(sizes_of(problem, left, right, slices, threads, study), by_residues, threads));
  }
  return bytes;
}

std::size_t scratch_bytes(const FusedProblem& problem, int threads) {
  return scratch_of_study(problem, threads, {});
}

// ---------------------------------------------------------------- the product

template <class T>
class Product {
 public:
  Product(const FusedProduct<T>& product, const PanelKernels& kernels, const PanelStudy& study)
      : product_(product), problem_(product.problem), by_residues_(is_by_residues(problem_)),
        kernels_(kernels), swaps_(product.c.row_stride == 1), left_(swaps_ ? product.b : product.a),
        right_(swaps_ ? product.a : product.b), left_ranges_(swaps_ ? columns_of(product) : rows_of(product)),
        right_ranges_(swaps_ ? rows_of(product) : columns_of(product)),
        c_(swaps_ ? product.c.transposed() : product.c),
        sizes_(sizes_of(problem_, swaps_ ? problem_.n : problem_.m, swaps_ ? problem_.m : problem_.n,
                        problem_.split_a.slices, product.threads, study)),
        reduces_at_once_(study.reduces_at_once), tables_(tables_of(problem_.split_a)),
        fractions_(recombination_of(problem_)) {
    make_terms();
    left_panels_ = product.scratch;
    right_panels_ = left_panels_ + aligned_size(sizes_.panels_bytes(sizes_.left_block));
    std::byte* const sums = right_panels_ + aligned_size(sizes_.panels_bytes(sizes_.right_block));
    vector_sums_ = reinterpret_cast<std::int32_t*>(sums);
    workers_ = sums + sizes_.vector_sums_bytes();
  }

  void run() {
    const std::int64_t right_tiles = divide_up(sizes_.right_block, sizes_.right_tile);
    const std::int64_t left_tiles = divide_up(sizes_.left_block, sizes_.left_tile);
    const std::int64_t panels =
        std::max(sizes_.left_block, sizes_.right_block) / panel_vectors * sizes_.depths;
    const int threads = workers_for(std::max(left_tiles * right_tiles, panels), product_.threads);
#pragma omp parallel num_threads(threads)
    {
      const FloatingEnvironment environment;
      std::byte* const scratch = workers_ + static_cast<std::size_t>(omp_get_thread_num()) *
                                                aligned_size(sizes_.worker_bytes(by_residues_));
      for (std::int64_t right = 0; right < right_.rows; right += sizes_.right_block) {
        const std::int64_t right_count = std::min(sizes_.right_block, right_.rows - right);
        split_block(right_, right_ranges_, {right, right_count}, right_panels_, sizes_.right_block, false,
                    scratch);
        for (std::int64_t left = 0; left < left_.rows; left += sizes_.left_block) {
          const std::int64_t left_count = std::min(sizes_.left_block, left_.rows - left);
          if (right == 0 || left_.rows > sizes_.left_block)
            split_block(left_, left_ranges_, {left, left_count}, left_panels_, sizes_.left_block, true,
                        scratch);
          multiply_block({left, left_count}, {right, right_count}, scratch);
        }
      }
    }
  }

 private:
  using Real = std::conditional_t<is_double_double<T>, double, RealOf<T>>;
  static constexpr std::int64_t parts = parts_of<T>;

  // Data of vectors, of which b's have two of the same value for each vector with complex elements.
  template <class Data>
  struct OfVectors {
    std::span<const Data> data;
    std::size_t each;

    std::size_t size() const { return data.size() / each; }
    const Data& operator[](std::size_t v) const { return data[each * v]; }
    OfVectors panel(std::int64_t first) const {
      const auto begin = static_cast<std::size_t>(first);
      return {data.subspan(each * begin, each * std::min<std::size_t>(panel_vectors, size() - begin)), each};
    }
  };
  using Ranges = OfVectors<VectorRange>;
  using Bounds = OfVectors<RoundingBound>;

  static Ranges rows_of(const FusedProduct<T>& product) { return {product.rows, 1}; }
  static Ranges columns_of(const FusedProduct<T>& product) { return {product.columns, parts}; }

  static const Recombination& recombination_of(const FusedProblem& problem) {
    static constexpr Recombination none{};
    if (!is_by_residues(problem) || is_double_double<T>) return none;
    if (is_complex<T>) return find_tables(problem.split_a.complex_basis)->fractions;
    return real_tables().fractions[static_cast<std::size_t>(problem.split_a.slices)];
  }

  void make_terms() {
    const Schedule& schedule = problem_.schedule;
    for (const Term& term : schedule.terms)
      terms_[term_count_++] = {
          .left = swaps_ ? term.b : term.a, .right = swaps_ ? term.a : term.b, .plane = term.group};
    std::sort(terms_.begin(), terms_.begin() + static_cast<std::ptrdiff_t>(term_count_),
              [](const PanelTerm& x, const PanelTerm& y) { return x.right < y.right; });
  }

  IntegerWidth width() const {
    if (is_double_double<T>) return IntegerWidth::pair;
    return by_residues_ && integer_bits(problem_) > most_narrow_bits ? IntegerWidth::wide
                                                                     : IntegerWidth::narrow;
  }

  // Splits the vectors of a block into panels. All threads call it, and leave it together.
  void split_block(const MatrixView<const T>& operand, const Ranges& ranges, Interval vectors,
                   std::byte* panels, std::int64_t block, bool is_left, std::byte* scratch) {
    const std::int64_t panel_count = divide_up(vectors.count, panel_vectors);
    const int added = by_residues_ ? 0 : 8 * (sizes_.slices - 1);
    // Panels that no cache holds until they are read need not be read before they are written.
    const bool streams = sizes_.panels_bytes(block) > most_cached_bytes;
    const auto& reductions = tables_.split_of(width());
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t task = 0; task < panel_count * sizes_.depths; ++task) {
      const std::int64_t panel = task % panel_count;
      const std::int64_t depth = task / panel_count;
      const std::int64_t first = vectors.first + panel * panel_vectors;
      std::array<double, panel_vectors> exponents{};
      const std::int64_t count = std::min(panel_vectors, vectors.end() - first);
      for (std::int64_t v = 0; v < count; ++v)
        exponents[static_cast<std::size_t>(v)] = ranges[static_cast<std::size_t>(first + v)].scale + added;
      kernels_.split({.elements = &operand(first, depth * sizes_.depth),
                      .is_double = sizeof(Real) == sizeof(double),
                      .is_complex = is_complex<T>,
                      .conjugates = is_left == swaps_ ? product_.conjugates_b : product_.conjugates_a,
                      .vector_stride = operand.row_stride,
                      .inner_stride = operand.column_stride,
                      .vectors = count,
                      .length = std::min(sizes_.depth, operand.columns - depth * sizes_.depth),
                      .exponents = exponents.data(),
                      .reductions = by_residues_ ? reductions.data() : nullptr,
                      .width = width(),
                      .slices = sizes_.slices,
                      .is_left = is_left,
                      .streams = streams,
                      .panel = panels + depth * sizes_.depth_stride(block) + panel * sizes_.panel_bytes(),
                      .slice_stride = sizes_.slice_stride(block),
                      .vector_sums = is_left && !by_residues_ ? vector_sums(depth, panel) : nullptr,
                      .scratch = scratch});
    }
  }

  std::int32_t* vector_sums(std::int64_t depth, std::int64_t panel) const {
    return vector_sums_ +
           (depth * (sizes_.left_block / panel_vectors) + panel) * sizes_.slices * panel_vectors;
  }

  // Multiplies all tiles of a block and recombines them. All threads call it, and leave it together.
  void multiply_block(Interval left, Interval right, std::byte* scratch) {
    const std::int64_t left_tiles = divide_up(left.count, sizes_.left_tile);
    const std::int64_t right_tiles = divide_up(right.count, sizes_.right_tile);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t tile = 0; tile < left_tiles * right_tiles; ++tile) {
      const std::int64_t first_left = tile % left_tiles * sizes_.left_tile;
      const std::int64_t first_right = tile / left_tiles * sizes_.right_tile;
      multiply_tile(left.first, {first_left, std::min(sizes_.left_tile, left.count - first_left)},
                    right.first, {first_right, std::min(sizes_.right_tile, right.count - first_right)},
                    scratch);
    }
  }

  // `left` and `right` are relative to the block.
  void multiply_tile(std::int64_t left_block, Interval left, std::int64_t right_block, Interval right,
                     std::byte* planes) {
    const std::int64_t left_panels = divide_up(left.count, panel_vectors);
    const std::int64_t right_panels = divide_up(right.count, panel_vectors);
    const std::int64_t plane_stride = sizes_.plane_bytes(by_residues_);
    PanelProducts task{.left = nullptr,
                       .right = nullptr,
                       .next_left = nullptr,
                       .next_right = nullptr,
                       .left_stride = sizes_.slice_stride(sizes_.left_block),
                       .right_stride = sizes_.slice_stride(sizes_.right_block),
                       .panel_stride = sizes_.panel_bytes(),
                       .left_panels = left_panels,
                       .right_panels = right_panels,
                       .length = 0,
                       .terms = nullptr,
                       .term_count = 0,
                       .reductions = by_residues_ ? tables_.sums.data() : nullptr,
                       .planes = planes,
                       .plane_stride = plane_stride,
                       .is_first = true,
                       .reduces_at_once = reduces_at_once_};
    const auto left_at = [&](std::int64_t depth) {
      return left_panels_ + depth * sizes_.depth_stride(sizes_.left_block) + left.first * sizes_.depth;
    };
    const auto right_at = [&](std::int64_t depth) {
      return right_panels_ + depth * sizes_.depth_stride(sizes_.right_block) + right.first * sizes_.depth;
    };
    // `next`: terms of the next products if `depth` is the last one; the next depth follows otherwise.
    const auto multiply = [&](std::int64_t depth, std::span<const PanelTerm> terms, const PanelTerm& next) {
      const bool is_last = depth + 1 == sizes_.depths;
      const PanelTerm& follows = is_last ? next : terms.front();
      const std::int64_t next_depth = is_last ? 0 : depth + 1;
      task.left = left_at(depth);
      task.right = right_at(depth);
      task.next_left = left_at(next_depth) + follows.left * task.left_stride;
      task.next_right = right_at(next_depth) + follows.right * task.right_stride;
      task.length = std::min(sizes_.depth, problem_.k - depth * sizes_.depth);
      task.terms = terms.data();
      task.term_count = static_cast<int>(terms.size());
      task.is_first = depth == 0;
      kernels_.multiply(task);
    };
    const std::span<const PanelTerm> terms(terms_.data(), term_count_);
    if (by_residues_) {  // a plane stays in the cache over all of k
      for (std::size_t t = 0; t < terms.size(); ++t) {
        for (std::int64_t depth = 0; depth < sizes_.depths; ++depth)
          multiply(depth, terms.subspan(t, 1), terms[std::min(t + 1, terms.size() - 1)]);
      }
    } else {
      for (std::int64_t depth = 0; depth < sizes_.depths; ++depth) multiply(depth, terms, terms.front());
    }
    for (std::int64_t i = 0; i < left_panels; ++i) {
      const RowShifts shifts = row_shifts(left.first / panel_vectors + i);
      for (std::int64_t j = 0; j < right_panels; ++j)
        recombine_pair(shifts, planes + (i * right_panels + j) * sums_of_panels * (by_residues_ ? 1 : 4),
                       planes + sizes_.planes_bytes(by_residues_), plane_stride,
                       left_block + left.first + i * panel_vectors,
                       right_block + right.first + j * panel_vectors);
    }
  }

  static constexpr std::size_t lanes = panel_vectors;

  // PanelResults::row_shifts of a left panel; zeros for residues.
  using RowShifts = std::array<std::int32_t, max_planes * lanes>;
  RowShifts row_shifts(std::int64_t panel) const {
    RowShifts shifts{};
    for (std::size_t t = 0; t < term_count_ && !by_residues_; ++t) {
      std::int32_t* const plane = shifts.data() + terms_[t].plane * panel_vectors;
      for (std::int64_t depth = 0; depth < sizes_.depths; ++depth) {
        const std::int32_t* const sums = vector_sums(depth, panel) + terms_[t].left * panel_vectors;
        for (std::size_t v = 0; v < lanes; ++v)  // modulo 2^32
          plane[v] = static_cast<std::int32_t>(static_cast<std::uint32_t>(plane[v]) +
                                               (static_cast<std::uint32_t>(sums[v]) << 7));
      }
    }
    return shifts;
  }

  // Bits of vectors that exist and are finite.
  static std::uint32_t finite_vectors(const Ranges& ranges) {
    std::uint32_t bits = 0;
    for (std::size_t v = 0; v < ranges.size(); ++v) bits |= ranges[v].finite() ? 1U << v : 0U;
    return bits;
  }

  // True if double arithmetic rounds the results of residues (arith/residue/fraction_sums.hpp).
  bool are_rounded_by_doubles(const Ranges& rows, const Ranges& columns) const {
    const auto are_ordinary = [](const Ranges& ranges) {
      return std::ranges::all_of(ranges.data, [](const VectorRange& range) {
        return std::abs(range.scale) <= max_ordinary_exponent / 2 || !range.finite();
      });
    };
    const T alpha = product_.alpha;
    const T beta = product_.beta;
    const bool may_update = !is_double_double<T>;
    return (alpha == T(1) || alpha == T(-1)) &&
           (beta == T(0) || (may_update && (beta == T(1) || beta == T(-1)))) && are_ordinary(rows) &&
           are_ordinary(columns);
  }

  // A pair of panels, whose elements are recombined.
  struct Pair {
    const RowShifts& shifts;
    const std::byte* planes;
    std::byte* residues;  // memory for exact recombination
    std::int64_t plane_stride;
    std::int64_t left;  // first vectors
    std::int64_t right;
    Ranges rows;
    Ranges columns;
    // Bit j of open[i]: element (i, j) must be computed. Its row and column are finite.
    std::array<std::uint32_t, panel_vectors> open{};
  };

  // Calls visit(i, j, state) for the elements of a pair, in their order in memory.
  template <class Visit>
  void for_each_state(const Pair& pair, const Visit& visit) const {
    const std::int64_t stride = product_.c.rows;
    const auto rows = static_cast<std::int64_t>(pair.rows.size());
    const auto columns = static_cast<std::int64_t>(pair.columns.size());
    if (swaps_) {
      std::uint8_t* const states = product_.check->states + pair.right + pair.left * stride;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) visit(i, j, states[j + i * stride]);
      }
    } else {
      std::uint8_t* const states = product_.check->states + pair.left + pair.right * stride;
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = 0; i < rows; ++i) visit(i, j, states[i + j * stride]);
      }
    }
  }

  void find_open(Pair& pair) const {
    const std::uint32_t columns = finite_vectors(pair.columns);
    for (std::size_t i = 0; i < pair.rows.size(); ++i) pair.open[i] = pair.rows[i].finite() ? columns : 0;
    if (product_.check == nullptr) return;
    for_each_state(pair, [&](std::int64_t i, std::int64_t j, std::uint8_t state) {
      pair.open[i] &= ~(static_cast<std::uint32_t>(state == ElementCheck::closed) << j);
    });
  }

  // Counts the elements that are still open, and closes all others.
  void finish_check(const Pair& pair) const {
    std::int64_t count = 0;
    for (const std::uint32_t bits : pair.open) count += std::popcount(bits);
    if (count > 0) product_.check->open += count;
    if (!product_.check->writes) return;
    for_each_state(pair, [&](std::int64_t i, std::int64_t j, std::uint8_t& state) {
      state = (pair.open[i] >> j & 1) != 0 ? ElementCheck::open : ElementCheck::closed;
    });
  }

  // Bounds of the left and the right operand under a check.
  Bounds left_bounds() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? Bounds{check.columns, parts} : Bounds{check.rows, 1};
  }
  Bounds right_bounds() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? Bounds{check.rows, 1} : Bounds{check.columns, parts};
  }
  double largest_left() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? check.largest_b : check.largest_a;
  }
  double largest_right() const {
    const ElementCheck& check = product_.check->elements;
    return swaps_ ? check.largest_a : check.largest_b;
  }

  // `largest_of_other`: upper bound of the other operand's integers. The bounds of the two vectors of a
  // complex column differ only by the rounding of their sums.
  static void set_bounds(const Bounds& bounds, double largest_of_other, PanelBounds& panel) {
    // The slacks of largest_deviation() are more than its rounding errors.
    constexpr double slack = (1 + 0x1p-20) * (1 + 0x1p-20);
    for (std::size_t v = 0; v < bounds.size(); ++v) {
      panel.inexact[v] = 0.25 * slack * bounds[v].inexact;
      panel.products[v] = 0.5 * slack * bounds[v].inexact * largest_of_other;
      panel.magnitudes[v] = 0.5 * slack * bounds[v].magnitudes;
    }
  }

  void recombine_pair(const RowShifts& shifts, const std::byte* planes, std::byte* residues,
                      std::int64_t plane_stride, std::int64_t left, std::int64_t right) {
    Pair pair{.shifts = shifts,
              .planes = planes,
              .residues = residues,
              .plane_stride = plane_stride,
              .left = left,
              .right = right,
              .rows = left_ranges_.panel(left),
              .columns = right_ranges_.panel(right)};
    find_open(pair);
    const bool may_round = !by_residues_ || are_rounded_by_doubles(pair.rows, pair.columns);
    if (!may_round || round_pair(pair)) recombine_exactly(pair);
    if (product_.check != nullptr) finish_check(pair);
  }

  // Recombines the elements for which double arithmetic is enough. Returns what PanelKernels::recombine()
  // does.
  bool round_pair(Pair& pair) const {
    alignas(64) std::array<double, lanes> row_units{}, row_offsets{}, column_units{}, high{}, low{}, last{},
        deviation{};
    for (std::size_t v = 0; v < pair.rows.size(); ++v) {
      if (!pair.rows[v].finite()) continue;
      row_units[v] = power_of_two(-pair.rows[v].scale);
      row_offsets[v] = FractionRow::of_unit(row_units[v]).offset;
    }
    const double alpha = leading_number(product_.alpha);
    for (std::size_t v = 0; v < pair.columns.size(); ++v) {
      if (!pair.columns[v].finite()) continue;
      column_units[v] = power_of_two(-pair.columns[v].scale);
      if constexpr (is_double_double<T>) {
        const auto& [m1, m2, m3] = pairs().table.product;
        high[v] = m1 * alpha * column_units[v];
        low[v] = m2 * alpha * column_units[v];
        last[v] = m3 * alpha * column_units[v];
        deviation[v] = pairs().table.deviation * 0x1p-116 * column_units[v];
      } else {
        const FractionFactor factor = fractions_.factor.times(column_units[v], alpha * column_units[v]);
        high[v] = factor.high;
        low[v] = factor.low;
        deviation[v] = factor.deviation;
      }
    }
    alignas(64) PanelBounds row_bounds{}, column_bounds{};
    const bool is_checked = product_.check != nullptr;
    if (is_checked) {
      set_bounds(left_bounds().panel(pair.left), largest_right(), row_bounds);
      set_bounds(right_bounds().panel(pair.right), largest_left(), column_bounds);
    }
    const Schedule& schedule = problem_.schedule;
    const auto digits_of = [&](std::size_t part) {
      return by_residues_ ? &fractions_.digits[part] : nullptr;
    };
    return kernels_.recombine(
        {.planes = pair.planes,
         .plane_stride = pair.plane_stride,
         .plane_count = sizes_.planes,
         .row_shifts = pair.shifts.data(),
         .row_units = row_units.data(),
         .row_offsets = row_offsets.data(),
         .column_units = column_units.data(),
         .column_high = high.data(),
         .column_low = low.data(),
         .column_deviation = deviation.data(),
         .fractions = {digits_of(0), digits_of(1)},
         .pair_fractions = is_double_double<T> ? &pairs().digits : nullptr,
         .column_last = last.data(),
         .reductions = tables_.sums.data(),
         .planes_of_roots = 2 * problem_.split_a.complex_basis.with_root,
         .smallest_weight = by_residues_ ? 0 : power_of_two(schedule.sum_exponent(sizes_.planes - 1)),
         .alpha = alpha,
         .beta = leading_number(product_.beta),
         .c = &c_(pair.left, pair.right),
         .is_double = sizeof(Real) == sizeof(double),
         .is_complex = is_complex<T>,
         .row_stride = c_.row_stride,
         .open = pair.open.data(),
         .writes = writes(),
         .row_bounds = is_checked ? &row_bounds : nullptr,
         .column_bounds = is_checked ? &column_bounds : nullptr});
  }

  const PairRecombination& pairs() const {
    return real_tables().pairs[static_cast<std::size_t>(sizes_.slices)];
  }

  // Number of a real scalar.
  static double leading_number(const T& x) {
    if constexpr (is_double_double<T>)
      return x.hi;
    else
      return static_cast<double>(std::real(x));
  }

  bool writes() const { return product_.check == nullptr || product_.check->writes; }

  // Copies data of a panel's vectors, `each` times: those that recombination takes for rows or columns of C.
  template <class Data>
  struct Copies {
    std::array<Data, parts * lanes> data{};
    std::size_t count = 0;

    Copies(const OfVectors<Data>& vectors, std::size_t each) {
      for (std::size_t v = 0; v < vectors.size(); ++v) {
        for (std::size_t i = 0; i < each; ++i) data[count++] = vectors[v];
      }
    }
    std::span<const Data> all() const { return std::span(data).first(count); }
  };

  // Recombines the open elements of a pair by exact integers, as elements of C's transpose: the rows of its
  // sums are the pair's columns.
  void recombine_exactly(Pair& pair) const {
    const auto rows = static_cast<std::int64_t>(pair.rows.size());
    const auto columns = static_cast<std::int64_t>(pair.columns.size());
    Accumulators sums = make_accumulators(SumType::residue, columns, rows, sizes_.slices);
    sums.data = pair.residues;
    constexpr std::int64_t group = 4;  // columns that are neighbours in a plane
    for (int t = 0; t < sizes_.slices; ++t) {
      const std::byte* const plane = pair.planes + t * pair.plane_stride;
      std::uint8_t* target = sums.group<std::uint8_t>(t);
      for (std::int64_t i = 0; i < rows; ++i, target += columns) {
        std::int64_t j = 0;
        for (; j + group <= columns; j += group) std::memcpy(target + j, plane + index_in_plane(i, j), group);
        if (j < columns) std::memcpy(target + j, plane + index_in_plane(i, j), columns - j);
      }
    }
    const bool is_checked = product_.check != nullptr;
    const auto to_compute = is_checked ? ElementCheck::open : ElementCheck::proved;
    std::array<std::uint8_t, sums_of_panels> states;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j)
        states[j + i * columns] = (pair.open[i] >> j & 1) != 0 ? to_compute : ElementCheck::closed;
    }
    const Copies<RoundingBound> row_bounds(is_checked ? right_bounds().panel(pair.right) : Bounds{{}, 1}, 1);
    const Copies<RoundingBound> column_bounds(is_checked ? left_bounds().panel(pair.left) : Bounds{{}, 1},
                                              parts);
    ElementCheck check;
    if (is_checked) {
      check = {.rows = row_bounds.all(),
               .columns = column_bounds.all(),
               .largest_a = largest_right(),
               .largest_b = largest_left(),
               .demand = product_.check->elements.demand};
    }
    MatrixView<T> c = c_.block(pair.left, pair.right, rows, columns).transposed();
    std::array<T, sums_of_panels> copy;
    if (!writes()) {
      const MatrixView<T> target{copy.data(), columns, rows, 1, columns};
      for (std::int64_t i = 0; i < rows && product_.beta != T(0); ++i) {
        for (std::int64_t j = 0; j < columns; ++j) target(j, i) = c(j, i);
      }
      c = target;
    }
    recombine_checked_residues(sums, ResidueSystem{sizes_.slices, problem_.split_a.complex_basis},
                               Copies<VectorRange>(pair.columns, 1).all(),
                               Copies<VectorRange>(pair.rows, parts).all(), check, product_.alpha,
                               product_.beta, c, states.data(), /*writes=*/true, 1);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (states[j + i * columns] == ElementCheck::closed) pair.open[i] &= ~(1U << j);
      }
    }
  }

  // Index of a residue in a plane of a pair: units of four rows by 16 columns, of which four columns of all
  // rows are neighbours.
  static std::int64_t index_in_plane(std::int64_t i, std::int64_t j) {
    const std::int64_t unit = i / 16 * 8 + j / 16 * 4 + i % 16 / 4;
    return 64 * unit + 16 * (j % 16 / 4) + 4 * (i % 4) + j % 4;
  }

  const FusedProduct<T>& product_;
  const FusedProblem& problem_;
  bool by_residues_;
  const PanelKernels& kernels_;
  bool swaps_;  // C's columns are contiguous: the left operand is B
  MatrixView<const T> left_;
  MatrixView<const T> right_;
  Ranges left_ranges_;
  Ranges right_ranges_;
  MatrixView<T> c_;  // left vectors by right vectors
  Sizes sizes_;
  bool reduces_at_once_;
  std::array<PanelTerm, max_slices> terms_;
  std::size_t term_count_ = 0;
  const ResidueTables& tables_;
  const Recombination& fractions_;
  std::byte* left_panels_;
  std::byte* right_panels_;
  std::int32_t* vector_sums_;
  std::byte* workers_;
};

template <class T>
void run(const FusedProduct<T>& product) {
  multiply_panels(product, *int8_choice().kernels->panels);
}

// ---------------------------------------------------------------- what the kernel takes

bool is_of_residues(const SplitRule& rule) {
  return rule.format->id == FormatId::int8 && rule.kind == SplitKind::residues;
}

// True if slices of double-double elements are taken.
bool takes_pairs(const SplitRule& rule) {
  return is_of_residues(rule) && rule.slices <= max_pair_residues && rule.integer_bits() <= most_pair_bits;
}

// True if sums of a plane over all of k fit 32 bits.
bool sums_fit(const FusedProblem& problem) {
  std::array<std::int64_t, max_groups> terms{};
  for (const Term& term : problem.schedule.terms) ++terms[static_cast<std::size_t>(term.group)];
  constexpr std::int64_t most_products = 131'071;
  return *std::ranges::max_element(terms) * problem.k <= most_products;
}

bool takes(const FusedProblem& problem) {
  if (int8_choice().kernels->panels == nullptr) return false;
  const bool is_complex = problem.type == ElementType::c32 || problem.type == ElementType::c64;
  if (is_complex == problem.split_a.complex_basis.empty()) return false;
  if (problem.is_double_double) return takes_pairs(problem.split_a) && takes_pairs(problem.split_b);
  if (problem.split_a.kind != problem.split_b.kind || problem.split_a.slices != problem.split_b.slices)
    return false;
  if (!problem.weighted) return takes_residues(problem.split_a) && takes_residues(problem.split_b);
  return problem.type == ElementType::f32 && takes_digits(problem.split_a) && sums_fit(problem);
}

constexpr std::array steps{StepKind::split, StepKind::multiply, StepKind::recombine};

}  // namespace

std::string panel_details() {
  if (int8_choice().kernels->panels == nullptr) return {};
  const std::int64_t depth = depth_of_panels();
  return fmt::format(" (panels of {} x {}, tiles of {} x {} for residues and {} x {} for three digits)",
                     panel_vectors, depth, left_vectors(depth, 1), right_vectors(true),
                     left_vectors(depth, 3), right_vectors(false));
}

bool takes_residues(const SplitRule& rule) {
  if (!is_of_residues(rule) || rule.integer_bits() > most_wide_bits) return false;
  if (!rule.complex_basis.empty()) return find_tables(rule.complex_basis) != nullptr;
  return rule.slices <= max_residues && residue_bits(rule.slices) <= most_fraction_bits;
}

bool takes_digits(const SplitRule& rule) {
  return rule.format->id == FormatId::int8 && rule.kind == SplitKind::grid_digits &&
         rule.slices <= max_digits;
}

template <class T>
void multiply_panels(const FusedProduct<T>& product, const PanelKernels& kernels, const PanelStudy& study) {
  Product<T>(product, kernels, study).run();
}
#define INSTANTIATE(T) \
  template void multiply_panels(const FusedProduct<T>&, const PanelKernels&, const PanelStudy&);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

std::size_t panel_scratch_bytes(const FusedProblem& problem, int threads, const PanelStudy& study) {
  return scratch_of_study(problem, threads, study);
}

PanelStudy panel_sizes(const FusedProblem& problem, int threads, const PanelStudy& study) {
  const Sizes sizes = sizes_of(problem, problem.n, problem.m, problem.split_a.slices, threads, study);
  return {.depth = sizes.depth,
          .left_tile = sizes.left_tile,
          .right_tile = sizes.right_tile,
          .left_block = sizes.left_block,
          .right_block = sizes.right_block,
          .reduces_at_once = study.reduces_at_once};
}

const FusedKernel byte_products{.name = "byte_products",
                                .steps = steps,
                                .takes = takes,
                                .scratch_bytes = scratch_bytes,
                                .run_f32 = run<float>,
                                .run_f64 = run<double>,
                                .run_c32 = run<std::complex<float>>,
                                .run_c64 = run<std::complex<double>>,
                                .run_dd = run<DoubleDouble>};

}  // namespace kintsugi::core
