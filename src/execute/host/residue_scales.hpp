// Scales of residues that norms or a product of magnitudes decide, for the whole problem before any block.
#pragma once

#include "execute/host/steps.hpp"

namespace kintsugi::core {

// Changes the scales of both sides, set by set_program(), as the program's ScaleRule says
// (arith/residue/residue_scale.hpp). The workspace is free again afterwards. The two vectors of a complex
// column get the same scale.
template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace);

}  // namespace kintsugi::core
