#include "autograd/tape_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace engram {
namespace {

using Row = std::array<std::string, 7>;

// All saved tensors that are not a parameter's own value.
std::vector<Tensor> saved_tensors(const Tape& tape, const Tape::Entry& entry) {
  std::vector<Tensor> tensors;
  for (const Node::Saved& saved : entry.node->saved()) {
    if (!saved.tensor) continue;
    const bool parameter = std::ranges::any_of(entry.inputs, [&](int slot) {
      const Parameter* owner = slot < 0 ? nullptr : tape.slot_parameter(slot);
      return owner != nullptr && owner->value_for(tape.step().activations()).raw() == saved.tensor.raw();
    });
    if (!parameter) tensors.push_back(saved.tensor);
  }
  return tensors;
}

// Size of the union of the address ranges: tensors may share memory in part.
std::size_t union_bytes(const std::vector<Tensor>& tensors) {
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
  for (const Tensor& tensor : tensors) {
    const auto* begin = static_cast<const std::byte*>(tensor.raw());
    ranges.emplace_back(begin, begin + tensor.bytes());
  }
  std::ranges::sort(ranges);
  std::size_t total = 0;
  const std::byte* reached = nullptr;
  for (const auto& [begin, end] : ranges) {
    const std::byte* from = reached == nullptr ? begin : std::max(begin, reached);
    if (end > from) total += static_cast<std::size_t>(end - from);
    reached = reached == nullptr ? end : std::max(reached, end);
  }
  return total;
}

std::string bytes_text(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string shapes_text(const Tape& tape, std::span<const int> slots) {
  std::vector<std::string> shapes;
  for (const int slot : slots) shapes.push_back(slot < 0 ? "-" : text(tape.slot_shape(slot)));
  return joined(shapes, " ");
}

std::string parameters_text(const Tape& tape, std::span<const int> slots) {
  std::vector<std::string> names;
  for (const int slot : slots)
    if (slot >= 0 && tape.slot_parameter(slot) != nullptr) names.push_back(tape.slot_parameter(slot)->name());
  return joined(names, " ");
}

Row row_of(const Tape& tape, std::size_t index) {
  const Tape::Entry entry = tape.entry(index);
  return {std::to_string(index),
          std::string(entry.node->name()),
          std::string(entry.scope),
          shapes_text(tape, entry.inputs),
          shapes_text(tape, entry.outputs),
          bytes_text(union_bytes(saved_tensors(tape, entry))),
          parameters_text(tape, entry.inputs)};
}

std::string in_quotes(std::string_view part) {
  std::string out = "\"";
  for (const char c : part) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::size_t bytes_kept(const Tape& tape) {
  std::vector<Tensor> all;
  for (std::size_t index = 0; index < tape.size(); ++index)
    for (Tensor& tensor : saved_tensors(tape, tape.entry(index))) all.push_back(std::move(tensor));
  return union_bytes(all);
}

std::string tape_table(const Tape& tape) {
  std::vector<Row> rows{{"#", "op", "scope", "inputs", "outputs", "keeps", "parameters"}};
  for (std::size_t index = 0; index < tape.size(); ++index) rows.push_back(row_of(tape, index));
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (std::size_t column = 0; column < widths.size(); ++column) {
    for (std::size_t r = 1; r < rows.size(); ++r) widths[column] = std::max(widths[column], rows[r][column].size());
    // A column of nothing (no scopes were kept, no parameters used) is left out together with its head.
    if (widths[column] > 0) widths[column] = std::max(widths[column], rows[0][column].size());
  }

  std::string table;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (widths[column] == 0) continue;
      const bool number = column == 0 || column == 5;
      line += number ? fmt::format("{:>{}}  ", row[column], widths[column])
                     : fmt::format("{:<{}}  ", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) table += line + '\n';
  }
  return table + fmt::format("{} operations keep {} (shared memory once, parameters not counted)\n", tape.size(),
                             bytes_text(bytes_kept(tape)));
}

std::string tape_graph(const Tape& tape) {
  std::string nodes, edges;
  std::map<int, std::string> producer;  // slot -> node that its edges start at
  std::set<std::string> drawn;
  for (std::size_t index = 0; index < tape.size(); ++index) {
    const Tape::Entry entry = tape.entry(index);
    const std::string name = fmt::format("op{}", index);
    const std::string kept = bytes_text(union_bytes(saved_tensors(tape, entry)));
    const std::string scope = entry.scope.empty() ? "" : text(entry.scope, "/");
    nodes += fmt::format("  {} [shape=box, label={}];\n", name,
                         in_quotes(text(scope, entry.node->name(), ", keeps ", kept)));
    for (const int slot : entry.outputs) producer[slot] = name;
    for (const int slot : entry.inputs) {
      if (slot < 0) continue;
      auto source = producer.find(slot);
      if (source == producer.end()) {
        const Parameter* parameter = tape.slot_parameter(slot);
        // A parameter gets a slot at every use, but is drawn once.
        const std::string label = parameter != nullptr ? parameter->name() : fmt::format("leaf {}", slot);
        source = producer.emplace(slot, in_quotes(label)).first;
        if (drawn.insert(label).second) nodes += fmt::format("  {} [shape=ellipse];\n", source->second);
      }
      edges += fmt::format("  {} -> {} [label={}];\n", source->second, name, in_quotes(text(tape.slot_shape(slot))));
    }
  }
  return "digraph tape {\n" + nodes + edges + "}\n";
}

}  // namespace engram
