// Scalings of the vectors of a strip that a cluster holds. The cluster's thread blocks exchange what they
// find in their parts of k.
#pragma once

#include "engines/cuda/select/finish_range.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/split/strips/mailbox.cuh"
#include "engines/cuda/split/strips/strip_norms.cuh"
#include "engines/cuda/split/strips/strips.cuh"

namespace kintsugi::core::cuda {

// An exchange of sums over each vector of a strip. Every thread block of a cluster sums its part, sends the
// sums to all thread blocks, and adds up the sums that it receives.
template <class Sum, int width>
struct Exchange {
  struct alignas(sizeof(uint4)) Message {
    Sum sum;
  };

  // Both members are in shared memory.
  Sum (&part_sums)[width];  // sums over this thread block's part
  Mailbox& mailbox;         // counts the sums that the thread block receives
};

// The overloads of add_shared() add to a sum in shared memory atomically.
template <class Source>
__device__ void add_shared(Magnitudes<Source>& target, const Magnitudes<Source>& magnitudes) {
  if constexpr (sizeof(Source) == 4) {
    atomicMax(&target.largest, magnitudes.largest);
    atomicMin(&target.smallest_minus_1, magnitudes.smallest_minus_1);
  } else {
    atomicMax(reinterpret_cast<unsigned long long*>(&target.largest), magnitudes.largest);
    atomicMin(reinterpret_cast<unsigned long long*>(&target.smallest_minus_1), magnitudes.smallest_minus_1);
  }
  if (magnitudes.flags != 0) atomicOr(&target.flags, magnitudes.flags);
}
__device__ inline void add_shared(std::uint64_t& target, std::uint64_t number) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&target), number);
}
__device__ inline void add_shared(std::uint32_t& target, std::uint32_t number) { atomicAdd(&target, number); }
template <class Source>
__device__ void add_shared(MagnitudesAndExponents<Source>& target,
                           const MagnitudesAndExponents<Source>& sum) {
  add_shared(static_cast<Magnitudes<Source>&>(target), static_cast<const Magnitudes<Source>&>(sum));
  add_shared(target.elements, sum.elements);
  add_shared(target.exponents, sum.exponents);
}
__device__ inline void add_shared(NormSums& target, const NormSums& sums) {
  add_shared(target.squares, sums.squares);
  add_shared(target.magnitudes, sums.magnitudes);
  add_shared(target.logarithms, sums.logarithms);
  add_shared(target.elements, sums.elements);
}

// Adds this thread's sums to the sums over the thread block's part. A thread has one sum for each vector
// whose elements it loads.
template <class Shape, class Sum>
__device__ void gather(Sum (&sums)[Shape::chunk], const Exchange<Sum, Shape::width>& exchange) {
#pragma unroll
  for (int i = 0; i < Shape::chunk; ++i) {
    add_over_lanes(sums[i], all_lane_bits & ~(Shape::lanes - 1U));
    if (threadIdx.x % 32 < Shape::lanes) add_shared(exchange.part_sums[loaded_vector<Shape>() + i], sums[i]);
  }
}

// Bytes that a thread block's mailbox receives.
template <class Sum, int width>
__device__ unsigned received_bytes(const Exchange<Sum, width>&) {
  return width * cluster_size() * sizeof(typename Exchange<Sum, width>::Message);
}

// Sends this thread block's sum of every vector to every thread block of the cluster. Neighboring threads
// send the same vector's sum to different thread blocks. `received` is the memory of arriving messages: for
// each vector, one message of every thread block. A cluster of one thread block sends nothing.
template <class Sum, int width>
__device__ void send(const Exchange<Sum, width>& exchange,
                     const typename Exchange<Sum, width>::Message* received) {
  using Message = typename Exchange<Sum, width>::Message;
  const int blocks = cluster_size();
  if (blocks == 1) return;
  const int sender = block_rank_in_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < width * blocks; i += static_cast<int>(blockDim.x)) {
    const int v = i / blocks;
    exchange.mailbox.send(Message{exchange.part_sums[v]}, received[v * blocks + sender], i % blocks);
  }
}

