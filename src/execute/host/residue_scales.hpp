// Scales of residues that norms or a product of magnitudes decide, for the whole problem before any block.
#pragma once

#include "execute/host/steps.hpp"

namespace kintsugi::core {

// Replaces the scales that set_program() has set for both sides by those of the program's ScaleRule
// (arith/residue/residue_scale.hpp). The two vectors of a complex column get the same scale. The workspace is
// free again afterwards.
template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace);

}  // namespace kintsugi::core
