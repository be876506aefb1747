// How tensor cores add, and the claims of this project that rest on it.
#include "reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const std::string signed_values = "uniform";
const std::string positive = "uniform01";
const Way native{"native", "reference", ""};
const std::vector<std::string> blocks{"16", "64", "256", "0"};  // 0: all of k
const std::vector<std::string> lengths{"16", "64", "256", "1024", "4096"};
const std::vector<std::string> tensor_cores{"v100", "a100", "h200"};

// ootomo's three products.
std::string fp16_block(const std::string& block) { return "split-n:a=2:b=2:terms=3:scale=11:block=" + block; }
std::string bf16_block(const std::string& block) {
  return "split-n:format=bf16:a=3:b=3:terms=6:scale=8:block=" + block;
}

std::vector<std::string> schemes_of(std::string (*scheme)(const std::string&)) {
  std::vector<std::string> schemes;
  for (const auto& block : blocks) schemes.push_back(scheme(block));
  schemes.emplace_back("native");
  return schemes;
}

std::vector<double> growth(const Evidence& evidence, const std::string& block) {
  std::vector<double> values;
  for (const auto& core : tensor_cores) {
    const auto errors = evidence.errors({fp16_block(block), "reference", core}, frobenius,
                                        both(in_distribution(positive), with_k(64)));
    values.push_back(errors.back() / errors.front());
  }
  return values;
}

Answer inside_grows(const Evidence& evidence) {
  const auto values = growth(evidence, "0");
  return agrees_if(least(values) > 16,
                   fmt::format("k = 64 to {}: times {:.3g} (V100), {:.3g} (A100), {:.3g} (H200)",
                               evidence.largest_k(), values[0], values[1], values[2]),
                   "it grows less than a fourth as fast as k");
}

Answer outside_is_flat(const Evidence& evidence) {
  const auto values = growth(evidence, "16");
  return agrees_if(most(values) < 4,
                   fmt::format("k = 64 to {}: times {:.3g} (V100), {:.3g} (A100), {:.3g} (H200)",
                               evidence.largest_k(), values[0], values[1], values[2]),
                   "sums outside are fp32's, one after the other: they grow with k / 16");
}

// The longest block whose error at the largest k is no more than native's.
std::string harmless_block(const Evidence& evidence, const std::string& core,
                           const std::string& distribution) {
  std::string longest = "none";
  for (const auto& block : blocks) {
    const auto pairs = evidence.pairs({fp16_block(block), "reference", core}, native, frobenius,
                                      both(in_distribution(distribution), with_k(evidence.largest_k())));
    if (pairs.front().ratio() <= 1) longest = block == "0" ? "all of k" : block;
  }
  return longest;
}

Answer harmless(const Evidence& evidence) {
  std::string text;
  bool all = true;
  for (const auto& core : tensor_cores) {
    const std::string plain = harmless_block(evidence, core, signed_values);
    const std::string other = harmless_block(evidence, core, positive);
    all = all && plain != "none" && other != "none";
    text += fmt::format("{}{}: {} on [-1, 1], {} on [0, 1]", text.empty() ? "" : "; ", core, plain, other);
  }
  return agrees_if(all, text, "on one of the models no block is short enough");
}

PaperFigure accumulation() {
  return {"accumulation",
          "accumulation",
          "h2sgemm section 2 on Ootomo and Yokota; ours",
          "error against k on each model, and how often sums leave the unit",
          "three fp16 products (two slices, residual times 2^11), six bf16 products for AMX and AVX-512; 32 "
          "x 32 entries; native is sequential fp32; block=0 never leaves the unit",
          {{"fp16",
            {{"schemes", schemes_of(fp16_block)},
             {"accumulators", {"h200", "h200-mma", "a100", "v100", "fp32"}},
             {"distributions", {signed_values, positive}},
             {"m", {"32"}},
             {"n", {"32"}},
             {"k", lengths}}},
           {"bf16",
            {{"schemes", schemes_of(bf16_block)},
             {"accumulators", {"amx-bf16", "avx512-bf16"}},
             {"distributions", {signed_values, positive}},
             {"m", {"32"}},
             {"n", {"32"}},
             {"k", lengths}}}},
          {{"k", "block of the scheme"}, {frobenius}},
          {{"Sums that stay in a tensor core are biased: their error grows with k ([0, 1])", "grows",
            inside_grows},
           {"Partial sums added outside, to nearest, end that growth ([0, 1])", "ends", outside_is_flat},
           {"There is a k block that costs nothing against native fp32 (ours)", "64 on the H200", harmless}}};
}