// Calls finish(v, sum) for each vector v of the strip, in one thread. Neighboring threads read the messages
// of different thread blocks about one vector and add them up. Every thread block of the cluster does this
// for all vectors.
template <class Sum, int width, class Finish>
__device__ void finish_sums(const Exchange<Sum, width>& exchange,
                            const typename Exchange<Sum, width>::Message* received, const Finish& finish) {
  const int blocks = cluster_size();
  const int messages = width * blocks;
  if (blocks > 1) exchange.mailbox.wait();
  // Whole warps take part, because sums are added over lanes.
  for (int i = static_cast<int>(threadIdx.x); i < max(messages, 32); i += static_cast<int>(blockDim.x)) {
    Sum sum;
    if (i < messages) sum = blocks > 1 ? received[i].sum : exchange.part_sums[i];
    add_over_lanes(sum, blocks - 1U);
    if (i < messages && i % blocks == 0) finish(i / blocks, sum);
  }
}

// Returns the scaling of a vector, from its known range or else from `range`. The cluster's first thread
// block stores the range with its scale. Other thread blocks may read a known range before or after that:
// they do not use its scale but compute it.
template <ElementKind kind>
__device__ Scaling finish_strip_range(const SplitTask& task, int vector, VectorRange range) {
  VectorRange& known = range_of(task, vector);
  if (task.ranges_known) range = known;
  const SplitRule rule = rule_of(task);
  scale_range(task, rule, vector, range);
  if (block_rank_in_cluster() == 0) {
    if (task.ranges_known) {
      known.scale = range.scale;
    } else {
      known = range;
    }
  }
  return scaling_of(kind, range, rule, task.largest_bound);
}

// Clears the thread block's sums, initializes its mailboxes and sets the number of bytes for which they wait.
// Arrives at the cluster's barrier; before they send, thread blocks wait there.
template <int width, class... Sums>
__device__ void begin(const Exchange<Sums, width>&... exchanges) {
  const auto initialise = [](const auto& exchange) {
    if (threadIdx.x < width) exchange.part_sums[threadIdx.x] = {};
    if (threadIdx.x == 0) exchange.mailbox.initialise();
  };
  (initialise(exchanges), ...);
  __syncthreads();
  cluster_arrive_relaxed();
  if (threadIdx.x == 0) (exchanges.mailbox.expect(received_bytes(exchanges)), ...);
}

// Waits for the thread's copies, sums the elements of the part and sends the sums.
template <class Shape, class Sum, class Source>
__device__ void send_first_sums(const StripPart& part, const Source* shared,
                                const Exchange<Sum, Shape::width>& exchange,
                                const typename Exchange<Sum, Shape::width>::Message* received) {
  await_copies();
  Sum sums[Shape::chunk];
  visit_part<Shape>(part.length, shared, [&](const auto& x) { Sum::add_each(sums, x); });
  gather<Shape>(sums, exchange);
  __syncthreads();
  cluster_wait();  // the other thread blocks' mailboxes are initialized
  send(exchange, received);
}

// Finds the scalings of the strip's vectors from their exponents, or from norms that an earlier step found.
template <class Shape, ElementKind kind, class Source>
__device__ void find_scalings(const SplitTask& task, const StripPart& part, const Source* shared,
                              std::byte* messages, Scaling* scalings) {
  using Sum = RangeSum<kind, Source>;
  using Message = typename Exchange<Sum, Shape::width>::Message;
  static_assert(sizeof(Message) == strip_message_bytes(sizeof(Source), kind));
  __shared__ Sum part_sums[Shape::width];
  __shared__ Mailbox mailbox;
  const Exchange<Sum, Shape::width> exchange{part_sums, mailbox};
  const auto* received = reinterpret_cast<const Message*>(messages);
  begin(exchange);
  send_first_sums<Shape>(part, shared, exchange, received);
  finish_sums(exchange, received, [&](int v, const Sum& sum) {
    const int vector = part.first_vector + v;
    if (vector < task.vectors) scalings[v] = finish_strip_range<kind>(task, vector, sum.range());
  });
}

// Adds what the thread block's part of each vector contributes to the vector's norm to
// norm_exchange.part_sums.
template <class Shape, class Source>
__device__ void gather_norms(const StripPart& part, const Source* shared,
                             const TwoFactors (&norm_scalings)[Shape::width],
                             const Exchange<NormSums, Shape::width>& norm_exchange) {
  NormSums sums[Shape::chunk];
  const TwoFactors* const thread_scalings = norm_scalings + loaded_vector<Shape>();
  visit_part<Shape>(part.length, shared, [&](const auto& x) {
#pragma unroll
    for (int i = 0; i < Shape::chunk; ++i) sums[i].add(x[i], thread_scalings[i]);
  });
  gather<Shape>(sums, norm_exchange);
}

