#include "core/files/safetensors_header.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kChecksumPrefix = "crc32:";
constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"I32", DType::i32}, {"I64", DType::i64}};

// Names come from damaged and foreign files: quoted as JSON, cut, and with unprintable bytes escaped they cannot
// spoil a terminal.
std::string in_quotes(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  using Handler = nlohmann::json::error_handler_t;
  std::string shown = nlohmann::json(name.substr(0, kLongest)).dump(-1, ' ', /*ensure_ascii=*/true, Handler::replace);
  return name.size() > kLongest ? shown + "..." : shown;
}

class HeaderParser {
 public:
  HeaderParser(std::string_view header, std::size_t data_bytes, std::string_view file, HalfFloats half_floats)
      : header_(header), data_bytes_(data_bytes), file_(file), half_floats_(half_floats) {}

  SafetensorsHeader parse() {
    const nlohmann::json json = parse_json();
    SafetensorsHeader parsed;
    for (const auto& [name, value] : json.items()) {
      if (name == kMetadataKey)
        parsed.metadata = parse_metadata(value);
      else
        parsed.tensors.emplace(name, parse_tensor(name, value, parsed));
    }
    check_layout(parsed);
    return parsed;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw FileError(text("safetensors: '", file_, "': ", parts...));
  }

  nlohmann::json parse_json() const {
    if (!header_.starts_with('{')) fail("the header must begin with '{', got something else");
    // The JSON library takes a zero byte for the end of the text.
    if (const std::size_t zero = header_.find('\0'); zero != std::string_view::npos)
      fail("the header must be JSON, got a zero byte at ", zero);
    // A first reading keeps nothing: with what it is told here the library looks through all that it has kept, whenever
    // an object ends. Names of the object at each depth.
    std::vector<std::set<std::string>> open_objects;
    const auto check_event = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
      using Event = nlohmann::json::parse_event_t;
      // A hundred million brackets would take gigabytes; no valid header is deeper than its shapes.
      if (depth > 3) fail("the header must be an object of tensors, got values nested deeper than shapes");
      const auto names = static_cast<std::size_t>(depth) + (event == Event::object_start ? 1 : 0);
      if (event == Event::object_start) {
        open_objects.resize(names);
        open_objects.back().clear();
      }
      if (event == Event::key && !open_objects[names - 1].insert(value.get<std::string>()).second)
        fail("every name must be given once, got ", in_quotes(value.get_ref<const std::string&>()), " twice");
      return false;
    };
    try {
      // As a string: for that the parser is compiled already.
      const std::string header(header_);
      std::ignore = nlohmann::json::parse(header, check_event);
      return nlohmann::json::parse(header);
    } catch (const nlohmann::json::parse_error& error) {
      fail("the header must be JSON in UTF-8, got something else at its byte ", error.byte);
    } catch (const nlohmann::json::exception&) {
      fail("the header must be JSON, got a number out of range");
    }
  }

  Metadata parse_metadata(const nlohmann::json& object) const {
    if (!object.is_object()) fail("__metadata__ must be an object, got a JSON ", object.type_name());
    Metadata metadata;
    for (const auto& [key, value] : object.items()) {
      if (!value.is_string())
        fail("__metadata__ must hold strings, got for ", in_quotes(key), " a JSON ", value.type_name());
      metadata.emplace(key, value.get<std::string>());
    }
    return metadata;
  }

  StoredTensor parse_tensor(const std::string& name, const nlohmann::json& object, SafetensorsHeader& parsed) const {
    const std::string tensor = "tensor " + in_quotes(name);
    if (name.empty()) fail("every tensor must have a name, got an empty one");
    if (!object.is_object()) fail(tensor, ": must be an object, got a JSON ", object.type_name());
    for (const auto& [key, value] : object.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail(tensor, ": must have dtype, shape and data_offsets only, got ", in_quotes(key));
    StoredTensor stored;
    const nlohmann::json& dtype = member(tensor, object, "dtype");
    const bool half = half_floats_ == HalfFloats::listed && dtype == "F16";
    stored.dtype = half ? DType::bf16 : parse_dtype(tensor, dtype);
    if (half) parsed.half_floats.insert(name);
    const std::vector<std::int64_t> dims = parse_integers(tensor, "shape", member(tensor, object, "shape"));
    if (dims.size() > Shape::kMaxRank)
      fail(tensor, ": shape must have at most ", Shape::kMaxRank, " axes, got ", dims.size());
    const std::size_t bytes = bytes_of(tensor, dims, stored.dtype);
    stored.shape = Shape(dims);
    const std::vector<std::int64_t> offsets =
        parse_integers(tensor, "data_offsets", member(tensor, object, "data_offsets"));
    if (offsets.size() != 2) fail(tensor, ": data_offsets must be [begin, end], got ", offsets.size(), " numbers");
    stored.begin = static_cast<std::size_t>(offsets[0]);
    stored.end = static_cast<std::size_t>(offsets[1]);
    if (stored.begin > stored.end || stored.end > data_bytes_)
      fail(tensor, ": data_offsets must lie in the ", data_bytes_, " bytes of data, got [", stored.begin, ", ",
           stored.end, "]", stored.begin > stored.end ? "" : "\n  the file was probably cut short");
    if (stored.end - stored.begin != bytes)
      fail(tensor, ": ", stored.dtype, " ", stored.shape, " must take ", bytes, " bytes, got data_offsets [",
           stored.begin, ", ", stored.end, "]");
    return stored;
  }

  const nlohmann::json& member(const std::string& tensor, const nlohmann::json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail(tensor, ": must have dtype, shape and data_offsets, got no ", key);
    return *found;
  }

  DType parse_dtype(const std::string& tensor, const nlohmann::json& value) const {
    if (!value.is_string()) fail(tensor, ": dtype must be a string, got a JSON ", value.type_name());
    const std::string& name = value.get_ref<const std::string&>();
    for (const auto& [known, dtype] : kDTypes)
      if (known == name) return dtype;
    fail(tensor, ": dtype must be F32, F64, BF16, I32 or I64, got ", in_quotes(name));
  }

  std::vector<std::int64_t> parse_integers(const std::string& tensor, const char* key,
                                           const nlohmann::json& array) const {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (!array.is_array()) fail(tensor, ": ", key, " must be an array, got a JSON ", array.type_name());
    std::vector<std::int64_t> integers;
    integers.reserve(array.size());
    for (const nlohmann::json& value : array) {
      // The library holds every non-negative integer as unsigned; larger ones and fractions are neither.
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kLargest)
        fail(tensor, ": ", key, " must hold integers from 0 to 2^63 - 1, got ",
             value.is_number() ? value.dump() : text("a JSON ", value.type_name()));
      integers.push_back(value.get<std::int64_t>());
    }
    return integers;
  }

  std::size_t bytes_of(const std::string& tensor, const std::vector<std::int64_t>& dims, DType dtype) const {
    // What a Shape can be: without its axes of size 0 too.
    std::int64_t elements = 1;
    for (const std::int64_t size : dims) {
      if (size > 0 && elements > Shape::kMostElements / size)
        fail(tensor, ": shape must be of less than 2^63 bytes at eight a number, got more");
      if (size > 0) elements *= size;
    }
    const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    return empty ? 0 : static_cast<std::size_t>(elements) * size_of(dtype);
  }

  // Sorted by place, each tensor must begin where the one before it ends.
  void check_layout(const SafetensorsHeader& parsed) const {
    using Entry = std::pair<const std::string, StoredTensor>;
    std::vector<const Entry*> order;
    for (const Entry& entry : parsed.tensors) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
      return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    std::size_t reached = 0;
    const std::string* before = nullptr;
    for (const Entry* entry : order) {
      const StoredTensor& tensor = entry->second;
      if (tensor.begin < reached)
        fail("tensors must not overlap, got ", in_quotes(*before), " up to byte ", reached, " and ",
             in_quotes(entry->first), " from byte ", tensor.begin);
      if (tensor.begin > reached)
        fail("the data must have no holes, got none for the bytes ", reached, " to ", tensor.begin, " before tensor ",
             in_quotes(entry->first));
      reached = tensor.end;
      before = &entry->first;
    }
    if (reached != data_bytes_)
      fail("the file must end with the last tensor, at byte ", reached, " of the data, got ", data_bytes_, " bytes");
  }

  std::string_view header_;
  std::size_t data_bytes_;
  std::string_view file_;
  HalfFloats half_floats_;
};

}  // namespace

