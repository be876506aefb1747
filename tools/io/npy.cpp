#include "io/matrix_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include "io/atomic_file.hpp"
#include "io/input_error.hpp"
#include "io/input_file.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = std::size_t{1} << 20;

struct Header {
  Type type = Type::float64;
  bool complex = false;
  bool has_other_byte_order = false;  // than this machine
  Order order = Order::row_major;
  std::vector<std::int64_t> shape;
};

// Parser of the header, a Python dict, for the part of Python that numpy writes.
class HeaderText {
 public:
  HeaderText(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  [[noreturn]] void malformed(std::string_view wanted) const {
    fail(path_, "has a malformed .npy header: {} is expected at character {}", wanted, position_);
  }
  // Moves past the character if it is the next one after spaces.
  bool take(char wanted) {
    skip_spaces();
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) malformed(fmt::format("'{}'", wanted));
  }
  bool is_next(char wanted) {
    skip_spaces();
    return position_ < text_.size() && text_[position_] == wanted;
  }
  void expect_end() {
    skip_spaces();
    if (position_ != text_.size()) malformed("the end");
  }
  std::string_view string() {
    const char quote = is_next('"') ? '"' : '\'';
    expect(quote);
    const auto end = text_.find(quote, position_);
    if (end == std::string_view::npos) malformed("a closing quote");
    const auto result = text_.substr(position_, end - position_);
    position_ = end + 1;
    return result;
  }
  bool boolean() {
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      skip_spaces();
      if (text_.substr(position_).starts_with(word)) {
        position_ += word.size();
        return value;
      }
    }
    malformed("True or False");
  }
  std::int64_t integer() {
    skip_spaces();
    std::int64_t value = 0;
    const char* first = text_.data() + position_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) malformed("a size");
    position_ += static_cast<std::size_t>(end - first);
    take('L');  // Python 2 wrote 3L
    return value;
  }

 private:
  void skip_spaces() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t position_ = 0;
};

// Returns numpy's name of a type: "<i8" is "int64".
std::string dtype_name(std::string_view descriptor) {
  if (!descriptor.empty() && std::string_view("<>|=").find(descriptor.front()) != std::string_view::npos) {
    descriptor.remove_prefix(1);
  }
  const char kind = descriptor.empty() ? ' ' : descriptor.front();
  int bytes = 0;
  if (!descriptor.empty())
    std::from_chars(descriptor.data() + 1, descriptor.data() + descriptor.size(), bytes);
  switch (kind) {
    case 'f': return fmt::format("float{}", 8 * bytes);
    case 'i': return fmt::format("int{}", 8 * bytes);
    case 'u': return fmt::format("uint{}", 8 * bytes);
    case 'c': return fmt::format("complex{}", 8 * bytes);
    case 'b': return "bool";
    case 'O': return "object";
    case 'S': return "bytes";
    case 'U': return "str";
    case 'M': return "datetime64";
    case 'm': return "timedelta64";
    default: return std::string(descriptor);
  }
}

void read_descriptor(const std::string& path, HeaderText& text, Header& header) {
  constexpr const char* known = "float32, float64, complex64 and complex128 are read";
  if (text.is_next('[')) fail(path, "has a structured dtype; {}", known);
  const auto descriptor = text.string();
  const auto name = dtype_name(descriptor);
  header.complex = name == "complex64" || name == "complex128";
  if (!header.complex && name != "float32" && name != "float64") fail(path, "has dtype {}; {}", name, known);
  header.type = name == "float32" || name == "complex64" ? Type::float32 : Type::float64;
  constexpr char other = std::endian::native == std::endian::little ? '>' : '<';
  header.has_other_byte_order = descriptor.front() == other;
}

void read_shape(HeaderText& text, Header& header) {
  text.expect('(');
  while (!text.take(')')) {
    header.shape.push_back(text.integer());
    if (text.take(',')) continue;
    text.expect(')');
    break;
  }
}

