// Claims that follow from figures which the papers print: shares of peaks, ratios of printed rates, and rules
// that need no random numbers. What follows from counts of products is in dgemm_tc.cpp.
#include <algorithm>
#include <cmath>
#include <set>

#include "lab/kernels/le_gemm_kernels.hpp"
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

// A figure as it is printed. Rates are in TFLOP/s or TOP/s.
struct Printed {
  const char* quantity;
  double value;
  const char* source;
};

constexpr const char* study_table = "fp16-emulation-study, table";
constexpr const char* mixpert_peaks = "mixpert, Table 1, upper part";
constexpr const char* mixpert_rates = "mixpert, Table 1, lower part";
constexpr const char* h2sgemm_speed = "h2sgemm, section 4.2";
constexpr const char* table_6 = "le-gemm, Table 6";
constexpr const char* dgemm_tc_peaks = "dgemm-tc, section 5.1";

constexpr Printed printed[] = {
    {"study, RTX 4080 Super, FP16", 208.9, study_table},
    {"study, RTX 4080 Super, FP32", 52.2, study_table},
    {"study, A100, FP16", 312, study_table},
    {"study, A100, FP32", 19.5, study_table},
    {"mixpert, A100, FP32", 19.5, mixpert_peaks},
    {"mixpert, A100, TF32", 156, mixpert_peaks},
    {"mixpert, A100, BF16", 312, mixpert_peaks},
    {"mixpert, A100, INT8", 624, mixpert_peaks},
    {"mixpert, RTX 3090, INT8", 238, mixpert_peaks},
    {"mixpert, RTX 3090, FP32", 29.8, mixpert_peaks},
    {"mixpert, RTX 3090, TF32", 29.8, mixpert_peaks},
    {"mixpert, RTX 3090, BF16", 59.5, mixpert_peaks},
    {"mixpert, A100, cuBLAS", 17.7, mixpert_rates},
    {"mixpert, A100, CUTLASS", 32.0, mixpert_rates},
    {"mixpert, A100, APE", 35.6, mixpert_rates},
    {"mixpert, RTX 3090, cuBLAS", 21.7, mixpert_rates},
    {"mixpert, RTX 3090, CUTLASS", 13.1, mixpert_rates},
    {"mixpert, RTX 3090, APE", 12.3, mixpert_rates},
    {"quantensor, three products", 2.5, "mixpert, section 2.2"},
    {"quantensor, nine products", 0.83, "mixpert, section 2.2"},
    {"h2sgemm, 910A, FP16", 256, h2sgemm_speed},
    {"h2sgemm, 910A, two buffers", 65.3, h2sgemm_speed},
    {"h2sgemm, 910A, one buffer", 41.7, h2sgemm_speed},
    {"ma, A100", 64.15, "h2sgemm, section 2"},
    {"ootomo, A100, FP16", 51, "h2sgemm, section 2"},
    {"ootomo, A100, TF32", 33, "h2sgemm, section 2"},
    {"le-gemm over mark, MI210, n x n x n", 2.81, table_6},
    {"le-gemm over mark, MI210, n x 4n x n", 2.99, table_6},
    {"le-gemm over mark, MI210, n x n x 4n", 3.35, table_6},
    {"le-gemm over mark, A800, n x n x n", 2.77, table_6},
    {"le-gemm over mark, A800, n x 4n x n", 2.84, table_6},
    {"le-gemm over mark, A800, n x n x 4n", 4.67, table_6},
    {"le-gemm over ooto, MI210, n x n x n", 2.99, table_6},
    {"le-gemm over ooto, MI210, n x 4n x n", 3.10, table_6},
    {"le-gemm over ooto, MI210, n x n x 4n", 3.45, table_6},
    {"le-gemm over ooto, A800, n x n x n", 2.74, table_6},
    {"le-gemm over ooto, A800, n x 4n x n", 2.80, table_6},
    {"le-gemm over ooto, A800, n x n x 4n", 3.76, table_6},
    {"le-gemm over mark, MI210, on the average", 3.05, "le-gemm, section 5.2"},
    {"le-gemm over ooto, MI210, on the average", 3.18, "le-gemm, section 5.2"},
    {"dgemm-tc, Titan RTX, FP64", 0.50976, dgemm_tc_peaks},
    {"dgemm-tc, Titan RTX, FP32", 16.31232, dgemm_tc_peaks},
    {"dgemm-tc, Titan RTX, Tensor Cores", 130.49856, dgemm_tc_peaks},
    {"dgemm-tc, V100, FP64", 7.0656, dgemm_tc_peaks},
    {"dgemm-tc, V100, FP32", 14.1312, dgemm_tc_peaks},
    {"dgemm-tc, V100, Tensor Cores", 113.0496, dgemm_tc_peaks},
};

