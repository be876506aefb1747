#include "gemm/product.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "support.hpp"
#include "tools/measure/nearest_name.hpp"

namespace kintsugi::tools {

namespace {

// Parses "fp32", "fp64", "c32", "c64" or "dd". Returns nothing for "", which means the type of the files.
std::optional<Type> requested_type(const std::string& type) {
  if (type.empty()) return std::nullopt;
  if (type == "dd") return Type::double_double;
  return type == "fp32" || type == "c32" ? Type::float32 : Type::float64;
}

void note_conversion(Operands& operands, const std::string& file, const MatrixFile& read) {
  const Type type = read.matrix.type();
  if (read.stored == type) return;
  const bool complex = read.matrix.complex;
  if (type > read.stored) {
    operands.notes.push_back(fmt::format("{}: {} read as {}, nothing is lost", file,
                                         type_name(read.stored, complex), type_name(type, complex)));
    return;
  }
  std::string note = fmt::format("{}: {} rounded once to {} (nearest)", file, type_name(read.stored, complex),
                                 type_name(type, complex));
  if (read.rounded) {
    note += fmt::format(", {} of {} {} changed", read.rounded->changed,
                        read.matrix.rows * read.matrix.columns * (complex ? 2 : 1),
                        complex ? "parts" : "elements");
    if (read.rounded->overflowed > 0)
      note += fmt::format(", {} of them to infinity", read.rounded->overflowed);
  }
  operands.notes.push_back(note);
}

Matrix read_operand(Operands& operands, const std::string& file, const std::string& type) {
  MatrixFile read = read_matrix(file, requested_type(type));
  note_conversion(operands, file, read);
  if (read.matrix.complex && type.starts_with("fp"))
    fail(file, "holds {}, which --type {} would cut to its real parts", read.matrix.element_type_name(),
         type);
  if (read.matrix.complex && type == "dd")
    fail(file, "holds complex elements; --type dd computes with real ones");
  if (type.starts_with("c")) make_complex(read.matrix);
  return std::move(read.matrix);
}

void check_same_type(const std::string& file, const Matrix& matrix, const std::string& first_file,
                     const Matrix& first) {
  if (matrix.type() == first.type() && matrix.complex == first.complex) return;
  const bool complex = matrix.complex || first.complex;
  const bool is_double_double = std::max(matrix.type(), first.type()) == Type::double_double && !complex;
  fail(file, "holds {}, {} holds {}: give --type {} or --type {} for all", matrix.element_type_name(),
       first_file, first.element_type_name(),
       complex            ? "c32"
       : is_double_double ? "fp64"
                          : "fp32",
       complex            ? "c64"
       : is_double_double ? "dd"
                          : "fp64");
}

double round_scalar(const std::string& flag, const std::string& text, Type type) {
  const double value = parse_number(flag, text);
  if (type != Type::float32) return value;
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value))
    fail(flag, "{} is beyond float32, the type of the operands", text);
  return static_cast<double>(rounded);
}

// Parses and rounds "RE", "RE,IM" or "HI,LO".
std::complex<double> round_scalar(const std::string& flag, const std::string& text,
                                  const Operands& operands) {
  const auto comma = text.find(',');
  if (comma == std::string::npos) return round_scalar(flag, text, operands.type());
  if (!operands.complex() && operands.type() != Type::double_double)
    fail(flag, "{} has an imaginary part and the operands have none", text);
  return {round_scalar(flag, text.substr(0, comma), operands.type()),
          round_scalar(flag, text.substr(comma + 1), operands.type())};
}

// Returns the name of an operand in a message: A, or op(A) if its shape is that of a transpose.
std::string operand_name(char name, const std::string& trans) {
  return trans == "N" ? std::string(1, name) : fmt::format("op({})", name);
}

struct OperandShape {
  std::int64_t rows;
  std::int64_t columns;
};

// Returns the shape of op(matrix).
OperandShape shape_of(const Matrix& matrix, const std::string& trans) {
  return trans == "N" ? OperandShape{matrix.rows, matrix.columns} : OperandShape{matrix.columns, matrix.rows};
}

