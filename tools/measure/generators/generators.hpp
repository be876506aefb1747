// Matrices of random or constructed values in several distributions, reproducible from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/view.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::measure {

// Side of an operand in a product. Its vectors along the inner dimension k are rows of op(A), columns of
// op(B).
enum class Side : std::uint8_t { a, b };

enum class DistributionKind : std::uint8_t {
  uniform,
  uniform_01,
  normal,
  language_model,
  phi,
  exponent_type,
  offset,
  offset_nonnegative,
  graded,
  graded_inner,
  diagonal,
  gram_diagonal,
  crossed,
  span,
  cancellation,
  subnormal,
  subnormal_mixed,
  outlier,
  tile_outlier,
  zeros,
  special,
  integer,
  power_of_two,
  powers_of_two,
};

// A distribution and its parameter; parse_distribution() describes the texts.
struct Distribution {
  DistributionKind kind = DistributionKind::uniform;
  double parameter = 0;

  bool operator==(const Distribution&) const = default;
};

// Text                  Values
// uniform               uniform on [-1, 1], every significand bit used
// uniform01             uniform on [0, 1]
// normal                normal deviates of mean 0 and variance 1, rounded to the type
// language-model        uniform on [0.5, 2.5], the range of language models' data in le-gemm section 5.5
// phi:P                 (rand - 0.5) exp(P randn), rand uniform on [0, 1), randn normal; P >= 0;
//                       a value beyond the type becomes its largest finite number
// type1 ... type4       exponent ranges of fp16-emulation-study, each exponent equally likely, signs
//                       random: A, B on [-15,14],[-15,14]; [-15,14],[-35,-15]; [-35,-15],[-35,-15];
//                       [-100,-35],[-100,14]
// offset:E              uniform on [-2^E, 2^E] (h2sgemm section 4)
// offset-nonnegative:E  uniform on [0, 2^E]
// graded:S              uniform, vector v of n (row of A, column of B) times 2^-round(v S / n);
//                       S < 0: graded upwards
// graded-inner:S        uniform, element l of k times 2^-round(l S / k), in A and B
// diagonal:S            A = X D, B = D^-1 Y with X, Y uniform and D = 2^d, d from S/2 down to -S/2
// gram-diagonal:S       as diagonal:S with Y = X^T: C = X X^T
// crossed:S             uniform; A's elements 2p and 2p+1 are multiplied by 1 and 2^-S, B's by 2^-2S and
//                       1: elements that are small on one side decide the result
// span:S                every vector (of two elements or more) has its largest and its smallest
//                       exponent exactly S binades apart, the others equally likely in between
// cancellation:T        elements 2p and 2p+1 cancel up to 2^-T: A repeats its element, B has
//                       -b (1 +- u 2^-T), u in [1, 2); T beyond the significand cancels exactly; if k
//                       is odd, the last product, which has no partner, is 2^-T times the one before it
// subnormal             subnormal numbers of the type, non-zero, signs random
// subnormal-mixed       one half subnormal, one half uniform
// outlier:E             uniform; one element of every row of A and column of B times 2^E
// tile-outlier:RATE     uniform; in tiles of 16 x 32 elements of A and of 32 x 8 of B, with probability
//                       RATE, one element times 2^20 (MixPert's tiles)
// zeros:RATE            zeros with probability RATE, else uniform
// special:RATE          uniform, each element with probability RATE one of NaN, +Inf, -Inf, +0, -0
// integer:N             integers on [-N, N], each equally likely
// power-of-two:E        2^E everywhere
// powers-of-two:R       +-2^e, e on [-R, R], each equally likely
//
// Parses one of these texts. Throws core::Error (bad_setting) with the accepted forms for any other.
Distribution parse_distribution(std::string_view text);

// Returns the text from which parse_distribution() makes this distribution.
std::string to_text(const Distribution& distribution);

// Returns the accepted forms for messages and --help, one for each row of the table above.
const std::vector<std::string>& distribution_forms();

// Fills the matrix, which is op(A) (m,k) or op(B) (k,n) by `side`. Values depend on seed, side, shape and
// position only: not on strides, threads or the machine (except for exp, log and cos of its C library under
// phi). A and B differ under the same seed. Throws core::Error (bad_setting) if the type cannot hold the
// values (float's exponents: -126...127).
template <class T>
void fill(const Distribution& distribution, Side side, std::uint64_t seed, core::MatrixView<T> matrix);

// Fills with double-double numbers: hi as above, lo up to half of hi's last place, an eighth of them zero and
// an eighth much smaller; zero if the distribution names integers or powers of two. Where elements cancel,
// both words do.
template <>
void fill(const Distribution& distribution, Side side, std::uint64_t seed,
          core::MatrixView<core::DoubleDouble> matrix);

}  // namespace kintsugi::measure
