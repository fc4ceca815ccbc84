#include "apps/run/evaluation/part_findings.hpp"

#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

void append_count(std::string& bytes, std::uint64_t count) {
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
}
template <class T>
void append_numbers(std::string& bytes, const std::vector<T>& numbers) {
  append_count(bytes, numbers.size());
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

void take_bytes(std::string_view& bytes, void* to, std::size_t count) {
  if (bytes.size() < count)
    throw Error(text("evaluation: a rank must tell all that it found, got ", bytes.size(), " bytes where ", count,
                     " were to follow"));
  if (count > 0) std::memcpy(to, bytes.data(), count);
  bytes.remove_prefix(count);
}
std::size_t take_count(std::string_view& bytes, std::size_t size) {
  std::uint64_t count = 0;
  take_bytes(bytes, &count, sizeof(count));
  if (count > bytes.size() / size)
    throw Error(
        text("evaluation: a rank must tell all that it found, got ", bytes.size(), " bytes for ", count, " numbers"));
  return static_cast<std::size_t>(count);
}
template <class T>
std::vector<T> take_numbers(std::string_view& bytes) {
  std::vector<T> numbers(take_count(bytes, sizeof(T)));
  take_bytes(bytes, numbers.data(), numbers.size() * sizeof(T));
  return numbers;
}

}  // namespace

void PartFindings::append_to(std::string& bytes) const {
  append_numbers(bytes, losses);
  append_count(bytes, zetas.size());
  for (const std::vector<double>& layer : zetas) append_numbers(bytes, layer);
  append_count(bytes, reads.size());
  for (const Reads& of_layer : reads) {
    append_count(bytes, of_layer.layer);
    append_numbers(bytes, of_layer.ids);
    append_numbers(bytes, of_layer.weights);
  }
}

PartFindings PartFindings::take_from(std::string_view& bytes) {
  PartFindings found;
  found.losses = take_numbers<double>(bytes);
  for (std::size_t layers = take_count(bytes, sizeof(std::uint64_t)); layers > 0; --layers)
    found.zetas.push_back(take_numbers<double>(bytes));
  for (std::size_t layers = take_count(bytes, 3 * sizeof(std::uint64_t)); layers > 0; --layers) {
    Reads of_layer;
    take_bytes(bytes, &of_layer.layer, sizeof(of_layer.layer));
    of_layer.ids = take_numbers<std::int64_t>(bytes);
    of_layer.weights = take_numbers<double>(bytes);
    found.reads.push_back(std::move(of_layer));
  }
  return found;
}

}  // namespace engram
