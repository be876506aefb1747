#include "tools/measure/generators/generators.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::measure {

namespace {

struct Form {
  DistributionKind kind;
  const char* name;
  const char* parameter;  // its letter in messages; nullptr: no parameter
  double least;
  double most;
  bool is_integer;
  const char* meaning;
};

constexpr double huge_value = std::numeric_limits<double>::max();

constexpr Form forms[] = {
    {DistributionKind::uniform, "uniform", nullptr, 0, 0, false, "uniform on [-1, 1]"},
    {DistributionKind::uniform_01, "uniform01", nullptr, 0, 0, false, "uniform on [0, 1]"},
    {DistributionKind::normal, "normal", nullptr, 0, 0, false, "normal deviates of variance 1"},
    {DistributionKind::language_model, "language-model", nullptr, 0, 0, false,
     "uniform on [0.5, 2.5], as le-gemm's language models"},
    {DistributionKind::phi, "phi", "P", 0, huge_value, false, "(rand - 0.5) exp(P randn)"},
    {DistributionKind::exponent_type, "type", "1...4", 1, 4, true, "exponent ranges of fp16-emulation-study"},
    {DistributionKind::offset, "offset", "E", -1074, 1023, true, "uniform on [-2^E, 2^E]"},
    {DistributionKind::offset_nonnegative, "offset-nonnegative", "E", -1074, 1023, true,
     "uniform on [0, 2^E]"},
    {DistributionKind::graded, "graded", "S", -1023, 2000, false,
     "rows of A, columns of B graded over S binades"},
    {DistributionKind::graded_inner, "graded-inner", "S", 0, 2000, false, "graded over S binades along k"},
    {DistributionKind::diagonal, "diagonal", "S", 0, 2000, false, "A = X D, B = D^-1 Y, D over S binades"},
    {DistributionKind::gram_diagonal, "gram-diagonal", "S", 0, 2000, false,
     "A = X D, B = D^-1 X^T, D over S binades"},
    {DistributionKind::crossed, "crossed", "S", 0, 1000, true, "pairs 1, 2^-S in A and 2^-2S, 1 in B"},
    {DistributionKind::span, "span", "S", 0, 2045, true, "exponents of every row of A, column of B S apart"},
    {DistributionKind::cancellation, "cancellation", "T", 0, 1000, true, "sums cancel up to a relative 2^-T"},
    {DistributionKind::subnormal, "subnormal", nullptr, 0, 0, false, "subnormal numbers"},
    {DistributionKind::subnormal_mixed, "subnormal-mixed", nullptr, 0, 0, false,
     "one half subnormal numbers"},
    {DistributionKind::outlier, "outlier", "E", 0, 2000, true,
     "uniform, one element of every row of A, column of B times 2^E"},
    {DistributionKind::tile_outlier, "tile-outlier", "RATE", 0, 1, false,
     "uniform, one element times 2^20 in this share of tiles of 16 x 32 (A) and 32 x 8 (B)"},
    {DistributionKind::zeros, "zeros", "RATE", 0, 1, false, "zeros at this rate among uniform"},
    {DistributionKind::special, "special", "RATE", 0, 1, false, "NaN, +-Inf, +-0 at this rate among uniform"},
    {DistributionKind::integer, "integer", "N", 0, 0x1p53, true, "integers on [-N, N]"},
    {DistributionKind::power_of_two, "power-of-two", "E", -1074, 1023, true, "2^E everywhere"},
    {DistributionKind::powers_of_two, "powers-of-two", "R", 0, 1000, true, "+-2^e, e on [-R, R]"},
};

// Returns the form's text; type1 has no colon, as in the study.
std::string form_text(const Form& form) {
  if (form.parameter == nullptr) return form.name;
  return std::string(form.name) + (form.kind == DistributionKind::exponent_type ? "" : ":") + form.parameter;
}

std::vector<std::string> form_texts() {
  std::vector<std::string> texts;
  for (const Form& form : forms) texts.push_back(form_text(form));
  return texts;
}

[[noreturn]] void refuse(std::string_view text, const char* why) {
  core::fail(core::Status::bad_setting, "distribution '{}' {}{}", text, why,
             core::accepted_names("", "accepted:", form_texts()));
}

// Fails with a hint from the name alone: for "phy:2" it is phi:P.
[[noreturn]] void refuse_name(std::string_view text) {
  std::vector<std::string> names;
  for (const Form& form : forms) names.emplace_back(form.name);
  const auto nearest = core::nearest_name(text.substr(0, text.find(':')), names);
  const auto form = std::find_if(std::begin(forms), std::end(forms),
                                 [&](const Form& each) { return nearest && *nearest == each.name; });
  core::fail(
      core::Status::bad_setting, "distribution '{}' is unknown{}", text,
      core::accepted_names(form == std::end(forms) ? "" : form_text(*form), "accepted:", form_texts()));
}

double parse_parameter(const Form& form, std::string_view text, std::string_view digits) {
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value))
    refuse(text, "has no number where one belongs");
  if (form.is_integer && value != std::trunc(value)) refuse(text, "needs a whole number");
  if (value < form.least || value > form.most) {
    const std::string why = fmt::format("has a parameter outside {}...{}", form.least, form.most);
    refuse(text, why.c_str());
  }
  return value;
}

