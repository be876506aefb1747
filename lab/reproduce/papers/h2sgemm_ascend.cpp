// h2sgemm Figs. 5, 10 and 11 on a simulated Ascend 910A, and models of its cube for Figs. 8 and 9.
#include <algorithm>
#include <cmath>
#include <map>

#include "lab/accuracy/case.hpp"
#include "lab/numerics/ascend.hpp"
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

namespace ascend = lab::ascend;
using ascend::Blocks;
using ascend::Buffering;

constexpr double tera = 1e12;
constexpr Blocks best_blocks{176, 64, 176};  // the paper's
constexpr std::int64_t edge = 11264;         // of Fig. 10; four groups of 44 blocks, two block rows a core

double rate(std::int64_t m, std::int64_t n, std::int64_t k, const Blocks& blocks, Buffering buffering) {
  const ascend::Problem problem{.m = m, .n = n, .k = k, .blocks = blocks, .buffering = buffering};
  return ascend::simulate(problem).rate(problem) / tera;
}

Json rates(std::int64_t m, std::int64_t n, std::int64_t k, const Blocks& blocks) {
  return {{"single", rate(m, n, k, blocks, Buffering::single)},
          {"overlapped", rate(m, n, k, blocks, Buffering::overlapped)},
          {"in_order", rate(m, n, k, blocks, Buffering::in_order)}};
}

std::int64_t nearest_multiple(std::int64_t size, std::int64_t of) {
  return std::max<std::int64_t>((size + of / 2) / of, 1) * of;
}

// ------------------------------------------------------------------- Fig. 5

// Calls use(blocks) for the blocks that Eq. 10 allows with Fig. 5's ratios b_n / b_m, 0.5 to 2; edges are
// multiples of the step.
template <class Use>
void for_each_feasible(std::int64_t step, const Use& use) {
  constexpr std::int64_t largest = 1024;
  for (std::int64_t k = 16; k <= largest; k += 16)
    for (std::int64_t m = step; m <= largest; m += step)
      for (std::int64_t n = step; n <= largest; n += step)
        if (ascend::feasible({m, k, n}) && 2 * n >= m && n <= 2 * m) use(Blocks{m, k, n});
}

void add_blocks(Json& rows, bool quick) {
  for_each_feasible(quick ? 80 : 16, [&](const Blocks& blocks) {
    const auto& [m, k, n] = blocks;
    if (quick ? k != 64 : k < 32 || (k & (k - 1)) != 0) return;  // powers of two
    const std::int64_t fused = ascend::fused_blocks(blocks);
    rows.push_back({{"part", "blocks"},
                    {"block", {m, k, n}},
                    {"fused", fused},
                    {"share", ascend::fused_share(blocks)},
                    {"tflops", rates(nearest_multiple(edge, m * ascend::ascend_910a.cores),
                                     nearest_multiple(edge, n), nearest_multiple(edge, k * fused), blocks)}});
  });
}

// ------------------------------------------------------------ Figs. 10 and 11

void add_sizes(Json& rows, bool quick) {
  const std::vector<std::int64_t> sizes =
      quick ? std::vector<std::int64_t>{1408, 5632}
            : std::vector<std::int64_t>{704, 1408, 2816, 5632, 8448, 11264, 16896, 22528};
  for (const std::int64_t size : sizes) {
    const auto add = [&](const char* axis, std::int64_t m, std::int64_t n, std::int64_t k) {
      rows.push_back(
          {{"part", "sizes"}, {"axis", axis}, {"size", size}, {"tflops", rates(m, n, k, best_blocks)}});
    };
    add("m = n", size, size, edge);
    add("k", edge, edge, size);
    add("m = n = k", size, size, size);
  }
}

// ------------------------------------------------------------- Figs. 8 and 9

const std::map<std::string, ascend::Sum> models{{"once", ascend::Sum::once}, {"tree", ascend::Sum::tree}};
const std::vector<std::string> orders{"term-wise", "element-wise every 16", "element-wise every 64"};
const std::vector<std::string> sgemms{"sequential", "OpenBLAS"};
constexpr std::int64_t compared_edge = 32;  // m and n
constexpr std::int64_t fig8_k = 64 * 44;

struct Halves {
  std::vector<float> high;
  std::vector<float> low;
};

