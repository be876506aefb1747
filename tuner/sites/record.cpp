#include "record.hpp"

#include <array>
#include <cstring>
#include <tuple>

namespace kintsugi::sites {

namespace {

struct Header {
  std::uint32_t magic = 0x5449534B;  // "KSIT"
  std::uint32_t version = 3;         // version 2 has no level
  std::uint32_t bytes = 0;           // size of the record with this header
  std::uint32_t ordinal = 0;
  std::uint32_t line = 0;
  std::uint32_t path_hash = 0;
  std::uint32_t input_count = 0;
};
struct InputHeader {
  std::uint16_t operand = 0;
  std::uint16_t is_inline = 0;
  std::uint32_t ordinal = 0;
};

// Reads the values of a record in turn. `is_whole` becomes false when a value lies beyond the record's end.
class Reader {
 public:
  Reader(const char* data, std::size_t bytes) : data_(data), left_(bytes) {}

  template <class T>
  T value() {
    T read{};
    if (left_ < sizeof(T)) is_whole = false;
    if (!is_whole) return read;
    std::memcpy(&read, data_, sizeof(T));
    advance(sizeof(T));
    return read;
  }

  std::string text() {
    const auto* const end = static_cast<const char*>(left_ > 0 ? std::memchr(data_, '\0', left_) : nullptr);
    if (end == nullptr) is_whole = false;
    if (!is_whole) return {};
    std::string read(data_, end);
    advance(read.size() + 1);
    return read;
  }

  bool is_whole = true;

 private:
  void advance(std::size_t bytes) {
    data_ += bytes;
    left_ -= bytes;
  }

  const char* data_;
  std::size_t left_;
};

template <class T>
void append(std::string& bytes, const T& value) {
  std::array<char, sizeof(T)> copy;
  std::memcpy(copy.data(), &value, sizeof(T));
  bytes.append(copy.data(), copy.size());
}

bool is_header(const Header& header) {
  const Header expected;
  return header.magic == expected.magic && (header.version == 2 || header.version == expected.version) &&
         header.bytes >= sizeof(Header) && header.bytes % record_alignment == 0;
}

std::string file_text(const SiteRecord& record, bool with_hash) {
  constexpr const char* digits = "0123456789abcdef";
  constexpr int digit_bits = 4, hash_bits = 32;
  std::string text = record.file;
  if (!with_hash) return text;
  text += '~';
  for (int shift = hash_bits - digit_bits; shift >= 0; shift -= digit_bits)
    text += digits[(record.path_hash >> shift) & 0xF];
  return text;
}

std::string name(const std::string& file, const std::string& function, const std::string& callee,
                 std::uint32_t ordinal) {
  return (file.empty() ? "inline" : file) + ":" + function + ":" + callee + "#" + std::to_string(ordinal);
}

}  // namespace

// FNV-1a.
std::uint32_t hash_of(const std::string& path) {
  std::uint32_t hash = 2166136261U;
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

std::string site_name(const SiteRecord& record, bool with_hash) {
  const bool is_inline = record.file.empty();
  return name(file_text(record, with_hash && !is_inline), record.function, record.callee, record.ordinal);
}

std::string site_name(const SiteRecord& record, const SiteInput& input, bool with_hash) {
  const bool is_own = input.function.empty();
  const bool is_inline = is_own ? record.file.empty() : input.is_inline;
  return name(is_inline ? "" : file_text(record, with_hash), is_own ? record.function : input.function,
              input.callee, input.ordinal);
}

std::string encode(const SiteRecord& record) {
  std::string body;
  for (const SiteInput& input : record.inputs)
    append(body, InputHeader{static_cast<std::uint16_t>(input.operand),
                             static_cast<std::uint16_t>(input.is_inline), input.ordinal});
  std::string texts;
  for (const std::string& text : {record.file, record.function, record.callee}) texts += text + '\0';
  for (const SiteInput& input : record.inputs) texts += input.callee + '\0' + input.function + '\0';
  const Level level = record.level.value_or(Level());
  for (const std::string& text : {level.scheme, level.accuracy, level.policy}) texts += text + '\0';
  Header header{.ordinal = record.ordinal,
                .line = record.line,
                .path_hash = record.path_hash,
                .input_count = static_cast<std::uint32_t>(record.inputs.size())};
  body += texts;
  const std::size_t bytes = sizeof(Header) + body.size();
  header.bytes =
      static_cast<std::uint32_t>((bytes + record_alignment - 1) / record_alignment * record_alignment);
  std::string encoded;
  append(encoded, header);
  encoded += body;
  encoded.resize(header.bytes);
  return encoded;
}

std::optional<DecodedRecord> decode(const char* data, std::size_t bytes) {
  const auto header = Reader(data, bytes).value<Header>();
  if (!is_header(header) || header.bytes > bytes) return std::nullopt;
  if (header.input_count > header.bytes / sizeof(InputHeader)) return std::nullopt;
  Reader reader(data + sizeof(Header), header.bytes - sizeof(Header));
  DecodedRecord decoded;
  decoded.bytes = header.bytes;
  SiteRecord& record = decoded.record;
  record.inputs.resize(header.input_count);
  for (SiteInput& input : record.inputs) {
    const auto read = reader.value<InputHeader>();
    input.operand = static_cast<char>(read.operand);
    input.is_inline = read.is_inline != 0;
    input.ordinal = read.ordinal;
  }
  for (std::string* text : {&record.file, &record.function, &record.callee}) *text = reader.text();
  for (SiteInput& input : record.inputs) {
    input.callee = reader.text();
    input.function = reader.text();
  }
  Level level;
  if (header.version > 2)
    for (std::string* text : {&level.scheme, &level.accuracy, &level.policy}) *text = reader.text();
  if (level != Level()) record.level = level;
  std::tie(record.ordinal, record.line, record.path_hash) =
      std::tie(header.ordinal, header.line, header.path_hash);
  if (!reader.is_whole) return std::nullopt;
  return decoded;
}

std::optional<DecodedRecord> decode(const char* data) {
  const auto header = Reader(data, sizeof(Header)).value<Header>();
  return is_header(header) ? decode(data, header.bytes) : std::nullopt;
}

}  // namespace kintsugi::sites
