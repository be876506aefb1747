#include "tests/drop_in/cublas/semantics.hpp"

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/drop_in/cublas/host_engine.hpp"
#include "tests/drop_in/cublas/matmul.hpp"
#include "tests/drop_in/cublas/program.hpp"

namespace kintsugi::test {

namespace {

constexpr int success = 0;
constexpr int not_initialized = 1;
constexpr int invalid_value = 7;
constexpr int not_supported = 15;

const Entry& entry_of(const std::string& name) {
  for (const Entry& entry : entries())
    if (name == entry.name) return entry;
  std::abort();
}

// A product of ones with m = n = k = 5, whatever its type: new_real_products() does not count k = 4.
struct Ones {
  static constexpr std::int64_t order = 5;
  std::array<double, 2> wide{1, 0}, zero{0, 0};
  std::array<float, 2> narrow{1, 0};
  std::vector<double> a = std::vector<double>(4 * order * order, 1), b = a, c = a;
  std::array<const void*, 1> pointers_a{a.data()}, pointers_b{b.data()};
  std::array<void*, 1> pointers_c{c.data()};

  Arguments arguments(const Entry& entry, BlasHandle handle, kintsugi_type type) {
    const bool is_wide = type == KINTSUGI_F64 || type == KINTSUGI_C64;
    Arguments g;
    g.handle = handle;
    g.type = type;
    g.compute = is_wide ? 70 : 68;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = order;
    g.stride_a = g.stride_b = g.stride_c = order * order;
    g.alpha = is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
    g.beta = zero.data();
    const bool has_pointers = entry.has_pointers();
    g.a = has_pointers ? static_cast<const void*>(pointers_a.data()) : a.data();
    g.b = has_pointers ? static_cast<const void*>(pointers_b.data()) : b.data();
    g.c = has_pointers ? static_cast<void*>(pointers_c.data()) : c.data();
    return g;
  }
};

// The same in FP32, as a group of one product.
struct FloatOnes {
  std::array<float, 1> one{1}, zero{0};
  std::vector<float> a = std::vector<float>(Ones::order * Ones::order, 1), b = a, c = a;
  std::array<const void*, 1> pointers_a{a.data()}, pointers_b{b.data()};
  std::array<void*, 1> pointers_c{c.data()};

  Arguments arguments(const Entry& entry, BlasHandle handle) {
    Arguments g = Ones().arguments(entry, handle, KINTSUGI_F32);
    g.alpha = one.data();
    g.beta = zero.data();
    g.a = pointers_a.data();
    g.b = pointers_b.data();
    g.c = static_cast<void*>(pointers_c.data());
    return g;
  }
};

class Semantics {
 public:
  int run() {
    check_wrong_arguments();
    check_empty_sizes();
    check_math_modes();
    check_compute_types();
    check_matmuls();
    check_groups();
    check_failures();
    check_calls_from_within();
    return checks_.failures();
  }

 private:
  using Change = std::function<void(Arguments&)>;

  // Calls, and checks the status and whether cuBLAS or Kintsugi got the call.
  void expect(const Entry& entry, kintsugi_type type, const std::string& text, const Change& change,
              int status, long real, long executed) {
    Ones ones;
    Arguments arguments = ones.arguments(entry, handle_.get(), type);
    change(arguments);
    new_real_products();
    executions().count = 0;
    const int found = call(entry, arguments);
    const long found_real = new_real_products();
    const std::string where = std::string(entry.name) + ", " + text + ": ";
    checks_.check(found == status,
                  where + "status " + std::to_string(found) + " in place of " + std::to_string(status));
    checks_.check(found_real == real, where + std::to_string(found_real) + " calls of cuBLAS in place of " +
                                          std::to_string(real));
    checks_.check(executions().count == executed, where + std::to_string(executions().count) +
                                                      " executions of Kintsugi in place of " +
                                                      std::to_string(executed));
  }
  void expect_real(const Entry& entry, kintsugi_type type, const std::string& text, const Change& change,
                   int status = success) {
    expect(entry, type, text, change, status, 1, 0);
  }
  void expect_emulated(const Entry& entry, kintsugi_type type, const std::string& text,
                       const Change& change) {
    expect(entry, type, text, change, success, 0, 1);
  }