// Splits a matrix. `transposed`: the slices are those of its transpose.
Halves split(const core::MatrixView<const float>& matrix, int sb, bool transposed) {
  Halves halves;
  for (std::int64_t i = 0; i < (transposed ? matrix.columns : matrix.rows); ++i) {
    for (std::int64_t j = 0; j < (transposed ? matrix.rows : matrix.columns); ++j) {
      const float x = transposed ? matrix(j, i) : matrix(i, j);
      halves.high.push_back(ascend::to_half(x));
      halves.low.push_back(ascend::to_half(std::ldexp(x - halves.high.back(), sb)));
    }
  }
  return halves;
}

// Returns C = sum over k of ((C + 2^-sb [a1 b0]) + 2^-sb [a0 b1]) + [a0 b0]; the cube adds `every` products.
std::vector<float> element_wise(const core::MatrixView<const float>& a,
                                const core::MatrixView<const float>& b, int sb, std::int64_t every,
                                ascend::Sum model) {
  const Halves of_a = split(a, sb, false), of_b = split(b, sb, true);
  const float weight = std::ldexp(1.0F, -sb);
  std::vector<float> c;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.columns; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < a.columns; p += every) {
        const auto inner = [&](const std::vector<float>& x, const std::vector<float>& y) {
          float products = 0;
          for (std::int64_t q = p; q < std::min(p + every, a.columns); q += 16)
            products = add_products(model, products, &x[static_cast<std::size_t>(i * a.columns + q)],
                                    &y[static_cast<std::size_t>(j * a.columns + q)]);
          return products;
        };
        sum = ((sum + weight * inner(of_a.low, of_b.high)) + weight * inner(of_a.high, of_b.low)) +
              inner(of_a.high, of_b.high);
      }
      c.push_back(sum);
    }
  }
  return c;
}

std::vector<float> term_wise(const ComparedCase<float>& compared, const Shape& shape, int sb,
                             ascend::Sum model) {
  const auto values = [](const core::MatrixView<const float>& view) {
    return std::vector<float>(view.data, view.data + view.rows * view.columns);
  };
  ascend::Components components;
  simulate({.m = shape.m, .n = shape.n, .k = shape.k, .blocks = {compared_edge, 64, compared_edge}},
           values(compared.view_a()), values(compared.view_b()), sb, model, components);
  return ascend::combine(components, sb, true);
}

void add_errors(Json& rows, const std::string& distribution, std::int64_t k,
                const std::vector<int>& exponents) {
  const Shape shape{compared_edge, compared_edge, k};
  const auto operand = [&](measure::Side side, std::int64_t rows_of, std::int64_t columns) {
    return random_elements<float>(distribution, side, 1, rows_of, columns);
  };
  ComparedCase<float> compared(shape, operand(measure::Side::a, shape.m, k),
                               operand(measure::Side::b, k, shape.n), compared_edge * compared_edge);
  const auto add = [&](const std::string& method, const std::string& model, int sb,
                       TimedProduct<float> product) {
    compared.compare(product, nullptr);
    rows.push_back({{"part", "errors"},
                    {"distribution", distribution},
                    {"k", k},
                    {"method", method},
                    {"model", model},
                    {"sb", sb},
                    {"frobenius", product.errors.at("frobenius_relative")}});
  };
  add("SGEMM", "sequential", 0, compared.multiply({Type::float32, "native", "reference", ""}));
  add("SGEMM", "OpenBLAS", 0, compared.multiply({Type::float32, "native", "cpu", ""}));
  for (const auto& [name, model] : models) {
    for (const int sb : exponents) {
      const auto of = [](std::vector<float> c) {
        TimedProduct<float> product;
        product.c = std::move(c);
        return product;
      };
      add(orders[0], name, sb, of(term_wise(compared, shape, sb, model)));
      add(orders[1], name, sb, of(element_wise(compared.view_a(), compared.view_b(), sb, 16, model)));
      add(orders[2], name, sb, of(element_wise(compared.view_a(), compared.view_b(), sb, 64, model)));
    }
  }
}

std::string distribution_of(const std::string& inputs, int offset) {
  return fmt::format("{}:{}", inputs == "symmetric" ? "offset" : "offset-nonnegative", offset);
}
const std::vector<std::string> inputs{"symmetric", "non-negative"};
const std::vector<int> offsets{-20, -16, -12, -10, -8, -4, -2, 0};
const std::vector<std::int64_t> lengths{64, 704, fig8_k, 11264};

