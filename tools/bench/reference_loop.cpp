// A baseline: a reference loop in an arithmetic wider than double. It computes only a leading block of every
// C.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/host_timing.hpp"
#include "tools/measure/reference/reference_loop.hpp"

namespace kintsugi::tools {

namespace {

template <class T>
class ReferenceLoop : public Contestant {
 public:
  ReferenceLoop(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices)
      : name_(name), arithmetic_(measure::parse_arithmetic(name)), threads_(bench.threads),
        matrices_(matrices), shape_{std::min(matrices.shape.m, bench.baseline_size),
                                    std::min(matrices.shape.n, bench.baseline_size), matrices.shape.k} {}

  const std::string& name() const override { return name_; }
  Shape shape() const override { return shape_; }
  void run() override;
  Round time_round() override {
    return time_on_host([this] { run(); });
  }
  const char* timed_by() const override { return "clock"; }
  Verdict judge(std::int64_t product, const measure::ErrorReport& errors,
                const std::vector<measure::ElementError>& elements) const override;
  Json facts() const override;

 private:
  std::string name_;
  measure::Arithmetic arithmetic_;
  int threads_;
  BenchMatrices<T>& matrices_;
  Shape shape_;
};

template <class T>
void ReferenceLoop<T>::run() {
  for (std::int64_t product = 0; product < matrices_.batch; ++product) {
    measure::reference_loop(arithmetic_, matrices_.view_a(product).block(0, 0, shape_.m, shape_.k),
                            matrices_.view_b(product).block(0, 0, shape_.k, shape_.n),
                            matrices_.view_c(product).block(0, 0, shape_.m, shape_.n), threads_);
  }
}

// Judges by the bound of the arithmetic, which includes underflow of products, and one rounding to T.
template <class T>
Verdict ReferenceLoop<T>::judge(std::int64_t, const measure::ErrorReport&,
                                const std::vector<measure::ElementError>& elements) const {
  const double relative = measure::reference_loop_bound(arithmetic_, shape_.k);
  const double unit_roundoff = std::ldexp(1.0, -std::numeric_limits<T>::digits);
  const double underflow = static_cast<double>(shape_.k) * std::numeric_limits<double>::denorm_min();
  return verdict_of("bound", relative, elements, [=](const measure::ElementError& element) {
    const double unrounded = relative * element.absolute + underflow;
    return unrounded + unit_roundoff * (std::fabs(element.exact) + unrounded) +
           static_cast<double>(std::numeric_limits<T>::denorm_min());
  });
}

template <class T>
Json ReferenceLoop<T>::facts() const {
  Json facts{{"scheme", name_}};
  for (const char* name : {"engine", "engine_details", "accumulator", "products", "format", "workspace_bytes",
                           "plan_seconds", "prepared"})
    facts[name] = nullptr;
  return facts;
}

}  // namespace

template <class T>
std::unique_ptr<Contestant> reference_loop(const Bench& bench, const std::string& arithmetic,
                                           BenchMatrices<T>& matrices) {
  return std::make_unique<ReferenceLoop<T>>(bench, arithmetic, matrices);
}

template std::unique_ptr<Contestant> reference_loop(const Bench&, const std::string&, BenchMatrices<float>&);
template std::unique_ptr<Contestant> reference_loop(const Bench&, const std::string&, BenchMatrices<double>&);

}  // namespace kintsugi::tools
