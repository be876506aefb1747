// A candidate: a scheme, a contract, or the native product, with operands in host or device memory.
#pragma once

#include <optional>

#include "bench/contestant.hpp"

namespace kintsugi::tools {

template <class T>
class LibraryProduct : public Contestant {
 public:
  const std::string& name() const override { return name_; }
  Shape shape() const override { return matrices_.shape; }
  Verdict judge(std::int64_t product, const measure::ErrorReport& errors,
                const std::vector<measure::ElementError>& elements) const override;
  double products_each() const override;
  Json facts() const override;

 protected:
  // Fails, naming the candidate, if the library makes no plan for it.
  LibraryProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices,
                 const kintsugi_queue& queue);

  BenchMatrices<T>& matrices() const { return matrices_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Prepares the operand that --prepare names, without copying it; nullptr if there is none.
  Prepared prepare(const T* a, const T* b) const;
  // Multiplies by the plan, or by kintsugi_gemm for --call gemm. `call_index`: selects one of several
  // problems that take turns and differ in k.
  void execute(const T* a, const T* b, T* c, std::byte* workspace, const Prepared& prepared,
               std::int64_t call_index = 0) const;

 private:
  // Returns the program of the candidate that ran; null for the native product.
  Json program_that_ran() const;

  std::string name_;
  BenchMatrices<T>& matrices_;
  Handle handle_;
  Plan plan_;
  std::size_t workspace_bytes_ = 0;
  double plan_seconds_ = 0;
  std::optional<kintsugi_side> prepared_side_;
  bool by_gemm_;  // true: execute() calls kintsugi_gemm
  std::int64_t problems_;
  kintsugi_problem problem_;
  kintsugi_options options_;
};

extern template class LibraryProduct<float>;
extern template class LibraryProduct<double>;

}  // namespace kintsugi::tools
