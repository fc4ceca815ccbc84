#include "autograd/tape_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace engram {
namespace {

using Row = std::array<std::string, 7>;

std::vector<Tensor> saved_tensors(const Tape& tape, const Tape::Entry& entry) {
  std::vector<Tensor> tensors;
  for (Node::Saved& kept : kept_tensors(tape, entry)) tensors.push_back(std::move(kept.tensor));
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
          listed_bytes(union_bytes(saved_tensors(tape, entry))),
          parameters_text(tape, entry.inputs)};
}

}  // namespace

std::vector<Node::Saved> kept_tensors(const Tape& tape, const Tape::Entry& entry) {
  std::vector<Node::Saved> kept = entry.node->saved();
  std::erase_if(kept, [&](const Node::Saved& saved) {
    return !saved.tensor || std::ranges::any_of(entry.inputs, [&](int slot) {
      const Parameter* owner = slot < 0 ? nullptr : tape.slot_parameter(slot);
      return owner != nullptr && owner->value_for(tape.step().activations()).raw() == saved.tensor.raw();
    });
  });
  return kept;
}

std::string listed_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

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
                             listed_bytes(bytes_kept(tape)));
}

}  // namespace engram
