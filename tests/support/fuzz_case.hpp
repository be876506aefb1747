// A random product for the differential tests of host and device: its members, its form as a line of text,
// and how it is drawn.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/rounding.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::test {

// Two cases with the same members have the same operands and make the same call.
struct FuzzCase {
  std::string type = "f32";  // f32, f64, c32, c64, dd
  std::int64_t m = 1, n = 1, k = 1;
  std::string ops = "NN";                        // op of A, op of B: N, T, C
  std::string layout = "col";                    // col, row
  std::int64_t pad_a = 0, pad_b = 0, pad_c = 0;  // leading dimension beyond the smallest legal one
  std::int64_t shift_a = 0, shift_b = 0,
               shift_c = 0;  // real parts between a multiple of 256 bytes and the matrix
  std::int64_t batch = 1;
  std::string batches = "strided";               // how items are given: strided, pointers
  std::int64_t gap_a = 0, gap_b = 0, gap_c = 0;  // elements between batch items
  std::int64_t reuse_a = 0,
               reuse_b = 0;  // 1: all items share the first one's operand (stride 0, equal pointers)
  std::string alpha = "1", beta = "0";  // "re" or "re,im"; of double-double numbers "hi,lo"
  std::string values_a = "uniform", values_b = "uniform",
              values_c = "uniform";                          // tools/measure/generators/generators.hpp
  std::int64_t special_a = 0, special_b = 0, special_c = 0;  // number of special values among them
  std::uint64_t seed = 1;                                    // of the values
  std::string accuracy, policy, scheme, engine;              // empty: not set
  std::string rounding = "nearest";                          // the calling thread's mode
  std::int64_t limit = 0;                                    // workspace limit; 0: none
  std::string workspace =
      "own";  // own: the library's; exact: the caller's, of the queried size; callback: from the allocator
  // Options of calls on a device.
  std::string memory = "host", scalars = "host";  // host, device: where A, B and C lie; alpha and beta
  std::string queue = "default";                  // default: the host's; stream: one of its own
  std::int64_t graph = 0;                         // 1: captured in a graph, which is launched twice
  std::int64_t threads = 1;
  std::string prepared_a = "no",
              prepared_b = "no";  // no, copied, borrowed; one: prepared for a batch of one item
  std::string via = "gemm";       // gemm: one call; plan: made, executed and destroyed; blas:
                                  // kintsugi_sgemm and its like, with the settings of the handle; grouped:
                                  // each item of the batch is a group

  bool operator==(const FuzzCase&) const = default;
};

// The only list of the members' names, in the order in which they are printed.
template <class Case, class Visit>
void visit_fields(Case& test, const Visit& visit) {
  visit("type", test.type);
  visit("m", test.m), visit("n", test.n), visit("k", test.k);
  visit("ops", test.ops), visit("layout", test.layout);
  visit("pad_a", test.pad_a), visit("pad_b", test.pad_b), visit("pad_c", test.pad_c);
  visit("shift_a", test.shift_a), visit("shift_b", test.shift_b), visit("shift_c", test.shift_c);
  visit("batch", test.batch), visit("batches", test.batches);
  visit("gap_a", test.gap_a), visit("gap_b", test.gap_b), visit("gap_c", test.gap_c);
  visit("reuse_a", test.reuse_a), visit("reuse_b", test.reuse_b);
  visit("alpha", test.alpha), visit("beta", test.beta);
  visit("values_a", test.values_a), visit("values_b", test.values_b), visit("values_c", test.values_c);
  visit("special_a", test.special_a), visit("special_b", test.special_b), visit("special_c", test.special_c);
  visit("seed", test.seed);
  visit("accuracy", test.accuracy), visit("policy", test.policy);
  visit("scheme", test.scheme), visit("engine", test.engine);
  visit("rounding", test.rounding);
  visit("limit", test.limit), visit("workspace", test.workspace), visit("threads", test.threads);
  visit("memory", test.memory), visit("scalars", test.scalars);
  visit("queue", test.queue), visit("graph", test.graph);
  visit("prepared_a", test.prepared_a), visit("prepared_b", test.prepared_b), visit("via", test.via);
}

// "m=3 n=5 ...": the members that differ from their defaults; read_case() reads it.
inline std::string to_text(const FuzzCase& test) {
  const auto words = [](const FuzzCase& fields) {
    std::vector<std::string> all;
    visit_fields(fields, [&](const char* name, const auto& value) {
      std::ostringstream word;
      word << name << '=' << value;
      all.push_back(word.str());
    });
    return all;
  };
  const std::vector<std::string> words_of_test = words(test), plain = words(FuzzCase());
  std::string line;
  for (std::size_t i = 0; i < words_of_test.size(); ++i) {
    if (words_of_test[i] != plain[i]) line += (line.empty() ? "" : " ") + words_of_test[i];
  }
  return line;
}