// ---------------------------------------------------------------- h2sgemm, Eqs. 8 and 10

constexpr std::int64_t l1_elements = 512 * 1024;

// Blocks of A (rows x depth), B (depth x columns) and C.
struct Block {
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t columns;
};
constexpr Block paper_block{176, 64, 176};

bool fits(const Block& block) {
  constexpr std::int64_t l0 = 64 * 256;
  constexpr std::int64_t bytes_of_c = 248 * 1024;
  return block.rows * block.depth <= l0 && block.depth * block.columns <= l0 &&
         block.rows * block.columns * 6 <= bytes_of_c;
}

// Eq. 8: N_fused, the blocks of A that fit into L1 beside two blocks of B.
double fused_blocks(const Block& block) {
  const auto free = static_cast<double>(l1_elements - 2 * block.depth * block.columns);
  return std::floor(free / static_cast<double>(block.rows * block.depth));
}

double kilobytes_of(const Block& block, double blocks) {
  constexpr double half_bytes = 2;
  return half_bytes / 1024 *
         (blocks * static_cast<double>(block.rows * block.depth) +
          2 * static_cast<double>(block.depth * block.columns));
}

double share_of_l1(const Block& block) {
  return fused_blocks(block) * static_cast<double>(block.rows * block.depth) /
         static_cast<double>(l1_elements);
}

// Calls use(block) for all blocks for which the paper states the range of f.
template <class Use>
void for_each_block(const Use& use) {
  constexpr std::int64_t step = 16;
  constexpr std::int64_t longest = 256;
  for (std::int64_t rows = step; rows <= longest; rows += step) {
    for (std::int64_t depth = step; depth <= longest; depth += step) {
      for (std::int64_t columns = step; columns <= longest; columns += step) {
        const Block block{rows, depth, columns};
        if (fits(block) && 2 * columns >= rows && columns <= 2 * rows) use(block);
      }
    }
  }
}

// Eq. 9's optimum: the b_m of least traffic for a share f.
double best_height(double share) {
  constexpr double cores = 32;
  return std::sqrt(share * static_cast<double>(l1_elements) / (2 * cores));
}

// Sizes of L1 in elements of FP16: that which N_fused = 44 needs, and the 512 KB that section 3.3.1 states.
struct L1 {
  const char* name;
  std::int64_t elements;
};
constexpr L1 sizes_of_l1[] = {{"512 Ki elements", l1_elements}, {"512 KB", l1_elements / 2}};

// Returns the b_m of least traffic in Eq. 9 over that of the formula, at a share f.
double searched_height(double share, const L1& l1) {
  constexpr double cores = 32;
  constexpr double steps = 1024;  // of a row
  const auto traffic = [&](double rows) {
    return 1 / (cores * rows) + 2 * rows / (share * static_cast<double>(l1.elements));
  };
  double best = 1;
  for (double rows = 1; rows <= 512; rows += 1 / steps)
    if (traffic(rows) < traffic(best)) best = rows;
  return best / std::sqrt(share * static_cast<double>(l1.elements) / (2 * cores));
}

// Returns the least L1 / (b_m b_k) of all blocks that meet Eq. 10.
double least_blocks(const L1& l1) {
  double least = HUGE_VAL;
  for_each_block([&](const Block& block) {
    least = std::min(least, static_cast<double>(l1.elements) / static_cast<double>(block.rows * block.depth));
  });
  return least;
}