using core::Status;

// One vector along the inner dimension: a row of op(A) or a column of op(B).
template <class T>
struct Vector {
  T* data;
  std::int64_t stride;
  std::int64_t length;  // k
  std::int64_t index;   // which of the `count` rows or columns
  std::int64_t count;
  Side side;

  T& operator[](std::int64_t l) const { return data[l * stride]; }
};

// Returns row `v` of the vectors.
template <class T>
Vector<T> vector_of(const core::MatrixView<T>& vectors, std::int64_t v, Side side) {
  return {.data = vectors.data + v * vectors.row_stride,
          .stride = vectors.column_stride,
          .length = vectors.columns,
          .index = v,
          .count = vectors.rows,
          .side = side};
}

template <class T>
struct Limits {
  static constexpr int smallest_exponent = std::numeric_limits<T>::min_exponent - 1;  // normal numbers
  static constexpr int largest_exponent = std::numeric_limits<T>::max_exponent - 1;
  static constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
};

struct ExponentRange {
  int first;
  int last;
};

// Returns the exponents of types 1 to 4 of the study fp16-emulation-study, for A and for B.
ExponentRange range_of_type(int type, Side side) {
  static constexpr ExponentRange ranges[4][2] = {
      {{-15, 14}, {-15, 14}}, {{-15, 14}, {-35, -15}}, {{-35, -15}, {-35, -15}}, {{-100, -35}, {-100, 14}}};
  return ranges[type - 1][side == Side::a ? 0 : 1];
}

// Returns +-[1, 2) * 2^exponent with a random significand of all bits of T; the exponent is one of T's normal
// numbers.
template <class T>
T with_exponent(Random& random, std::int64_t exponent) {
  const std::uint64_t fraction = random.bits() >> (64 - Limits<T>::fraction_bits);
  const T significand = 1 + std::ldexp(static_cast<T>(fraction), -Limits<T>::fraction_bits);
  const T magnitude = std::ldexp(significand, static_cast<int>(exponent));
  return random.flip() ? -magnitude : magnitude;
}

template <class T>
T subnormal(Random& random) {
  const std::int64_t largest_integer = (std::int64_t{1} << Limits<T>::fraction_bits) - 1;
  const T magnitude =
      static_cast<T>(random.integer(1, largest_integer)) * std::numeric_limits<T>::denorm_min();
  return random.flip() ? -magnitude : magnitude;
}

template <class T>
T special(Random& random) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T values[] = {std::numeric_limits<T>::quiet_NaN(), infinity, -infinity, T{0}, -T{0}};
  return values[random.integer(0, 4)];
}

// Returns x * 2^exponent, rounded once to T.
template <class T>
T scaled(double x, double exponent) {
  return static_cast<T>(std::ldexp(x, static_cast<int>(exponent)));
}

// Returns the binades by which element l of n is scaled down in a grading over `span`: 0 at the first
// element, near span at the last.
double grade(std::int64_t l, std::int64_t n, double span) {
  return std::round(static_cast<double>(l) * span / static_cast<double>(n));
}

template <class T>
T phi_value(Random& random, double phi) {
  constexpr double largest = static_cast<double>(std::numeric_limits<T>::max());
  const double factor = random.unit() - 0.5;
  return static_cast<T>(std::clamp(factor * std::exp(phi * random.normal()), -largest, largest));
}

