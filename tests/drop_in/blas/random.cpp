// Random calls of every exported name against the naive loop: shapes, leading dimensions, transposes,
// triangles, scalars, special values, and what must be neither read nor written.
#include "tests/drop_in/blas/random.hpp"

#include <cstdio>

#include "tests/drop_in/blas/level3_case.hpp"
#include "tests/drop_in/blas/product_case.hpp"
#include "tests/drop_in/blas/vector_case.hpp"

namespace kintsugi::test {

std::string difference(std::int64_t i, std::int64_t j, const Wide& value, const Expected& expected) {
  char text[200];
  std::snprintf(text, sizeof text, "C(%d, %d) = %.17Lg %+.17Lgi, expected %.17Lg %+.17Lgi within %.3Lg",
                static_cast<int>(i), static_cast<int>(j), value.real(), value.imag(), expected.value.real(),
                expected.value.imag(), expected.allowed);
  return text;
}

namespace {

// Returns what was wrong and in which call; "" if nothing was.
template <class T>
std::string run_product(const Entry& entry, Random random, bool forwarded) {
  const Group<T> group(random, entry.is_cblas && random() % 2 == 0);
  ProductCase<T> one(random, group, forwarded);
  entry.call(one.arguments());
  const std::string wrong = one.check();
  return wrong.empty() ? wrong : one.text() + ": " + wrong;
}

template <class T>
std::string run_level3(const Entry& entry, const Random& random, bool forwarded) {
  Level3Case<T> one(entry, random, forwarded);
  const std::string wrong = one.run();
  return wrong.empty() ? wrong : one.text() + ": " + wrong;
}

template <class T>
std::string run_special_values(const Entry& entry, Random random, bool forwarded) {
  const Group<T> group(random, entry.is_cblas && random() % 2 == 0);
  ProductCase<T> one(random, group, forwarded);
  one.place_special_values(random);
  entry.call(one.arguments());
  const std::string wrong = one.check();
  return wrong.empty() ? wrong : one.text() + ": " + wrong;
}

template <class T>
std::string first_wrong(std::vector<ProductCase<T>>& products) {
  for (std::size_t number = 0; number < products.size(); ++number) {
    const std::string wrong = products[number].check();
    if (!wrong.empty())
      return "product " + std::to_string(number) + ", " + products[number].text() + ": " + wrong;
  }
  return "";
}

template <class T>
std::string run_batch(const Entry& entry, Random random, bool forwarded) {
  BatchArguments batch{.row_major = entry.is_cblas && random() % 2 == 0,
                       .group_count = static_cast<std::int64_t>(random() % 4)};
  std::vector<ProductCase<T>> products;
  std::vector<T> alpha, beta;
  for (std::int64_t g = 0; g < batch.group_count; ++g) {
    const Group<T> group(random, batch.row_major);
    alpha.push_back(group.alpha);
    beta.push_back(group.beta);
    Arguments arguments = ProductCase<T>(random, group, forwarded).arguments();
    arguments.count = static_cast<std::int64_t>(random() % 4);
    for (std::int64_t i = 0; i < arguments.count; ++i) products.emplace_back(random, group, forwarded);
    batch.groups.push_back(arguments);
  }
  for (ProductCase<T>& product : products) {
    batch.a.push_back(product.a().data());
    batch.b.push_back(product.b().data());
    batch.c.push_back(product.c().data());
  }
  batch.alpha = alpha.data();
  batch.beta = beta.data();
  entry.call_batch(batch);
  return first_wrong(products);
}

// Places the products' matrices one after the other, with a gap, as the routine expects them.
template <class T>
class Strided {
 public:
  template <class Member>
  Strided(std::vector<ProductCase<T>>& products, std::int64_t gap, const Member& member)
      : stride_(static_cast<std::int64_t>(member(products.front()).buffer().size()) + gap) {
    for (ProductCase<T>& product : products) {
      const std::vector<T>& buffer = member(product).buffer();
      all_.insert(all_.end(), buffer.begin(), buffer.end());
      all_.resize(all_.size() + static_cast<std::size_t>(gap), T(77));
    }
  }
  template <class Member>
  void give_back(std::vector<ProductCase<T>>& products, const Member& member) const {
    auto from = all_.begin();
    for (ProductCase<T>& product : products) {
      std::vector<T>& buffer = member(product).buffer();
      std::copy(from, from + static_cast<std::ptrdiff_t>(buffer.size()), buffer.begin());
      from += stride_;
    }
  }
  T* data() { return all_.data(); }
  std::int64_t stride() const { return stride_; }