// Returns the least and the largest N_fused b_m b_k.
std::vector<double> fused_elements(const L1& l1) {
  std::vector<double> products;
  for_each_block([&](const Block& block) {
    const std::int64_t size = block.rows * block.depth;
    products.push_back(static_cast<double>((l1.elements - 2 * block.depth * block.columns) / size * size));
  });
  const auto [least, largest] = std::minmax_element(products.begin(), products.end());
  return {*least, *largest};
}

double nearest_multiple_of_16(double value) { return 16 * std::round(value / 16); }

// Returns the means of f over blocks that meet Eq. 10 with 0.5 <= b_n / b_m <= 2, by b_m b_k from one power
// of two to the next.
std::vector<double> mean_shares_by_size() {
  std::vector<double> means;
  for (std::int64_t least = 1024; least < 16384; least *= 2) {
    std::vector<double> shares;
    for_each_block([&](const Block& block) {
      const std::int64_t size = block.rows * block.depth;
      if (size > least && size <= 2 * least) shares.push_back(share_of_l1(block));
    });
    means.push_back(mean(shares));
  }
  return means;
}

// Returns the largest rise of f from one b_n to the next with the same b_m and b_k.
double largest_rise() {
  double rise = -1;
  Block last{};
  for_each_block([&](const Block& block) {
    if (block.rows == last.rows && block.depth == last.depth)
      rise = std::max(rise, share_of_l1(block) - share_of_l1(last));
    last = block;
  });
  return rise;
}

// ---------------------------------------------------------------- dgemm-tc, Algorithm 1

struct Number {
  const char* name;
  int bits;      // of the significand, or of an integer's magnitude
  int sum_bits;  // of the accumulator likewise
};
constexpr Number int8{"int8", 7, 31};
constexpr Number fp8{"FP8 E4M3", 4, 24};
constexpr Number int16{"int16", 15, 31};
constexpr Number fp16_in_fp32{"FP16", 11, 24};
constexpr Number fp16_alone{"FP16 in FP16", 11, 11};
constexpr Number bf16_alone{"BF16 in BF16", 8, 8};

// Slices of a number of 53 bits such that sums of k products of slices are exact in the accumulator. rho of
// Algorithm 1 leaves a slice half of the accumulator's bits beyond log2 k.
double slices_of(const Number& number, double k) {
  constexpr double all_bits = 53;
  const double bits = std::min<double>(number.bits, std::floor((number.sum_bits - std::log2(k)) / 2));
  return std::ceil(all_bits / bits);
}

struct Comparison {
  const char* name;
  Number dividend;
  Number divisor;
  std::vector<std::int64_t> lengths;
};
const std::vector<Comparison> comparisons{{"8 bits", int8, fp8, {1024, 4096, 10240}},
                                          {"16 bits", int16, fp16_in_fp32, {1024, 4096, 10240}},
                                          {"sums in the format", bf16_alone, fp16_alone, {2, 4, 16}},
                                          {"FP16 sums over FP32 sums", fp16_alone, fp16_in_fp32, {2, 4, 16}}};

// ---------------------------------------------------------------- le-gemm, Fig. 14

// Published rates: FP16 operations, and bytes of memory (Table 4) and of the second cache, a second. A100
// white paper: 5120 bytes a cycle; MI200 white paper: 4096.
struct RooflineChip {
  const char* name;
  double fp16;
  double memory;
  double cache;
};
constexpr RooflineChip a800{"A800", 312e12, 2.04e12, 5120 * 1.41e9};
constexpr RooflineChip mi210{"MI210", 181e12, 1.6e12, 4096 * 1.7e9};

const std::vector<std::string> rooflines{"memory, every load", "memory, every operand once",
                                         "second cache, every load"};

std::string roofline_quantity(const std::string& kernel, const RooflineChip& chip,
                              const std::string& roofline) {
  return fmt::format("{} on the {} over the ridge, {}", kernel, chip.name, roofline);
}

// Returns operations a byte over those at the ridge, n = 8192.
double over_ridge(const lab::LeGemmKernel& kernel, const RooflineChip& chip, const std::string& roofline) {
  constexpr double n = 8192;
  const double operations = 2 * kernel.products() * n * n * n;
  const double once = (2.0 * 2 * kernel.slices() + sizeof(float)) * n * n;
  const double bytes = roofline == rooflines[1] ? once : kernel.bytes({8192, 8192, 8192});
  return operations / bytes / (chip.fp16 / (roofline == rooflines[2] ? chip.cache : chip.memory));
}

