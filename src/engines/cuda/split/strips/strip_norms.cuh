// Norms of the FP64 vectors of a strip that a cluster holds, from the sums of head_sums.cuh. The thread
// blocks of the cluster exchange them in two messages for each vector: extremes first, then sums.
#pragma once

#include "engines/cuda/split/norm_sums_of_part.cuh"
#include "engines/cuda/split/strips/mailbox.cuh"
#include "engines/cuda/split/strips/strips.cuh"

namespace kintsugi::core::cuda {

// Reduces words over the 8 lanes of a warp that have the same vectors. Each of these lanes gets count / 8 of
// the results, or one if there are fewer, as the first elements of `words`. Returns the index of the first of
// them.
template <class Shape, int count, class Operation>
__device__ int scatter_over_lanes(std::uint32_t (&words)[count], const Operation& operation) {
  static_assert(Shape::lanes == 4);
  int first = 0;
  int kept = count;
#pragma unroll
  for (int lane = 16; lane >= Shape::lanes; lane /= 2) {
    const bool takes_upper = (threadIdx.x & lane) != 0;
    if (kept == 1) {
      words[0] = operation(words[0], __shfl_xor_sync(~0U, words[0], lane));
      continue;
    }
    kept /= 2;
    if (takes_upper) first += kept;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      if (i >= kept) break;
      const std::uint32_t given = takes_upper ? words[i] : words[i + kept];
      const std::uint32_t own = takes_upper ? words[i + kept] : words[i];
      words[i] = operation(own, __shfl_xor_sync(~0U, given, lane));
    }
  }
  return first;
}

// A strip's sums for norms. All members are in shared memory.
template <int width>
struct NormExchange {
  struct alignas(sizeof(uint4)) Extremes {
    std::uint32_t extremes[2];
  };
  struct alignas(sizeof(uint4)) Words {
    std::uint32_t words[vector_words];
  };

  VectorWords (&part_words)[width];  // of this thread block's part
  Mailbox& extremes_mailbox;
  Mailbox& words_mailbox;
  Extremes* received_extremes;  // one message of every thread block for each vector
  Words* received_words;
};

// Adds the thread's extremes to those of the thread block's part.
template <class Shape>
__device__ void gather_extremes(const UpperSums (&sums)[Shape::chunk], VectorWords* part_words) {
  constexpr int count = 2 * Shape::chunk;
  std::uint32_t words[count];
#pragma unroll
  for (int i = 0; i < Shape::chunk; ++i) {
    words[2 * i] = sums[i].largest;
    words[2 * i + 1] = sums[i].complement();
  }
  const int word =
      scatter_over_lanes<Shape>(words, [](std::uint32_t a, std::uint32_t b) { return max(a, b); });
  if ((threadIdx.x & Shape::lanes) == 0)
    atomicMax(&part_words[loaded_vector<Shape>() + word / 2].extremes[word % 2], words[0]);
}

// Adds the thread's words to those of the thread block's part.
template <class Shape>
__device__ void gather_words(const UpperSums (&sums)[Shape::chunk],
                             const IntegerSums (&integers)[Shape::chunk], VectorWords* part_words) {
  constexpr int count = vector_words * Shape::chunk;
  std::uint32_t words[count];
#pragma unroll
  for (int i = 0; i < Shape::chunk; ++i)
    get_words(sums[i], integers[i].squares, integers[i].magnitudes, words + vector_words * i);
  const int first = scatter_over_lanes<Shape>(words, [](std::uint32_t a, std::uint32_t b) { return a + b; });
#pragma unroll
  for (int i = 0; i < count / 8; ++i) {
    const int word = first + i;
    atomicAdd(&part_words[loaded_vector<Shape>() + word / vector_words].words[word % vector_words], words[i]);
  }
}

// Sends a message about every vector to every thread block of the cluster, and returns when those of the
// other thread blocks have arrived. Neighboring threads send the same vector's message to different thread
// blocks.
template <int width, class Message, class MessageOf>
__device__ void exchange_messages(const Mailbox& mailbox, Message* received, const MessageOf& message_of) {
  const int blocks = cluster_size();
  if (blocks == 1) {
    if (threadIdx.x < width) received[threadIdx.x] = message_of(static_cast<int>(threadIdx.x));
    __syncthreads();
    return;
  }
  const int sender = block_rank_in_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < width * blocks; i += static_cast<int>(blockDim.x)) {
    const int v = i / blocks;
    mailbox.send(message_of(v), received[v * blocks + sender], i % blocks);
  }
  mailbox.wait();
}

// Extremes of a vector over the whole cluster.
template <int width>
__device__ VectorWords extremes_of(const NormExchange<width>& exchange, int v) {
  VectorWords words;
  const int blocks = cluster_size();
  for (int i = 0; i < blocks; ++i) {
    const auto& message = exchange.received_extremes[v * blocks + i];
    words.extremes[0] = max(words.extremes[0], message.extremes[0]);
    words.extremes[1] = max(words.extremes[1], message.extremes[1]);
  }
  return words;
}

// Clears the thread block's words, initializes its mailboxes and sets the number of bytes for which they
// wait. Arrives at the cluster's barrier; before they send, thread blocks wait there.
template <int width>
__device__ void begin_norms(const NormExchange<width>& exchange) {
  using Exchange = NormExchange<width>;
  if (threadIdx.x < width) exchange.part_words[threadIdx.x] = {};
  if (threadIdx.x == 0) {
    exchange.extremes_mailbox.initialise();
    exchange.words_mailbox.initialise();
  }
  __syncthreads();
  cluster_arrive_relaxed();
  if (threadIdx.x != 0) return;
  const unsigned messages = width * cluster_size();
  exchange.extremes_mailbox.expect(messages * sizeof(typename Exchange::Extremes));
  exchange.words_mailbox.expect(messages * sizeof(typename Exchange::Words));
}

// Finds the thread's vectors' extremes over the cluster, and the sums of the thread block's part.
// Returns true if the sums do not hold for a vector of the thread's.
template <class Shape, class Source>
__device__ bool find_part_words(const StripPart& part, const Source* shared,
                                const NormExchange<Shape::width>& exchange) {
  using Exchange = NormExchange<Shape::width>;
  UpperSums sums[Shape::chunk];
  visit_part_by_groups<Shape>(part.length, shared, [&](const auto& x) {
#pragma unroll
    for (int i = 0; i < Shape::chunk; ++i) sums[i].add(x[i]);
  });
  gather_extremes<Shape>(sums, exchange.part_words);
  __syncthreads();
  cluster_wait();  // the other thread blocks' mailboxes are initialized
  exchange_messages<Shape::width>(exchange.extremes_mailbox, exchange.received_extremes, [&](int v) {
    const VectorWords& words = exchange.part_words[v];
    return typename Exchange::Extremes{{words.extremes[0], words.extremes[1]}};
  });
  IntegerSums integers[Shape::chunk];
  double factors[Shape::chunk];
  bool is_general = false;
#pragma unroll
  for (int i = 0; i < Shape::chunk; ++i) {
    const VectorWords words = extremes_of(exchange, loaded_vector<Shape>() + i);
    factors[i] = words.factor<double>();
    is_general = is_general || words.is_general<double>();
  }
  visit_part_by_groups<Shape>(part.length, shared, [&](const auto& x) {
#pragma unroll
    for (int i = 0; i < Shape::chunk; ++i) {
#pragma unroll
      for (const double element : x[i]) integers[i].add(element, factors[i]);
    }
  });
  gather_words<Shape>(sums, integers, exchange.part_words);
  return is_general;
}

}  // namespace kintsugi::core::cuda