// Returns the diagonal exponent of element l: from S/2 down to -S/2, negated for B.
double diagonal_exponent(std::int64_t l, std::int64_t n, double span, Side side) {
  const double exponent = std::round(span / 2) - grade(l, std::max<std::int64_t>(n - 1, 1), span);
  return side == Side::a ? exponent : -exponent;
}

// True if the element is the outlier of its tile; tiles are those of mixpert-1 ... mixpert-full.
template <class T>
bool is_tile_outlier(double rate, const Vector<T>& vector, std::int64_t l) {
  constexpr std::int64_t depth = 32;
  const std::int64_t vectors = vector.side == Side::a ? 16 : 8;
  const auto tile = static_cast<std::uint64_t>(vector.index / vectors * 2 + (vector.side == Side::a ? 0 : 1));
  const std::uint64_t bits = mix_bits(mix_bits(tile) + static_cast<std::uint64_t>(l / depth));
  const auto position = static_cast<std::uint64_t>(vector.index % vectors * depth + l % depth);
  const auto elements = static_cast<std::uint64_t>(vectors * depth);
  return bits % elements == position && static_cast<double>(bits >> 11) * 0x1p-53 < rate;
}

// Returns a value of a distribution that depends only on the element's position.
template <class T>
T element(const Distribution& distribution, const Vector<T>& vector, std::int64_t l, Random& random) {
  const double p = distribution.parameter;
  switch (distribution.kind) {
    case DistributionKind::uniform: return static_cast<T>(random.symmetric());
    case DistributionKind::uniform_01: return static_cast<T>(random.closed_unit());
    case DistributionKind::normal: return static_cast<T>(random.normal());
    case DistributionKind::language_model: return static_cast<T>(0.5 + 2 * random.closed_unit());
    case DistributionKind::phi: return phi_value<T>(random, p);
    case DistributionKind::exponent_type: {
      const ExponentRange range = range_of_type(static_cast<int>(p), vector.side);
      const std::int64_t exponent = random.integer(range.first, range.last);
      return with_exponent<T>(random, exponent);
    }
    case DistributionKind::offset: return scaled<T>(random.symmetric(), p);
    case DistributionKind::offset_nonnegative: return scaled<T>(random.closed_unit(), p);
    case DistributionKind::graded:
      return scaled<T>(random.symmetric(), -grade(vector.index, vector.count, p));
    case DistributionKind::graded_inner: return scaled<T>(random.symmetric(), -grade(l, vector.length, p));
    case DistributionKind::diagonal:
    case DistributionKind::gram_diagonal:
      return scaled<T>(random.symmetric(), diagonal_exponent(l, vector.length, p, vector.side));
    case DistributionKind::crossed: {
      const bool first = l % 2 == 0;
      if (vector.side == Side::a) return scaled<T>(random.symmetric(), first ? 0 : -p);
      return scaled<T>(random.symmetric(), first ? -2 * p : 0);
    }
    case DistributionKind::subnormal: return subnormal<T>(random);
    case DistributionKind::subnormal_mixed:
      return random.flip() ? subnormal<T>(random) : static_cast<T>(random.symmetric());
    case DistributionKind::outlier:
      return scaled<T>(random.symmetric(), l == 31 * vector.index % vector.length ? p : 0);
    case DistributionKind::tile_outlier:
      return scaled<T>(random.symmetric(), is_tile_outlier(p, vector, l) ? 20 : 0);
    case DistributionKind::zeros: return random.unit() < p ? T(0) : static_cast<T>(random.symmetric());
    case DistributionKind::special:
      return random.unit() < p ? special<T>(random) : static_cast<T>(random.symmetric());
    case DistributionKind::integer: {
      const auto limit = static_cast<std::int64_t>(p);
      return static_cast<T>(random.integer(-limit, limit));
    }
    case DistributionKind::power_of_two: return scaled<T>(1, p);
    case DistributionKind::powers_of_two: {
      const auto range = static_cast<std::int64_t>(p);
      const double sign = random.flip() ? -1 : 1;
      return scaled<T>(sign, static_cast<double>(random.integer(-range, range)));
    }
    case DistributionKind::span:
    case DistributionKind::cancellation: break;
  }
  core::fail(Status::internal, "distribution kind {} is not one of single elements",
             static_cast<int>(distribution.kind));
}

