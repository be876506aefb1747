// le-gemm Table 6 and Figs. 9, 15, 17 and 18 on a device: the paper's kernels on nvcuda::wmma beside cuBLAS
// and `legemm`.
#include <algorithm>
#include <cmath>

#include "lab/kernels/le_gemm_kernels.hpp"
#include "lab/reproduce/figures.hpp"
#include "tools/bench/run.hpp"

namespace kintsugi::tools {

namespace {

using lab::LeGemmKernel;

// ---------------------------------------------------------------- the document

struct Form {
  const char* name;
  int columns;  // n and k, in m
  int depth;
};
constexpr Form forms[] = {{"n x n x n", 1, 1}, {"n x 4n x n", 4, 1}, {"n x n x 4n", 1, 4}};
constexpr const Form& square = forms[0];
constexpr const Form& deep = forms[2];
const std::vector<std::int64_t> sizes{1024, 2048, 4096, 8192};  // 8192: squares alone
constexpr std::int64_t largest_skewed = 4096;
const std::vector<std::int64_t> fig9c_sizes{4096, 6144, 7168, 8192, 10240};  // plain WMMA, n x n x 4n
const std::vector<std::string> tiles{"le_gemm_64x64x2", "le_gemm_64x128x2", "le_gemm_128x64x2",
                                     "le_gemm_128x128x2", "le_gemm_128x256x2"};
const std::vector<std::string> plain_wmma{"wmma_direct", "wmma_128x128x1"};

// Products of section 5.5's applications. The paper does not give their sizes.
struct Application {
  const char* claim;
  std::vector<Shape> shapes;
};
const std::vector<Application> applications{
    {"le-gemm-kmeans-speed", {{4096, 1024, 256}, {16384, 1024, 256}, {65536, 1024, 256}}},
    {"le-gemm-ffn-speed",
     {{512, 3072, 768},
      {512, 768, 3072},
      {2048, 3072, 768},
      {2048, 768, 3072},
      {8192, 3072, 768},
      {8192, 768, 3072}}},
    {"le-gemm-llm-speed", {{2048, 1024, 1024}, {2048, 2048, 2048}, {2048, 4096, 4096}, {2048, 8192, 8192}}}};
constexpr const char* dgemm = "native, FP64";

Shape shape_of(const Form& form, std::int64_t n) { return {n, form.columns * n, form.depth * n}; }

// The paper's Eq. 18.
double tflops(const Shape& shape, double seconds) {
  const double elements = static_cast<double>(shape.m) * static_cast<double>(shape.n);
  return 2e-12 * (elements * static_cast<double>(shape.k) + elements) / seconds;
}

// Returns the median of three times of one launch, of launches that take 10 ms together.
double seconds_a_launch(const measure::DeviceStream& stream, const std::function<void()>& launch) {
  constexpr double enough = 0.01;
  launch();
  const double first = stream.seconds_of(launch);
  const int launches = static_cast<int>(std::clamp(std::ceil(enough / first), 1.0, 100.0));
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    times.push_back(stream.seconds_of([&] {
      for (int j = 0; j < launches; ++j) launch();
    }) / launches);
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

Json row_of(const std::string& kernel, const Shape& shape, double seconds) {
  return {{"kernel", kernel},
          {"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"seconds", seconds},
          {"split_seconds", nullptr},
          {"bytes", nullptr},
          {"tflops", tflops(shape, seconds)},
          {"frobenius_relative", nullptr}};
}

// Adds a row of each of these kernels; checks its result before it is timed.
void add_kernels(Json& rows, const Shape& shape, const std::vector<std::string>& names) {
  const measure::DeviceStream stream;
  const lab::LeGemmProduct product(stream, shape);
  for (const std::string& name : names) {
    const LeGemmKernel& kernel = lab::le_gemm_kernel(name);
    product.split(kernel);
    product.multiply(kernel);
    const double frobenius = product.checked_frobenius(kernel);
    Json row = row_of(name, shape, seconds_a_launch(stream, [&] { product.multiply(kernel); }));
    row["split_seconds"] = seconds_a_launch(stream, [&] { product.split(kernel); });
    row["bytes"] = kernel.bytes(shape);
    row["frobenius_relative"] = frobenius;
    rows.push_back(std::move(row));
  }
}

// Adds rows of cuBLAS's products and of `legemm`, whose times have the split; or of cuBLAS's DGEMM.
void add_library(Json& result, const Shape& shape, bool fp64 = false) {
  BenchRequest request;
  if (fp64) {
    request.type = "fp64";
    request.candidates = {"fp64"};  // a bench has one; its row is left out
  } else {
    request.candidates = {"legemm"};
    request.baselines = {"native", "fp16"};
  }
  request.shapes = {shape_text(shape)};
  request.memory = "device";
  request.repeat = 3;
  request.no_ceilings = true;
  Bench bench = make_bench(request);
  bench.hashes_results = false;
  const Json timed = run_bench(bench, "");
  result["device"] = timed.at("device");
  for (const Json& measured : timed.at("rows")) {
    Json row =
        row_of(fp64 ? dgemm : cell(measured, "name"), shape, measured.at("time").at("median").get<double>());
    row["frobenius_relative"] = measured.at("check").at("frobenius_relative");
    result["rows"].push_back(std::move(row));
  }
}

Json make_document(bool quick) {
  Json result = document("device-speed");
  result["samples"] = 0;
  result["device"] = nullptr;
  result["ceilings"] = nullptr;
  result["rows"] = Json::array();
  std::vector<std::string> all;
  for (const LeGemmKernel& kernel : lab::le_gemm_kernels()) all.emplace_back(kernel.name);
  for (const Form& form : forms) {
    for (const std::int64_t n : quick ? std::vector<std::int64_t>{256, 512} : sizes) {
      if (n > largest_skewed && &form != &square) continue;
      add_library(result, shape_of(form, n));
      add_kernels(result["rows"], shape_of(form, n), all);
      if (&form == &square) add_library(result, shape_of(form, n), true);
    }
  }
  for (const Application& application : applications) {
    for (const Shape& shape : application.shapes) {
      if (quick && &shape != &application.shapes.front()) continue;
      if (shape.m == shape.n && shape.n == shape.k) continue;  // of the squares above
      add_library(result, shape);
      add_kernels(result["rows"], shape, tiles);
    }
  }
  for (const std::int64_t n : quick ? std::vector<std::int64_t>{} : fig9c_sizes)
    if (n > largest_skewed) add_kernels(result["rows"], shape_of(deep, n), plain_wmma);
  result["samples"] = result.at("rows").size();
  return result;
}

// ---------------------------------------------------------------- claims

double value_of(const Evidence& evidence, const std::string& kernel, const Shape& shape, const char* member) {
  for (const Json& row : evidence.rows())
    if (row.at("kernel") == kernel && row.at("m") == shape.m && row.at("n") == shape.n &&
        row.at("k") == shape.k)
      return row.at(member).get<double>();
  throw NoSuchRow(fmt::format("no row of {} at {}", kernel, shape_text(shape)));
}

double seconds_of(const Evidence& evidence, const std::string& kernel, const Shape& shape) {
  return value_of(evidence, kernel, shape, "seconds");
}

constexpr const char* tile_of_table_2 = "le_gemm_128x256x2";

// LE-GEMM chooses its tile for shape and device: the fastest one's name.
std::string chosen_tile(const Evidence& evidence, const Shape& shape) {
  return *std::min_element(tiles.begin(), tiles.end(), [&](const auto& x, const auto& y) {
    return seconds_of(evidence, x, shape) < seconds_of(evidence, y, shape);
  });
}

std::vector<std::int64_t> sizes_of(const Form& form) {
  std::vector<std::int64_t> found;
  for (const std::int64_t n : sizes)
    if (n <= largest_skewed || &form == &square) found.push_back(n);
  return found;
}

// Returns the speed of LE-GEMM over that of another kernel. `split`: with the time of its split.
double gain_at(const Evidence& evidence, const Shape& shape, const std::string& other, bool split) {
  const std::string own = chosen_tile(evidence, shape);
  const double added = split ? value_of(evidence, own, shape, "split_seconds") : 0;
  return seconds_of(evidence, other, shape) / (seconds_of(evidence, own, shape) + added);
}

// Returns it by n.
std::vector<double> gains(const Evidence& evidence, const Form& form, const std::string& other,
                          bool split = false) {
  std::vector<double> values;
  for (const std::int64_t n : sizes_of(form))
    values.push_back(gain_at(evidence, shape_of(form, n), other, split));
  return values;
}

Measured of_application(const Evidence& evidence, const Application& application) {
  const auto series = [&](bool split) {
    std::vector<double> values;
    for (const Shape& shape : application.shapes) values.push_back(gain_at(evidence, shape, "native", split));
    return SeriesValues{fmt::format("mean, {} split", split ? "with" : "without"), {mean(values)}};
  };
  return series_of(series, std::vector<bool>{false, true});
}

// Returns LE-GEMM's rates over those of cuBLAS's FP16 mode and of its DGEMM.
Measured trade(const Evidence& evidence) {
  const auto series = [&](bool split, const auto& mode) {
    return SeriesValues{fmt::format("over {}, {} split", mode.first, split ? "with" : "without"),
                        gains(evidence, square, mode.second, split)};
  };
  return series_of(series, std::vector<bool>{false, true},
                   std::vector<std::pair<const char*, const char*>>{{"FP16", "fp16"}, {"FP64", dgemm}});
}

std::function<Measured(const Evidence&)> table_6(const std::string& baseline) {
  return [=](const Evidence& evidence) {
    const auto series = [&](const std::string& kernel, const Form& form) {
      const std::string from = kernel.ends_with("direct") ? "global memory" : "shared memory";
      return SeriesValues{fmt::format("{}, from {}", form.name, from), {mean(gains(evidence, form, kernel))}};
    };
    return series_of(series, std::vector{baseline + "_direct", baseline + "_128x128x1"}, forms);
  };
}

Measured over_cublas(const Evidence& evidence) {
  const auto series = [&](bool split, const Form& form) {
    return SeriesValues{fmt::format("{}, {} split", form.name, split ? "with" : "without"),
                        {mean(gains(evidence, form, "native", split))}};
  };
  return series_of(series, std::vector{false, true}, forms);
}

Measured growth(const Evidence& evidence) {
  const std::vector<double> by_n = gains(evidence, square, "native");
  return {{"over cuBLAS, by n", by_n}, {"n = 1024 and 2048", {by_n.begin(), by_n.begin() + 2}}};
}

Measured pipeline(const Evidence& evidence) {
  return {{"over fragments from global memory", {mean(gains(evidence, square, "le_gemm_direct"))}},
          {"over one buffer", {mean(gains(evidence, square, "le_gemm_128x128x1"))}}};
}

Measured tiling(const Evidence& evidence) {
  Measured measured;
  for (const std::string& tile : tiles) {
    if (tile == tile_of_table_2) continue;
    std::vector<double> ratios;
    for (const std::int64_t n : sizes)
      ratios.push_back(seconds_of(evidence, tile, shape_of(square, n)) /
                       seconds_of(evidence, tile_of_table_2, shape_of(square, n)));
    const LeGemmKernel& kernel = lab::le_gemm_kernel(tile);
    measured.push_back(
        {fmt::format("(128, 256, 32) over ({}, {}, 32)", kernel.rows, kernel.columns), {mean(ratios)}});
  }
  return measured;
}

// Returns the rates beyond n = 7168 over that of 7168.
Measured fall(const Evidence& evidence) {
  constexpr std::int64_t top = 7168;
  const auto series = [&](const std::string& kernel) {
    SeriesValues found{kernel.ends_with("direct") ? "from global memory" : "from shared memory", {}};
    for (const std::int64_t n : fig9c_sizes)
      if (n > top)
        found.values.push_back(value_of(evidence, kernel, shape_of(deep, n), "tflops") /
                               value_of(evidence, kernel, shape_of(deep, top), "tflops"));
    return found;
  };
  return series_of(series, plain_wmma);
}

// ---------------------------------------------------------------- picture

std::vector<Figure> draw_rates(const Json& document) {
  Figure figure{"Rates of the kernels", {}};
  for (const Form& form : forms) {
    Chart chart{.title = form.name, .x_label = "n", .y_label = "TFLOP/s (Eq. 18)", .log_y = false};
    for (const Json& row : document.at("rows")) {
      const auto m = row.at("m").get<std::int64_t>();
      if (row.at("n") != form.columns * m || row.at("k") != form.depth * m) continue;
      const std::string kernel = cell(row, "kernel");
      auto series = std::find_if(chart.series.begin(), chart.series.end(),
                                 [&](const Series& known) { return known.label == kernel; });
      if (series == chart.series.end()) {
        const int index = static_cast<int>(chart.series.size());
        chart.series.push_back({.label = kernel, .colour = index, .style = index, .points = {}});
        series = chart.series.end() - 1;
      }
      series->points.emplace_back(static_cast<double>(m), row.at("tflops").get<double>());
    }
    if (!chart.series.empty())
      figure.pictures.push_back({.chart = chart, .name = fmt::format("form-{}", figure.pictures.size())});
  }
  return {figure};
}

}  // namespace

PaperFigure le_gemm_speed_figure() {
  std::vector<Claim> claims{{"le-gemm-table6-cublas", over_cublas},
                            {"le-gemm-table6-wmma", table_6("wmma")},
                            {"le-gemm-table6-mark", table_6("markidis")},
                            {"le-gemm-table6-ooto", table_6("ootomo")},
                            {"le-gemm-grows", growth},
                            {"le-gemm-pipeline", pipeline},
                            {"le-gemm-tiling", tiling},
                            {"le-gemm-wmma-falls", fall},
                            {"le-gemm-trade", trade}};
  for (const Application& application : applications)
    claims.push_back({application.claim, [&application](const Evidence& evidence) {
                        return of_application(evidence, application);
                      }});
  return {
      .name = "le-gemm-speed",
      .paper = "le-gemm",
      .place = "Table 6, Figs. 9, 15, 17 and 18, sections 5.2 and 5.5 to 5.7",
      .subject = "speed of the paper's kernels on a device",
      .conditions =
          "kernels on nvcuda::wmma as sections 4 and 5 describe them: fragments of 16 x 16 x 16 from "
          "global memory, from tiles of 128 x 128 x 32 in shared memory, and from two such tiles that "
          "take turns, where LE-GEMM has the fastest of five; operands on [-1, 1] in slices already, as "
          "Table 5 has it; n = 1024, 2048, 4096, squares 8192 too; medians of three; 1024 elements of "
          "every result are within their bound of the exact ones; native, fp16 and legemm are cuBLAS's "
          "products and the scheme with its split; products of k-means, BERT's feed-forward layers and language "
          "models by LE-GEMM's tiles alone",
      .claims = claims,
      .analysis = {.format = "device-speed",
                   .make_document = make_document,
                   .draw = draw_rates,
                   .needs_device = true}};
}

}  // namespace kintsugi::tools
