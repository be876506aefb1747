// Records tiny sums of the tensor core's instructions, and counts how many of them models with different
// limits of the alignment exponent get wrong. This program made the files h200_tiny_*.bin. It needs a GPU of
// compute capability 9.0 and nothing of the library:
//
//   nvcc -std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a -o record_h200 tests/data/mma/record_h200.cu
//   ./record_h200 FOLDER 3000
//
// The last argument is the number of records per format. Records whose result depends on a limit between -136
// and -130 come first, then others in random order.
//
// A tile is one product of 64 x 16 results. Its operands are drawn so that products lie around 2^-100 to
// 2^-160 (fp16: as small as the format allows), with cancellation, subnormal operands and tiny accumulators.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "record_operands.cuh"

namespace {

using namespace record;

// ------------------------------------------------------- device

#define RECORD_MMA(instruction)                                  \
  asm volatile("mma.sync.aligned.m16n8" instruction              \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
               "{%0, %1, %2, %3};"                               \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

__device__ void mma(Fp16, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  RECORD_MMA("k16.row.col.f32.f16.f16.f32");
}
__device__ void mma(Bf16, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  RECORD_MMA("k16.row.col.f32.bf16.bf16.f32");
}
__device__ void mma(Tf32, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  RECORD_MMA("k8.row.col.f32.tf32.tf32.f32");
}

#define RECORD_WGMMA(instruction, rest)                                                              \
  asm volatile("wgmma.mma_async.sync.aligned.m64n16" instruction                                     \
               " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1" rest ";"                         \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), \
                 "+f"(d[7])                                                                          \
               : "l"(a), "l"(b))

__device__ void wgmma(Fp16, float (&d)[8], std::uint64_t a, std::uint64_t b) {
  RECORD_WGMMA("k16.f32.f16.f16", ", 0, 0");
}
__device__ void wgmma(Bf16, float (&d)[8], std::uint64_t a, std::uint64_t b) {
  RECORD_WGMMA("k16.f32.bf16.bf16", ", 0, 0");
}
__device__ void wgmma(Tf32, float (&d)[8], std::uint64_t a, std::uint64_t b) {
  RECORD_WGMMA("k8.f32.tf32.tf32", "");
}

// Descriptor of rows that start every 128 bytes under the 128-byte swizzle, of which 32 are used.
__device__ std::uint64_t descriptor(const unsigned char* tile) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(tile));
  return std::uint64_t{1} << 62 | std::uint64_t{1024 / 16} << 32 | std::uint64_t{1} << 16 |
         (address & 0x3ffff) >> 4;
}

template <class Format>
__device__ void record_warp_matrix(const unsigned char* a, const unsigned char* b, const float* c, float* d) {
  namespace wmma = nvcuda::wmma;
  using Fragment = typename Format::Fragment;
  constexpr int k = depth<Format>;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, k, Fragment, wmma::row_major> tile_a;
  wmma::fragment<wmma::matrix_b, 16, 16, k, Fragment, wmma::col_major> tile_b;
  wmma::fragment<wmma::accumulator, 16, 16, k, float> sums;
  using Memory = std::conditional_t<sizeof(typename Format::Storage) == 4, float, Fragment>;
  wmma::load_matrix_sync(tile_a, reinterpret_cast<const Memory*>(a) + row * k, k);
  wmma::load_matrix_sync(tile_b, reinterpret_cast<const Memory*>(b), k);
  wmma::load_matrix_sync(sums, c + row * columns, columns, wmma::mem_row_major);
  wmma::mma_sync(sums, tile_a, tile_b, sums);
  wmma::store_matrix_sync(d + row * columns, sums, columns, wmma::mem_row_major);
}