// Fills a vector of which two random elements have the largest and the smallest exponent, and no other one
// lies outside.
template <class T>
void fill_span(int span, const Vector<T>& vector, Random& random) {
  const std::int64_t lowest = Limits<T>::smallest_exponent;
  const std::int64_t largest = std::max(random.integer(-4, 4), lowest + span);
  for (std::int64_t l = 0; l < vector.length; ++l) {
    vector[l] = with_exponent<T>(random, random.integer(largest - span, largest));
  }
  if (vector.length < 2) return;
  const std::int64_t first = random.integer(0, vector.length - 1);
  const std::int64_t second = (first + random.integer(1, vector.length - 1)) % vector.length;
  vector[first] = with_exponent<T>(random, largest);
  vector[second] = with_exponent<T>(random, largest - span);
}

// Fills pairs that cancel. A: x, x. B: y, -y(1 +- u 2^-T). So each pair adds -+u 2^-T x y. An odd element at
// the end of k takes its scale from the pair before it: x in A, +-u 2^-T y in B.
template <class T>
void fill_cancellation(int bits, const Vector<T>& vector, Random& random) {
  for (std::int64_t l = 0; l < vector.length; ++l) {
    const bool begins_pair = l % 2 == 0 && (l + 1 < vector.length || l == 0);
    if (begins_pair) {
      vector[l] = static_cast<T>(random.symmetric());
    } else if (vector.side == Side::a) {
      vector[l] = vector[l - 1];
    } else {
      const double change = std::ldexp(random.flip() ? 1 + random.unit() : -1 - random.unit(), -bits);
      const auto before = static_cast<double>(vector[l - 1]);
      vector[l] = static_cast<T>(before * change - (l % 2 == 1 ? before : 0));
    }
  }
}

template <class T>
void fill_vector(const Distribution& distribution, const Vector<T>& vector, Random& random) {
  const auto parameter = static_cast<int>(std::clamp(distribution.parameter, -4000.0, 4000.0));
  if (distribution.kind == DistributionKind::span) return fill_span(parameter, vector, random);
  if (distribution.kind == DistributionKind::cancellation)
    return fill_cancellation(parameter, vector, random);
  for (std::int64_t l = 0; l < vector.length; ++l) vector[l] = element(distribution, vector, l, random);
}

// Fails if T cannot hold the distribution's values, before anything is written.
template <class T>
void check_type(const Distribution& distribution) {
  const double p = distribution.parameter;
  const int lowest = Limits<T>::smallest_exponent;
  const int highest = Limits<T>::largest_exponent;
  double max_value = std::numeric_limits<double>::infinity();
  double min_value = -max_value;
  switch (distribution.kind) {
    case DistributionKind::span: max_value = highest - lowest; break;
    case DistributionKind::diagonal:
    case DistributionKind::gram_diagonal: max_value = 2 * highest; break;
    case DistributionKind::graded: min_value = -highest; break;
    case DistributionKind::outlier:
    case DistributionKind::powers_of_two: max_value = highest; break;
    case DistributionKind::integer: max_value = std::ldexp(1.0, Limits<T>::fraction_bits + 1); break;
    case DistributionKind::offset:
    case DistributionKind::offset_nonnegative:
    case DistributionKind::power_of_two:
      min_value = lowest - Limits<T>::fraction_bits;
      max_value = highest;
      break;
    default: break;
  }
  if (p >= min_value && p <= max_value) return;
  core::fail(Status::bad_setting,
             "distribution '{}' does not fit a type with exponents {}...{}: {} is outside {}...{}",
             to_text(distribution), lowest, highest, p, min_value, max_value);
}

using core::DoubleDouble;

// Returns a low word: up to half of high's last place, an eighth of them zero, an eighth much smaller.
double low_word(double high, Random& random) {
  if (high == 0 || !core::is_finite(high)) return 0;
  const std::int64_t kind = random.integer(0, 7);
  const double half_place = std::ldexp(1.0, std::max(std::ilogb(high), -1022) - 53);
  const double low = random.symmetric() * half_place;
  if (kind == 0) return 0;
  return kind == 1 ? std::ldexp(low, -static_cast<int>(random.integer(1, 120))) : low;
}

bool has_one_word(DistributionKind kind) {
  return kind == DistributionKind::integer || kind == DistributionKind::power_of_two ||
         kind == DistributionKind::powers_of_two;
}

