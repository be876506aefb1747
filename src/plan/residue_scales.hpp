// Scales of residues that norms or a product decide, of the whole problem and before any block.
#pragma once

#include "plan/steps.hpp"

namespace kintsugi::core {

// Sets the scales of both sides, which hold those of set_program(), as the program's ScaleRule says
// (arith/residue_scale.hpp). The workspace is free again after it. The two vectors of a complex column get one scale.
template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace);

// What a product takes of the workspace beside a block of magnitude_above_program.
std::size_t product_scale_bytes(const Problem& problem);

}  // namespace kintsugi::core
