// mixpert sections 4.3 and 4.4: errors of Cholesky and of a perceptron at the sizes that the text prints.
#include <algorithm>
#include <cmath>

#include "lab/reproduce/figures.hpp"
#include "lab/reproduce/programs/programs.hpp"

namespace kintsugi::tools {

namespace {

using programs::Cholesky;
using programs::Matrix;
using programs::Perceptron;
using programs::Products;

struct Operands {
  std::string name;
  std::string distribution;
};
const std::vector<Operands> all_operands{{"[-1, 1]", "uniform"}, {"[0, 1]", "uniform01"}};

const SchemeOnEngine fp32{"native", "cpu", ""};  // OpenBLAS's sums
const SchemeOnEngine level_1{"mixpert-1", "cpu", ""};
const SchemeOnEngine level_4{"mixpert-4", "cpu", ""};

constexpr std::int64_t stated_n = 32768;  // Cholesky, section 4.4
constexpr std::int64_t compared_n = 8192;
constexpr std::int64_t perceptron_n = 16384;  // section 4.4
constexpr std::int64_t samples = 16;          // rows of the perceptron's batch, which are independent

// Ways to make a positive definite matrix of random elements.
struct Definite {
  std::string name;
  float shift;  // of M M^T / k; 0: the elements themselves, with n added on the diagonal
};
const std::vector<Definite> all_definite{{"M M^T / k + I", 1},
                                         {"M M^T / k + I / 16", 0x1p-4F},
                                         {"M M^T / k + I / 256", 0x1p-8F},
                                         {"dominant diagonal", 0}};

// Returns the matrix, of which the lower half is set.
Matrix definite_matrix(std::int64_t n, const Operands& operands, const Definite& definite) {
  if (definite.shift == 0) {
    Matrix a = programs::random_matrix(n, n, operands.distribution, 1);
    for (std::int64_t i = 0; i < n; ++i) a(i, i) += static_cast<float>(n);
    return a;
  }
  const std::int64_t k = n / 16;
  const std::int64_t width = std::min<std::int64_t>(n, 1024);
  const Matrix m = programs::random_matrix(n, k, operands.distribution, 1);
  Matrix a(n, n);
  Products products(fp32);
  for (std::int64_t left = 0; left < n; left += width) {
    const Matrix part = products.multiply("", programs::block_of(m, left, 0, n - left, k),
                                          programs::transposed(programs::block_of(m, left, 0, width, k)));
    for (std::int64_t i = left; i < n; ++i)
      for (std::int64_t j = left; j < left + width; ++j)
        a(i, j) = part(i - left, j - left) / static_cast<float>(k) + (i == j ? definite.shift : 0);
  }
  return a;
}

std::string name_of(const Operands& operands, const Definite& definite) {
  return operands.name + ", " + definite.name;
}

Json error_row(const char* program, std::int64_t n, const std::string& operands, const SchemeOnEngine& method,
               double error) {
  return {{"program", program},
          {"n", n},
          {"operands", operands},
          {"method", method.scheme},
          {"error", number(error)}};
}

// Adds the errors of a program by each method, beside FP32 by `native`.
template <class Program>
void add_errors(Json& rows, const char* name, std::int64_t n, const std::string& operands,
                const Program& program, const SchemeOnEngine& native,
                const std::vector<SchemeOnEngine>& methods) {
  Products of_fp32(native);
  const Matrix reference = program.run(of_fp32);
  for (const SchemeOnEngine& method : methods) {
    Products products(method);
    rows.push_back(
        error_row(name, n, operands, method, programs::frobenius_error(program.run(products), reference)));
  }
}

Json document_of(std::int64_t largest) {
  Json result = document("program-errors");
  result["samples"] = largest;
  result["rows"] = Json::array();
  return result;
}

void add_cholesky(Json& rows, std::int64_t n, const Operands& operands, const Definite& definite,
                  const std::vector<SchemeOnEngine>& methods) {
  add_errors(rows, "Cholesky", n, name_of(operands, definite),
             Cholesky(definite_matrix(n, operands, definite)), fp32, methods);
}

Json compared_document(bool quick) {
  const std::int64_t n = quick ? 64 : perceptron_n;
  Json result = document_of(n);
  Json& rows = result["rows"];
  for (const Operands& operands : all_operands) {
    add_errors(rows, "MLP", n, operands.name, Perceptron(samples, n, operands.distribution), programs::native,
               {level_1, level_4});
    for (const Definite& definite : all_definite)
      add_cholesky(rows, quick ? 64 : compared_n, operands, definite, {level_1, level_4});
  }
  return result;
}

Json stated_document(bool quick) {
  const std::int64_t n = quick ? 64 : stated_n;
  Json result = document_of(n);
  for (const Operands& operands : all_operands)
    add_cholesky(result["rows"], n, operands, all_definite.front(), {level_1});
  return result;
}

// ---------------------------------------------------------------- claims

double error_of(const Evidence& evidence, const std::string& program, const std::string& operands,
                const SchemeOnEngine& method) {
  const std::vector<Json> rows = evidence.rows_where(
      both(where("program", program), both(where("operands", operands), where("method", method.scheme))));
  if (rows.empty()) throw NoSuchRow("no row of " + program + " on " + operands);
  return read_number(rows.front().at("error"));
}

Measured lowest_levels(const Evidence& evidence) {
  const auto errors = [&](const Operands& operands) {
    const std::string matrix = name_of(operands, all_definite.front());
    return SeriesValues{operands.name, {error_of(evidence, "Cholesky", matrix, level_1)}};
  };
  return series_of(errors, all_operands);
}

Measured levels_apart(const Evidence& evidence) {
  const auto ratio = [&](const Operands& operands, const Definite& definite) {
    const std::string matrix = name_of(operands, definite);
    return SeriesValues{
        matrix,
        {error_of(evidence, "Cholesky", matrix, level_1) / error_of(evidence, "Cholesky", matrix, level_4)}};
  };
  return series_of(ratio, all_operands, all_definite);
}

Measured robust_errors(const Evidence& evidence) {
  const auto perceptron = [&](const Operands& operands) {
    return SeriesValues{"MLP, " + operands.name, {error_of(evidence, "MLP", operands.name, level_4)}};
  };
  const auto cholesky = [&](const Operands& operands, const Definite& definite) {
    const std::string matrix = name_of(operands, definite);
    return SeriesValues{"Cholesky, " + matrix, {error_of(evidence, "Cholesky", matrix, level_4)}};
  };
  return joined(series_of(perceptron, all_operands), series_of(cholesky, all_operands, all_definite));
}

PaperFigure figure_of(const std::string& name, const std::string& subject, const std::string& conditions,
                      const std::vector<Claim>& claims, Json (*make_document)(bool quick)) {
  return {.name = name,
          .paper = "mixpert",
          .place = "Figs. 9 and 10, sections 4.3 and 4.4",
          .subject = subject,
          .conditions = conditions +
                        "; the paper does not say what its matrices hold; mixpert's bits are the same "
                        "on every machine",
          .claims = claims,
          .analysis = {.format = "program-errors", .make_document = make_document, .takes_long = true}};
}

}  // namespace

std::vector<PaperFigure> mixpert_large_figures() {
  return {
      figure_of(
          "mixpert-matrices", "errors of a large perceptron, and of Cholesky by its matrix",
          "16 rows through a perceptron of n = 16384, beside sequential FP32; Cholesky of four matrices of n "
          "= 8192, M with n / 16 columns, beside FP32 by OpenBLAS",
          {{"mixpert-robust", robust_errors}, {"own-mixpert-lowest", levels_apart}}, compared_document),
      figure_of("mixpert-stated", "error of Cholesky at the printed size",
                "n = 32768, M M^T / k + I with M of k = n / 16 columns, level I at all sites, beside FP32 by "
                "OpenBLAS; some 20 minutes a matrix",
                {{"mixpert-tuner-lowest", lowest_levels}}, stated_document)};
}

}  // namespace kintsugi::tools
