// A contestant: a product of the library in host memory.
#include <new>

#include "bench/host_timing.hpp"
#include "bench/library_product.hpp"

namespace kintsugi::tools {

namespace {

// Alignment that plans require of a workspace.
constexpr std::size_t workspace_alignment = 256;

struct AlignedDeleter {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{workspace_alignment});
  }
};
using Workspace = std::unique_ptr<std::byte, AlignedDeleter>;

Workspace make_workspace(std::size_t bytes) {
  return Workspace(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{workspace_alignment})));
}

template <class T>
class HostProduct : public LibraryProduct<T> {
 public:
  HostProduct(const Bench& bench, const std::string& name, BenchMatrices<T>& matrices)
      : LibraryProduct<T>(bench, name, matrices, {}), workspace_(make_workspace(this->workspace_bytes())),
        prepared_(this->prepare(matrices.a.data(), matrices.b.data())) {}

  void run() override {
    BenchMatrices<T>& matrices = this->matrices();
    this->execute(matrices.a.data(), matrices.b.data(), matrices.c.data(), workspace_.get(), prepared_);
  }
  Round time_round() override {
    return time_on_host([this] { run(); });
  }
  const char* timed_by() const override { return "clock"; }

 private:
  Workspace workspace_;
  Prepared prepared_;
};

}  // namespace

template <class T>
std::unique_ptr<Contestant> host_product(const Bench& bench, const std::string& candidate,
                                         BenchMatrices<T>& matrices) {
  return std::make_unique<HostProduct<T>>(bench, candidate, matrices);
}

template std::unique_ptr<Contestant> host_product(const Bench&, const std::string&, BenchMatrices<float>&);
template std::unique_ptr<Contestant> host_product(const Bench&, const std::string&, BenchMatrices<double>&);

}  // namespace kintsugi::tools