Header parse_header(const std::string& path, std::string_view characters) {
  HeaderText text(path, characters);
  Header header;
  std::array<bool, 3> seen{};
  constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
  // data_bytes() checks the number of dimensions later. A file of objects is then reported as such, whatever
  // its shape.
  text.expect('{');
  while (!text.take('}')) {
    const auto key = text.string();
    text.expect(':');
    const auto found = std::find(keys.begin(), keys.end(), key) - keys.begin();
    if (found == 3 || seen[found])
      fail(path, "has a malformed .npy header: the key '{}' is unknown or repeated", key);
    seen[found] = true;
    if (found == 0) read_descriptor(path, text, header);
    if (found == 1) header.order = text.boolean() ? Order::column_major : Order::row_major;
    if (found == 2) read_shape(text, header);
    if (!text.take(',') && !text.is_next('}')) text.malformed("',' or '}'");
  }
  text.expect_end();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!seen[i]) fail(path, "has a malformed .npy header: the key '{}' is missing", keys[i]);
  }
  return header;
}

// Reads up to the header's text. Returns the length of that text and sets `offset` to its position in the
// file.
std::size_t read_header_length(InputFile& file, std::size_t& offset) {
  std::array<unsigned char, 8> start{};
  const std::size_t got = file.read(start.data(), start.size());
  if (got < magic.size() || std::memcmp(start.data(), magic.data(), magic.size()) != 0) {
    fail(file.path(), "is not a .npy file: it does not begin with \\x93NUMPY");
  }
  if (got < start.size()) fail(file.path(), "ends within its .npy header, after {} bytes", got);
  const int major = start[6];
  if (major < 1 || major > 3)
    fail(file.path(), "has .npy version {}.{}; 1, 2 and 3 are read", major, int{start[7]});
  std::array<unsigned char, 4> length{};
  const std::size_t width = major == 1 ? 2 : 4;  // bytes of the length, the least significant first
  if (file.read(length.data(), width) != width) fail(file.path(), "ends within its .npy header");
  offset = start.size() + width;
  std::size_t value = 0;
  for (std::size_t i = width; i-- > 0;) value = value << 8 | length[i];
  if (value > longest_header) {
    fail(file.path(), "has a .npy header of {} bytes; at most {} are read", value, longest_header);
  }
  return value;
}

// True if the file's float64 elements are the words of double-double numbers.
bool holds_double_double(const Header& header) {
  return header.type == Type::float64 && !header.complex && header.order == Order::row_major &&
         header.shape.size() == 3 && header.shape[2] == 2;
}

// Reads the header and sets `offset` to the position of the data in the file.
Header read_header(InputFile& file, std::size_t& offset) {
  std::string text(read_header_length(file, offset), '\0');
  const std::size_t got = file.read(text.data(), text.size());
  if (got != text.size()) {
    fail(file.path(), "ends within its .npy header: {} of {} bytes are there", got, text.size());
  }
  offset += got;
  Header header = parse_header(file.path(), text);
  if (holds_double_double(header)) header.type = Type::double_double;
  return header;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

// Returns the bytes of the data; fails if the file cannot contain them.
std::size_t data_bytes(const InputFile& file, const Header& header, std::size_t offset) {
  const std::string& path = file.path();
  if (header.type != Type::double_double && (header.shape.empty() || header.shape.size() > 2)) {
    fail(path,
         "has {} dimensions, shape {}; only 1 and 2 are read, and (rows, columns, 2) of float64 in C "
         "order, which are double-double numbers",
         header.shape.size(), shape_text(header.shape));
  }
  // A shape of double-double numbers ends with their two words.
  std::size_t bytes =
      header.type == Type::double_double ? sizeof(double) : type_size(header.type, header.complex);
  for (const std::int64_t size : header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) {
      fail(path, "has shape {}, more than any memory holds", shape_text(header.shape));
    }
  }
  if (file.size() && *file.size() - offset != bytes) {
    fail(path, "holds {} bytes of data, {} are needed for {} {}", *file.size() - offset, bytes,
         type_name(header.type, header.complex), shape_text(header.shape));
  }
  return bytes;
}