// Finds the scalings of the strip's vectors from their norms, whatever their elements are, in two exchanges
// of messages: ranges first, then norms.
template <class Shape, class Source>
__device__ __noinline__ void find_general_scalings_by_norms(const SplitTask& task, const StripPart& part,
                                                            const Source* shared, std::byte* messages,
                                                            Scaling* scalings) {
  using Sum = MagnitudesAndExponents<Source>;
  using Message = typename Exchange<Sum, Shape::width>::Message;
  using NormMessage = typename Exchange<NormSums, Shape::width>::Message;
  static_assert(std::max(sizeof(Message), sizeof(NormMessage)) ==
                strip_message_bytes(sizeof(Source), ElementKind::residues_by_norms));
  __shared__ Sum part_sums[Shape::width];
  __shared__ NormSums part_norms[Shape::width];
  __shared__ Mailbox mailbox;
  __shared__ Mailbox norm_mailbox;
  __shared__ VectorRange ranges[Shape::width];
  __shared__ TwoFactors norm_scalings[Shape::width];
  const Exchange<Sum, Shape::width> exchange{part_sums, mailbox};
  const Exchange<NormSums, Shape::width> norm_exchange{part_norms, norm_mailbox};
  const auto* received = reinterpret_cast<const Message*>(messages);
  const auto* received_norms = reinterpret_cast<const NormMessage*>(messages);
  begin(exchange, norm_exchange);
  send_first_sums<Shape>(part, shared, exchange, received);
  finish_sums(exchange, received, [&](int v, const Sum& sum) {
    ranges[v] = sum.range();
    norm_scalings[v] = norm_scaling(ranges[v]);
  });
  __syncthreads();
  cluster_arrive();  // the first exchange's messages are read; those of the second may overwrite them
  gather_norms<Shape>(part, shared, norm_scalings, norm_exchange);
  __syncthreads();
  cluster_wait();
  send(norm_exchange, received_norms);
  finish_sums(norm_exchange, received_norms, [&](int v, const NormSums& vector_norms) {
    const int vector = part.first_vector + v;
    if (vector >= task.vectors) return;
    scalings[v] =
        finish_norm(task, vector, ranges[v], vector_norms.norm(task.length), block_rank_in_cluster() == 0);
  });
}

// Finds the scalings of the strip's vectors from their norms, in two exchanges of messages: extremes first,
// then sums.
template <class Shape, class Source>
__device__ void find_scalings_by_norms(const SplitTask& task, const StripPart& part, const Source* shared,
                                       std::byte* messages, Scaling* scalings) {
  constexpr int width = Shape::width;
  using Exchange = NormExchange<width>;
  static_assert(sizeof(typename Exchange::Words) ==
                strip_message_bytes(sizeof(Source), ElementKind::residues_by_norms));
  __shared__ VectorWords part_words[width];
  __shared__ Mailbox extremes_mailbox;
  __shared__ Mailbox words_mailbox;
  __shared__ typename Exchange::Extremes received_extremes[width * largest_cluster];
  const Exchange exchange{part_words, extremes_mailbox, words_mailbox, received_extremes,
                          reinterpret_cast<typename Exchange::Words*>(messages)};
  begin_norms(exchange);
  await_copies();
  const bool is_general = find_part_words<Shape>(part, shared, exchange);
  if (__syncthreads_or(is_general ? 1 : 0) != 0)  // the same in all thread blocks of the cluster
    return find_general_scalings_by_norms<Shape>(task, part, shared, messages, scalings);
  exchange_messages<width>(words_mailbox, exchange.received_words, [&](int v) {
    typename Exchange::Words message;
#pragma unroll
    for (int i = 0; i < vector_words; ++i) message.words[i] = part_words[v].words[i];
    return message;
  });
  const int v = static_cast<int>(threadIdx.x);
  const int vector = part.first_vector + v;
  if (v >= width || vector >= task.vectors) return;
  VectorWords words = extremes_of(exchange, v);
  const int blocks = cluster_size();
  for (int i = 0; i < blocks; ++i) {
#pragma unroll
    for (int j = 0; j < vector_words; ++j) words.words[j] += exchange.received_words[v * blocks + i].words[j];
  }
  const auto numbers = static_cast<std::uint32_t>(task.vector_stride);
  scalings[v] = finish_norm(task, vector, words.magnitudes<double>(numbers).range(),
                            words.norm_sums<double>(numbers).norm(task.length), block_rank_in_cluster() == 0);
}

}  // namespace kintsugi::core::cuda