struct RooflineKernel {
  const char* name;
  const char* kernel;
  const RooflineChip* chip;
};
// LE-GEMM's with the tiles of Table 2.
const std::vector<RooflineKernel> le_gemm_rooflines{{"LE-GEMM", "le_gemm_128x256x2", &a800},
                                                    {"LE-GEMM", "le_gemm_128x128x2", &mi210}};
const std::vector<RooflineKernel> baseline_rooflines{
    {"WMMA", "wmma_direct", &a800}, {"Mark", "markidis_direct", &a800}, {"Ooto", "ootomo_direct", &a800}};

// ---------------------------------------------------------------- le-gemm, section 4

// Tiles of Table 2, and what a thread block on an SM or CU may use: registers of 32 bits and bytes of shared
// memory. CUDA programming guide, compute capability 8.0; AMD CDNA 2 white paper.
struct TileOfTable2 {
  const char* name;
  double rows, columns, depth;
  double registers;
  double shared;
};
constexpr TileOfTable2 tiles_of_table_2[] = {{"A800", 128, 256, 32, 65536, 164 * 1024},
                                             {"MI210", 128, 128, 32, 131072, 64 * 1024}};

// Returns the share that both accumulators of Algorithm 1 take.
double share_of_registers(const TileOfTable2& tile) { return 2 * tile.rows * tile.columns / tile.registers; }

// Returns the share that two buffers of both slices of A and B take in FP16.
double share_of_shared(const TileOfTable2& tile) {
  constexpr double buffers = 2, slices = 2, half_bytes = 2;
  return buffers * slices * half_bytes * tile.depth * (tile.rows + tile.columns) / tile.shared;
}

// ---------------------------------------------------------------- the document and its claims

constexpr const char* block_share = "share of L1 that blocks of A use";
constexpr const char* fused = "N_fused of blocks of (176, 64, 176)";
constexpr const char* kilobytes = "KB of 44 blocks of A and two of B, (176, 64, 176) in FP16";
constexpr const char* height = "best b_m at f = 0.92 and 1";
constexpr const char* share_by_size = "mean f by b_m b_k, to 2048, 4096, 8192 and 16384";
constexpr const char* rise_of_share = "largest rise of f with b_n";
std::string of_l1_size(const char* quantity, const L1& l1) {
  return fmt::format("{}, L1 of {}", quantity, l1.name);
}
constexpr const char* height_ratio = "b_m of least traffic over the formula's, f = 0.92 and 1";
constexpr const char* blocks_in_l1 = "least L1 / (b_m b_k)";
constexpr const char* elements_fused = "least and largest N_fused b_m b_k";
constexpr const char* registers_used = "registers of both accumulators over the register file";
constexpr const char* shared_used = "bytes of both buffers over shared memory";

