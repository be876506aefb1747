// Splits of operands whose vectors are adjacent in memory. A cluster of 1, 2, 4 or 8 thread blocks holds a
// strip of vectors; each of its thread blocks holds a part of k and exchanges what it finds there with the
// others. The cluster reads the strip once and writes its slices transposed. If the other operand's vectors
// are contiguous along k, the same launch has thread blocks for it, which work as in rows.cuh.
#include <cstdint>

#include "engines/cuda/ptx/barriers.cuh"
#include "engines/cuda/select/sums.cuh"
#include "engines/cuda/split/rows.cuh"
#include "engines/cuda/split/strips.cuh"

namespace kintsugi::core::cuda {

// Messages between the thread blocks of a cluster (PTX ISA: st.async).

// Barrier in shared memory for one exchange of messages. It counts the bytes of the messages that the thread
// blocks of the cluster send to this one.
class Mailbox {
 public:
  // Initializes the barrier. One thread must call it, before that thread arrives at the cluster's barrier.
  __device__ void initialise() {
    barrier_.initialise(1);
    Mbarrier::fence_initialisation();
  }
  // Sets the number of bytes for which wait() waits. One thread must call it, after a barrier of the thread
  // block that follows initialise(). Messages may have arrived before.
  __device__ void expect(unsigned bytes) { barrier_.arrive_expect_tx(bytes); }
  // Returns when all bytes have arrived and are visible to this thread.
  __device__ void wait() const { barrier_.wait_cluster(0); }
  // Stores `message` to the shared variable `target` of thread block `block` of the cluster. The mailbox of
  // that thread block counts the bytes.
  template <class T>
  __device__ void send(const T& message, const T& target, unsigned block) const {
    static_assert(sizeof(T) % sizeof(uint4) == 0);
    uint4 words[sizeof(T) / sizeof(uint4)];
    memcpy(words, &message, sizeof(T));
    const std::uint32_t address = map_to_block(shared_address(&target), block);
    const std::uint32_t barrier = map_to_block(barrier_.address(), block);
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / sizeof(uint4); ++i) {
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
              "r"(address + i * static_cast<unsigned>(sizeof(uint4))),
          "r"(words[i].x), "r"(words[i].y), "r"(words[i].z), "r"(words[i].w), "r"(barrier)
          : "memory");
    }
  }

 private:
  Mbarrier barrier_;
};

// Norms of the FP64 vectors of a strip that a cluster holds, from the sums of sums.cuh. The thread
// blocks of the cluster exchange them in two messages for each vector: extremes first, then sums.

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
  return scaling_of(kind_of<kind>(task), range, rule, task.largest_bound);
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
__device__ __noinline__ void find_general_scalings_by_norms(const SplitTask& task, StripPart part,
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
#pragma unroll 2
  for (int i = 0; i < blocks; ++i) {
#pragma unroll
    for (int j = 0; j < vector_words; ++j) words.words[j] += exchange.received_words[v * blocks + i].words[j];
  }
  const auto numbers = static_cast<std::uint32_t>(task.vector_stride);
  scalings[v] = finish_norm(task, vector, words.magnitudes<double>(numbers).range(),
                            words.norm_sums<double>(numbers).norm(task.length), block_rank_in_cluster() == 0);
}

namespace {

// Splits the thread block's part of a strip. `block` is its index among the task's thread blocks.
template <class Source, ElementKind kind>
__device__ void split_columns(const SplitTask& task, std::int64_t block) {
  using Shape = Strip<Source>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[Shape::width];
  const int blocks = cluster_size();
  const int length = static_cast<int>(task.vector_stride) / blocks;
  const StripPart part{.first_vector = static_cast<int>(block) / blocks * Shape::width,
                       .first_element = block_rank_in_cluster() * length,
                       .length = length};
  auto* shared = reinterpret_cast<Source*>(memory);
  auto* messages = reinterpret_cast<std::byte*>(shared + Shape::shared_offset(0, length));  // after the part
  start_loading<Shape>(task, part, shared);
  if constexpr (kind == ElementKind::residues_by_norms) {
    find_scalings_by_norms<Shape>(task, part, shared, messages, scalings);
  } else {
    find_scalings<Shape, kind>(task, part, shared, messages, scalings);
  }
  __syncthreads();
  with_kind_of<kind>(task, [&](auto known) { write_part<Shape, known>(task, part, shared, scalings); });
}

// Splits the thread block's share of an operand. All thread blocks of a cluster work on the same task,
// because the number of thread blocks of the first task is a multiple of the cluster's size.
template <class Source, ElementKind kind>
__device__ void split_rows_or_columns(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  std::int64_t block = blockIdx.x;
  const SplitTask& task = enter_task(tasks, block);
  if (task.vector_threads != 0) {
    split_rows<Source, kind>(task, block);
  } else {
    split_columns<Source, kind>(task, block);
  }
}

}  // namespace

// An SM holds three thread blocks of cluster_threads threads, or six of half as many. So some can write while
// others wait for elements or messages.
#define KINTSUGI_SPLIT_COLUMNS(name, Source, kind)                                \
  extern "C" __global__ void __launch_bounds__(cluster_threads, 3)                \
      split_##name##_##kind##_columns(const __grid_constant__ SplitTasks tasks) { \
    split_rows_or_columns<Source, ElementKind::kind>(tasks);                      \
  }

KINTSUGI_SPLIT_COLUMNS(f32, float, fp16)
KINTSUGI_SPLIT_COLUMNS(f32, float, fp16_with_depth)
KINTSUGI_SPLIT_COLUMNS(f32, float, bf16)
KINTSUGI_SPLIT_COLUMNS(f32, float, residues)
KINTSUGI_SPLIT_COLUMNS(f32, float, other)
KINTSUGI_SPLIT_COLUMNS(f64, double, digits)
KINTSUGI_SPLIT_COLUMNS(f64, double, residues)
KINTSUGI_SPLIT_COLUMNS(f64, double, residues_by_norms)

}  // namespace kintsugi::core::cuda