 private:
  std::int64_t stride_;
  std::vector<T> all_;
};

template <class T>
std::string run_strided(const Entry& entry, Random random, bool forwarded) {
  const Group<T> group(random, entry.is_cblas && random() % 2 == 0);
  std::vector<ProductCase<T>> products;
  const std::size_t count = 1 + random() % 4;
  for (std::size_t i = 0; i < count; ++i) products.emplace_back(random, group, forwarded);
  const auto a = [](ProductCase<T>& product) -> Matrix<T>& { return product.a(); };
  const auto b = [](ProductCase<T>& product) -> Matrix<T>& { return product.b(); };
  const auto c = [](ProductCase<T>& product) -> Matrix<T>& { return product.c(); };
  Strided<T> all_a(products, 0, a), all_b(products, 3, b), all_c(products, 5, c);
  Arguments arguments = products.front().arguments();
  arguments.count = static_cast<std::int64_t>(count);
  arguments.a = all_a.data(), arguments.stride_a = all_a.stride();
  arguments.b = all_b.data(), arguments.stride_b = all_b.stride();
  arguments.c = all_c.data(), arguments.stride_c = all_c.stride();
  entry.call(arguments);
  all_a.give_back(products, a), all_b.give_back(products, b), all_c.give_back(products, c);
  return first_wrong(products);
}

template <class T>
std::string run_typed(const Entry& entry, const Random& random, bool forwarded) {
  if (entry.is("gemm") || entry.is("gemm3m")) return run_product<T>(entry, random, forwarded);
  if (entry.is("gemm_batch")) return run_batch<T>(entry, random, forwarded);
  if (entry.is("gemm_batch_strided")) return run_strided<T>(entry, random, forwarded);
  return run_level3<T>(entry, random, forwarded);
}

}  // namespace

std::string run_case(const Entry& entry, const Random& random, bool forwarded) {
  switch (entry.type) {
    case 's': return run_typed<float>(entry, random, forwarded);
    case 'd': return run_typed<double>(entry, random, forwarded);
    case 'c': return run_typed<std::complex<float>>(entry, random, forwarded);
    default: return run_typed<std::complex<double>>(entry, random, forwarded);
  }
}

int check_special_values(std::uint64_t seed, std::int64_t cases, bool forwarded) {
  std::vector<Entry> products;
  for (const Entry& entry : entries())
    if (entry.is("gemm")) products.push_back(entry);
  int failures = 0;
  for (std::int64_t number = 0; number < cases; ++number) {
    const Entry& entry = products[static_cast<std::size_t>(number) % products.size()];
    const Random random(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number));
    const std::string wrong = entry.type == 's'   ? run_special_values<float>(entry, random, forwarded)
                              : entry.type == 'd' ? run_special_values<double>(entry, random, forwarded)
                              : entry.type == 'c'
                                  ? run_special_values<std::complex<float>>(entry, random, forwarded)
                                  : run_special_values<std::complex<double>>(entry, random, forwarded);
    if (wrong.empty()) continue;
    ++failures;
    std::printf("%s %s\n", entry.name, wrong.c_str());
  }
  std::printf("%lld placements of special values, %d differ\n", static_cast<long long>(cases), failures);
  return failures;
}

namespace {

template <class T, class Result = T>
std::string run_vectors(const Entry& entry, const Random& random, Computed computed) {
  VectorCase<T, Result> one(entry, random, computed);
  const std::string wrong = one.run();
  return wrong.empty() ? wrong : one.text() + ": " + wrong;
}

std::string run_vector_case(const Entry& entry, const Random& random, Computed computed) {
  if (entry.is("sdot")) return run_vectors<float, double>(entry, random, computed);  // dsdot
  switch (entry.type) {
    case 's': return run_vectors<float>(entry, random, computed);
    case 'd': return run_vectors<double>(entry, random, computed);
    case 'c': return run_vectors<std::complex<float>>(entry, random, computed);
    default: return run_vectors<std::complex<double>>(entry, random, computed);
  }
}

}  // namespace

int check_vectors(std::uint64_t seed, std::int64_t first, std::int64_t cases, bool forwarded, bool exact) {
  const Computed computed = forwarded ? Computed::forwarded : exact ? Computed::exactly : Computed::emulated;
  int failures = 0;
  for (std::int64_t number = first; number < first + cases; ++number) {
    const Entry& entry = vector_entries()[static_cast<std::size_t>(number) % vector_entries().size()];
    const Random random(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number));
    const std::string wrong = run_vector_case(entry, random, computed);
    if (wrong.empty()) continue;
    ++failures;
    std::printf("%s %s; repeat with --seed %llu --first %lld --cases 1\n", entry.name, wrong.c_str(),
                static_cast<unsigned long long>(seed), static_cast<long long>(number));
  }
  std::printf("%lld random calls with vectors, %d failures\n", static_cast<long long>(cases), failures);
  return failures;
}

int check_random(std::uint64_t seed, std::int64_t first, std::int64_t cases, bool forwarded) {
  int failures = 0;
  for (std::int64_t number = first; number < first + cases; ++number) {
    const Entry& entry = entries()[static_cast<std::size_t>(number) % entries().size()];
    const Random random(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number));
    const std::string wrong = run_case(entry, random, forwarded);
    if (wrong.empty()) continue;
    ++failures;
    std::printf("%s %s; repeat with --seed %llu --first %lld --cases 1\n", entry.name, wrong.c_str(),
                static_cast<unsigned long long>(seed), static_cast<long long>(number));
  }
  std::printf("%lld random calls, %d failures\n", static_cast<long long>(cases), failures);
  return failures;
}

}  // namespace kintsugi::test