template <class T, class Word>
void swap_bytes(std::vector<T>& values) {
  for (T& value : values) {
    const auto word = std::bit_cast<Word>(value);
    if constexpr (sizeof(Word) == 4) {
      value = std::bit_cast<T>(__builtin_bswap32(word));
    } else {
      value = std::bit_cast<T>(__builtin_bswap64(word));
    }
  }
}

void swap_bytes(Matrix& matrix) {
  if (matrix.type() == Type::double_double) {
    for (DoubleDouble& x : std::get<std::vector<DoubleDouble>>(matrix.values)) {
      std::vector<double> words{x.hi, x.lo};
      swap_bytes<double, std::uint64_t>(words);
      x = {words[0], words[1]};
    }
  } else if (matrix.type() == Type::float32) {
    swap_bytes<float, std::uint32_t>(std::get<std::vector<float>>(matrix.values));
  } else {
    swap_bytes<double, std::uint64_t>(std::get<std::vector<double>>(matrix.values));
  }
}

// Returns the header. The dictionary is padded with spaces, so that the data begin at a multiple of 64 bytes
// and can be mapped with alignment.
std::string header_bytes(const Matrix& matrix) {
  constexpr std::size_t alignment = 64;
  constexpr std::size_t prefix = 10;  // bytes before the dictionary: magic, version and length
  const bool is_double_double = matrix.type() == Type::double_double;
  std::string text = fmt::format("{{'descr': '<{}{}', 'fortran_order': {}, 'shape': ({}, {}{}), }}",
                                 matrix.complex ? 'c' : 'f',
                                 is_double_double ? sizeof(double) : type_size(matrix.type(), matrix.complex),
                                 matrix.order == Order::column_major ? "True" : "False", matrix.rows,
                                 matrix.columns, is_double_double ? ", 2" : "");
  const std::size_t total_bytes = (prefix + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.append(total_bytes - prefix - text.size() - 1, ' ');
  text += '\n';
  std::string bytes(magic);
  bytes += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return bytes + text;
}

}  // namespace

Matrix read_npy(const std::string& path) {
  InputFile file(path);
  return read_npy(file);
}

Matrix read_npy(InputFile& file) {
  const std::string& path = file.path();
  std::size_t offset = 0;
  const Header header = read_header(file, offset);
  const std::size_t bytes = data_bytes(file, header, offset);
  const std::int64_t columns = header.shape.size() >= 2 ? header.shape[1] : 1;
  Matrix matrix = make_matrix(path, header.shape[0], columns, header.type, header.order, header.complex);
  const std::size_t got = bytes == 0 ? 0 : file.read(matrix.data(), bytes);
  if (got != bytes) {
    fail(path, "holds {} bytes of data, {} are needed for {} {}", got, bytes,
         type_name(header.type, header.complex), shape_text(header.shape));
  }
  char next = 0;
  if (!file.size() && file.read(&next, 1) != 0) {
    fail(path, "holds more than the {} bytes of data of {} {}", bytes, type_name(header.type, header.complex),
         shape_text(header.shape));
  }
  if (header.has_other_byte_order) swap_bytes(matrix);
  return matrix;
}

void write_npy(const std::string& path, const Matrix& matrix) {
  if (matrix.type() == Type::double_double && matrix.order == Order::column_major)
    return write_npy(path, reordered(matrix, Order::row_major));
  AtomicFile file(path);
  const std::string header = header_bytes(matrix);
  file.write(header.data(), header.size());
  const std::size_t bytes = static_cast<std::size_t>(matrix.rows) * static_cast<std::size_t>(matrix.columns) *
                            type_size(matrix.type(), matrix.complex);
  if constexpr (std::endian::native == std::endian::little) {
    file.write(matrix.data(), bytes);
  } else {
    Matrix swapped = matrix;
    swap_bytes(swapped);
    file.write(swapped.data(), bytes);
  }
  file.commit();
}

}  // namespace kintsugi::tools