  // cuBLAS gets every wrong call, and its status is the caller's.
  void check_wrong_arguments() {
    const std::vector<std::pair<const char*, Change>> wrong{
        {"op_a = 3", [](Arguments& g) { g.op_a = 3; }},
        {"op_b = -1", [](Arguments& g) { g.op_b = -1; }},
        {"m = -1", [](Arguments& g) { g.m = -1; }},
        {"n = -1", [](Arguments& g) { g.n = -1; }},
        {"k = -1", [](Arguments& g) { g.k = -1; }},
        {"lda = 3", [](Arguments& g) { g.lda = 3; }},
        {"ldb = 3", [](Arguments& g) { g.ldb = 3; }},
        {"ldc = 3", [](Arguments& g) { g.ldc = 3; }},
        {"alpha null", [](Arguments& g) { g.alpha = nullptr; }},
    };
    for (const Entry& entry : entries()) {
      const auto type = entry.type.value_or(KINTSUGI_F64);
      expect_emulated(entry, type, "right arguments", [](Arguments&) {});
      for (const auto& [text, change] : wrong) expect_real(entry, type, text, change, invalid_value);
      expect(
          entry, type, "no handle", [](Arguments& g) { g.handle = nullptr; }, not_initialized, 0, 0);
    }
  }
  void check_empty_sizes() {
    for (const char* name : {"cublasSgemm_v2", "cublasZgemmStridedBatched_64", "cublasDgemmBatched",
                             "cublasDgemmGroupedBatched_64"}) {
      const Entry& entry = entry_of(name);
      expect_real(entry, *entry.type, "m = 0", [](Arguments& g) { g.m = 0; });
      expect_real(entry, *entry.type, "n = 0", [](Arguments& g) { g.n = 0; });
      expect_real(entry, *entry.type, "k = 0", [](Arguments& g) { g.k = 0; });
      if (entry.family != Family::gemm)
        expect_real(entry, *entry.type, "no product", [](Arguments& g) { g.count = 0; });
    }
  }

  void check_math_modes() {
    const auto nothing = [](Arguments&) {};
    const Entry& single = entry_of("cublasSgemm_v2");
    const Entry& wide = entry_of("cublasDgemm_v2");
    const auto expect_mode = [&](const Entry& entry, int mode, bool emulated) {
      handle_.set_math_mode(mode);
      const std::string text = "math mode " + std::to_string(mode);
      emulated ? expect_emulated(entry, *entry.type, text, nothing)
               : expect_real(entry, *entry.type, text, nothing);
    };
    for (const int mode : {0, 16, 8, 4, 20}) expect_mode(single, mode, true);
    for (const int mode : {1, 2, 3, 6, 7, 17, 18, 19}) expect_mode(single, mode, false);
    for (const int mode : {0, 1, 3, 4, 16, 19, 8}) expect_mode(wide, mode, true);
    for (const int mode : {2, 10, 18}) expect_mode(wide, mode, false);
    handle_.set_math_mode(0);
  }