// The fragments of all formats are the same in units of 4 bytes (PTX ISA, m16n8k16 and tf32's m16n8k8).
template <class Format>
__device__ void record_mma_sync(const unsigned char* a, const unsigned char* b, const float* c, float* d) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  const auto word = [&](const unsigned char* tile, int vector, int index) {
    return *reinterpret_cast<const unsigned*>(tile + vector * row_bytes + index * 4);
  };
  const unsigned tile_a[4] = {word(a, row, lane % 4), word(a, row + 8, lane % 4), word(a, row, lane % 4 + 4),
                              word(a, row + 8, lane % 4 + 4)};
  for (int half = 0; half < 2; ++half) {
    const int column = half * 8 + lane / 4;
    const unsigned tile_b[2] = {word(b, column, lane % 4), word(b, column, lane % 4 + 4)};
    float sums[4];
    const auto index = [&](int i) { return (row + i / 2 * 8) * columns + half * 8 + lane % 4 * 2 + i % 2; };
    for (int i = 0; i < 4; ++i) sums[i] = c[index(i)];
    mma(Format{}, sums, tile_a, tile_b);
    for (int i = 0; i < 4; ++i) d[index(i)] = sums[i];
  }
}

template <class Format>
__device__ void record_wgmma(const unsigned char* a, const unsigned char* b, const float* c, float* d) {
  __shared__ __align__(1024) unsigned char shared[(rows + columns) * 128];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < (rows + columns) * row_bytes; i += 128) {
    const int vector = i / row_bytes;
    const int byte = i % row_bytes;
    shared[vector * 128 + ((byte / 16) ^ (vector % 8)) * 16 + byte % 16] =
        vector < rows ? a[i] : b[i - rows * row_bytes];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float sums[8];
  const auto index = [&](int i) {
    return (thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8) * columns + i / 4 * 8 + thread % 4 * 2 +
           i % 2;
  };
  for (int i = 0; i < 8; ++i) sums[i] = c[index(i)];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  wgmma(Format{}, sums, descriptor(shared), descriptor(shared + rows * 128));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) d[index(i)] = sums[i];
}

// One block of 128 threads per tile; d holds the results of the warp matrix API, mma.sync and wgmma.
template <class Format>
__global__ void record(const unsigned char* a, const unsigned char* b, const float* c, float* d) {
  a += static_cast<std::size_t>(blockIdx.x) * rows * row_bytes;
  b += static_cast<std::size_t>(blockIdx.x) * columns * row_bytes;
  c += static_cast<std::size_t>(blockIdx.x) * results;
  d += static_cast<std::size_t>(blockIdx.x) * results * 3;
  record_warp_matrix<Format>(a, b, c, d);
  record_mma_sync<Format>(a, b, c, d + results);
  record_wgmma<Format>(a, b, c, d + 2 * results);
}

// ------------------------------------------------------- model

// One instruction's alignment: products and the accumulator are truncated 25 bits below the largest exponent,
// which is at least `limit`; the sum is truncated to fp32.
float add_block(const Operand* a, const Operand* b, int block, int fraction_bits, float c, int limit) {
  std::int64_t significands[17];
  int exponents[17];
  int largest = limit;
  for (int p = 0; p <= block; ++p) {
    if (p < block) {
      significands[p] = std::int64_t{a[p].significand} * b[p].significand * (1LL << (25 - 2 * fraction_bits));
      exponents[p] = a[p].exponent + b[p].exponent;
    } else {
      const std::uint32_t bits = float_bits(c);
      const int field = static_cast<int>(bits >> 23 & 255);
      const std::int64_t magnitude = std::int64_t{(bits & 0x7fffff) | (field > 0 ? 0x800000U : 0U)} << 2;
      significands[p] = bits >> 31 != 0 ? -magnitude : magnitude;
      exponents[p] = std::max(field, 1) - 127;
    }
    if (significands[p] != 0) largest = std::max(largest, exponents[p]);
  }
  std::int64_t total = 0;
  for (int p = 0; p <= block; ++p) {
    if (significands[p] == 0) continue;
    const int distance = std::min(largest - exponents[p], 62);
    total += significands[p] < 0 ? -(-significands[p] >> distance) : significands[p] >> distance;
  }
  if (total == 0) return 0.0F;
  // ldexp of a truncated significand is exact: the integer is cut to 24 bits, or at 2^-149.
  const std::int64_t magnitude = std::abs(total);
  const int leading = 63 - __builtin_clzll(static_cast<std::uint64_t>(magnitude));
  const int drop = std::clamp(std::max(leading - 23, -149 - (largest - 25)), 0, 63);
  const double value = std::ldexp(static_cast<double>(magnitude >> drop), drop + largest - 25);
  return value == 0 ? 0.0F : static_cast<float>(total < 0 ? -value : value);
}