std::string checksum_text(std::uint32_t crc) {
  std::string value(kChecksumPrefix);
  for (int shift = 28; shift >= 0; shift -= 4) value += "0123456789abcdef"[crc >> shift & 0xf];
  return value;
}

std::string make_safetensors_header(std::span<const TensorSource* const> tensors, const Metadata& metadata) {
  // Ordered: the header lists the tensors as they lie in the file, and the checksum stands first.
  nlohmann::ordered_json stored_metadata{{std::string(kChecksumKey), checksum_text(0)}};
  for (const auto& [key, value] : metadata) {
    if (key == kChecksumKey) throw Error(text("safetensors: the metadata key '", key, "' is written by the library"));
    stored_metadata[key] = value;
  }
  nlohmann::ordered_json header{{std::string(kMetadataKey), std::move(stored_metadata)}};
  std::size_t begin = 0;
  for (const TensorSource* tensor : tensors) {
    if (tensor->name.empty() || tensor->name == kMetadataKey || header.contains(tensor->name))
      throw Error(text("safetensors: names of tensors must be unique, not empty and not ", kMetadataKey, ", got ",
                       in_quotes(tensor->name)));
    nlohmann::ordered_json& entry = header[tensor->name];
    for (const auto& [name, dtype] : kDTypes)
      if (dtype == tensor->dtype) entry["dtype"] = name;
    entry["shape"] = nlohmann::ordered_json::array();
    for (int axis = 0; axis < tensor->shape.rank(); ++axis) entry["shape"].push_back(tensor->shape[axis]);
    const std::size_t end = begin + static_cast<std::size_t>(tensor->shape.count()) * size_of(tensor->dtype);
    entry["data_offsets"] = {begin, end};
    begin = end;
  }
  try {
    std::string written = header.dump();
    written.append((8 - written.size() % 8) % 8, ' ');
    return written;
  } catch (const nlohmann::json::type_error& error) {
    throw Error(text("safetensors: names and metadata must be UTF-8, got: ", error.what()));
  }
}

