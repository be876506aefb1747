// Kernels for residues of FP64 matrices, by sums of digits on the matrix unit.
#include "engines/cuda/recombine/digit_residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_DIGIT_RESIDUES(digit_residues_f64, double, ResiduesOfParts<digit_limbs>,
                        padded_digit_residues(max_real_digit_residues))
KINTSUGI_DIGIT_RESIDUES(digit_residues_c64, Complex<double>, ResiduesOfElements<digit_limbs>,
                        padded_digit_residues(max_complex_digit_residues))

}  // namespace kintsugi::core::cuda