void add_all_errors(Json& rows, bool quick) {
  for (const std::string& kind : inputs) {
    for (const int offset : offsets) {
      if (!quick || offset == 0)
        add_errors(rows, distribution_of(kind, offset), quick ? 256 : fig8_k, {0, 6, 12});
    }
    for (const std::int64_t k : lengths) {
      if (k != fig8_k && !quick) add_errors(rows, distribution_of(kind, 0), k, {12});
    }
  }
}

// ---------------------------------------------------------------- criteria

// Criteria of claims on accuracy (claims.json) beside what the models of the cube give.
class Criteria {
 public:
  explicit Criteria(Json& rows) : rows_(rows), made_(rows.begin(), rows.end()) {}

  void judge_all() {
    for (const auto& [name, model] : models) accuracy(name);
  }

 private:
  void add_registered(const std::string& claim, const std::string& quantity,
                      const std::vector<double>& values) {
    const Json& criterion = registered_claim(claim).at("criterion");
    rows_.push_back({{"part", "criteria"},
                     {"claim", claim},
                     {"quantity", quantity},
                     {"values", values},
                     {"criterion", criterion},
                     {"holds", meets(criterion, values)}});
  }
  double error(const std::string& method, const std::string& model, int sb, const std::string& distribution,
               std::int64_t k) const {
    for (const Json& row : made_)
      if (row.at("part") == "errors" && row.at("method") == method && row.at("model") == model &&
          row.at("sb") == sb && row.at("distribution") == distribution && row.at("k") == k)
        return row.at("frobenius").get<double>();
    throw NoSuchRow("no error of " + method);
  }

  // Ratios of errors over offset exponents (Fig. 8), both kinds of inputs together.
  template <class Ratio>
  std::vector<double> over_offsets(int least, const Ratio& ratio) const {
    std::vector<double> values;
    for (const std::string& kind : inputs)
      for (const int offset : offsets)
        if (offset >= least) values.push_back(ratio(distribution_of(kind, offset)));
    return values;
  }

  void accuracy(const std::string& model) {
    const auto term = [&](int sb, const std::string& distribution, std::int64_t k = fig8_k) {
      return error(orders[0], model, sb, distribution, k);
    };
    for (std::size_t way = 1; way < orders.size(); ++way) {
      const auto element = [&, way](int sb, const std::string& distribution, std::int64_t k = fig8_k) {
        return error(orders[way], model, sb, distribution, k);
      };
      const std::string reading = model + ", " + orders[way];
      const auto over_element = [&](int sb) {
        return [&, sb](const std::string& at) { return term(sb, at) / element(sb, at); };
      };
      add_registered("h2sgemm-fig8-alike", reading, over_offsets(-20, over_element(0)));
      add_registered("h2sgemm-fig8-near-0", reading, over_offsets(-2, over_element(0)));
      add_registered("h2sgemm-fig8-order", reading, over_offsets(-12, over_element(12)));
      std::vector<double> growths;
      for (const std::string& kind : inputs) {
        const std::string at = distribution_of(kind, 0);
        growths.push_back(term(12, at, lengths.back()) / term(12, at, lengths.front()) /
                          (element(12, at, lengths.back()) / element(12, at, lengths.front())));
      }
      add_registered("h2sgemm-fig9-growth-element", reading, growths);
    }
    for (const std::string& sgemm : sgemms) {
      const auto native = [&](const std::string& at, std::int64_t k = fig8_k) {
        return error("SGEMM", sgemm, 0, at, k);
      };
      const std::string reading = model + " over " + sgemm + " SGEMM";
      for (std::size_t way = 1; way < orders.size(); ++way) {
        add_registered("h2sgemm-fig8-element", reading + ", " + orders[way],
                       over_offsets(-12, [&](const std::string& at) {
                         return error(orders[way], model, 12, at, fig8_k) / native(at);
                       }));
      }
      add_registered("h2sgemm-fig8-unscaled", reading,
                     over_offsets(-20, [&](const std::string& at) { return term(0, at) / native(at); }));
      for (const int offset : {-12, -10, -8}) {
        std::vector<double> values;
        for (const std::string& kind : inputs)
          values.push_back(term(12, distribution_of(kind, offset)) / native(distribution_of(kind, offset)));
        add_registered("h2sgemm-fig8-term", fmt::format("{}, offset {}", reading, offset), values);
      }
      std::vector<double> growths, last;
      for (const std::string& kind : inputs) {
        const std::string at = distribution_of(kind, 0);
        last.push_back(term(12, at, lengths.back()) / native(at, lengths.back()));
        growths.push_back(last.back() / (term(12, at, lengths.front()) / native(at, lengths.front())));
      }
      add_registered("h2sgemm-fig9-growth-sgemm", reading, growths);
      add_registered("h2sgemm-fig9-lower", reading, last);
    }
  }

