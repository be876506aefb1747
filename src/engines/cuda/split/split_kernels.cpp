#include "engines/cuda/split/split_kernels.hpp"

#include <array>

#include "arith/residue/strassen.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core::cuda {

namespace {

// Kernels of a kind of element. `written` names the split_parts_* kernel of this kind. It is another kind for
// fp16_with_depth: that kind differs from fp16 only in how ranges are found, and split_parts_* gets known
// ranges. A kernel of Traversal::streaming may follow.
#define KINTSUGI_KERNELS_LIKE(type, Source, kind, written, ...)                                   \
  {                                                                                               \
    ElementType::type, ElementKind::kind,                                                         \
        {"split_rows", "split_rows_" #Source "_" #kind, waits_for_grid_dependency},               \
        {"split_columns_sm90", "split_columns_" #Source "_" #kind, waits_for_grid_dependency},    \
        {"split_parts", "split_parts_" #Source "_" #written, waits_for_grid_dependency},          \
        {"split_short", "split_short_" #Source "_" #kind, waits_for_grid_dependency},             \
        {"split_tiles", "split_tiles_" #Source "_" #kind, waits_for_grid_dependency}, __VA_ARGS__ \
  }
#define KINTSUGI_KERNELS_OF_KIND(type, Source, kind) KINTSUGI_KERNELS_LIKE(type, Source, kind, kind)

const std::array<KernelOfKind, 10> kernels{{
    KINTSUGI_KERNELS_OF_KIND(f32, float, fp16),
    KINTSUGI_KERNELS_LIKE(f32, float, fp16_with_depth, fp16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, bf16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, tf32),
    KINTSUGI_KERNELS_OF_KIND(f32, float, quantised),
    KINTSUGI_KERNELS_OF_KIND(f32, float, digits),
    KINTSUGI_KERNELS_OF_KIND(f32, float, residues),
    KINTSUGI_KERNELS_OF_KIND(f64, double, digits),
    KINTSUGI_KERNELS_OF_KIND(f64, double, residues),
    KINTSUGI_KERNELS_LIKE(
        f64, double, wide_residues, wide_residues,
        {"split_streaming_sm90", "split_streaming_double_wide_residues", waits_for_grid_dependency}),
}};

// Kernels that find norms. They hold whole vectors, since an element can be scaled only when its vector's
// norm is known. So there are none for tiles and short vectors.
const KernelOfKind norms_and_residues{
    ElementType::f64,
    ElementKind::residues_by_norms,
    {"split_rows", "split_rows_double_residues_by_norms", waits_for_grid_dependency},
    {"split_columns_sm90", "split_columns_double_residues_by_norms", waits_for_grid_dependency},
    {"split_parts", "split_parts_double_residues", waits_for_grid_dependency},
    {"", ""},
    {"", ""}};

// Kernel for one step of Strassen's algorithm. It splits rows and columns, with norms that it finds or with
// known ranges. One KernelName has to stand for both, because it remembers how much shared memory the kernel
// was allowed.
const KernelOfKind strassen_kernel{
    ElementType::f64,
    ElementKind::residues_by_norms,
    {"split_strassen_sm90", "split_strassen", waits_for_grid_dependency},
    {"", ""},
    {"split_strassen_parts_sm90", "split_strassen_parts", waits_for_grid_dependency},
    {"", ""},
    {"", ""}};

// Kernel of fitted splits. They take little time compared with their products; so there is only a kernel for
// tiles.
const KernelOfKind fitted_kernel{ElementType::f32,
                                 ElementKind::fitted,
                                 {"", ""},
                                 {"", ""},
                                 {"", ""},
                                 {"", ""},
                                 {"split_tiles", "split_tiles_float_fitted", waits_for_grid_dependency}};

// Kernel that splits elements of any type by any rule.
const KernelName any_kernel{"split_tiles", "split_tiles_double_any", waits_for_grid_dependency};

// Kind of a split into int8 whose kernel cannot overflow under the rule; `any` if there is no such kind.
ElementKind integer_kind(const SplitRule& rule) {
  if (!rule.scale_vectors) return ElementKind::any;
  switch (rule.kind) {
    case SplitKind::rounded_residuals: {
      const bool nearest =
          rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even;
      const bool fits = rule.top_exponent <= int8.max_exponent && rule.residual_exponent >= 0 &&
                        rule.residual_exponent <= int8.significand_bits && rule.slices <= 8;
      return nearest && fits ? ElementKind::quantised : ElementKind::any;
    }
    case SplitKind::grid_digits:
      return rule.top_exponent == int8.max_exponent && rule.residual_exponent == 8 && rule.slices <= 8
                 ? ElementKind::digits
                 : ElementKind::any;
    case SplitKind::residues:
      // Eight digits of a byte hold integers of 62 bits, twelve digits hold integers of 93 bits.
      return rule.integer_bits() <= 62   ? ElementKind::residues
             : rule.integer_bits() <= 93 ? ElementKind::wide_residues
                                         : ElementKind::any;
    default: return ElementKind::any;
  }
}

}  // namespace

ElementKind kind_of(const SplitRule& rule) {
  const bool fp32_scales_residuals = rule.residual_exponent >= 0 && rule.residual_exponent <= 100;
  const bool splits_in_fp32 = rule.kind == SplitKind::rounded_residuals && fp32_scales_residuals;
  if (rule.format->floating && !splits_in_fp32) return ElementKind::any;
  switch (rule.format->id) {
    case FormatId::fp16: return ElementKind::fp16;
    case FormatId::bf16: return ElementKind::bf16;
    case FormatId::tf32: return ElementKind::tf32;
    case FormatId::int8: return integer_kind(rule);
    default: return ElementKind::any;
  }
}

const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(split.slices.data) % 16 == 0;
  ElementKind kind = kind_of(*split.rule);
  if (split.finds_depth && kind == ElementKind::fp16) kind = ElementKind::fp16_with_depth;
  if (split.rule->strassen) {
    const bool fits = aligned && splits_for_strassen(split.side.matrix.type, *split.rule);
    return fits ? &strassen_kernel : nullptr;
  }
  if (by_norms) {
    const bool fits = aligned && kind == ElementKind::residues && split.side.matrix.type == ElementType::f64;
    return fits ? &norms_and_residues : nullptr;
  }
  if (split.fit != nullptr) {
    const bool fits = aligned && kind == ElementKind::fp16 && split.side.matrix.type == ElementType::f32;
    return fits ? &fitted_kernel : nullptr;
  }
  for (const KernelOfKind& kernel : kernels) {
    if (aligned && kernel.kind == kind && kernel.type == split.side.matrix.type) return &kernel;
  }
  return nullptr;
}

bool splits_for_strassen(ElementType type, const SplitRule& rule) {
  const int slices = rule.strassen ? rule.slices / strassen_products : rule.slices;
  return type == ElementType::f64 && kind_of(rule) == ElementKind::residues && rule.complex_basis.empty() &&
         slices <= strassen_moduli && current_architecture().has_clusters;
}

const KernelName& kernel_name(const KernelOfKind* kernel, Traversal traversal) {
  if (kernel == nullptr) return any_kernel;
  if (kernel == &strassen_kernel && traversal == Traversal::columns) return kernel->rows;
  switch (traversal) {
    case Traversal::tiles: return kernel->tiles;
    case Traversal::rows: return kernel->rows;
    case Traversal::columns: return kernel->columns;
    case Traversal::parts: return kernel->parts;
    case Traversal::short_vectors: return kernel->short_vectors;
    case Traversal::streaming: break;
  }
  return kernel->streaming;
}

}  // namespace kintsugi::core::cuda
