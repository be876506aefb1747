// dgemm-tc section 4.2: products of slices by cuBLAS one after another and as a batch, on a device.
#include <dlfcn.h>

#include <algorithm>

#include "lab/reproduce/figures.hpp"
#include "tools/bench/run.hpp"
#include "tools/measure/machine/device.hpp"

namespace kintsugi::tools {

namespace {

// Numbers of cuBLAS's reference.
constexpr int no_transpose = 0;
constexpr int fp16_data = 2;   // CUDA_R_16F
constexpr int fp32_data = 0;   // CUDA_R_32F
constexpr int fp32_sums = 68;  // CUBLAS_COMPUTE_32F
constexpr int default_algorithm = -1;

class Cublas {
 public:
  explicit Cublas(const measure::DeviceStream& stream) {
    for (const char* name : {"libcublas.so.13", "libcublas.so.12"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) fail("FIGURE", "cuBLAS was not found: {}", dlerror());
    require(function<int(void**)>("cublasCreate_v2")(&handle_));
    require(function<int(void*, void*)>("cublasSetStream_v2")(handle_, stream.native()));
    single_ = function<Single>("cublasGemmEx");
    batched_ = function<Batched>("cublasGemmBatchedEx");
  }
  ~Cublas() { function<int(void*)>("cublasDestroy_v2")(handle_); }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // C = A B of n x n matrices in cuBLAS's order; pointers to device memory.
  void multiply(int n, const void* a, const void* b, void* c) const {
    require(single_(handle_, no_transpose, no_transpose, n, n, n, &one_, a, fp16_data, n, b, fp16_data, n,
                    &zero_, c, fp32_data, n, fp32_sums, default_algorithm));
  }
  // The same of `count` products; pointers to lists of pointers in device memory.
  void multiply_batch(int n, const void* a, const void* b, const void* c, int count) const {
    require(batched_(handle_, no_transpose, no_transpose, n, n, n, &one_, a, fp16_data, n, b, fp16_data, n,
                     &zero_, c, fp32_data, n, count, fp32_sums, default_algorithm));
  }

 private:
  using Single = int(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
                     int, const void*, void*, int, int, int, int);
  using Batched = int(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
                      int, const void*, const void*, int, int, int, int, int);

  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  static void require(int status) {
    if (status != 0) fail("FIGURE", "cuBLAS answers with status {}", status);
  }

  void* library_ = nullptr;
  void* handle_ = nullptr;
  Single* single_ = nullptr;
  Batched* batched_ = nullptr;
  float one_ = 1;
  float zero_ = 0;
};

// Slices of A and of B, each of which is multiplied by each.
struct Case {
  const char* series;
  std::int64_t n;
  std::int64_t slices;
};
const std::vector<Case> cases{{"small matrices", 128, 6},  {"small matrices", 256, 6},
                              {"many slices", 1024, 16},   {"many slices", 1024, 20},
                              {"large matrices", 4096, 6}, {"large matrices", 6144, 6}};

// Returns the median of five times of the products of all slices.
double seconds_of(const measure::DeviceStream& stream, const std::function<void()>& products) {
  std::vector<double> times;
  products();
  for (int i = 0; i < 5; ++i) times.push_back(stream.seconds_of(products));
  std::sort(times.begin(), times.end());
  return times[2];
}

std::vector<float> download(const measure::DeviceStream& stream, const std::byte* data,
                            std::size_t elements) {
  std::vector<float> values(elements);
  stream.download(values.data(), data, elements * sizeof(float));
  stream.synchronize();
  return values;
}

Json row_of(const Case& of) {
  const measure::DeviceStream stream;
  const Cublas cublas(stream);
  const auto matrix = static_cast<std::size_t>(of.n * of.n);
  const auto slices = static_cast<std::size_t>(of.slices);
  constexpr std::size_t half = 2;
  const measure::DeviceMemory operands(2 * slices * matrix * half);
  const measure::DeviceMemory results(slices * slices * matrix * sizeof(float));
  // Small integers in fp16, of which products are exact in any order: 1 + index mod 4.
  std::vector<std::uint16_t> elements(matrix * slices * 2);
  constexpr std::uint16_t integers[] = {0x3c00, 0x4000, 0x4200, 0x4400};
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = integers[(i + i / matrix) % 4];
  stream.upload(operands.data(), elements.data(), operands.bytes());
  std::vector<std::byte*> pointers;
  const auto slice = [&](std::size_t i) { return operands.data() + i * matrix * half; };
  const auto each = [&](const auto& use) {
    for (std::size_t p = 0; p < slices; ++p)
      for (std::size_t q = 0; q < slices; ++q)
        use(slice(p), slice(slices + q), results.data() + (p * slices + q) * matrix * sizeof(float));
  };
  each([&](std::byte* a, std::byte*, std::byte*) { pointers.push_back(a); });
  each([&](std::byte*, std::byte* b, std::byte*) { pointers.push_back(b); });
  each([&](std::byte*, std::byte*, std::byte* c) { pointers.push_back(c); });
  const measure::DeviceMemory lists(pointers.size() * sizeof(std::byte*));
  stream.upload(lists.data(), pointers.data(), lists.bytes());
  stream.synchronize();
  const std::size_t list = lists.bytes() / 3;
  const int n = static_cast<int>(of.n);
  const auto one_by_one = [&] {
    each([&](std::byte* a, std::byte* b, std::byte* c) { cublas.multiply(n, a, b, c); });
  };
  const auto as_batch = [&] {
    cublas.multiply_batch(n, lists.data(), lists.data() + list, lists.data() + 2 * list,
                          static_cast<int>(slices * slices));
  };
  const double single = seconds_of(stream, one_by_one);
  const auto last = results.data() + results.bytes() - matrix * sizeof(float);
  const std::vector<float> expected = download(stream, last, matrix);
  stream.fill(results.data(), 0xff, results.bytes());
  const double batched = seconds_of(stream, as_batch);
  if (download(stream, last, matrix) != expected)
    fail("FIGURE", "batched products of {} x {} matrices differ from single ones", of.n, of.n);
  return {{"series", of.series},
          {"n", of.n},
          {"slices", of.slices},
          {"seconds_one_by_one", single},
          {"seconds_batched", batched}};
}

Json make_document(bool quick) {
  Json result = document("device-speed");
  result["device"] = nullptr;
  result["ceilings"] = nullptr;
  result["rows"] = Json::array();
  for (const Case& of : cases)
    if (!quick || of.n <= 256) result["rows"].push_back(row_of(of));
  result["samples"] = result.at("rows").size();
  return result;
}

// Returns the time of single products over that of the batch.
Measured gains(const Evidence& evidence) {
  Measured measured;
  for (const Json& row : evidence.rows()) {
    const std::string name = cell(row, "series");
    if (measured.empty() || measured.back().name != name) measured.push_back({name, {}});
    measured.back().values.push_back(row.at("seconds_one_by_one").get<double>() /
                                     row.at("seconds_batched").get<double>());
  }
  return measured;
}

std::vector<Figure> draw_gains(const Json& document) {
  Chart chart{.title = "Products of slices one by one over a batch of them",
              .x_label = "n",
              .y_label = "gain",
              .log_y = false};
  Series line{"gain of a batch", 0, 0, {}};
  for (const Json& row : document.at("rows"))
    line.points.emplace_back(row.at("n").get<double>(), row.at("seconds_one_by_one").get<double>() /
                                                            row.at("seconds_batched").get<double>());
  chart.series.push_back(line);
  return {{"Batched products of slices", {{.chart = chart, .name = "gain"}}}};
}

}  // namespace

PaperFigure dgemm_tc_batched_figure() {
  return {.name = "dgemm-tc-batched",
          .paper = "dgemm-tc",
          .place = "section 4.2",
          .subject = "products of slices by cuBLAS one after another and as a batch",
          .conditions =
              "cublasGemmEx and cublasGemmBatchedEx on fp16 slices with FP32 sums, all slices of A "
              "by all of B, in one stream; medians of five; both have the same results",
          .claims = {{"dgemm-tc-batched", gains}},
          .analysis = {.format = "device-speed",
                       .make_document = make_document,
                       .draw = draw_gains,
                       .needs_device = true}};
}

}  // namespace kintsugi::tools