  Json& rows_;
  std::vector<Json> made_;
};

// ---------------------------------------------------------------- claims on speed

constexpr double paper_single = 41.7;  // TFLOP/s, section 4.2
constexpr double paper_double = 65.3;

// Returns the rates along an axis of Fig. 11, of sizes that are multiples of `whole`.
std::vector<double> rates_along(const Evidence& evidence, const char* axis, std::int64_t whole,
                                const char* buffering = "overlapped") {
  std::vector<double> values;
  for (const Json& row : evidence.rows_where(where("part", "sizes")))
    if (row.at("axis") == axis && row.at("size").get<std::int64_t>() % whole == 0)
      values.push_back(row.at("tflops").at(buffering).get<double>());
  if (values.empty()) throw NoSuchRow(fmt::format("no size along {} is a multiple of {}", axis, whole));
  return values;
}

double rate_of_fig10(const Evidence& evidence, const char* buffering) {
  return rates_along(evidence, "m = n = k", edge, buffering).front();
}

// Returns the simulation's errors on the rates that the paper prints.
SeriesValues simulation_errors(const Evidence& evidence) {
  return {"errors on 41.7 and 65.3 TFLOP/s",
          {std::fabs(rate_of_fig10(evidence, "single") / paper_single - 1),
           std::fabs(rate_of_fig10(evidence, "overlapped") / paper_double - 1)}};
}

std::function<Measured(const Evidence&)> rate_claim(const char* series, const char* buffering) {
  return [=](const Evidence& evidence) {
    return Measured{simulation_errors(evidence), {series, {rate_of_fig10(evidence, buffering)}}};
  };
}

double overlapped(const Json& row) { return row.at("tflops").at("overlapped").get<double>(); }

// Returns the blocks, the slowest first.
std::vector<Json> blocks_by_rate(const Evidence& evidence) {
  std::vector<Json> rows = evidence.rows_where(where("part", "blocks"));
  if (rows.empty()) throw NoSuchRow("no row has a block");
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Json& x, const Json& y) { return overlapped(x) < overlapped(y); });
  return rows;
}

Measured best_block(const Evidence& evidence) {
  const std::vector<Json> rows = blocks_by_rate(evidence);
  for (const Json& row : rows)
    if (row.at("block") == Json{best_blocks.m, best_blocks.k, best_blocks.n})
      return {simulation_errors(evidence),
              {"(176, 64, 176) over the best block", {overlapped(row) / overlapped(rows.back())}}};
  throw NoSuchRow("no row has the paper's block");
}

Measured sensitivity(const Evidence& evidence) {
  const std::vector<Json> rows = blocks_by_rate(evidence);
  // The share of L0A and L0B that the first blocks fill.
  const auto mean_share = [&](std::size_t count) {
    std::vector<double> shares;
    for (std::size_t i = 0; i < count; ++i) {
      const Json& block = rows[i].at("block");
      constexpr double both_l0 = 2 * 64 * 256;
      shares.push_back(block.at(1).get<double>() * (block.at(0).get<double>() + block.at(2).get<double>()) /
                       both_l0);
    }
    return mean(shares);
  };
  return {simulation_errors(evidence),
          {"best over worst block", {overlapped(rows.back()) / overlapped(rows.front())}},
          {"share of L0 that the slowest tenth fills, over all blocks'",
           {mean_share(std::max<std::size_t>(1, rows.size() / 10)) / mean_share(rows.size())}}};
}

