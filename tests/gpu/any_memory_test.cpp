// Tests calls with BLAS's arguments on a device: the real driver's answers where matrices lie, and the cost
// of asking.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "base/cuda/cuda_driver.hpp"
#include "gpu/calls/device_gemm.hpp"
#include "gpu/calls/device_stream.hpp"
#include "kintsugi/kintsugi.hpp"

namespace kintsugi::test {
namespace {

using core::cuda::Address;
using core::cuda::driver;

enum class In { vector, pinned, device, pool, managed };

// A square matrix in some memory. Its elements are set and read by copies of the driver, which take every
// memory.
template <class T>
class Placed {
 public:
  static constexpr std::int64_t n = 48;

  Placed(In memory, T value) : memory_(memory), host_(n * n, value) {
    prepare_device();
    constexpr std::size_t bytes = n * n * sizeof(T);
    void* pinned = nullptr;
    Address address = 0;
    switch (memory) {
      case In::vector: data_ = host_.data(); return;
      case In::pinned: EXPECT_EQ(driver().host_allocate(&pinned, bytes, 0), 0); break;
      case In::device: EXPECT_EQ(driver().memory_allocate(&address, bytes), 0); break;
      case In::pool: EXPECT_EQ(driver().memory_allocate_async(&address, bytes, nullptr), 0); break;
      case In::managed: {
        using Allocate = core::cuda::Result(Address*, std::size_t, unsigned);
        void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        const auto allocate = reinterpret_cast<Allocate*>(::dlsym(library, "cuMemAllocManaged"));
        EXPECT_EQ(allocate(&address, bytes, 1), 0);
      }
    }
    data_ = pinned != nullptr ? static_cast<T*>(pinned) : reinterpret_cast<T*>(address);
    EXPECT_EQ(driver().copy_to_device_async(reinterpret_cast<Address>(data_), host_.data(), bytes, nullptr),
              0);
    driver().stream_synchronize(nullptr);
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  ~Placed() {
    if (memory_ == In::pinned) driver().host_free(data_);
    if (memory_ != In::pinned && memory_ != In::vector)
      driver().memory_free(reinterpret_cast<Address>(data_));
  }

  T* data() const { return data_; }
  std::vector<T> values() const {
    if (memory_ == In::vector) return host_;
    std::vector<T> values(n * n);
    EXPECT_EQ(driver().copy_to_host_async(values.data(), reinterpret_cast<Address>(data_), n * n * sizeof(T),
                                          nullptr),
              0);
    driver().stream_synchronize(nullptr);
    return values;
  }

 private:
  In memory_;
  std::vector<T> host_;
  T* data_ = nullptr;
};

template <class T>
class AnyMemoryOf : public testing::Test {};
using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(AnyMemoryOf, Elements);

template <class T>
void gemm(const Placed<T>& a, const Placed<T>& b, const Placed<T>& c, kintsugi::Handle* handle = nullptr) {
  constexpr std::int64_t n = Placed<T>::n;
  kintsugi::gemm(Op::N, Op::N, n, n, n, 2, a.data(), n, b.data(), n, 0, c.data(), n, {}, handle);
}

TYPED_TEST(AnyMemoryOf, SmallProductsRunWhereTheMatricesLie) {
  for (const In memory : {In::vector, In::pinned, In::device, In::pool, In::managed}) {
    SCOPED_TRACE(static_cast<int>(memory));
    const Placed<TypeParam> a(memory, 1), b(memory, 1), c(memory, 7);
    gemm(a, b, c);
    EXPECT_EQ(c.values(), std::vector<TypeParam>(c.n * c.n, 2 * c.n));
    EXPECT_EQ(core::cuda::location_of(c.data()).on_device, memory != In::vector && memory != In::pinned);
    EXPECT_EQ(core::cuda::location_of(c.data()).managed, memory == In::managed);
  }
}

TYPED_TEST(AnyMemoryOf, SmallProductsOfTwoMemoriesAreRefused) {
  const Placed<TypeParam> device(In::device, 1), host(In::vector, 1), pinned(In::pinned, 1),
      managed(In::managed, 1);
  for (const Placed<TypeParam>* other : {&host, &pinned}) {
    for (const Placed<TypeParam>* on_device : {&device, &managed}) {
      EXPECT_THROW(gemm(*other, *on_device, *on_device), kintsugi::Error);
      EXPECT_THROW(gemm(*on_device, *other, *on_device), kintsugi::Error);
      EXPECT_THROW(gemm(*on_device, *on_device, *other), kintsugi::Error);
    }
  }
  const Placed<TypeParam> c(In::pool, 7);
  gemm(managed, device, c);
  EXPECT_EQ(c.values(), std::vector<TypeParam>(c.n * c.n, 2 * c.n));
}

TEST(AnyMemory, SmallProductsAreInTheHandlesStream) {
  const Stream stream;
  const Placed<float> a(In::device, 1), b(In::device, 1), c(In::device, 7);
  kintsugi::Handle handle;
  handle.set_stream(stream.get());
  wait_for_uploads();
  gemm(a, b, c, &handle);
  stream.wait();
  EXPECT_EQ(c.values(), std::vector<float>(c.n * c.n, 2 * c.n));
}

// A thread without a context.
TEST(AnyMemory, SmallProductsInNewThreads) {
  const Placed<float> a(In::device, 1), b(In::device, 1), c(In::device, 7);
  std::thread([&] { gemm(a, b, c); }).join();
  EXPECT_EQ(c.values(), std::vector<float>(c.n * c.n, 2 * c.n));
}

// Returns nanoseconds of a call, the least of several rounds.
template <class Call>
double nanoseconds(const Call& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int calls = 2000;
  double least = 1e9;
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    least = std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls);
  }
  return least;
}

// A product of host matrices asks for three pointers, which may cost 0.3 us where a driver is loaded.
// On an H200 the driver takes 134 ns to say that it does not know a pointer; three questions took 4.5 of
// these times, 6.6 beside other tests.
TEST(AnyMemory, ACallAsksOncePerMatrix) {
  prepare_device();
  std::vector<float> a(64), b(64), c(64);
  kintsugi::Problem problem = kintsugi::Problem::dense<float>(Op::N, Op::N, 8, 8, 8);
  const auto product = [&](kintsugi::Memory memory) {
    problem.memory = memory;
    return nanoseconds([&] { kintsugi::gemm(problem, 1, a.data(), b.data(), 0, c.data()); });
  };
  const double named = product(kintsugi::Memory::host);
  const double asked = product(kintsugi::Memory::any);
  std::cout << "8 x 8 x 8 on the host: " << named << " ns, with the question " << asked << " ns\n";
  const Placed<float> device(In::device, 1), pinned(In::pinned, 1), managed(In::managed, 1);
  for (const void* pointer :
       std::initializer_list<const void*>{a.data(), pinned.data(), device.data(), managed.data()})
    std::cout << "one pointer: " << nanoseconds([&] { core::cuda::location_of(pointer); }) << " ns\n";
  EXPECT_LT(asked - named, 8 * nanoseconds([&] { core::cuda::location_of(a.data()); }));
}

}  // namespace
}  // namespace kintsugi::test