// The members that the line does not name stay as they are.
inline FuzzCase read_case(const std::string& line, FuzzCase test = {}) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string_view name = std::string_view(word).substr(0, equals);
    bool known = false;
    visit_fields(test, [&]<class Member>(const char* member, Member& value) {
      if (name != member || equals == std::string::npos) return;
      known = true;
      const std::string text = word.substr(equals + 1);
      if constexpr (std::is_same_v<Member, std::string>) {
        value = text;
      } else {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
          throw std::invalid_argument("'" + word + "' needs an integer");
      }
    });
    if (!known) throw std::invalid_argument("a case has no member '" + word + "'");
  }
  return test;
}

inline core::RoundingMode rounding_of(const FuzzCase& test) {
  for (std::uint8_t mode = 0; mode < std::size(core::rounding_names); ++mode) {
    if (test.rounding == core::rounding_names[mode]) return core::RoundingMode{mode};
  }
  throw std::invalid_argument("rounding: " + test.rounding);
}

inline bool is_complex_type(const std::string& type) { return type[0] == 'c'; }
inline bool is_single_type(const std::string& type) { return type == "f32" || type == "c32"; }

// Names that cases may use. Programs take them from the library's descriptions, so that new schemes and
// engines are tested without being named here.
struct FuzzChoices {
  std::vector<std::string> types = {"f32", "f64", "c32", "c64", "dd"};
  std::vector<std::string> engines = {""};
  // Names of schemes by kind of operand: fp32 (f32 and c32), fp64 (f64 and c64), dd.
  std::vector<std::string> schemes_fp32, schemes_fp64, schemes_dd;
  std::int64_t max_threads = 4;
  std::int64_t max_work = 60'000;  // real products of a case; one case in a hundred may have 30 times as many

  const std::vector<std::string>& schemes_of(const std::string& type) const {
    return type == "dd" ? schemes_dd : is_single_type(type) ? schemes_fp32 : schemes_fp64;
  }
};

class CaseGenerator {
 public:
  CaseGenerator(const FuzzChoices& choices, std::uint64_t seed, std::uint64_t number)
      : choices_(choices), random_(seed, number) {}

  FuzzCase draw() {
    FuzzCase test;
    test.type = one_of(choices_.types);
    test.seed = random_.bits() >> 40;
    draw_program(test);
    draw_shape(test);
    draw_layout(test);
    draw_values(test);
    test.alpha = scalar(test, "1");
    test.beta = scalar(test, "0");
    draw_call(test);
    return test;
  }

 private:
  template <class List>
  typename List::value_type one_of(const List& list) {
    return list[static_cast<std::size_t>(random_.integer(0, std::ssize(list) - 1))];
  }
  std::string any_of(std::initializer_list<const char*> list) {
    return list.begin()[random_.integer(0, std::ssize(list) - 1)];
  }
  bool chance(double probability) { return random_.unit() < probability; }

  // A contract and a policy in two cases of three, else a named scheme.
  void draw_program(FuzzCase& test) {
    test.engine = one_of(choices_.engines);
    const std::vector<std::string>& schemes = choices_.schemes_of(test.type);
    if (!schemes.empty() && chance(0.35)) {
      test.scheme = one_of(schemes);
      return;
    }
    test.policy = any_of({"", "auto", "emulate", "emulate", "native"});
    if (test.policy == "native") return;
    if (chance(0.3)) {
      test.accuracy = "exact";
      if (test.type != "dd" && chance(0.4)) test.rounding = any_of({"down", "up", "zero"});
    } else if (chance(0.3)) {
      test.accuracy = is_single_type(test.type) ? any_of({"1e-3", "1e-5", "3e-7"})
                                                : any_of({"1e-4", "1e-8", "1e-13", "fp32"});
    }
  }

  std::int64_t length() {
    constexpr std::array<std::int64_t, 8> edges = {31, 32, 33, 63, 64, 65, 127, 129};
    if (chance(0.03)) return 0;
    if (chance(0.15)) return 1;
    return chance(0.2) ? one_of(edges) : random_.integer(2, 24);
  }

  void draw_shape(FuzzCase& test) {
    test.m = length(), test.n = length(), test.k = length();
    if (chance(0.1)) {
      test.m = random_.integer(1, 3), test.n = random_.integer(1, 3);
      test.k = random_.integer(100, 4000);
    } else if (chance(0.1)) {
      (random_.flip() ? test.m : test.n) = random_.integer(100, 700);
    }
    if (chance(0.3)) test.batch = random_.integer(0, 4);
    const std::int64_t parts = is_complex_type(test.type) || test.type == "dd" ? 4 : 1;
    const std::int64_t max_work = choices_.max_work * (chance(0.01) ? 30 : 1);
    while (test.m * test.n * test.k * test.batch * parts > max_work) {
      std::int64_t& longest = test.m >= test.n && test.m >= test.k ? test.m
                              : test.n >= test.k                   ? test.n
                                                                   : test.k;
      longest = longest / 2 + (longest > 2 ? random_.integer(0, 1) : 0);
    }
  }

