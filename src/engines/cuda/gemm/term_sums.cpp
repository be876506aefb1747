#include "engines/cuda/gemm/term_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/memory.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/common/run_time_compiler.hpp"
#include "engines/cuda/gemm/clusters.hpp"

namespace kintsugi::core::cuda {

namespace {

struct FormatOfTerms {
  FormatId id;
  const char* name;
  int bytes;
};
constexpr std::array formats_of_terms{FormatOfTerms{FormatId::fp16, "fp16", 2},
                                      FormatOfTerms{FormatId::bf16, "bf16", 2},
                                      FormatOfTerms{FormatId::tf32, "tf32", 4}};

const FormatOfTerms* find_format_of_terms(FormatId id) {
  const auto* found =
      std::ranges::find_if(formats_of_terms, [&](const FormatOfTerms& format) { return format.id == id; });
  return found == formats_of_terms.end() ? nullptr : found;
}

// Tiles, with the rates of the same tiles of fused kernels.
constexpr std::array sum_tiles{
    MmaTile{.rows = 128, .columns = 128, .warp_rows = 64, .warp_columns = 32, .rate = 1},
    MmaTile{.rows = 128, .columns = 64, .warp_rows = 64, .warp_columns = 32, .rate = 0.92},
    MmaTile{.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32, .rate = 0.8}};

// True if every group has one run of neighboring terms. If groups are joint, their numbers must rise, since
// the order of their additions counts.
bool has_whole_groups(const TermStructure& structure) {
  int ends = 0;
  for (int t = 0; t < structure.count; ++t) {
    if (structure.ends_group(t)) ++ends;
    if (structure.joint && t > 0 && structure.terms[t].group < structure.terms[t - 1].group) return false;
  }
  return ends == structure.groups;
}

// True if the order of the terms is that of the kernels: within a run of instructions, all terms of an
// instruction, or one term after the other.
bool has_order_of_kernels(const Schedule& schedule, const TermStructure& structure, int step) {
  const bool rescales = std::ranges::any_of(schedule.terms, &Term::rescales);
  if (!structure.alternates()) return schedule.k_step == 0 && structure.groups == 1 && !structure.joint;
  if (rescales) return false;
  if (structure.run == 1 || schedule.k_step == step) return true;
  // Over all of k, terms with an accumulator each may be multiplied in any order.
  return schedule.k_step == 0 && structure.groups == structure.count;
}

}  // namespace

std::optional<TermStructure> term_structure(const Schedule& schedule, FormatId id) {
  const FormatOfTerms* format = find_format_of_terms(id);
  if (format == nullptr || schedule.k_segment != 0 || schedule.integer_sums || schedule.tiles.depth > 0 ||
      schedule.is_direct || schedule.terms.size() > TermStructure::max_terms ||
      schedule.groups > TermStructure::max_groups)
    return std::nullopt;
  const int step = term_step_bytes / format->bytes;
  TermStructure structure{.terms = {},
                          .count = static_cast<int>(schedule.terms.size()),
                          .slices_a = schedule.slices_a,
                          .slices_b = schedule.slices_b,
                          .groups = schedule.groups,
                          .run = static_cast<int>(schedule.k_block / step),
                          .joint = schedule.joint};
  for (std::size_t t = 0; t < schedule.terms.size(); ++t) {
    const Term& term = schedule.terms[t];
    structure.terms[t] = {term.a, term.b, term.group, term.rescales};
  }
  const bool has_run = schedule.k_block % step == 0 && term_steps % std::max(structure.run, 1) == 0;
  const bool joins_fp16 = !schedule.joint || (id == FormatId::fp16 && structure.run == 1);
  if (!has_run || !joins_fp16 || !has_whole_groups(structure) ||
      !has_order_of_kernels(schedule, structure, step))
    return std::nullopt;
  return structure;
}

namespace {

// Rate of kernels by wgmma relative to those by mma.sync.
constexpr double wgmma_rate = 1.25;

int most_stages(std::int64_t shared_bytes, int stage_bytes) {
  return static_cast<int>(std::min<std::int64_t>(shared_bytes / stage_bytes, TermSumsTile::max_stages));
}

double expected_time(const MmaTile& tile, std::int64_t count, std::int32_t sm_count, double rate) {
  return static_cast<double>(divide_up(count, std::int64_t{sm_count})) * tile.sums() / rate;
}

}  // namespace

// An SM has two thread blocks of tiles with few threads, if it has the shared memory. One of them alone
// leaves the matrix unit idle for nearly half of the time.
std::vector<TermSumsVariant> term_sums_variants(const TermStructure& structure, std::int64_t rows,
                                                std::int64_t columns, std::int32_t sm_count,
                                                std::int64_t shared_bytes, bool has_wgmma) {
  constexpr double rate_alone = 0.6;
  constexpr int min_stages = 2;
  std::vector<TermSumsVariant> variants;
  for (const MmaTile& tile : sum_tiles) {
    const int stage_bytes = TermSumsTile::stage_bytes(tile, structure);
    const std::int64_t count =
        divide_up(rows, std::int64_t{tile.rows}) * divide_up(columns, std::int64_t{tile.columns});
    const std::int64_t half = (shared_bytes - reserved_bytes_of_block) / 2;
    const bool has_two = tile.blocks_of_sm() == 2 && half / stage_bytes >= min_stages;
    const int stages = most_stages(has_two && count > sm_count ? half : shared_bytes, stage_bytes);
    if (stages < min_stages) continue;
    const double rate = tile.rate * (tile.blocks_of_sm() == 2 && !has_two ? rate_alone : 1);
    variants.push_back({{tile, stages}, expected_time(tile, count, sm_count, rate)});
  }
  const MmaTile& widest = sum_tiles.front();
  const int stages =
      most_stages(shared_bytes - TermSumsTile::wgmma_alignment, TermSumsTile::stage_bytes(widest, structure));
  // The products of one stage are in flight while the next are begun, if sums stay in the unit.
  const bool fits =
      structure.run == 0 ? stages >= min_stages + 1 : structure.run == term_steps && stages >= min_stages;
  if (has_wgmma && fits) {
    const std::int64_t count =
        divide_up(rows, std::int64_t{widest.rows}) * divide_up(columns, std::int64_t{widest.columns});
    variants.push_back(
        {{widest, stages, /*by_wgmma=*/true}, expected_time(widest, count, sm_count, wgmma_rate)});
  }
  return variants;
}

RunTimeSource term_sums_source(const TermStructure& structure, FormatId format, const TermSumsTile& chosen) {
  std::string terms;
  for (int t = 0; t < structure.count; ++t) {
    const TermStructure::Term& term = structure.terms[t];
    terms += fmt::format("{{{}, {}, {}, {}}}, ", term.a, term.b, term.group, term.rescales);
  }
  const MmaTile& tile = chosen.tile;
  const std::string text = fmt::format(
      "#include \"engines/cuda/gemm/{}.cuh\"\n"
      "namespace kintsugi::core::cuda {{\n"
      "constexpr TermStructure structure{{.terms = {{{}}}, .count = {}, .slices_a = {}, .slices_b = {},\n"
      "                                  .groups = {}, .run = {}, .joint = {}}};\n"
      "constexpr TermSumsTile tile{{{{{}, {}, {}, {}, 1}}, {}}};\n"
      "extern \"C\" __global__ void __launch_bounds__({}, 1)\n"
      "    multiply_terms(const __grid_constant__ TermSumsParams params) {{\n"
      "  {}<TermSumsConfig<structure, FormatId::{}, tile>>(params);\n"
      "}}\n"
      "}}\n",
      chosen.by_wgmma ? "term_sums_wgmma" : "term_sums", terms, structure.count, structure.slices_a,
      structure.slices_b, structure.groups, structure.run, structure.joint, tile.rows, tile.columns,
      tile.warp_rows, tile.warp_columns, chosen.stages, tile.threads(),
      chosen.by_wgmma ? "add_up_terms_by_wgmma" : "add_up_terms", find_format_of_terms(format)->name);
  return {text, "multiply_terms", chosen.by_wgmma};
}

bool has_term_sums(const Schedule& schedule, FormatId format) {
  return !current_family().multi_term.empty() && current_family().has_gemm_kernels() &&
         term_structure(schedule, format).has_value() && no_compiler_reason().empty();
}

namespace {

TermSumsTile choose_tile(const TermStructure& structure, std::int64_t rows, std::int64_t columns) {
  const std::vector<TermSumsVariant> variants = term_sums_variants(
      structure, rows, columns, sm_count(), max_shared_bytes_of_block(), current_family().has_wgmma);
  const auto chosen = std::ranges::min_element(variants, {}, &TermSumsVariant::time);
  if (chosen != variants.end()) return chosen->tile;
  fail(Status::not_supported, "a k-block of {} slices does not fit the GPU's shared memory",
       structure.slices());
}

}  // namespace

void prepare_terms(const Schedule& schedule, FormatId format, std::int64_t rows, std::int64_t columns) {
  const TermStructure structure = *term_structure(schedule, format);
  compile_at_once(term_sums_source(structure, format, choose_tile(structure, rows, columns)));
}

void multiply_terms(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums, const DeviceFit* fit) {
  static_assert(std::ranges::all_of(sum_tiles, [](const MmaTile& tile) {
    return Slices::vector_multiple % tile.rows == 0 && Slices::vector_multiple % tile.columns == 0;
  }));
  const FormatId format = a.format->id;
  const TermStructure structure = *term_structure(schedule, format);
  const TermSumsTile chosen = choose_tile(structure, a.vectors, b.vectors);
  const MmaTile& tile = chosen.tile;
  const auto operand = [](const Slices& slices) {
    const auto bytes = static_cast<std::int64_t>(slices.element_bytes());
    return MmaOperand{slices.data, slices.vector_stride() * bytes, slices.slice_stride() * bytes, 0};
  };
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  TermSumsParams params;
  params.a = operand(a);
  params.b = operand(b);
  params.schedule = make_whole_tile_schedule(count(a.vectors, tile.rows), count(b.vectors, tile.columns), 1,
                                             count(params.a.vector_bytes, term_stage_bytes), 1);
  params.sums = sums.group<float>(0);
  params.group_stride = sums.group_stride();
  params.rows = static_cast<std::int32_t>(sums.rows);
  params.columns = static_cast<std::int32_t>(sums.columns);
  params.rescale = std::ldexp(1.0F, schedule.rescale_exponent);
  for (int g = 0; schedule.joint && g < schedule.groups; ++g) {
    if (schedule.group_exponents[g] == fitted_exponent) {
      params.fitted |= 1U << g;
    } else {
      params.weights[g] = std::ldexp(1.0F, schedule.group_exponents[g]);
    }
  }
  if (fit != nullptr) params.fitted_weight = &fit->weight;
  launch(compiled_kernel(term_sums_source(structure, format, chosen), queue), {params.schedule.tiles()},
         tile.threads(), chosen.shared_bytes(structure), queue, params);
}

}  // namespace kintsugi::core::cuda
