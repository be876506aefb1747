// Tests that programs of integer sums give the same bits on every engine and family of kernels, with any
// number of threads, any workspace limit and at every position in a batch; and, by the hashes in
// tests/data/hashes.json, on every machine. Operands are generated with integer arithmetic
// (tools/measure/generators/random.hpp), so they are the same everywhere.
//
// After a change that is meant to change bits, or a new scheme:
//   WRITE_HASHES=tests/data/hashes.json build/tests/verification_test --gtest_filter='IntegerBits/*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "engines/registry.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/integer_schemes.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::test {
namespace {

template <class T>
std::string hash_of(const std::vector<T>& values) {
  std::uint64_t hash = values.size();
  for (const auto bits : bits_of(values)) hash = measure::mix_bits(hash ^ bits);
  return fmt::format("{:016x}", hash);
}

// A product by the named scheme, or by the contract if the name is "exact" or "reproducible".
template <class T>
GemmCase case_of(const std::string& scheme, const std::string& distribution) {
  GemmCase test{.m = 131, .n = 130, .k = 67, .distribution = distribution, .seed = 5};
  if (scheme == "exact" || scheme == "reproducible") {
    test.accuracy = scheme;
  } else {
    test.scheme = scheme;
  }
  test.alpha = -0.75;
  test.beta = 0.5;
  return test;
}

template <class T>
std::vector<T> result_of(GemmCase test, const std::string& engine, int threads,
                         std::int64_t workspace_limit = 0) {
  test.engine = engine;
  test.threads = threads;
  test.workspace_limit = workspace_limit;
  GemmDataOf<T> data(test);
  data.run_well();
  return data.result();
}

template <class T>
std::vector<std::string> integer_distributions() {
  return {"uniform", "span:20", std::is_same_v<T, float> ? "span:120" : "span:900", "subnormal-mixed",
          "integer:127"};
}

std::vector<std::string> engines_here() {
  std::vector<std::string> names;
  for (const core::Engine* engine : core::all_engines()) {
    if (engine->unavailable_reason().empty()) names.emplace_back(engine->name());
  }
  return names;
}

template <class T>
std::vector<std::string> programs() {
  constexpr auto type = std::is_same_v<T, float>    ? core::OperandType::f32
                        : core::is_double_double<T> ? core::OperandType::dd
                                                    : core::OperandType::f64;
  std::vector<std::string> names = integer_schemes(*core::find_engine("reference"), type);
  names.insert(names.end(), {"ozaki2:scale=norm", "ozaki2:scale=product", "exact", "reproducible"});
  return names;
}

// Returns true if the engine executes the scheme.
template <class T>
bool runs(const std::string& scheme, const std::string& engine) {
  GemmCase test = case_of<T>(scheme, "uniform");
  test.engine = engine;
  return PlanOf(GemmDataOf<T>(test)).status == KINTSUGI_SUCCESS;
}

template <class T>
class IntegerBits : public testing::Test {};
using IntegerBitsTypes = testing::Types<float, double, core::DoubleDouble>;
TYPED_TEST_SUITE(IntegerBits, IntegerBitsTypes);

class Hashes {
 public:
  Hashes() {
    std::ifstream file(path());
    if (file) known_ = nlohmann::json::parse(file).at("hashes");
  }

  void check(const std::string& key, const std::string& hash) {
    if (std::getenv("WRITE_HASHES") != nullptr) {
      known_[key] = hash;
      return;
    }
    ASSERT_TRUE(known_.contains(key))
        << key << " has no hash; the first lines of this file say how to write it";
    EXPECT_EQ(known_.at(key), hash) << key;
  }

  void write() const {
    if (const char* target = std::getenv("WRITE_HASHES")) {
      const nlohmann::json document{{"format", "kintsugi.hashes"}, {"format_version", 1}, {"hashes", known_}};
      std::ofstream(target) << document.dump(1) << "\n";
    }
  }

 private:
  static std::string path() {
    const char* target = std::getenv("WRITE_HASHES");
    return target != nullptr ? target : KINTSUGI_TEST_DATA "/hashes.json";
  }

  std::map<std::string, std::string> known_;
};

TYPED_TEST(IntegerBits, AreThoseOfTheHashesOnEveryEngine) {
  Hashes hashes;
  for (const std::string& scheme : programs<TypeParam>()) {
    for (const std::string& distribution : integer_distributions<TypeParam>()) {
      const GemmCase test = case_of<TypeParam>(scheme, distribution);
      for (const std::string& engine : engines_here()) {
        if (!runs<TypeParam>(scheme, engine)) continue;
        const std::string type = std::is_same_v<TypeParam, float>    ? "f32 "
                                 : core::is_double_double<TypeParam> ? "dd "
                                                                     : "f64 ";
        SCOPED_TRACE(engine);
        hashes.check(type + scheme + " " + distribution, hash_of(result_of<TypeParam>(test, engine, 1)));
      }
    }
  }
  hashes.write();
}

TYPED_TEST(IntegerBits, DoNotDependOnThreadsOrWorkspace) {
  for (const std::string& scheme : programs<TypeParam>()) {
    for (const std::string& engine : engines_here()) {
      if (!runs<TypeParam>(scheme, engine)) continue;
      SCOPED_TRACE(scheme + " " + engine);
      GemmCase test = case_of<TypeParam>(scheme, "span:20");
      const auto expected = bits_of(result_of<TypeParam>(test, engine, 1));
      test.engine = engine;
      for (const int threads : {2, 3, 8}) {
        if (!thorough && threads == 8) continue;
        test.threads = threads;
        const auto full = static_cast<std::int64_t>(PlanOf(GemmDataOf<TypeParam>(test)).workspace());
        for (const std::int64_t limit : {std::int64_t{0}, full - 1, full * 2 / 3}) {
          test.workspace_limit = limit;
          if (PlanOf(GemmDataOf<TypeParam>(test)).status == KINTSUGI_WORKSPACE_TOO_SMALL) continue;
          EXPECT_EQ(bits_of(result_of<TypeParam>(test, engine, threads, limit)), expected)
              << threads << " threads, limit " << limit << " of " << full;
        }
        test.workspace_limit = 0;
      }
    }
  }
}

TYPED_TEST(IntegerBits, DoNotDependOnThePositionInABatch) {
  for (const std::string& scheme : programs<TypeParam>()) {
    for (const std::string& engine : engines_here()) {
      if (!runs<TypeParam>(scheme, engine)) continue;
      GemmCase test = case_of<TypeParam>(scheme, "span:20");
      test.m = 9, test.n = 5, test.beta = 0, test.batch = 4;
      const std::vector<TypeParam> batch = result_of<TypeParam>(test, engine, 3);
      for (std::int64_t t = 0; t < 4; ++t) {
        GemmCase alone = test;
        alone.batch = 1;
        alone.seed = test.seed + static_cast<std::uint64_t>(t);
        const std::vector<TypeParam> part(batch.begin() + t * 45, batch.begin() + (t + 1) * 45);
        EXPECT_EQ(bits_of(part), bits_of(result_of<TypeParam>(alone, engine, 1)))
            << scheme << " " << engine << t;
      }
    }
  }
}

// Intended failure: the hash sees a single wrong bit.
TEST(Hash, SeesTheLastBitOfOneElement) {
  std::vector<double> values(100, 1.5);
  const std::string before = hash_of(values);
  values[57] = std::nextafter(1.5, 2.0);
  EXPECT_NE(hash_of(values), before);
}

}  // namespace
}  // namespace kintsugi::test