  void check_compute_types() {
    const auto with = [](int compute, int algorithm) {
      return [=](Arguments& g) { g.compute = compute, g.algorithm = algorithm; };
    };
    for (const char* name : {"cublasGemmEx", "cublasGemmStridedBatchedEx_64", "cublasGemmBatchedEx"}) {
      const Entry& entry = entry_of(name);
      for (const auto type : {KINTSUGI_F32, KINTSUGI_C32}) {
        expect_emulated(entry, type, "FP32", with(68, -1));
        expect_emulated(entry, type, "FP32, algorithm 99", with(68, 99));
        expect_emulated(entry, type, "cuBLAS's emulation of FP32", with(78, -1));
        for (const int compute : {64, 69, 70, 72, 74, 75, 77, 79})
          expect_real(entry, type, "compute type " + std::to_string(compute), with(compute, -1));
      }
      for (const auto type : {KINTSUGI_F64, KINTSUGI_C64}) {
        expect_emulated(entry, type, "FP64", with(70, 5));
        expect_emulated(entry, type, "cuBLAS's emulation of FP64", with(79, -1));
        check_mantissa_settings(entry, type);
        for (const int compute : {68, 71, 78})
          expect_real(entry, type, "compute type " + std::to_string(compute), with(compute, -1));
      }
    }
    expect_real(entry_of("cublasSgemmEx"), KINTSUGI_F64, "matrices of FP64", [](Arguments&) {});
    expect_real(entry_of("cublasCgemmEx"), KINTSUGI_F32, "real matrices", [](Arguments&) {});
  }

  // cuBLAS emulates FP64 where more mantissa bits are asked for than FP64 has, or their number.
  void check_mantissa_settings(const Entry& entry, kintsugi_type type) {
    const auto set = [&](const char* name, auto value) {
      reinterpret_cast<int (*)(BlasHandle, decltype(value))>(function_of(name))(handle_.get(), value);
    };
    const Change emulated = [](Arguments& g) { g.compute = 79; };
    int count = 0;
    set("cublasSetFixedPointEmulationMantissaBitOffset", 1);
    expect_real(entry, type, "an offset of mantissa bits", emulated);
    expect_emulated(entry, type, "an offset of mantissa bits, without an emulation", [](Arguments&) {});
    set("cublasSetFixedPointEmulationMantissaBitOffset", 0);
    set("cublasSetFixedPointEmulationMantissaControl", 1);
    set("cublasSetFixedPointEmulationMaxMantissaBitCount", 55);
    expect_emulated(entry, type, "55 mantissa bits", emulated);
    set("cublasSetFixedPointEmulationMaxMantissaBitCount", 56);
    expect_real(entry, type, "56 mantissa bits", emulated);
    set("cublasSetFixedPointEmulationMantissaControl", 0);
    expect_emulated(entry, type, "at most 56 mantissa bits", emulated);
    set("cublasSetFixedPointEmulationMantissaBitCountPointer", &count);
    expect_real(entry, type, "the number of mantissa bits", emulated);
    set("cublasSetFixedPointEmulationMantissaBitCountPointer", static_cast<int*>(nullptr));
  }

  // Descriptions of cublasLtMatmul that cannot be answered are left to cuBLAS.
  void check_matmuls() {
    struct Case {
      const char* text;
      MatmulChange change;
      int status;
    };
    const std::vector<Case> cases{{"pointer mode 2", {2, 2}, success},
                                  {"op of C", {5, 1}, success},
                                  {"lower triangle", {6, 0}, success},
                                  {"ReLU without an auxiliary matrix", {7, 130}, invalid_value},
                                  {"gradient without a bias", {7, 256}, invalid_value},
                                  {"scale type of FP32", {1, 0}, success}};
    for (const auto& [text, change, status] : cases) {
      Ones ones;
      const Arguments arguments = ones.arguments(entry_of("cublasLtMatmul"), handle_.get(), KINTSUGI_F64);
      new_real_products();
      executions().count = 0;
      checks_.check(call_matmul(arguments, change) == status, std::string(text) + ": another status");
      checks_.check(new_real_products() == 1 && executions().count == 0, std::string(text) + ": emulated");
    }
    const Entry& matmul = entry_of("cublasLtMatmul");
    expect_real(matmul, KINTSUGI_F32, "TF32", [](Arguments& g) { g.compute = 77; });
    Ones bias;
    const Change with_bias = [&](Arguments& g) { g.bias = bias.a.data(); };
    expect_real(matmul, KINTSUGI_C64, "a complex bias", with_bias, not_supported);
    for (const int pointer_mode : {0, 1}) {
      handle_.set_pointer_mode(pointer_mode);
      expect_emulated(matmul, KINTSUGI_F64, "a bias", with_bias);
      expect_emulated(matmul, KINTSUGI_F64, "ReLU", [](Arguments& g) { g.activation = 2; });
    }
    handle_.set_pointer_mode(0);
  }