  void draw_layout(FuzzCase& test) {
    test.ops = any_of({"N", "T", "C"}) + any_of({"N", "T", "C"});
    test.layout = any_of({"col", "row"});
    for (std::int64_t* pad : {&test.pad_a, &test.pad_b, &test.pad_c})
      *pad = random_.flip() ? 0 : random_.integer(1, 5);
    for (std::int64_t* shift : {&test.shift_a, &test.shift_b, &test.shift_c})
      *shift = random_.flip() ? 0 : random_.integer(1, 17);
    if (test.batch == 1 && !chance(0.1)) return;
    test.batches = any_of({"strided", "pointers"});
    for (std::int64_t* gap : {&test.gap_a, &test.gap_b, &test.gap_c}) *gap = random_.integer(0, 7);
    test.reuse_a = chance(0.25) ? 1 : 0;
    test.reuse_b = chance(0.25) ? 1 : 0;
  }

  std::string with_parameter(const char* name, std::int64_t first, std::int64_t last) {
    return name + std::to_string(random_.integer(first, last));
  }

  std::string distribution(bool is_single) {
    const std::int64_t reach =
        is_single ? 120 : 1000;  // exponents from -reach to reach stay in the type's range
    switch (random_.integer(0, 15)) {
      case 0:
      case 1: return "uniform";
      case 2:
      case 3: return "uniform01";
      case 4: return any_of({"phi:0.5", "phi:1", "phi:2", "phi:4", "phi:8"});
      case 5: return any_of({"type1", "type2", "type3", "type4"});
      case 6: return with_parameter("offset:", -reach, reach);
      case 7: return with_parameter("offset:", -reach / 2 - 20, -reach / 2);    // products nearly underflow
      case 8: return with_parameter("offset:", reach / 2 - 10, reach / 2 + 8);  // products nearly overflow
      case 9: return with_parameter("graded:", -reach, reach);
      case 10: return with_parameter("graded-inner:", 0, reach);
      case 11: return with_parameter("diagonal:", 0, reach);
      case 12: return with_parameter("cancellation:", 0, is_single ? 30 : 60);
      case 13: return any_of({"subnormal", "subnormal-mixed"});
      case 14: return with_parameter("span:", 0, is_single ? 120 : 900);
      default: return random_.flip() ? with_parameter("integer:", 1, 127) : with_parameter("crossed:", 1, 40);
    }
  }

  void draw_values(FuzzCase& test) {
    const bool is_single = is_single_type(test.type);
    test.values_a = test.values_b = distribution(is_single);
    if (chance(0.25)) test.values_b = distribution(is_single);
    if (chance(0.25)) test.values_c = distribution(is_single);
    if (!chance(0.2)) return;
    for (std::int64_t* count : {&test.special_a, &test.special_b, &test.special_c})
      *count = random_.flip() ? 0 : random_.integer(1, 3);
  }

  std::string real_scalar(const FuzzCase& test) {
    const bool is_single = is_single_type(test.type);
    if (chance(0.08)) return any_of({"nan", "inf", "-inf"});
    if (chance(0.15))
      return is_single ? any_of({"0x1p-149", "-0x1p-130", "0x1p100", "-0x1.8p126"})
                       : any_of({"0x1p-1074", "-0x1p-1030", "0x1p600", "-0x1.8p1022"});
    // Multiples of 2^-12 are exact in every type.
    char text[32];
    std::snprintf(text, sizeof text, "%a", static_cast<double>(random_.integer(-10000, 10000)) * 0x1p-12);
    return chance(0.5) ? text : any_of({"0", "1", "-1", "-0", "0.5", "3"});
  }

  std::string scalar(const FuzzCase& test, const char* plain) {
    if (chance(0.4)) return plain;
    if (test.type == "dd") return chance(0.5) ? real_scalar(test) : any_of({"1,0x1p-60", "-3,0x1.8p-70"});
    std::string text = real_scalar(test);
    if (is_complex_type(test.type) && chance(0.6)) text += "," + real_scalar(test);
    return text;
  }

  void draw_call(FuzzCase& test) {
    test.threads = chance(0.6) ? 1 : random_.integer(1, choices_.max_threads);
    test.via = any_of({"gemm", "plan"});
    if (test.batch == 1 && test.batches == "strided" && chance(0.2)) test.via = "blas";
    if (chance(0.15)) test.workspace = "exact";
    if (chance(0.15)) test.limit = std::int64_t{1} << random_.integer(8, 26);
    for (std::string* prepared : {&test.prepared_a, &test.prepared_b}) {
      if (chance(0.12)) *prepared = any_of({"copied", "borrowed", "one"});
    }
    if (test.workspace == "exact" || test.prepared_a != "no" || test.prepared_b != "no") test.via = "plan";
  }

  const FuzzChoices& choices_;
  measure::Random random_;
};

}  // namespace kintsugi::test