// Returns the op of a matrix in a call whose layout is `order`. If the matrix is stored in the other order,
// it counts as transposed. Precondition: a complex matrix with trans = C is stored in `order`. Otherwise it
// would have to be conjugated without transposition, and there is no such op.
kintsugi_op stored_op(const Matrix& matrix, const std::string& trans, Order order) {
  if (matrix.order == order)
    return trans == "N" ? KINTSUGI_OP_N : trans == "T" ? KINTSUGI_OP_T : KINTSUGI_OP_C;
  return trans == "N" ? KINTSUGI_OP_T : KINTSUGI_OP_N;
}

std::int64_t leading_dimension(const Matrix& matrix) {
  return std::max<std::int64_t>(1, matrix.order == Order::row_major ? matrix.columns : matrix.rows);
}

void check_inner_dimensions(const ProblemRequest& request, const OperandShape& a, const OperandShape& b) {
  if (a.columns == b.rows) return;
  fail(request.b_file, "{} is {} x {} and {} is {} x {}: the inner dimensions {} and {} differ",
       operand_name('A', request.transa), a.rows, a.columns, operand_name('B', request.transb), b.rows,
       b.columns, a.columns, b.rows);
}

void read_c(Operands& operands, const ProblemRequest& request, const OperandShape& c) {
  if (request.c_file.empty()) {
    if (operands.beta != 0.0) fail("--beta", "{} needs a matrix C: give --c FILE", request.beta);
    return;
  }
  if (request.beta.empty()) fail("--c", "{} needs --beta", request.c_file);
  Matrix matrix = read_operand(operands, request.c_file, request.type);
  check_same_type(request.c_file, matrix, request.a_file, operands.a);
  if (matrix.rows != c.rows || matrix.columns != c.columns) {
    fail(request.c_file, "is {} x {}; {} {} is {} x {}", matrix.rows, matrix.columns,
         operand_name('A', request.transa), operand_name('B', request.transb), c.rows, c.columns);
  }
  operands.c0 = reordered(matrix, operands.order);
}

kintsugi_problem make_problem(const Operands& operands, const OperandShape& c, std::int64_t k) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  const bool is_single = operands.type() == Type::float32;
  const std::int32_t real = operands.type() == Type::double_double ? KINTSUGI_DD
                            : is_single                            ? KINTSUGI_F32
                                                                   : KINTSUGI_F64;
  const std::int32_t type = !operands.complex() ? real : is_single ? KINTSUGI_C32 : KINTSUGI_C64;
  problem.m = c.rows;
  problem.n = c.columns;
  problem.k = k;
  problem.lda = leading_dimension(operands.a);
  problem.ldb = leading_dimension(operands.b);
  problem.ldc = std::max<std::int64_t>(1, operands.order == Order::row_major ? c.columns : c.rows);
  problem.op_a = stored_op(operands.a, operands.transa, operands.order);
  problem.op_b = stored_op(operands.b, operands.transb, operands.order);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  problem.layout = operands.order == Order::row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  return problem;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the flag whose value the library's message quotes. The error line begins with this flag.
std::string subject_of_error(const std::vector<FlagValue>& flags, const std::string& compared) {
  const std::string message = kintsugi_last_error();
  const auto quoted = [&](const std::string& value) {
    return message.find('"' + value + '"') != std::string::npos;
  };
  if (!compared.empty() && quoted(compared)) return "--compare";
  for (const auto& flag : flags) {
    if (quoted(flag.value)) return flag.flag;
  }
  return "gemm";
}

// Prints log lines, as many as the setting `log` allows, on stderr, since stdout has the results.
void print_log(void*, kintsugi_log_level, const char* message) { print_note("kintsugi log: {}\n", message); }

template <class T>
T scalar_as(const std::complex<double>& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value.real());
  } else if constexpr (std::is_same_v<T, DoubleDouble>) {
    return {value.real(), value.imag()};
  } else {
    return T(value);
  }
}

template <class T>
measure::ErrorReport measure_as(const Operands& operands, const Matrix* native, const Matrix& c,
                                const measure::CheckOptions& options) {
  return measure::measure_errors<T>(operands.product<T>(), c.view<T>(),
                                    native != nullptr ? native->view<T>() : core::MatrixView<const T>{},
                                    options);
}

// A real matrix, row-major, for the parts of complex elements.
template <class T>
struct RealMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<T> values = std::vector<T>(static_cast<std::size_t>(rows * columns));

  T& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  core::MatrixView<const T> view() const { return {values.data(), rows, columns, columns, 1}; }
};