// Returns a claim's function on Fig. 11: all sizes, and those that are multiples of `whole`, which leave no
// core idle and no group short.
std::function<Measured(const Evidence&)> along(const char* axis, std::int64_t whole, bool largest = false) {
  return [=](const Evidence& evidence) {
    Measured measured{{"all sizes", rates_along(evidence, axis, 1)},
                      {fmt::format("multiples of {}", whole), rates_along(evidence, axis, whole)}};
    if (largest) measured.push_back({"the largest", {measured.front().values.back()}});
    return measured;
  };
}

std::vector<Claim> speed_claims() {
  constexpr std::int64_t rows_of_cores = 32 * best_blocks.m;
  return {{"h2sgemm-single-rate", rate_claim("single buffer, TFLOP/s", "single")},
          {"h2sgemm-double-rate", rate_claim("double buffer, TFLOP/s", "overlapped")},
          {"h2sgemm-blocks", best_block},
          {"h2sgemm-sensitive", sensitivity},
          {"h2sgemm-fig11a", along("m = n", rows_of_cores, true)},
          {"h2sgemm-fig11b", along("k", fig8_k)},
          {"h2sgemm-fig11c", along("m = n = k", rows_of_cores)}};
}

// ---------------------------------------------------------------- pictures

Series rates_by(const Json& document, const std::string& axis, const char* buffering, int colour) {
  return line_of({buffering == std::string("in_order") ? "double, in order" : buffering, colour, 0, {}},
                 document, "size", [&](const Json& row) -> Json {
                   return row.at("part") == "sizes" && row.at("axis") == axis ? row.at("tflops").at(buffering)
                                                                              : Json();
                 });
}

std::vector<Figure> draw_ascend(const Json& document) {
  std::vector<Figure> figures;
  Figure by_size{"Fig. 11: rates by size, blocks (176, 64, 176)", {}};
  for (const std::string axis : {"m = n", "k", "m = n = k"}) {
    Chart chart{.title = "Rate by " + axis, .x_label = axis, .y_label = "TFLOP/s", .log_y = false};
    int colour = 0;
    for (const char* buffering : {"single", "overlapped", "in_order"})
      chart.series.push_back(rates_by(document, axis, buffering, colour++));
    by_size.pictures.push_back({.chart = chart, .name = "by-" + std::to_string(by_size.pictures.size())});
  }
  figures.push_back(by_size);
  Figure by_block{"Fig. 10: rates by the height of blocks, with the best width", {}};
  for (const char* buffering : {"single", "overlapped"}) {
    Chart chart{.title = std::string("Best rate, ") + buffering,
                .x_label = "b_m",
                .y_label = "TFLOP/s",
                .log_x = false,
                .log_y = false,
                .ticks_at_points = false};
    std::map<std::int64_t, std::map<double, double>> lines;  // by b_k
    for (const Json& row : document.at("rows")) {
      if (row.at("part") != "blocks") continue;
      const Json& block = row.at("block");
      double& best = lines[block.at(1).get<std::int64_t>()][block.at(0).get<double>()];
      best = std::max(best, row.at("tflops").at(buffering).get<double>());
    }
    int colour = 0;
    for (const auto& [k, points] : lines) {
      if (k > 256) continue;  // few heights are feasible
      chart.series.push_back({fmt::format("b_k = {}", k), colour++, 0, {points.begin(), points.end()}});
    }
    by_block.pictures.push_back({.chart = chart, .name = std::string("blocks-") + buffering});
  }
  figures.push_back(by_block);
  return figures;
}

Json ascend_document(bool quick) {
  Json result = analysis_document("ascend", quick ? 1 : compared_edge, sample_seed);
  add_blocks(result["rows"], quick);
  add_sizes(result["rows"], quick);
  add_all_errors(result["rows"], quick);
  if (!quick) Criteria(result["rows"]).judge_all();
  return result;
}

}  // namespace

PaperFigure h2sgemm_ascend_figure() {
  return {
      .name = "h2sgemm-ascend",
      .paper = "h2sgemm",
      .place = "Eqs. 8 to 10, Figs. 5, 8 to 11, sections 3.3 and 4",
      .subject = "Algorithm 1 on a simulated Ascend 910A",
      .conditions =
          "an event simulation with published rates and buffers (lab/docs/ascend.md); sizes near 11264 where "
          "the text gives none; rows of the document have the models of the cube beside criteria of Figs. 8 and 9",
      .claims = speed_claims(),
      .analysis = {.format = "ascend", .make_document = ascend_document, .draw = draw_ascend}};
}

}  // namespace kintsugi::tools
