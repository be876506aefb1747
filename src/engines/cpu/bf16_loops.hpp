// The loop over pairs of bf16 panels, for a Unit in an unnamed namespace (loops.hpp gives the reason). A unit
// holds the sums of a pair, and has
//   clear(), load(sums), store(sums)
//   step(left, right, between)   adds the products of one step; calls between() once, amid them
#pragma once

#include <immintrin.h>

#include "engines/cpu/bf16_panels.hpp"

namespace kintsugi::core {

// Adds the sums of the pair before to those of earlier runs, a few registers at each step of the next pair.
template <class Unit>
struct Bf16Finish {
  static constexpr int lanes = 16;
  static constexpr int registers = Bf16Panel::sums / lanes;

  const float* source = nullptr;  // nullptr: there is nothing to finish
  float* target = nullptr;
  int done = registers;

  void run(int count) {
    const int end = done + count < registers ? done + count : registers;
    for (; done < end; ++done) {
      float* const sums = target + lanes * done;
      _mm512_store_ps(sums, _mm512_add_ps(_mm512_load_ps(sums), _mm512_load_ps(source + lanes * done)));
    }
  }
};

template <class Unit>
void rescale_sums(Unit& unit, float factor, float* buffer) {
  unit.store(buffer);
  const __m512 factors = _mm512_set1_ps(factor);
  for (std::int64_t e = 0; e < Bf16Panel::sums; e += Bf16Finish<Unit>::lanes)
    _mm512_store_ps(buffer + e, _mm512_mul_ps(_mm512_load_ps(buffer + e), factors));
  unit.load(buffer);
}

template <class Unit>
void multiply_bf16_panels(const Bf16Products& task) {
  Unit unit;
  alignas(64) float buffers[2][Bf16Panel::sums];
  alignas(64) float rescaled[Bf16Panel::sums];
  const int steps = task.term_count * task.steps;
  const int registers_at_step = (Bf16Finish<Unit>::registers + steps - 1) / steps;
  const bool replaces = task.is_first || task.continues;
  Bf16Finish<Unit> previous;
  int current = 0;
  for (std::int64_t j = 0; j < task.right_panels; ++j) {
    const std::byte* const right = task.right + j * task.panel_stride;
    const std::byte* const following =
        j + 1 < task.right_panels ? right + task.panel_stride : task.next_right;
    for (std::int64_t i = 0; i < task.left_panels; ++i) {
      const std::byte* const left = task.left + i * task.panel_stride;
      float* const sums = task.sums + (i * task.right_panels + j) * Bf16Panel::sums;
      // Every pair prefetches its share of the next right panel, and of the left panels that follow: two
      // lines and one line at each step.
      const std::byte* next_right = following + i * task.panel_stride / task.left_panels;
      const std::byte* next_left =
          task.next_left + (j * task.left_panels + i) * task.panel_stride / task.right_panels;
      const auto between = [&] {
        previous.run(registers_at_step);
        _mm_prefetch(next_left, _MM_HINT_T1);
        _mm_prefetch(next_right, _MM_HINT_T1);
        _mm_prefetch(next_right + 64, _MM_HINT_T1);
        next_left += 64;
        next_right += 128;
      };
      if (task.continues) {
        unit.load(sums);
      } else {
        unit.clear();
      }
      for (int t = 0; t < task.term_count; ++t) {
        const Bf16Term& term = task.terms[t];
        if (term.rescales) rescale_sums(unit, task.rescale, rescaled);
        const std::byte* a = left + term.left * task.slice_stride;
        const std::byte* b = right + term.right * task.slice_stride;
        for (int s = 0; s < task.steps; ++s, a += Bf16Panel::step_bytes, b += Bf16Panel::step_bytes)
          unit.step(a, b, between);
      }
      if (replaces) {
        unit.store(sums);
      } else {
        unit.store(buffers[current]);
        previous = {.source = buffers[current], .target = sums, .done = 0};
        current ^= 1;
      }
    }
  }
  previous.run(Bf16Finish<Unit>::registers);
}

}  // namespace kintsugi::core