std::optional<std::size_t> find_checksum_digits(std::string_view header, std::string_view value) {
  const std::string key = text("\"", kChecksumKey, "\"");
  const std::string wanted = text("\"", value, "\"");
  const auto skip_blanks = [header](std::size_t at) {
    return std::min(header.find_first_not_of(" \t\r\n", at), header.size());
  };
  if (value.size() != kChecksumPrefix.size() + kChecksumDigits || !value.starts_with(kChecksumPrefix))
    return std::nullopt;
  for (std::size_t at = header.find(key); at != std::string_view::npos; at = header.find(key, at + 1)) {
    // A backslash before the quote: part of a longer string, not a key.
    if (at > 0 && header[at - 1] == '\\') continue;
    const std::size_t colon = skip_blanks(at + key.size());
    if (!header.substr(colon).starts_with(':')) continue;
    const std::size_t found = skip_blanks(colon + 1);
    if (header.substr(found).starts_with(wanted)) return found + 1 + kChecksumPrefix.size();
  }
  return std::nullopt;
}

SafetensorsHeader parse_safetensors_header(std::string_view header, std::size_t data_bytes, std::string_view file,
                                           HalfFloats half_floats) {
  return HeaderParser(header, data_bytes, file, half_floats).parse();
}

}  // namespace engram
