// Compares the models of matrix engines, bit for bit, with results that hardware gave.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model_formats.hpp"

namespace kintsugi::core {
namespace {

constexpr int tile_side = 16;

// Reads a file of recorded operands and results from its beginning to its end.
class Records {
 public:
  explicit Records(const std::string& name) {
    std::ifstream file(std::string(KINTSUGI_TEST_DATA) + "/mma/" + name, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    EXPECT_FALSE(bytes_.empty()) << name;
  }

  // The next `count` little-endian integers of `width` bytes.
  std::vector<std::uint64_t> take(std::size_t count, std::size_t width) {
    std::vector<std::uint64_t> values(count);
    if (position_ + count * width > bytes_.size()) {
      ADD_FAILURE() << "record file too short";
      return values;
    }
    for (std::uint64_t& value : values) {
      for (std::size_t i = 0; i < width; ++i) {
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[position_ + i])) << (8 * i);
      }
      position_ += width;
    }
    return values;
  }

  bool at_end() const { return position_ == bytes_.size(); }

 private:
  std::vector<char> bytes_;
  std::size_t position_ = 0;
};

struct Tally {
  int records = 0;
  int mismatches = 0;
};

template <class Model>
std::vector<typename Model::Element> load_all(const Format& format,
                                              const std::vector<std::uint64_t>& patterns) {
  std::vector<typename Model::Element> elements;
  for (const std::uint64_t pattern : patterns) elements.push_back(Model::load(format, pattern));
  return elements;
}

enum class Instruction { warp_matrix, wgmma };

template <class Model, FormatId Id>
Tally compare_h200(Instruction instruction) {
  constexpr std::size_t tiles = 36;
  const Format& format = format_of<Id>;
  const std::size_t k = Id == FormatId::tf32 ? 8 : 16;
  const auto width = static_cast<std::size_t>(format.storage_bytes);
  Records records(std::string("h200_") + format.name + ".bin");
  const auto a = load_all<Model>(format, records.take(tiles * tile_side * k, width));
  const auto b = load_all<Model>(format, records.take(tiles * tile_side * k, width));
  const auto c = records.take(tiles * tile_side * tile_side, 4);
  const auto warp_matrix = records.take(c.size(), 4);
  const auto wgmma = records.take(c.size(), 4);
  EXPECT_TRUE(records.at_end());
  const auto& d = instruction == Instruction::wgmma ? wgmma : warp_matrix;
  Tally tally;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const std::size_t row = i / tile_side;
    const std::size_t column = row / tile_side * tile_side + i % tile_side;
    const float sum = Model::run(&a[row * k], &b[column * k], static_cast<std::int64_t>(k), float_of(c[i]));
    ++tally.records;
    tally.mismatches += bits_of(sum) != d[i] ? 1 : 0;
  }
  return tally;
}

// Compares with a file of records of one sum each: a, b, C and `results` results, of which `result` counts.
template <class Model, FormatId Id>
Tally compare_records(const std::string& name, std::size_t results = 1, std::size_t result = 0) {
  const Format& format = format_of<Id>;
  const std::size_t k = Id == FormatId::tf32 ? 8 : 16;
  const auto width = static_cast<std::size_t>(format.storage_bytes);
  Records records("h200_" + name + "_" + format.name + ".bin");
  Tally tally;
  while (!records.at_end() && !testing::Test::HasFailure()) {
    const auto a = load_all<Model>(format, records.take(k, width));
    const auto b = load_all<Model>(format, records.take(k, width));
    const float c = float_of(records.take(1, 4)[0]);
    const std::uint64_t d = records.take(results, 4)[result];
    ++tally.records;
    tally.mismatches += bits_of(Model::run(a.data(), b.data(), static_cast<std::int64_t>(k), c)) != d ? 1 : 0;
  }
  return tally;
}

template <class Model, FormatId Id>
Tally compare_corners() {
  return compare_records<Model, Id>("corners");
}

// Results of the warp matrix API, mma.sync and wgmma.
template <class Model, FormatId Id>
Tally compare_tiny(std::size_t instruction) {
  return compare_records<Model, Id>("tiny", 3, instruction);
}

template <class Model>
Tally compare_amx() {
  Records records("xeon_amx_bf16.bin");
  Tally tally;
  while (!records.at_end() && !testing::Test::HasFailure()) {
    const auto a = load_all<Model>(bf16, records.take(16 * 32, 2));
    const auto b = load_all<Model>(bf16, records.take(16 * 16 * 2, 2));
    const auto c = records.take(16 * 16, 4);
    const auto d = records.take(16 * 16, 4);
    for (std::size_t i = 0; i < d.size(); ++i) {
      std::vector<float> column(32);
      for (std::size_t p = 0; p < 32; ++p) column[p] = b[(p / 2) * 32 + (i % 16) * 2 + p % 2];
      ++tally.records;
      const float sum = Model::run(&a[i / 16 * 32], column.data(), 32, float_of(c[i]));
      tally.mismatches += bits_of(sum) != d[i] ? 1 : 0;
    }
  }
  return tally;
}

