// Tests kernels that are compiled at run time: which schemes have one, that all of them compile without
// spills, and the folder in which compiled code is kept.
#include "engines/cuda/gemm/term_sums.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>

#include "engines/cuda/common/run_time_compiler.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::array compiled_schemes{
    "fp16",    "bf16",   "tf32",        "markidis", "egemm",  "ootomo",          "legemm",
    "h2sgemm", "tf32x3", "ootomo-tf32", "bf16x3",   "bf16x9", "h2sgemm-element", "split-n:a=2:b=1"};

std::optional<TermStructure> structure_of(const char* name) {
  const Scheme& scheme = *find_scheme(name);
  return term_structure(scheme.program.schedule, scheme.program.format().id);
}

TEST(TermSums, SchemesOfTheLiteratureHaveAStructure) {
  for (const char* name : compiled_schemes) EXPECT_TRUE(structure_of(name).has_value()) << name;
  // These have kernels of their own, or sums that are no floats.
  for (const char* name : {"fp16x3", "fp16x3-wide", "bf16x6", "quantensor", "int8x6", "ozaki2"})
    EXPECT_FALSE(structure_of(name).has_value()) << name;
}

// Sums of blocks that are no whole instructions, or of terms in another order, are cuBLAS's.
TEST(TermSums, OtherOrdersHaveNoStructure) {
  Schedule schedule = find_scheme("markidis")->program.schedule;
  ASSERT_TRUE(term_structure(schedule, FormatId::fp16).has_value());
  schedule.k_step = 32;
  EXPECT_FALSE(term_structure(schedule, FormatId::fp16).has_value());
  schedule.k_step = 0;  // term after term over all of k, in one accumulator
  EXPECT_FALSE(term_structure(schedule, FormatId::fp16).has_value());
  schedule = find_scheme("ootomo")->program.schedule;
  schedule.k_block = 24;
  EXPECT_FALSE(term_structure(schedule, FormatId::fp16).has_value());
  schedule.k_block = 32;  // two groups, of which one would have to follow the other
  EXPECT_FALSE(term_structure(schedule, FormatId::fp16).has_value());
}

TEST(TermSums, TilesFitTheSharedMemory) {
  for (const char* name : compiled_schemes) {
    const TermStructure structure = *structure_of(name);
    for (const std::int64_t kibibytes : {99, 163, 227}) {
      for (const std::int64_t side : {100, 1000, 10000}) {
        const auto variants =
            term_sums_variants(structure, side, side, 132, kibibytes << 10, /*has_wgmma=*/kibibytes == 227);
        ASSERT_FALSE(variants.empty()) << name << " " << kibibytes;
        for (const auto& [tile, time] : variants)
          EXPECT_LE(tile.shared_bytes(structure), kibibytes << 10) << name << " " << kibibytes;
      }
    }
  }
}

// Device code for 8.0, and for 9.0 by mma.sync and by wgmma.
struct Target {
  int capability;
  std::int64_t shared_kibibytes;
  bool has_wgmma;
};

TEST(TermSums, KernelsCompileWithoutSpills) {
  if (!run_time_compiler().reason.empty()) GTEST_SKIP() << run_time_compiler().reason;
  for (const Target& target : {Target{80, 163, false}, Target{90, 227, false}, Target{90, 227, true}}) {
    for (const char* name : compiled_schemes) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(target.capability) +
                   (target.has_wgmma ? " wgmma" : ""));
      const TermStructure structure = *structure_of(name);
      const auto variants =
          term_sums_variants(structure, 8192, 8192, 132, target.shared_kibibytes << 10, target.has_wgmma);
      const TermSumsTile tile = std::ranges::min_element(variants, {}, &TermSumsVariant::time)->tile;
      if (target.has_wgmma && !tile.by_wgmma) continue;  // as before
      const CompiledCode code = compile_kernel(
          term_sums_source(structure, find_scheme(name)->program.format().id, tile), target.capability);
      ASSERT_FALSE(code.code.empty()) << code.log;
      EXPECT_TRUE(std::regex_search(
          code.log, std::regex("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")))
          << code.log;
      EXPECT_FALSE(std::regex_search(code.log, std::regex("warning|serialized"))) << code.log;
    }
  }
}

// ---------------------------------------------------------------- folder of compiled code

class CodeCaches : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kintsugi-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    parent_ = name;
  }
  void TearDown() override { fs::remove_all(parent_); }
  fs::path folder() const { return parent_ / "kintsugi"; }

  fs::path parent_;
};

TEST_F(CodeCaches, KeepCodeForTheUserAlone) {
  const std::string code(100000, 'c');
  {
    const CodeCache cache(folder());
    ASSERT_TRUE(cache.is_usable());
    EXPECT_FALSE(cache.find("key").has_value());
    cache.keep("key", code);
  }
  const CodeCache again(folder());
  EXPECT_EQ(again.find("key"), code);
  EXPECT_FALSE(again.find("other").has_value());
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
  // There is one file: what was written was renamed.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 1);
}

TEST_F(CodeCaches, IgnoreDamagedFiles) {
  const CodeCache cache(folder());
  cache.keep("key", "code");
  const fs::path file = fs::directory_iterator(folder())->path();
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_FALSE(cache.find("key").has_value());
  cache.keep("key", "code");
  EXPECT_EQ(cache.find("key"), "code");
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.find("key").has_value());
}

TEST_F(CodeCaches, AreNotUsedWhereOthersMayWrite) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::all);
  EXPECT_FALSE(CodeCache(folder()).is_usable());
  fs::remove(folder());
  fs::create_directory(parent_ / "elsewhere");
  fs::create_symlink(parent_ / "elsewhere", folder());
  EXPECT_FALSE(CodeCache(folder()).is_usable());
  EXPECT_FALSE(CodeCache(parent_ / "no" / "such" / "folder").is_usable());
}

}  // namespace
}  // namespace kintsugi::core::cuda