// Makes the low words of canceling pairs (fill_cancellation()) cancel too.
void cancel_low_words(int bits, const Vector<DoubleDouble>& vector, Random& random) {
  for (std::int64_t l = 1; l < vector.length; l += 2) {
    const DoubleDouble before = vector[l - 1];
    if (vector.side == Side::a) {
      vector[l] = before;
    } else if (bits >= std::numeric_limits<double>::digits) {
      const double change = std::ldexp(random.flip() ? 1 + random.unit() : -1 - random.unit(), -bits);
      vector[l] = core::normalized({-before.hi, before.hi * change - before.lo});
    }
  }
}

void fill_low_words(const Distribution& distribution, const Vector<DoubleDouble>& vector, Random& random) {
  for (std::int64_t l = 0; l < vector.length; ++l) {
    const double high = vector[l].hi;
    vector[l] = core::normalized({high, has_one_word(distribution.kind) ? 0 : low_word(high, random)});
  }
  if (distribution.kind == DistributionKind::cancellation)
    cancel_low_words(static_cast<int>(std::min(distribution.parameter, 4000.0)), vector, random);
}

}  // namespace

Distribution parse_distribution(std::string_view text) {
  for (const Form& form : forms) {
    const std::string_view name = form.name;
    if (form.parameter == nullptr) {
      if (text == name) return {form.kind, 0};
      continue;
    }
    const std::string prefix =
        form.kind == DistributionKind::exponent_type ? "type" : std::string(name) + ":";
    if (text.starts_with(prefix)) return {form.kind, parse_parameter(form, text, text.substr(prefix.size()))};
  }
  refuse_name(text);
}

std::string to_text(const Distribution& distribution) {
  for (const Form& form : forms) {
    if (form.kind != distribution.kind) continue;
    if (form.parameter == nullptr) return form.name;
    const char* between = form.kind == DistributionKind::exponent_type ? "" : ":";
    return fmt::format("{}{}{}", form.name, between, distribution.parameter);
  }
  core::fail(core::Status::internal, "distribution kind {} has no name", static_cast<int>(distribution.kind));
}

const std::vector<std::string>& distribution_forms() {
  static const std::vector<std::string> lines = [] {
    std::vector<std::string> result;
    for (const Form& form : forms) result.push_back(fmt::format("{:<22}{}", form_text(form), form.meaning));
    return result;
  }();
  return lines;
}

template <class T>
void fill(const Distribution& distribution, Side side, std::uint64_t seed, core::MatrixView<T> matrix) {
  check_type<T>(distribution);
  // op(B) is transposed, so that every vector is a row.
  const core::MatrixView<T> vectors = side == Side::a ? matrix : matrix.transposed();
  const bool uses_seed_of_a = side == Side::a || distribution.kind == DistributionKind::gram_diagonal;
  const std::uint64_t side_seed = mix_bits(seed) + (uses_seed_of_a ? 0 : 1);
  const bool worth_threads = vectors.rows * vectors.columns > (1 << 15);
#pragma omp parallel for schedule(static) if (worth_threads)
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    Random random(side_seed, static_cast<std::uint64_t>(v));
    fill_vector(distribution, vector_of(vectors, v, side), random);
  }
}

template <>
void fill(const Distribution& distribution, Side side, std::uint64_t seed,
          core::MatrixView<DoubleDouble> matrix) {
  fill<double>(distribution, side, seed,
               {.data = reinterpret_cast<double*>(matrix.data),
                .rows = matrix.rows,
                .columns = matrix.columns,
                .row_stride = 2 * matrix.row_stride,
                .column_stride = 2 * matrix.column_stride});
  const auto vectors = side == Side::a ? matrix : matrix.transposed();
  const bool uses_seed_of_a = side == Side::a || distribution.kind == DistributionKind::gram_diagonal;
  constexpr std::uint64_t low_words = 104729;  // tells their random numbers from those of the high words
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    Random random(mix_bits(seed + low_words) + (uses_seed_of_a ? 0 : 1), static_cast<std::uint64_t>(v));
    fill_low_words(distribution, vector_of(vectors, v, side), random);
  }
}

template void fill(const Distribution&, Side, std::uint64_t, core::MatrixView<float>);
template void fill(const Distribution&, Side, std::uint64_t, core::MatrixView<double>);

}  // namespace kintsugi::measure
