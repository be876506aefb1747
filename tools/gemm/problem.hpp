// Makes a problem of the library from files and flags.
#pragma once

#include <kintsugi/kintsugi.h>

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "io/matrix_file.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::tools {

struct ProblemRequest {
  std::string a_file;
  std::string b_file;
  std::string c_file;  // "": none
  std::string transa = "N";
  std::string transb = "N";
  std::string alpha = "1";  // "RE"; for complex operands "RE,IM", for double-double ones "HI,LO"
  std::string beta;         // "": 0, or an error if a C is given
  std::string type;         // "": the type of the files
  std::string order = "c";
};

// The operands in memory and the problem that describes them. C has the order of `--order`. An operand in the
// other order is not copied; in the problem it is the transpose of a matrix in C's order.
struct Operands {
  Matrix a;
  Matrix b;
  std::optional<Matrix> c0;        // old C, stored like C
  std::complex<double> alpha = 1;  // rounded to the operands' type; a double-double number as (hi, lo)
  std::complex<double> beta = 0;
  std::string transa;
  std::string transb;
  Order order = Order::row_major;
  kintsugi_problem problem;
  std::vector<std::string> notes;  // changes to the files' elements, in words

  Type type() const { return a.type(); }  // type of the parts, if complex
  bool complex() const { return a.complex; }

  // Returns views of op(A), op(B) and C0, as tools/measure needs them. Precondition: the operands are real
  // and have type T.
  template <class T>
  measure::Product<T> product() const;
};

// Reads the files and checks that they fit together.
Operands read_operands(const ProblemRequest& request);

}  // namespace kintsugi::tools