Json make_document(bool) {
  Json result = analysis_document("quantities", 1, 0);
  Json& rows = result["rows"];
  for (const Printed& figure : printed)
    rows.push_back({{"quantity", figure.quantity}, {"value", figure.value}, {"source", figure.source}});
  std::vector<double> shares;
  for_each_block([&](const Block& block) { shares.push_back(share_of_l1(block)); });
  const auto [least, largest] = std::minmax_element(shares.begin(), shares.end());
  for (const double share : {*least, *largest})
    rows.push_back({{"quantity", block_share}, {"value", share}, {"source", "h2sgemm, Eqs. 8 and 10"}});
  rows.push_back({{"quantity", fused}, {"value", fused_blocks(paper_block)}, {"source", "h2sgemm, Eq. 8"}});
  rows.push_back(
      {{"quantity", kilobytes}, {"value", kilobytes_of(paper_block, 44)}, {"source", "h2sgemm, Eq. 8"}});
  for (const double share : {0.92, 1.0})
    rows.push_back({{"quantity", height}, {"value", best_height(share)}, {"source", "h2sgemm, Eq. 9"}});
  for (const double share : mean_shares_by_size())
    rows.push_back({{"quantity", share_by_size}, {"value", share}, {"source", "h2sgemm, Eqs. 8 and 10"}});
  rows.push_back(
      {{"quantity", rise_of_share}, {"value", largest_rise()}, {"source", "h2sgemm, Eqs. 8 and 10"}});
  for (const auto* kernels : {&le_gemm_rooflines, &baseline_rooflines}) {
    for (const auto& [name, kernel, chip] : *kernels) {
      for (const std::string& roofline : rooflines)
        rows.push_back({{"quantity", roofline_quantity(name, *chip, roofline)},
                        {"value", over_ridge(lab::le_gemm_kernel(kernel), *chip, roofline)},
                        {"source", "le-gemm, Tables 2 and 4, and counted bytes"}});
    }
  }
  const auto add = [&](const std::string& quantity, double value, const char* source) {
    rows.push_back({{"quantity", quantity}, {"value", value}, {"source", source}});
  };
  for (const L1& l1 : sizes_of_l1) {
    for (const double share : {0.92, 1.0})
      add(of_l1_size(height_ratio, l1), searched_height(share, l1), "h2sgemm, Eq. 9");
    add(of_l1_size(blocks_in_l1, l1), least_blocks(l1), "h2sgemm, Eq. 10");
    for (const double elements : fused_elements(l1))
      add(of_l1_size(elements_fused, l1), elements, "h2sgemm, Eqs. 8 and 10");
  }
  for (const TileOfTable2& tile : tiles_of_table_2) {
    add(registers_used, share_of_registers(tile), "le-gemm, Table 2, and vendors' documents");
    add(shared_used, share_of_shared(tile), "le-gemm, Table 2, and vendors' documents");
  }
  std::set<std::string> compared;  // a number is in several comparisons
  for (const Comparison& comparison : comparisons) {
    for (const std::int64_t k : comparison.lengths) {
      for (const Number& number : {comparison.dividend, comparison.divisor}) {
        if (!compared.insert(fmt::format("{} {}", number.name, k)).second) continue;
        rows.push_back({{"quantity", fmt::format("slices of {}", number.name)},
                        {"value", slices_of(number, static_cast<double>(k))},
                        {"source", "dgemm-tc, Algorithm 1"},
                        {"k", k}});
      }
    }
  }
  return result;
}

std::vector<double> values_of(const Evidence& evidence, const std::string& quantity) {
  std::vector<double> values;
  for (const Json& row : evidence.rows_where(where("quantity", quantity)))
    values.push_back(row.at("value").get<double>());
  if (values.empty()) throw NoSuchRow("no row has the quantity " + quantity);
  return values;
}

double value_of(const Evidence& evidence, const std::string& quantity) {
  return values_of(evidence, quantity).front();
}

Measured of_4080(const Evidence& evidence) {
  const auto gain = [&](const std::string& device) {
    constexpr double products = 3;
    return value_of(evidence, "study, " + device + ", FP16") / products /
           value_of(evidence, "study, " + device + ", FP32");
  };
  return {{"RTX 4080 Super", {gain("RTX 4080 Super")}}, {"A100, which can", {gain("A100")}}};
}

Measured of_peak(const Evidence& evidence) {
  return {
      {"65.3 of 256 / 3",
       {3 * value_of(evidence, "h2sgemm, 910A, two buffers") / value_of(evidence, "h2sgemm, 910A, FP16")}}};
}

Measured of_buffers(const Evidence& evidence) {
  return {
      {"65.3 over 41.7, less 1",
       {value_of(evidence, "h2sgemm, 910A, two buffers") / value_of(evidence, "h2sgemm, 910A, one buffer") -
        1}}};
}

Measured of_blocks(const Evidence& evidence) {
  return {{"least and largest f", values_of(evidence, block_share)},
          {"blocks of (176, 64, 176)", {value_of(evidence, fused)}}};
}

Measured of_heights(const Evidence& evidence) { return {{"f = 0.92 and 1", values_of(evidence, height)}}; }

Measured of_rounded_heights(const Evidence& evidence) {
  SeriesValues series{"f = 0.92 and 1", {}};
  for (const double value : values_of(evidence, height))
    series.values.push_back(nearest_multiple_of_16(value));
  return {series};
}

