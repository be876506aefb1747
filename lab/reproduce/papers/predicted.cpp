// Claims about speeds on the papers' chips by the model of kintsugi-lab predict.
#include "lab/predict/model.hpp"
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr double size = 8192;
constexpr const char* error_name = "largest error of the model on an H200 and an H100";

struct Gain {
  const char* series;
  const char* chip;
  predict::Method method;  // its speed over that of native FP32
};
const std::vector<Gain> of_study{{"A100", "NVIDIA A100-SXM4-40GB", predict::Method::fp16x3}};
const std::vector<Gain> of_feng{{"T4", "Tesla T4", predict::Method::fp16x4},
                                {"Titan RTX", "TITAN RTX", predict::Method::fp16x4}};

std::string quantity_of(predict::Method method) {
  return fmt::format("TFLOP/s, {}", predict::name_of(method));
}

Json make_document(bool) {
  Json result = analysis_document("quantities", 1, 0);
  result["rows"].push_back(
      {{"quantity", error_name}, {"value", predict::largest_error(predict::model_errors(size))}});
  for (const predict::Chip& chip : predict::chips()) {
    for (const predict::Method method : predict::methods) {
      if (const auto speed = predict::speed(method, chip, size))
        result["rows"].push_back({{"quantity", quantity_of(method)},
                                  {"value", *speed},
                                  {"device", chip.name},
                                  {"source", chip.source},
                                  {"k", static_cast<std::int64_t>(size)}});
    }
  }
  return result;
}

double value_of(const Evidence& evidence, const Filter& filter) {
  const auto rows = evidence.rows_where(filter);
  if (rows.empty()) throw NoSuchRow("no such prediction");
  return rows.front().at("value").get<double>();
}

std::function<Measured(const Evidence&)> gains(const std::vector<Gain>& list) {
  return [list](const Evidence& evidence) {
    Measured measured{{error_name, {value_of(evidence, where("quantity", error_name))}}};
    for (const Gain& gain : list) {
      const auto speed = [&](predict::Method method) {
        return value_of(evidence, both(where("quantity", quantity_of(method)), where("device", gain.chip)));
      };
      measured.push_back({gain.series, {speed(gain.method) / speed(predict::Method::native_fp32)}});
    }
    return measured;
  };
}

}  // namespace

std::vector<PaperFigure> predicted_figures() {
  return {{.name = "predicted-speeds",
           .paper = "papers with other chips",
           .place = "kintsugi-lab predict",
           .subject = "speeds that published rates predict",
           .conditions =
               "n = 8192; published rates times the shares that our kernels reach on an H200, and the bytes "
               "of splits, sums and C; nothing was measured on these chips",
           .claims = {{"study-speed", gains(of_study)}, {"h2sgemm-feng-speed", gains(of_feng)}},
           .analysis = {.format = "quantities", .make_document = make_document}}};
}

}  // namespace kintsugi::tools
