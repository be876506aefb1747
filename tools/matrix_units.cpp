#include "matrix_units.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "measure/machine/device.hpp"
#include "program_libraries.hpp"

namespace kintsugi::tools {

namespace {

// Row-major products m x n x k of one format. A first sum of the unit shows how many products it adds at once
// and what it keeps of them; longer ones show the order of its steps.
struct UnitProduct {
  static constexpr std::int64_t m = 64;
  static constexpr std::int64_t n = 48;
  std::int64_t k = 0;
  std::vector<float> a, b;

  // Elements of few and of many binades, signs random, within the ranges of all formats.
  UnitProduct(std::int64_t length, std::mt19937_64& random)
      : k(length), a(make(m * k, random)), b(make(k * n, random)) {}

 private:
  static std::vector<float> make(std::int64_t count, std::mt19937_64& random) {
    std::uniform_real_distribution<float> fraction(-1, 1);
    const int binades = static_cast<int>(random() % 13);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& x : values) x = std::ldexp(fraction(random), -static_cast<int>(random() % (binades + 1U)));
    return values;
  }
};

struct UnitSums {
  std::vector<std::uint32_t> bits;  // of C; both zeros are the same
  std::string accumulator;          // by which C was computed
};

// C by the scheme that rounds operands to `format`. `accumulator`: of the engine `reference`; "" for others.
UnitSums product_of(const UnitProduct& product, const std::string& format, const std::string& engine,
                    const std::string& accumulator) {
  const Handle handle = make_handle();
  require("scheme", kintsugi_set(handle.get(), "scheme", format.c_str()));
  require("engine", kintsugi_set(handle.get(), "engine", engine.c_str()));
  if (!accumulator.empty())
    require("accumulator", kintsugi_set(handle.get(), "accumulator", accumulator.c_str()));
  const auto bytes = [](const std::vector<float>& values) { return values.size() * sizeof(float); };
  std::vector<float> c(static_cast<std::size_t>(product.m * product.n));
  const auto multiply = [&](const void* a, const void* b, void* target) {
    const auto* x = static_cast<const float*>(a);
    const auto* y = static_cast<const float*>(b);
    require(engine, kintsugi_sgemm(handle.get(), KINTSUGI_ROW_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, product.m,
                                   product.n, product.k, 1, x, product.k, y, product.n, 0,
                                   static_cast<float*>(target), product.n));
  };
  if (engine == "cuda") {
    const measure::DeviceStream stream;
    const measure::DeviceMemory a(bytes(product.a)), b(bytes(product.b)), target(bytes(c));
    stream.upload(a.data(), product.a.data(), a.bytes());
    stream.upload(b.data(), product.b.data(), b.bytes());
    stream.synchronize();
    multiply(a.data(), b.data(), target.data());
    stream.download(c.data(), target.data(), target.bytes());
    stream.synchronize();
  } else {
    multiply(product.a.data(), product.b.data(), c.data());
  }
  UnitSums sums;
  for (const float x : c) sums.bits.push_back(std::bit_cast<std::uint32_t>(x == 0 ? 0.0F : x));
  const Json report =
      read_description("report", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
        return kintsugi_report(handle.get(), buffer, capacity, needed);
      });
  sums.accumulator = cell(report.at("candidates").front(), "accumulator");
  return sums;
}

}  // namespace

void append_matrix_units(Json& findings) {
  const Json engines = describe_engines().at("engines");
  const auto accumulators_of = [&](const std::string& engine, const std::string& format) {
    for (const auto& found : engines) {
      if (cell(found, "name") == engine) return found.at("accumulators").value(format, Json::array());
    }
    return Json::array();
  };
  constexpr std::array<std::int64_t, 12> lengths{4, 8, 16, 16, 32, 32, 48, 64, 64, 96, 128, 200};
  constexpr std::uint64_t seed = 1;
  std::mt19937_64 random(seed);
  std::vector<UnitProduct> products;
  for (const std::int64_t k : lengths) products.emplace_back(k, random);
  const std::size_t findings_before = findings.size();
  for (const auto& engine : engines) {
    const std::string name = cell(engine, "name");
    if (!engine.at("available").get<bool>() || name == "reference") continue;
    for (const std::string format : {"fp16", "bf16", "tf32"}) {
      const Json used = accumulators_of(name, format);
      if (used.empty() || used.front() == "fp32") continue;  // no matrix unit
      const std::string subject = fmt::format("unit {}, {}", format, name);
      std::string fitting, accumulator;
      try {
        std::vector<std::vector<std::uint32_t>> found;
        for (const UnitProduct& product : products) {
          UnitSums sums = product_of(product, format, name, "");
          found.push_back(std::move(sums.bits));
          accumulator = sums.accumulator;
        }
        if (accumulator == "fp32" || accumulator == "cublas") {
          findings.push_back(finding(subject, "missing",
                                     "products are by " + accumulator + ", not by the unit alone",
                                     "nothing to do: contracts use the bounds of " + accumulator));
          continue;
        }
        for (const auto& model : accumulators_of("reference", format)) {
          bool fits = true;
          for (std::size_t p = 0; fits && p < products.size(); ++p)
            fits = product_of(products[p], format, "reference", model.get<std::string>()).bits == found[p];
          if (fits) fitting += (fitting.empty() ? "" : ", ") + model.get<std::string>();
        }
      } catch (const LibraryError& error) {
        findings.push_back(finding(subject, "missing", "no product by the unit alone", error.what()));
        continue;
      }
      const std::string contracts = "contracts use the bounds of " + accumulator;
      if (fitting.empty())
        findings.push_back(finding(subject, "failed", "no model has the unit's sums; " + contracts,
                                   "results of this machine are within their bounds only if its unit is as "
                                   "accurate as that model: please report it"));
      else
        findings.push_back(finding(
            subject, "ok",
            fmt::format("sums of {} in {} random products; {}", fitting, products.size(), contracts)));
    }
  }
  if (findings.size() == findings_before)
    findings.push_back(finding("unit", "missing",
                               "no engine of this machine has a matrix unit for fp16, bf16 or tf32",
                               "nothing to do: contracts use none"));
}

}  // namespace kintsugi::tools