Measured of_l1(const Evidence& evidence) { return {{"KB", {value_of(evidence, kilobytes)}}}; }

Measured of_share(const Evidence& evidence) {
  const std::vector<double> means = values_of(evidence, share_by_size);
  SeriesValues steps{"mean f over that of blocks half as large", {}};
  for (std::size_t i = 1; i < means.size(); ++i) steps.values.push_back(means[i] / means[i - 1]);
  return {steps, {"largest rise with b_n", {value_of(evidence, rise_of_share)}}};
}

Measured of_roofline(const Evidence& evidence) {
  const auto series = [&](const std::string& roofline, const auto* kernels) {
    SeriesValues found{
        fmt::format("{}, {}", kernels->front().name == std::string("LE-GEMM") ? "LE-GEMM" : "others",
                    roofline),
        {}};
    for (const auto& [name, kernel, chip] : *kernels)
      found.values.push_back(value_of(evidence, roofline_quantity(name, *chip, roofline)));
    return found;
  };
  return series_of(series, rooflines, std::vector{&le_gemm_rooflines, &baseline_rooflines});
}

Measured of_ma(const Evidence& evidence) {
  return {
      {"3 x 64.15 of 312", {3 * value_of(evidence, "ma, A100") / value_of(evidence, "study, A100, FP16")}}};
}

Measured of_ootomo(const Evidence& evidence) {
  const double fp16_rate = value_of(evidence, "ootomo, A100, FP16");
  const double tf32_rate = value_of(evidence, "ootomo, A100, TF32");
  return {{"51 over 19.5", {fp16_rate / value_of(evidence, "study, A100, FP32")}},
          {"51 and 33 over 312 / 3 and 156 / 3",
           {3 * fp16_rate / value_of(evidence, "study, A100, FP16"),
            3 * tf32_rate / value_of(evidence, "mixpert, A100, TF32")}}};
}

Measured of_table_6(const Evidence& evidence) {
  SeriesValues series{"Table 6", {}};
  for (const char* device : {"MI210", "A800"}) {
    for (const char* shape : {"n x n x n", "n x 4n x n", "n x n x 4n"}) {
      const auto gain = [&](const char* method) {
        return value_of(evidence, fmt::format("le-gemm over {}, {}, {}", method, device, shape));
      };
      series.values.push_back(gain("mark") / gain("ooto"));
    }
  }
  return {series};
}

// An emulation of MixPert's Table 1: its type and its products.
struct Emulation {
  const char* name;
  const char* type;
  double products;
};
constexpr Emulation cublas{"cuBLAS", "FP32", 1};
constexpr Emulation cutlass{"CUTLASS", "TF32", 3};
constexpr Emulation ape{"APE", "BF16", 6};

double peak_of(const Evidence& evidence, const char* device, const char* type) {
  return value_of(evidence, fmt::format("mixpert, {}, {}", device, type));
}

double over_cublas(const Evidence& evidence, const char* device, const Emulation& emulation) {
  return peak_of(evidence, device, emulation.name) / peak_of(evidence, device, cublas.name);
}

Measured of_theory(const Evidence& evidence) {
  const auto gain = [&](const char* type, double products) {
    return std::vector{peak_of(evidence, "A100", type) / products / peak_of(evidence, "A100", "FP32")};
  };
  constexpr double int8_products = 8;
  return {{"eight int8 products", gain("INT8", int8_products)},
          {"three TF32 products", gain("TF32", cutlass.products)},
          {"six BF16 products", gain("BF16", ape.products)}};
}

// Eq. 8 takes (l + 1) (r + 1) products; the default configuration leaves out x2 y2.
Measured of_levels(const Evidence&) {
  const auto products = [](int l, int r) { return static_cast<double>((l + 1) * (r + 1)); };
  const double of_default = products(2, 2) - 1;
  return {{"level II", {of_default / products(1, 2)}}, {"level III", {of_default / products(2, 1)}}};
}

Measured of_fig2(const Evidence& evidence) {
  return {{"CUTLASS, A100", {over_cublas(evidence, "A100", cutlass)}},
          {"APE, A100", {over_cublas(evidence, "A100", ape)}},
          {"CUTLASS and APE, RTX 3090",
           {over_cublas(evidence, "RTX 3090", cutlass), over_cublas(evidence, "RTX 3090", ape)}}};
}

