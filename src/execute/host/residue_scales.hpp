// Scales of residues that norms or a product decide, of the whole problem and before any block.
#pragma once

#include "execute/host/steps.hpp"

namespace kintsugi::core {

// Sets the scales of both sides, which hold those of set_program(), as the program's ScaleRule says
// (arith/residue/residue_scale.hpp). The workspace is free again after it. The two vectors of a complex
// column get one scale.
template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace);

}  // namespace kintsugi::core