const std::vector<Way> outside{
    {"ootomo", "reference", "h200"},      {"ootomo", "reference", "a100"},
    {"h2sgemm:sb=12", "cpu", "fp32"},     {"fp16x3", "reference", "h200"},
    {"fp16x3-wide", "reference", "h200"}, {"h2sgemm-element", "reference", "h200"}};

std::string method_name(const Way& way) {
  return way.scheme + " (" + (way.engine == "cpu" ? "OpenBLAS's sums" : way.accumulator) + ")";
}

Answer no_worse_than_native(const Evidence& evidence) {
  std::string text;
  bool all = true;
  for (const Way& way : outside) {
    const Way base{"native", way.engine, ""};
    const auto values = ratios(evidence.pairs(way, base, frobenius, in_distribution(signed_values)));
    all = all && most(values) <= 1;
    text += fmt::format("{}{} {:.3g}", text.empty() ? "" : ", ", method_name(way), most(values));
  }
  return agrees_if(all, text + " times native's", "one is worse than its engine's native product");
}

Answer h2sgemm_inside(const Evidence& evidence) {
  const auto values = ratios(evidence.pairs({"h2sgemm:sb=12", "reference", "h200"}, native, frobenius,
                                            in_distribution(signed_values)));
  return agrees_if(
      most(values) <= 1, fmt::format("{:.3g} times native's", most(values)),
      "The term-wise order leaves all of k in the unit, and the H200's truncates; the paper's chip rounds to "
      "nearest (section 3.1.2). h2sgemm-element, whose sums leave every 16, keeps to native's error.");
}

// In its window bf16x9 keeps the contract, and the row says whether it is inside.
Answer bf16x9_in_window(const Evidence& evidence) {
  int inside = 0;
  int kept = 0;
  int beyond = 0;
  for (const Json& row : evidence.rows()) {
    if (cell(row, "scheme") != "bf16x9") continue;
    const bool in_window = row.at("bound").at("in_window").get<bool>();
    inside += in_window ? 1 : 0;
    beyond += in_window ? 0 : 1;
    kept += in_window && row.at("errors").at("within_contract_bound").get<bool>() ? 1 : 0;
  }
  return agrees_if(
      inside > 0 && beyond > 0 && kept == inside,
      fmt::format("{} of {} rows inside the window keep it; {} rows beyond say so", kept, inside, beyond),
      "a row inside the window breaks the contract, or none is beyond");
}

PaperFigure fp32_accuracy() {
  return {
      "fp32-accuracy",
      "all FP32 schemes",
      "ours",
      "three products with partial sums outside against native fp32; bf16x9's window",
      "uniform on [-1, 1], 128 x 128 entries, k = 4096, three seeds; spans of 90 and 140 binades for bf16x9",
      {{"",
        {{"schemes", {"ootomo", "h2sgemm:sb=12", "h2sgemm-element", "fp16x3", "fp16x3-wide", "native"}},
         {"engines", {"reference", "cpu"}},
         {"accumulators", {"h200", "a100", "fp32"}},
         {"distributions", {signed_values}},
         {"shapes", {"128x128x4096"}},
         {"seeds", {"1", "2", "3"}}}},
       {"bf16x9",
        {{"schemes", {"bf16x9", "native"}},
         {"accumulators", {"h200", "a100", "fp32"}},
         {"distributions", {signed_values, "span:20", "span:60", "span:90", "span:140", "span:200"}},
         {"m", {"32"}},
         {"n", {"32"}},
         {"k", {"256"}}}}},
      {{"parameter of the distribution"}, {frobenius, "max_componentwise"}},
      {{"Three fp16 products whose partial sums leave the unit err no more than native fp32",
        "no more (Frobenius)", no_worse_than_native},
       {"So does term-wise h2sgemm on the H200 model", "no more (Frobenius)", h2sgemm_inside},
       {"bf16x9 keeps the fp32 contract inside its window, and says so outside", "(k + 8) 2^-24",
        bf16x9_in_window}}};
}

}  // namespace

std::vector<PaperFigure> accumulation_figures() { return {accumulation(), fp32_accuracy()}; }

}  // namespace kintsugi::tools