Measured of_table_1(const Evidence& evidence) {
  const auto shares = [&](const char* device) {
    SeriesValues series{fmt::format("{}: cuBLAS, CUTLASS, APE", device), {}};
    for (const Emulation& emulation : {cublas, cutlass, ape})
      series.values.push_back(peak_of(evidence, device, emulation.name) * emulation.products /
                              peak_of(evidence, device, emulation.type));
    return series;
  };
  return {shares("A100"), shares("RTX 3090")};
}

Measured of_quantensor(const Evidence& evidence) {
  return {
      {"2.5 over 0.83",
       {value_of(evidence, "quantensor, three products") / value_of(evidence, "quantensor, nine products")}}};
}

// Returns the slices of one number over those of the other, for each length of the comparison.
SeriesValues ratios(const Evidence& evidence, const Comparison& comparison) {
  const auto slices = [&](const Number& number, std::int64_t k) {
    const auto rows =
        evidence.rows_where(both(where("quantity", fmt::format("slices of {}", number.name)), where("k", k)));
    if (rows.empty()) throw NoSuchRow(fmt::format("no row has slices of {} at k = {}", number.name, k));
    return rows.front().at("value").get<double>();
  };
  SeriesValues series{comparison.name, {}};
  for (const std::int64_t k : comparison.lengths)
    series.values.push_back(slices(comparison.dividend, k) / slices(comparison.divisor, k));
  return series;
}

Measured of_integers(const Evidence& evidence) {
  return {ratios(evidence, comparisons[0]), ratios(evidence, comparisons[1])};
}

Measured of_bf16(const Evidence& evidence) { return {ratios(evidence, comparisons[2])}; }
Measured of_fp16_sums(const Evidence& evidence) { return {ratios(evidence, comparisons[3])}; }

std::function<Measured(const Evidence&)> by_l1(const char* quantity) {
  return [=](const Evidence& evidence) {
    const auto series = [&](const L1& l1) {
      return SeriesValues{l1.name, values_of(evidence, of_l1_size(quantity, l1))};
    };
    return series_of(series, sizes_of_l1);
  };
}

Measured of_overflow(const Evidence& evidence) {
  return {{"registers, A800 and MI210", values_of(evidence, registers_used)},
          {"shared memory, A800 and MI210", values_of(evidence, shared_used)}};
}

// Fig. 5: four tiles in two rows of two, and three in one row.
Measured of_reuse(const Evidence&) {
  const auto tiles_a_load = [](double rows, double columns) { return rows * columns / (rows + columns); };
  return {{"4 of 2 + 2 over 3 of 1 + 3", {tiles_a_load(2, 2) / tiles_a_load(1, 3)}}};
}

Measured of_averages(const Evidence& evidence) {
  const auto series = [&](const char* name, const std::string& method) {
    const std::string gain = fmt::format("le-gemm over {}, MI210, ", method);
    std::vector<double> gains;
    for (const char* shape : {"n x n x n", "n x 4n x n", "n x n x 4n"})
      gains.push_back(value_of(evidence, gain + shape));
    return SeriesValues{name, {mean(gains) / value_of(evidence, gain + "on the average")}};
  };
  return {series("Mark", "mark"), series("Ooto", "ooto")};
}

Measured of_peaks(const Evidence& evidence) {
  const auto peak = [&](const std::string& device, const char* unit) {
    return value_of(evidence, fmt::format("dgemm-tc, {}, {}", device, unit));
  };
  // FP32 and Tensor Cores over FP64, and Tensor Cores over FP32, as the text has them.
  const auto ratios_of = [&](const std::string& device, double fp32, double tensor) {
    return std::vector{peak(device, "FP32") / peak(device, "FP64") / fp32,
                       peak(device, "Tensor Cores") / peak(device, "FP64") / tensor,
                       peak(device, "Tensor Cores") / peak(device, "FP32") / 8};
  };
  SeriesValues titan{"Titan RTX", ratios_of("Titan RTX", 32, 256)};
  titan.values.push_back(576 * 1.77 * 2 * 64 / 1000 / peak("Titan RTX", "Tensor Cores"));
  return {titan, {"V100", ratios_of("V100", 2, 16)}};
}