  // Makes a call with three groups of ones of which the second is changed, and checks who got which.
  void expect_groups(const std::string& text, const Change& change, int status, long real, long executed,
                     double expected_of_second) {
    const Entry& entry = entry_of("cublasSgemmGroupedBatched");
    std::array<FloatOnes, 3> ones;
    std::vector<Arguments> groups;
    for (FloatOnes& group : ones) groups.push_back(group.arguments(entry, handle_.get()));
    change(groups[1]);
    new_real_products();
    executions().count = 0;
    const int found = call_groups(entry, groups);
    const long found_real = new_real_products();
    checks_.check(found == status, text + ": status " + std::to_string(found));
    checks_.check(found_real == real, text + ": " + std::to_string(found_real) + " calls of cuBLAS");
    checks_.check(executions().count == executed,
                  text + ": " + std::to_string(executions().count) + " executions");
    const double outside = status == success ? Ones::order : 1;
    checks_.check(ones[0].c[0] == outside && ones[2].c[0] == outside, text + ": wrong products");
    checks_.check(ones[1].c[0] == expected_of_second, text + ": wrong product of the second group");
  }

  void check_groups() {
    expect_groups(
        "three groups", [](Arguments&) {}, success, 0, 3, Ones::order);
    expect_groups(
        "an empty group between two", [](Arguments& g) { g.n = 0; }, success, 1, 2, 1);
    expect_groups(
        "a group with k = 0", [](Arguments& g) { g.k = 0; }, success, 1, 2, 0);
    expect_groups(
        "a wrong group", [](Arguments& g) { g.lda = 3; }, invalid_value, 1, 0, 1);
    executions().failure = KINTSUGI_OUT_OF_MEMORY;
    expect_groups(
        "no memory", [](Arguments&) {}, success, 3, 3, Ones::order);
    executions().failure = 0;
    handle_.set_pointer_mode(1);
    expect_groups(
        "scalars on the device", [](Arguments&) {}, not_supported, 1, 0, 1);
    handle_.set_pointer_mode(0);
    handle_.set_math_mode(3);
    expect_groups(
        "TF32", [](Arguments&) {}, success, 1, 0, Ones::order);
    handle_.set_math_mode(0);
  }

  // An emulation that fails is cuBLAS's to compute.
  void check_failures() {
    for (const int failure : {KINTSUGI_INVALID_ARGUMENT, KINTSUGI_OUT_OF_MEMORY, KINTSUGI_DEVICE_ERROR}) {
      executions().failure = failure;
      expect(
          entry_of("cublasDgemm_v2"), KINTSUGI_F64, "Kintsugi's status " + std::to_string(failure),
          [](Arguments&) {}, success, 1, 1);
    }
    executions().failure = 0;
  }

  // A product inside Kintsugi that calls a hooked name is cuBLAS's, and is no call of the program.
  void check_calls_from_within() {
    static Semantics* self = nullptr;
    self = this;
    executions().within = [] {
      executions().within = nullptr;
      Ones ones;
      const Entry& inner = entry_of("cublasSgemm_v2");
      call(inner, ones.arguments(inner, self->handle_.get(), KINTSUGI_F32));
    };
    expect(
        entry_of("cublasDgemm_v2"), KINTSUGI_F64, "a call from within", [](Arguments&) {}, success, 1, 1);
  }

  ProgramHandle handle_;
  Checks checks_;
};

}  // namespace

int check_semantics() {
  make_context_current();
  return Semantics().run();
}

}  // namespace kintsugi::test