// ------------------------------------------------------- program

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
T* upload(const std::vector<T>& values) {
  T* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(T)));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

constexpr int no_limit = -1000;
constexpr const char* instructions[] = {"warp matrix", "mma.sync", "wgmma"};

template <class Format>
class Records {
 public:
  static constexpr int k = depth<Format>;

  Records(const Tiles<Format>& tiles, const std::vector<float>& d) : tiles_(tiles), d_(d) {
    for (const auto bits : tiles.a) a_.push_back(decode<Format>(bits));
    for (const auto bits : tiles.b) b_.push_back(decode<Format>(bits));
  }

  int size() const { return static_cast<int>(tiles_.c.size()); }
  static int row(int i) { return i / columns * k; }
  static int column(int i) { return (i / results * columns + i % columns) * k; }

  float recorded(int i, int instruction) const {
    return d_[(i / results * 3 + instruction) * results + i % results];
  }

  // The warp matrix API multiplies tf32 in two blocks of 4.
  float modelled(int i, int instruction, int limit) const {
    const int block = k == 8 && instruction == 0 ? 4 : k;
    float sum = tiles_.c[i];
    for (int p = 0; p < k; p += block)
      sum = add_block(&a_[row(i) + p], &b_[column(i) + p], block, Format::fraction_bits, sum, limit);
    return sum;
  }

  void count_mismatches() const {
    for (int instruction = 0; instruction < 3; ++instruction) {
      for (int limit = no_limit; limit <= -120; limit = limit == no_limit ? -145 : limit + 1) {
        int mismatches = 0;
        for (int i = 0; i < size(); ++i)
          mismatches += float_bits(modelled(i, instruction, limit)) != float_bits(recorded(i, instruction));
        std::printf("%s %s limit %d: %d of %d differ\n", Format::name, instructions[instruction], limit,
                    mismatches, size());
      }
    }
  }

  // a, b, C and the results of the three instructions, one record after the other.
  void write(const std::string& path, std::size_t count) const {
    std::vector<int> order(size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
    std::stable_partition(order.begin(), order.end(), [&](int i) {
      return float_bits(modelled(i, 2, -136)) != float_bits(modelled(i, 2, -130)) || i == 0;
    });
    order.resize(std::min(order.size(), count));
    std::ofstream file(path, std::ios::binary);
    const auto put = [&](const auto* values, int n) {
      file.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(sizeof(*values)) * n);
    };
    for (const int i : order) {
      put(&tiles_.a[row(i)], k);
      put(&tiles_.b[column(i)], k);
      put(&tiles_.c[i], 1);
      const float d[] = {recorded(i, 0), recorded(i, 1), recorded(i, 2)};
      put(d, 3);
    }
  }

 private:
  const Tiles<Format>& tiles_;
  const std::vector<float>& d_;
  std::vector<Operand> a_, b_;
};

template <class Format>
void run(const std::string& folder, std::size_t kept, int count) {
  Tiles<Format> tiles(count);
  insert_published(tiles);
  const auto* a = reinterpret_cast<const unsigned char*>(upload(tiles.a));
  const auto* b = reinterpret_cast<const unsigned char*>(upload(tiles.b));
  std::vector<float> d(tiles.c.size() * 3);
  float* device_d = upload(d);
  record<Format><<<count, 128>>>(a, b, upload(tiles.c), device_d);
  check(cudaGetLastError());
  check(cudaMemcpy(d.data(), device_d, d.size() * sizeof(float), cudaMemcpyDeviceToHost));
  const Records<Format> records(tiles, d);
  std::printf("%s: first sum %a, %a, %a\n", Format::name, d[0], d[results], d[2 * results]);
  records.write(folder + "/h200_tiny_" + Format::name + ".bin", kept);
  records.count_mismatches();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: record_h200 FOLDER COUNT\n"), 2;
  const std::size_t kept = std::strtoul(argv[2], nullptr, 10);
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  std::printf("%s\n", device.name);
  run<Fp16>(argv[1], kept, 160);
  run<Bf16>(argv[1], kept, 640);
  run<Tf32>(argv[1], kept, 640);
  return 0;
}