// Returns element (i, j) of op(matrix).
template <class T>
std::complex<T> element(const Matrix& matrix, const std::string& trans, std::int64_t i, std::int64_t j) {
  if (trans != "N") std::swap(i, j);
  const auto value = matrix.data<std::complex<T>>()[i * matrix.row_stride() + j * matrix.column_stride()];
  return trans == "C" ? std::conj(value) : value;
}

// Returns an m x n matrix as m x 2 n: the parts of element (i, j) at (i, 2 j) and (i, 2 j + 1).
template <class T>
RealMatrix<T> parts_of(const Matrix& matrix, const std::string& trans = "N") {
  const bool is_plain = trans == "N";
  RealMatrix<T> parts{is_plain ? matrix.rows : matrix.columns, 2 * (is_plain ? matrix.columns : matrix.rows)};
  for (std::int64_t i = 0; i < parts.rows; ++i) {
    for (std::int64_t j = 0; j < parts.columns; j += 2) {
      const std::complex<T> value = element<T>(matrix, trans, i, j / 2);
      parts(i, j) = value.real();
      parts(i, j + 1) = value.imag();
    }
  }
  return parts;
}

// Returns the 2 k x 2 n embedding of a k x n op(B). The parts of A (m x 2 k) times this embedding are the
// parts of A B.
template <class T>
RealMatrix<T> embedding_of_b(const Matrix& matrix, const std::string& trans) {
  const bool is_plain = trans == "N";
  RealMatrix<T> parts{2 * (is_plain ? matrix.rows : matrix.columns),
                      2 * (is_plain ? matrix.columns : matrix.rows)};
  for (std::int64_t p = 0; p < parts.rows; p += 2) {
    for (std::int64_t j = 0; j < parts.columns; j += 2) {
      const std::complex<T> value = element<T>(matrix, trans, p / 2, j / 2);
      parts(p, j) = value.real();
      parts(p, j + 1) = value.imag();
      parts(p + 1, j) = -value.imag();
      parts(p + 1, j + 1) = value.real();
    }
  }
  return parts;
}

// Measures the errors of the parts of a complex C.
template <class T>
measure::ErrorReport measure_parts(const Operands& operands, const Matrix* native, const Matrix& c,
                                   const measure::CheckOptions& options) {
  const RealMatrix<T> a = parts_of<T>(operands.a, operands.transa);
  const RealMatrix<T> b = embedding_of_b<T>(operands.b, operands.transb);
  const RealMatrix<T> c0 = operands.c0 ? parts_of<T>(*operands.c0) : RealMatrix<T>{};
  const RealMatrix<T> computed = parts_of<T>(c);
  const RealMatrix<T> native_parts = native != nullptr ? parts_of<T>(*native) : RealMatrix<T>{};
  const measure::Product<T> product{a.view(),
                                    b.view(),
                                    operands.alpha.real(),
                                    operands.beta.real(),
                                    c0.view(),
                                    operands.alpha.imag(),
                                    operands.beta.imag()};
  return measure::measure_errors<T>(product, computed.view(),
                                    native != nullptr ? native_parts.view() : core::MatrixView<const T>{},
                                    options);
}

}  // namespace

template <class T>
measure::Product<T> Operands::product() const {
  measure::Product<T> result;
  result.a = transa == "N" ? a.view<T>() : a.view<T>().transposed();
  result.b = transb == "N" ? b.view<T>() : b.view<T>().transposed();
  if constexpr (std::is_same_v<T, DoubleDouble>) {
    // A double-double scalar is parsed as HI,LO into the two parts of a complex number.
    result.alpha = core::normalized({alpha.real(), alpha.imag()});
    result.beta = core::normalized({beta.real(), beta.imag()});
  } else {
    result.alpha = alpha.real();
    result.beta = beta.real();
  }
  if (c0) result.c0 = c0->view<T>();
  return result;
}

template measure::Product<float> Operands::product() const;
template measure::Product<double> Operands::product() const;
template measure::Product<DoubleDouble> Operands::product() const;