double over_fp32(const Evidence& evidence, const char* device, const char* type) {
  return peak_of(evidence, device, type) / peak_of(evidence, device, "FP32");
}

Measured of_a100(const Evidence& evidence) {
  return {{"TF32", {over_fp32(evidence, "A100", "TF32")}},
          {"FP16 and BF16", {over_fp32(evidence, "A100", "BF16")}}};
}

Measured of_four_times(const Evidence& evidence) { return {{"A100", {over_fp32(evidence, "A100", "BF16")}}}; }

Measured of_3090(const Evidence& evidence) {
  const double half = over_fp32(evidence, "RTX 3090", "BF16");
  return {{"FP16 and BF16", {half}},
          {"TF32", {over_fp32(evidence, "RTX 3090", "TF32")}},
          {"three half-precision products", {half / 3}}};
}

Measured of_int8(const Evidence& evidence) {
  return {{"RTX 3090", {over_fp32(evidence, "RTX 3090", "INT8")}},
          {"A100", {over_fp32(evidence, "A100", "INT8")}}};
}

}  // namespace

std::vector<PaperFigure> printed_figures() {
  return {
      {.name = "printed-figures",
       .paper = "all five papers",
       .place = "tables and sections of each row",
       .subject = "what the papers' own figures say of one another",
       .conditions = "figures as they are printed, and rules that need no measurement; nothing was measured",
       .claims = {{"study-4080", of_4080},
                  {"h2sgemm-peak", of_peak},
                  {"h2sgemm-double-buffer", of_buffers},
                  {"h2sgemm-fusion", of_blocks,
                   "The floor of Eq. 8 leaves up to a block of A, and two blocks of B are up to a "
                   "sixteenth of L1."},
                  {"h2sgemm-l1", of_l1, "Eq. 8 gives 44 with 512 Ki elements, which are 1 MiB."},
                  {"h2sgemm-share-falls", of_share},
                  {"h2sgemm-best-height", of_heights},
                  {"h2sgemm-height-96", of_rounded_heights, "Heights below 88 are nearer to 80."},
                  {"h2sgemm-ma-speed", of_ma},
                  {"h2sgemm-ootomo-speed", of_ootomo},
                  {"le-gemm-ooto-mark", of_table_6},
                  {"le-gemm-roofline", of_roofline},
                  {"mixpert-theory", of_theory},
                  {"mixpert-levels", of_levels},
                  {"mixpert-fig2-speed", of_fig2},
                  {"mixpert-table1", of_table_1,
                   "On the RTX 3090 both emulations do more products than the table's peaks allow: those "
                   "are of an RTX 3080, 29.8, 59.5 and 238."},
                  {"mixpert-quantensor-speed", of_quantensor},
                  {"dgemm-tc-integers", of_integers},
                  {"dgemm-tc-bf16", of_bf16},
                  {"dgemm-tc-fp16-only", of_fp16_sums},
                  {"dgemm-tc-peaks", of_peaks},
                  {"h2sgemm-optimum", by_l1(height_ratio)},
                  {"h2sgemm-fused-16", by_l1(blocks_in_l1)},
                  {"h2sgemm-fused-inverse", by_l1(elements_fused),
                   "In 512 KB two blocks of B are up to an eighth, and the floor leaves up to a sixteenth."},
                  {"le-gemm-table6-averages", of_averages},
                  {"le-gemm-overflow", of_overflow,
                   "On the A800 the accumulators of 128 x 256 fill an SM's register file, whatever T_K is."},
                  {"le-gemm-fig5-reuse", of_reuse},
                  {"mixpert-a100-ratios", of_a100},
                  {"mixpert-four-times", of_four_times, "Table 1 prints 312 and 19.5 TFLOP/s."},
                  {"mixpert-3090-ratios", of_3090},
                  {"mixpert-int8-ratios", of_int8}},
       .analysis = {.format = "quantities", .make_document = make_document}}};
}

}  // namespace kintsugi::tools
