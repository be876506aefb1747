#include "site_record.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/dump.hpp"

namespace kintsugi::drop_in {

void Flow::add(const Place& site, const std::vector<Region>& inputs, const Region& output,
               SiteInputs& found) {
  std::set<const Place*> feeding;
  for (const Region& input : inputs)
    for (const Output& earlier : outputs_)
      if (overlap(earlier.region, input)) feeding.insert(earlier.site);
  for (const Place* place : feeding) ++found[place];

  if (output.is_empty()) return;
  std::erase_if(outputs_, [&](const Output& earlier) { return covers(output, earlier.region); });
  if (outputs_.size() >= most_outputs) outputs_.erase(outputs_.begin());
  outputs_.push_back({output, &site});
}

nlohmann::ordered_json inputs_json(const SiteInputs& inputs) {
  std::vector<std::pair<std::string, std::int64_t>> named;
  for (const auto& [site, calls] : inputs) named.emplace_back(site->name, calls);
  std::sort(named.begin(), named.end());
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [name, calls] : named) json.push_back({{"site", name}, {"calls", calls}});
  return json;
}

// ------------------------------------------------------------------ the last C

void SiteOutput::save(const Call& written) {
  const Call call = as_column_major(written);
  is_transposed_ = written.layout == Layout::row_major;
  type_ = call.type;
  rows_ = call.m;
  columns_ = call.n;
  elements_ = packed(output_of(written));
  if (!elements_.empty() && writes_triangle(call.routine)) clear_other_triangle(call.uplo);
}

void SiteOutput::clear_other_triangle(Uplo uplo) {
  const std::int64_t bytes = element_bytes(type_);
  for (std::int64_t column = 0; column < columns_; ++column) {
    char* const first = elements_.data() + column * rows_ * bytes;
    const std::int64_t begin = uplo == Uplo::upper ? column + 1 : 0;
    const std::int64_t end = uplo == Uplo::upper ? rows_ : column;
    if (begin < end) std::memset(first + begin * bytes, 0, static_cast<std::size_t>((end - begin) * bytes));
  }
}

std::string SiteOutput::npy() const {
  const std::int64_t rows = is_transposed_ ? columns_ : rows_, columns = is_transposed_ ? rows_ : columns_;
  return npy_file(type_, rows, columns, is_transposed_, elements_);
}

// ------------------------------------------------------------------ errors

namespace {

constexpr long double infinite = std::numeric_limits<long double>::infinity();

bool is_same_special(double computed, double exact) {
  return (std::isnan(computed) && std::isnan(exact)) || (std::isinf(exact) && computed == exact);
}

template <class T>
void add_typed(CallNorms& norms, const T* computed, const T* exact, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double one = static_cast<double>(computed[i]), other = static_cast<double>(exact[i]);
    if (is_same_special(one, other)) continue;
    if (!std::isfinite(one) || !std::isfinite(other)) {
      norms.difference = infinite;
      continue;
    }
    const long double difference = static_cast<long double>(one) - other;
    norms.difference += difference * difference;
    norms.exact += static_cast<long double>(other) * other;
  }
}

// JSON has no infinity.
nlohmann::ordered_json number_json(double number) {
  return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json("inf");
}

}  // namespace

void add_elements(CallNorms& norms, kintsugi_type type, const void* computed, const void* exact,
                  std::int64_t count) {
  const std::int64_t numbers = is_complex(type) ? 2 * count : count;
  if (is_single(type))
    add_typed(norms, static_cast<const float*>(computed), static_cast<const float*>(exact), numbers);
  else
    add_typed(norms, static_cast<const double*>(computed), static_cast<const double*>(exact), numbers);
}

double relative_error(const CallNorms& norms) {
  if (norms.difference == 0) return 0;
  return static_cast<double>(norms.exact == 0 ? infinite : std::sqrt(norms.difference / norms.exact));
}

std::int64_t CallErrors::number_of_sample() {
  const std::int64_t number = calls_++;
  return number % distance_ == 0 ? number : -1;
}

void CallErrors::add(std::int64_t number, const CallNorms& norms, std::int64_t samples) {
  if (number % distance_ != 0) return;  // Another thread has doubled the distance since.
  samples_.push_back({number, norms});
  if (static_cast<std::int64_t>(samples_.size()) < 2 * samples) return;
  distance_ *= 2;
  std::erase_if(samples_, [&](const Sample& sample) { return sample.number % distance_ != 0; });
}

nlohmann::ordered_json CallErrors::json() const {
  if (samples_.empty()) return nullptr;
  CallNorms all;
  double largest = 0;
  for (const Sample& sample : samples_) {
    all.difference += sample.norms.difference;
    all.exact += sample.norms.exact;
    largest = std::max(largest, relative_error(sample.norms));
  }
  return {{"calls", samples_.size()},
          {"relative", number_json(relative_error(all))},
          {"largest", number_json(largest)}};
}

}  // namespace kintsugi::drop_in