template <class Model>
Tally compare_vdpbf16ps(const std::string& name) {
  Records records(name);
  Tally tally;
  while (!records.at_end() && !testing::Test::HasFailure()) {
    const auto a = load_all<Model>(bf16, records.take(32, 2));
    const auto b = load_all<Model>(bf16, records.take(32, 2));
    const auto c = records.take(16, 4);
    const auto d = records.take(16, 4);
    for (std::size_t i = 0; i < 16; ++i) {
      ++tally.records;
      tally.mismatches += bits_of(Model::run(&a[2 * i], &b[2 * i], 2, float_of(c[i]))) != d[i] ? 1 : 0;
    }
  }
  return tally;
}

void expect_all(const Tally& tally, int records) {
  EXPECT_EQ(tally.records, records);
  EXPECT_EQ(tally.mismatches, 0);
}

TEST(RecordedResults, EqualTheModelOfH200Wgmma) {
  expect_all(compare_h200<H200<half>, half>(Instruction::wgmma), 9216);
  expect_all(compare_h200<H200<brain>, brain>(Instruction::wgmma), 9216);
  expect_all(compare_h200<H200<tensor>, tensor>(Instruction::wgmma), 9216);
}

TEST(RecordedResults, EqualTheModelOfH200WarpMatrix) {
  expect_all(compare_h200<H200Mma<half>, half>(Instruction::warp_matrix), 9216);
  expect_all(compare_h200<H200Mma<brain>, brain>(Instruction::warp_matrix), 9216);
  expect_all(compare_h200<H200Mma<tensor>, tensor>(Instruction::warp_matrix), 9216);
}

TEST(RecordedResults, EqualTheModelOfH200InCornerCases) {
  expect_all(compare_corners<H200<half>, half>(), 1000);
  expect_all(compare_corners<H200<brain>, brain>(), 1000);
  expect_all(compare_corners<H200<tensor>, tensor>(), 1000);
}

TEST(RecordedResults, EqualTheModelOfH200InTinySums) {
  expect_all(compare_tiny<H200Mma<half>, half>(0), 500);
  expect_all(compare_tiny<H200Mma<brain>, brain>(0), 1000);
  expect_all(compare_tiny<H200Mma<tensor>, tensor>(0), 1000);
  for (const std::size_t instruction : {1U, 2U}) {
    expect_all(compare_tiny<H200<half>, half>(instruction), 500);
    expect_all(compare_tiny<H200<brain>, brain>(instruction), 1000);
    expect_all(compare_tiny<H200<tensor>, tensor>(instruction), 1000);
  }
}

TEST(RecordedResults, EqualTheModelOfAmx) { expect_all(compare_amx<AmxBf16>(), 9216); }

TEST(RecordedResults, EqualTheModelOfAvx512) {
  expect_all(compare_vdpbf16ps<Avx512Bf16>("xeon_vdpbf16ps.bin"), 6336);
  expect_all(compare_vdpbf16ps<Avx512Bf16>("zen5_vdpbf16ps.bin"), 6336);
}

// Intended failures: the comparison sees models with other extra bits, block lengths or instructions.
TEST(RecordedResults, DifferFromWrongModels) {
  EXPECT_GT((compare_h200<TensorCore<half, 16, 0>, half>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<TensorCore<half, 16, 1>, half>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<TensorCore<half, 16, 3>, half>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<TensorCore<half, 8, 2>, half>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<TensorCore<half, 4, 2>, half>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<TensorCore<brain, 16, 1>, brain>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<TensorCore<brain, 16, 3>, brain>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_h200<H200<tensor>, tensor>(Instruction::warp_matrix).mismatches), 500);
  EXPECT_GT((compare_h200<H200Mma<tensor>, tensor>(Instruction::wgmma).mismatches), 500);
  EXPECT_GT((compare_corners<H200Mma<tensor>, tensor>().mismatches), 50);
  for (const std::size_t instruction : {1U, 2U}) {
    EXPECT_GT((compare_tiny<TensorCore<brain, 16, 2>, brain>(instruction).mismatches), 100);
    EXPECT_GT((compare_tiny<TensorCore<brain, 16, 2, -134>, brain>(instruction).mismatches), 100);
    EXPECT_GT((compare_tiny<TensorCore<brain, 16, 2, -132>, brain>(instruction).mismatches), 100);
    EXPECT_GT((compare_tiny<TensorCore<tensor, 8, 2, -134>, tensor>(instruction).mismatches), 100);
    EXPECT_GT((compare_tiny<TensorCore<tensor, 8, 2, -132>, tensor>(instruction).mismatches), 100);
  }
  EXPECT_GT(compare_amx<Avx512Bf16>().mismatches, 1000);
  EXPECT_GT(compare_amx<Fp32Nearest>().mismatches, 1000);
  EXPECT_GT(compare_vdpbf16ps<AmxBf16>("zen5_vdpbf16ps.bin").mismatches, 300);
  EXPECT_GT(compare_vdpbf16ps<Fp32Nearest>("zen5_vdpbf16ps.bin").mismatches, 300);
}

}  // namespace
}  // namespace kintsugi::core
