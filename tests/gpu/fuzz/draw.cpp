#include "gpu/fuzz/draw.hpp"

#include <algorithm>
#include <array>

#include "tests/fuzz/choices.hpp"

namespace kintsugi::test {
namespace {

using measure::Random;

// Most elements of A, B and C together, so that a case fits into a lane's memory. Only one case in fifty may
// have that many, others `usual_elements`, since the host has to make and to judge them.
constexpr std::int64_t max_elements = std::int64_t{1} << 22;
constexpr std::int64_t usual_elements = std::int64_t{1} << 20;
// Most real products of a case, of any shape and of small shapes.
constexpr std::int64_t max_products = std::int64_t{1} << 29;
constexpr std::int64_t max_small_products = 60'000;

template <class List>
auto one_of(Random& random, const List& list) {
  return list[static_cast<std::size_t>(random.integer(0, std::ssize(list) - 1))];
}

// A length at or around multiples of tile sizes (64, 128, 192, 256), or a prime number.
std::int64_t draw_length_near_tiles(Random& random) {
  constexpr std::array<std::int64_t, 31> edges = {1,   2,   3,   7,   13,  17,  31,  32,  33,  61,  63,
                                                  64,  65,  97,  127, 128, 129, 131, 191, 192, 193, 211,
                                                  255, 256, 257, 383, 384, 385, 511, 512, 513};
  return one_of(random, edges);
}

void halve_longest(FuzzCase& test) {
  std::int64_t& side = test.m >= test.n ? test.m : test.n;
  (side >= test.k ? side : test.k) /= 2;
}

bool fits(const FuzzCase& test, std::int64_t limit) {
  const std::int64_t parts = is_complex_type(test.type) ? 2 : 1;
  const std::int64_t items = std::max<std::int64_t>(test.batch, 1);
  const auto matrix = [](std::int64_t rows, std::int64_t columns, std::int64_t pad) {
    return (rows + pad) * (columns + pad);
  };
  const std::int64_t elements = matrix(test.m, test.k, test.pad_a) + matrix(test.k, test.n, test.pad_b) +
                                matrix(test.m, test.n, test.pad_c);
  return elements * items * parts <= limit &&
         test.m * test.n * test.k * items * parts * parts <= max_products;
}

// Draws a shape with more tiles of C than a device has SMs, or with few tiles and long sums. Returns the
// limit of its elements.
std::int64_t draw_large(FuzzCase& test, Random& random) {
  test.batch = 1;
  if (random.flip()) {
    test.m = random.integer(1000, 2100), test.n = random.integer(1000, 2100), test.k = random.integer(1, 300);
  } else {
    test.m = draw_length_near_tiles(random), test.n = draw_length_near_tiles(random),
    test.k = random.integer(1500, 12'000);
  }
  return max_elements;
}

// Replaces half of the shapes; the other half keeps the small ones of the host's generator.
void draw_shape(FuzzCase& test, Random& random) {
  const std::int64_t kind = random.integer(0, 99);
  if (kind >= 50) return;
  if (kind < 32) {
    test.m = draw_length_near_tiles(random), test.n = draw_length_near_tiles(random);
    test.k = random.flip() ? draw_length_near_tiles(random) : random.integer(1, 1500);
  } else if (kind < 44) {  // thin
    test.m = random.integer(1, 9), test.n = random.integer(1, 1100), test.k = random.integer(1, 3000);
    if (random.flip()) std::swap(test.m, test.n);
  } else if (kind < 47) {  // long sums
    test.m = random.integer(1, 8), test.n = random.integer(1, 8), test.k = random.integer(5000, 100'000);
  } else if (kind < 49) {
    test.m = random.integer(300, 1100), test.n = random.integer(300, 1100), test.k = random.integer(1, 600);
  } else {  // many items
    test.m = random.integer(1, 40), test.n = random.integer(1, 40), test.k = random.integer(1, 70);
    test.batch = random.integer(5, 70);
  }
  if (kind < 49) test.batch = random.integer(0, 9) == 0 ? random.integer(2, 4) : 1;
  const std::int64_t limit = random.integer(0, 49) == 0 ? draw_large(test, random) : usual_elements;
  while (!fits(test, limit)) halve_longest(test);
}

// Device memory must be aligned to whole complex elements; the host's generator shifts by their parts.
void align_to_elements(FuzzCase& test) {
  if (!is_complex_type(test.type)) return;
  for (std::int64_t* shift : {&test.shift_a, &test.shift_b, &test.shift_c}) *shift *= 2;
}

std::int64_t draw_limit(Random& random) {
  switch (random.integer(0, 24)) {
    case 0: return one_of(random, std::array<std::int64_t, 4>{1, 256, 4096, 65536});
    case 1: return (std::int64_t{1} << 25) + random.integer(-1, 1);  // what cuBLAS is given at most
    case 2:
    case 3: return (std::int64_t{1} << random.integer(8, 27)) + random.integer(-1, 1);
    default: return 0;
  }
}

// Draws where matrices and scalars lie, the queue and the workspace.
void draw_resources(FuzzCase& test, Random& random) {
  test.engine = random.integer(0, 3) == 0 ? "" : "cuda";
  test.threads = 1;
  if (random.integer(0, 19) == 0) {  // host matrices that the engine brings to the device
    test.engine = "cuda";
    test.workspace = "own";
    return;
  }
  test.memory = "device";
  test.scalars = random.integer(0, 3) == 0 ? "device" : "host";
  test.queue = random.integer(0, 7) == 0 ? "default" : "stream";
  test.limit = draw_limit(random);
  const std::int64_t kind = random.integer(0, 9);
  test.workspace = kind < 4 ? "exact" : kind < 5 ? "callback" : "own";
  test.graph = test.queue == "stream" && random.integer(0, 19) == 0 ? 1 : 0;
  test.via = test.workspace == "exact" || test.graph != 0 || random.flip() ? "plan" : "gemm";
  const bool is_plain = test.prepared_a == "no" && test.prepared_b == "no";
  if (test.via == "gemm" && test.batch > 1 && is_plain && random.flip()) test.via = "grouped";
  // Only the device can read where batch items given by pointers are, so such operands can only be borrowed.
  for (std::string* prepared : {&test.prepared_a, &test.prepared_b}) {
    if (*prepared == "copied" && test.batches == "pointers") *prepared = "borrowed";
  }
}

// Avoids plans whose products cuBLAS computes; call.cpp leaves out those that remain.
void avoid_vendor(FuzzCase& test) {
  if (test.policy == "native") test.policy = "emulate";
  if (test.scheme.empty()) test.policy = "emulate";
}

}  // namespace

FuzzChoices device_choices(const DrawLimits& limits) {
  FuzzChoices choices = choices_of_library();
  choices.types = {"f32", "f64", "c32", "c64"};
  choices.max_threads = 1;
  choices.max_work = limits.small ? 20'000 : max_small_products;
  for (const char* name : {"ozaki2:moduli=15:scale=norm", "fp16x3-wide:block=1024"})
    choices.schemes_fp32.push_back(name);
  for (const char* name :
       {"ozaki2:moduli=15", "ozaki2:moduli=15:scale=norm", "ozaki2:moduli=16:scale=product",
        "ozaki-fp16:mode=cr", "ozaki-fp64:mode=dp:slices=4"})
    choices.schemes_fp64.push_back(name);
  return choices;
}

FuzzCase draw_device_case(const FuzzChoices& choices, const DrawLimits& limits, std::uint64_t seed,
                          std::uint64_t number) {
  FuzzCase test = CaseGenerator(choices, seed, number).draw();
  Random random(measure::mix_bits(seed), number);
  if (!limits.small && (!limits.on_host || random.integer(0, 39) == 0)) draw_shape(test, random);
  if (test.via == "blas") test.via = "gemm";
  if (limits.on_host) return test;
  align_to_elements(test);
  draw_resources(test, random);
  if (limits.no_vendor) avoid_vendor(test);
  return test;
}

}  // namespace kintsugi::test
