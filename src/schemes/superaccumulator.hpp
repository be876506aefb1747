// superaccumulator: sums every element exactly, one element after the other, and rounds it once. It needs no
// engine and accepts all operands. It is the last candidate of the contract `exact`.
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

// The splits have no slices, since the superaccumulator reads the operands themselves. Their format fp64 has
// no meaning.
inline constexpr Scheme superaccumulator{
    .name = "superaccumulator",
    .summary = "every element summed exactly and rounded once, for any range",
    .operands = {OperandType::f32, OperandType::f64, OperandType::dd},
    .program = {nearest_split(core::fp64, 0), nearest_split(core::fp64, 0), Schedule{},
                Recombination::exact_sums},
    .bound = "half a unit in the last place of alpha AB + beta C",
    .window = "all finite operands",
    .source = "Kulisch and Miranker (1981)",
};

}  // namespace kintsugi::core::schemes