Operands read_operands(const ProblemRequest& request) {
  const std::array files{request.a_file, request.b_file, request.c_file};
  if (std::count_if(files.begin(), files.end(), is_standard_input) > 1)
    fail("-", "standard input holds a single matrix; give a file for the other operand");
  Operands operands;
  operands.transa = request.transa;
  operands.transb = request.transb;
  operands.order = request.order == "c" ? Order::row_major : Order::column_major;
  operands.a = read_operand(operands, request.a_file, request.type);
  operands.b = read_operand(operands, request.b_file, request.type);
  check_same_type(request.b_file, operands.b, request.a_file, operands.a);
  const OperandShape a = shape_of(operands.a, request.transa);
  const OperandShape b = shape_of(operands.b, request.transb);
  check_inner_dimensions(request, a, b);
  operands.alpha = round_scalar("--alpha", request.alpha, operands);
  operands.beta = request.beta.empty() ? 0 : round_scalar("--beta", request.beta, operands);
  const OperandShape c{a.rows, b.columns};
  // stored_op() needs conjugated operands in C's order.
  if (operands.complex() && request.transa == "C") operands.a = reordered(operands.a, operands.order);
  if (operands.complex() && request.transb == "C") operands.b = reordered(operands.b, operands.order);
  read_c(operands, request, c);
  operands.problem = make_problem(operands, c, a.columns);
  return operands;
}

ComparedProduct compared_product(const std::string& word) {
  if (kintsugi_set(make_handle().get(), "accuracy", word.c_str()) == KINTSUGI_SUCCESS) return {word, true};
  std::vector<std::string> names{"native"};
  const Json schemes = describe_schemes();
  for (const Json& scheme : schemes.at("schemes")) names.push_back(cell(scheme, "name"));
  const std::string name = without_parameters(word);
  if (contains(names, name)) return {word, false};
  names.insert(names.begin(), {"fp32", "fp64", "dd", "exact", "reproducible"});
  fail("--compare", "\"{}\" is neither an accuracy nor a scheme{}", word,
       measure::accepted_names(name, "accepted: a tolerance such as 1e-10,", names));
}

RequestedProduct::RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags)
    : operands_(operands), handle_(make_handle()) {
  set_flags(flags);
  make_plan(KINTSUGI_OPTIONS_INIT, flags);
}

RequestedProduct::RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags,
                                   const ComparedProduct& compared)
    : operands_(operands), handle_(make_handle()) {
  std::vector<std::string> replaced{"scheme", "accuracy"};
  if (!compared.is_accuracy) replaced.emplace_back("policy");
  std::vector<FlagValue> kept = flags;
  std::erase_if(kept, [&](const FlagValue& flag) { return contains(replaced, flag.name); });
  std::vector<std::string> variables;
  for (const Json& setting : settings_table().settings)
    if (contains(replaced, cell(setting, "name"))) variables.push_back(cell(setting, "environment"));
  const HiddenVariables hidden(variables);
  row_.requested = compared;
  set_flags(kept);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  (compared.is_accuracy        ? options.accuracy
   : compared.word == "native" ? options.policy
                               : options.scheme) = compared.word.c_str();
  make_plan(options, kept);
}

void RequestedProduct::set_flags(const std::vector<FlagValue>& flags) {
  require("--log", kintsugi_set_log(handle_.get(), print_log, nullptr));
  for (const auto& flag : flags) {
    if (!flag.environment_only) {
      require(flag.flag, kintsugi_set(handle_.get(), flag.name.c_str(), flag.value.c_str()));
    }
    ::setenv(flag.environment.c_str(), flag.value.c_str(), 1);
  }
}

void RequestedProduct::make_plan(const kintsugi_options& options, const std::vector<FlagValue>& flags) {
  const auto start = Clock::now();
  kintsugi_plan created = nullptr;
  const kintsugi_status status = kintsugi_plan_create(handle_.get(), &operands_.problem, &options, &created);
  if (status != KINTSUGI_SUCCESS) throw LibraryError(subject_of_error(flags, row_.requested.word), status);
  row_.plan_seconds = seconds_since(start);
  plan_.reset(created);
  row_.plan = describe(plan_);
  row_.settings = describe_settings(handle_.get());
}

