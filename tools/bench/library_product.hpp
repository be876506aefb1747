// A candidate: a scheme, a contract, or the native product; wherever its operands are.
#pragma once

#include "accuracy/methods.hpp"
#include "bench/contestant.hpp"

namespace kintsugi::tools {

template <class T>
class LibraryProduct : public Contestant {
 public:
  const std::string& name() const override { return name_; }
  Shape shape() const override { return matrices_.shape; }
  Verdict judge(const lab::ErrorReport& errors, const std::vector<lab::EntryError>& entries) const override;
  Json facts() const override;

 protected:
  // Fails, naming the candidate, where the library makes no plan for it.
  LibraryProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices,
                 const kintsugi_queue& queue);

  BenchMatrices<T>& matrices() const { return matrices_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void execute(const T* a, const T* b, T* c, std::byte* workspace) const;

 private:
  std::string name_;
  BenchMatrices<T>& matrices_;
  Handle handle_;
  Plan plan_;
  std::size_t workspace_bytes_ = 0;
  double plan_seconds_ = 0;
};

extern template class LibraryProduct<float>;
extern template class LibraryProduct<double>;

}  // namespace kintsugi::tools
