#include "explain/sample.hpp"

#include <algorithm>
#include <iterator>

namespace kintsugi::tools {

namespace {

// Returns contiguous copies of the sampled vectors.
template <class T>
std::vector<T> gathered(core::MatrixView<const T> vectors, const std::vector<std::int64_t>& sampled) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(std::ssize(sampled) * vectors.columns));
  for (const std::int64_t v : sampled) {
    for (std::int64_t l = 0; l < vectors.columns; ++l) values.push_back(vectors(v, l));
  }
  return values;
}

// True for a status by which a scheme refuses these operands, or an engine that cannot run it.
bool is_refusal(kintsugi_status status) {
  return status == KINTSUGI_CONTRACT_UNREACHABLE || status == KINTSUGI_NOT_SUPPORTED;
}

}  // namespace

std::vector<std::int64_t> sampled_vectors(const OperandFacts& facts) {
  constexpr std::int64_t max_vectors = 16;
  std::vector<std::int64_t> sampled;
  if (facts.vectors <= max_vectors) {
    for (std::int64_t v = 0; v < facts.vectors; ++v) sampled.push_back(v);
    return sampled;
  }
  sampled = {facts.largest_vector, facts.widest_vector};
  constexpr std::int64_t spread_vectors = max_vectors - 2;
  for (std::int64_t i = 0; i < spread_vectors; ++i)
    sampled.push_back(i * (facts.vectors - 1) / (spread_vectors - 1));
  std::sort(sampled.begin(), sampled.end());
  sampled.erase(std::unique(sampled.begin(), sampled.end()), sampled.end());
  return sampled;
}

template <class T>
Sample<T>::Sample(core::MatrixView<const T> a, core::MatrixView<const T> b, std::vector<std::int64_t> rows,
                  std::vector<std::int64_t> columns)
    : k_(a.columns), rows_(std::move(rows)), columns_(std::move(columns)), a_(gathered(a, rows_)),
      b_(gathered(b, columns_)) {
  measure::Product<T> product;
  product.a = this->a();
  product.b = this->b().transposed();
  exact_.emplace(product, std::ssize(rows_), std::ssize(columns_));
}

template <class T>
kintsugi_problem Sample<T>::problem() const {
  kintsugi_problem problem = row_major_problem({std::ssize(rows_), std::ssize(columns_), k_}, type_of<T>);
  problem.op_b = KINTSUGI_OP_T;
  problem.ldb = k_;
  return problem;
}

template <class T>
SchemeRun Sample<T>::run(const std::string& scheme, const std::string& engine) const {
  const Handle handle = make_handle();
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  if (!engine.empty()) options.engine = engine.c_str();
  if (scheme == "native") {
    options.policy = "native";
    options.accuracy = type_text(type_of<T>);
  } else {
    options.scheme = scheme.c_str();
  }
  SchemeRun run;
  kintsugi_plan created = nullptr;
  const kintsugi_problem problem = this->problem();
  kintsugi_status status = kintsugi_plan_create(handle.get(), &problem, &options, &created);
  const Plan plan(created);
  if (is_refusal(status)) {
    run.refusal = kintsugi_last_error();
    return run;
  }
  require("--schemes", status);
  run.plan = describe(plan);
  std::vector<T> c(rows_.size() * columns_.size());
  status = execute_product(handle.get(), plan, a_.data(), b_.data(), c.data());
  if (is_refusal(status)) {
    run.refusal = kintsugi_last_error();
    return run;
  }
  require(scheme, status);
  run.report = read_description("report", [&](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle.get(), buffer, capacity, needed);
  });
  const auto columns = std::ssize(columns_);
  run.errors = exact_->measure({c.data(), std::ssize(rows_), columns, columns, 1}, {}, &run.elements);
  return run;
}

template class Sample<float>;
template class Sample<double>;

}  // namespace kintsugi::tools