void RequestedProduct::execute_once(Matrix& c) {
  with_element_type(c, [&]<class T>() {
    const T alpha = scalar_as<T>(operands_.alpha);
    const T beta = scalar_as<T>(operands_.beta);
    kintsugi_operands data = KINTSUGI_OPERANDS_INIT;
    data.alpha = &alpha;
    data.a = operands_.a.data();
    data.b = operands_.b.data();
    data.beta = &beta;
    data.c = c.data();
    require("gemm", kintsugi_plan_execute(handle_.get(), plan_.get(), &data));
  });
}

// Runs the product once, then up to four more times within half a second. The fastest run counts, since the
// first run also opens libraries and starts threads.
Row RequestedProduct::run() {
  constexpr double enough_seconds = 0.5;
  constexpr int max_runs = 5;
  const kintsugi_problem& problem = operands_.problem;
  const auto first_start = Clock::now();
  while (row_.runs < max_runs && (row_.runs == 0 || seconds_since(first_start) < enough_seconds)) {
    Matrix c = operands_.c0 ? *operands_.c0
                            : make_matrix("memory", problem.m, problem.n, operands_.type(), operands_.order,
                                          operands_.complex());
    const auto start = Clock::now();
    execute_once(c);
    const double seconds = seconds_since(start);
    row_.seconds = row_.runs == 0 ? seconds : std::min(row_.seconds, seconds);
    row_.c = std::move(c);
    ++row_.runs;
  }
  row_.report = report_of(handle_.get());
  return std::move(row_);
}

void measure(const Operands& operands, const Matrix* native, Row& row) {
  Progress progress(row.requested.word.empty() ? "checking" : "checking " + row.requested.word);
  measure::CheckOptions options;
  options.seed = sample_seed;
  const std::string rounding = cell(row.plan.at("settings").at("rounding"), "value");
  for (std::uint8_t mode = 0; mode < std::size(core::rounding_names); ++mode) {
    if (rounding == core::rounding_names[mode]) options.rounding = core::RoundingMode{mode};
  }
  options.progress = [&progress](std::int64_t done, std::int64_t total) { progress.show(done, total); };
  row.errors = with_element_type(row.c, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, DoubleDouble>) {
      return measure_as<T>(operands, native, row.c, options);
    } else {
      return measure_parts<typename T::value_type>(operands, native, row.c, options);
    }
  });
}

ContractVerdict judge(const Row& row) {
  const measure::ErrorReport& errors = *row.errors;
  const Json& contract = row.plan.at("contract");
  const bool named = cell(row.plan.at("settings").at("accuracy"), "source") != "default";
  ContractVerdict verdict{cell(contract, "accuracy"), contract.at("coefficient"), named, false};
  if (verdict.coefficient == 0 && verdict.accuracy != "exact")
    verdict.coefficient = errors.contract_bound;  // a scheme was named, but no accuracy
  verdict.met = meets(errors, verdict.accuracy, verdict.coefficient);
  return verdict;
}

bool meets(const measure::ErrorReport& errors, const std::string& accuracy, double coefficient) {
  if (accuracy == "exact") return errors.correctly_rounded_fraction == 1;
  return coefficient == errors.contract_bound ? errors.within_contract_bound
                                              : errors.max_componentwise <= coefficient;
}

Json errors_document(const measure::ErrorReport& errors) {
  return {{"frobenius_relative", number(errors.frobenius_relative)},
          {"max_relative", number(errors.max_relative)},
          {"mean_relative", number(errors.mean_relative)},
          {"max_componentwise", number(errors.max_componentwise)},
          {"max_ulp", number(errors.max_ulp)},
          {"correctly_rounded_fraction", errors.correctly_rounded_fraction},
          {"le_gemm_max_error", number(errors.le_gemm_max_error)},
          {"le_gemm_mred", number(errors.le_gemm_mred)},
          {"elements_checked", errors.elements_checked},
          {"elements_total", errors.elements_total},
          {"zero_references", errors.zero_references},
          {"nonzero_at_zero_reference", errors.nonzero_at_zero_reference},
          {"overflowed_references", errors.overflowed_references},
          {"special_references", errors.special_references},
          {"special_mismatches", errors.special_mismatches},
          {"largest_error", number(errors.largest_error)},
          {"largest_absolute", number(errors.largest_absolute)},
          {"contract_bound", number(errors.contract_bound)},
          {"within_contract_bound", errors.within_contract_bound}};
}

}  // namespace kintsugi::tools
