#include "apps/tape/tape_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "autograd/tape_listing.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::vector<std::string> parts_of(const std::string& scope) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < scope.size();) {
    const std::size_t end = std::min(scope.find('/', begin), scope.size());
    parts.push_back(scope.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string in_quotes(std::string_view part) {
  std::string out = "\"";
  for (const char c : part) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// A parameter's name without the parts that the scope begins with too.
std::string short_name(const std::string& name, std::string scope) {
  std::ranges::replace(scope, '/', '.');
  scope += '.';
  std::size_t said = 0;
  for (std::size_t i = 0; i < std::min(name.size(), scope.size()) && name[i] == scope[i]; ++i)
    if (name[i] == '.') said = i + 1;
  return name.substr(said);
}

std::string time_text(double seconds) {
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.2g} \u00b5s", seconds * 1e6);
}

class TapeGraph {
 public:
  TapeGraph(const TapeRecording& recording, bool times) : recording_(recording), times_(times) {
    for (const RecordedOp& op : recording.ops) most_kept_ = std::max(most_kept_, op.kept_bytes);
  }

  std::string text() {
    for (std::size_t i = 0; i < recording_.values.size(); ++i)
      if (recording_.values[i].kind == ValueKind::leaf)
        add("", fmt::format("{} [shape=ellipse, style=filled, fillcolor=\"#f6efdc\", color=\"#b99a4b\", label={}];",
                            node(static_cast<int>(i)),
                            label(recording_.values[i].name + "\n" + engram::text(recording_.values[i].shape))));
    std::string edges;
    for (std::size_t i = 0; i < recording_.ops.size(); ++i) {
      add(recording_.ops[i].scope, op_node(i));
      edges += edges_to(i);
    }
    return std::string(kTapeGraphBeginning) +
           "\n  graph [rankdir=LR, nodesep=0.1, ranksep=0.2, margin=0.1, bgcolor=\"#ffffff\", "
           "fontname=\"Helvetica\", "
           "fontsize=9, fontcolor=\"#5c6168\"];\n"
           "  node [shape=box, style=\"rounded,filled\", color=\"#7d8590\", fontname=\"Helvetica\", fontsize=9, "
           "height=0.2, width=0.5, margin=\"0.05,0.02\"];\n"
           "  edge [color=\"#7d8590\", arrowsize=0.5];\n" +
           box("", "", 1) + edges + "}\n";
  }

 private:
  void add(const std::string& scope, const std::string& line) {
    std::string path;
    for (const std::string& part : parts_of(scope)) {
      const std::string inner = path + (path.empty() ? "" : "/") + part;
      std::vector<std::string>& boxes = boxes_in_[path];
      if (std::ranges::find(boxes, inner) == boxes.end()) boxes.push_back(inner);
      path = inner;
    }
    lines_in_[path].push_back(line);
  }

  std::string box(const std::string& path, const std::string& name, std::size_t depth) {
    const std::string margin(2 * depth, ' ');
    std::string inside;
    for (const std::string& line : lines_in_[path]) inside += margin + line + "\n";
    for (const std::string& inner : boxes_in_[path]) {
      // Before it gets its own number: one expression would leave the order to the compiler.
      const std::string content = box(inner, inner.substr(path.empty() ? 0 : path.size() + 1), depth + 1);
      inside += fmt::format("{}subgraph cluster_{} {{\n", margin, boxes_++) + content + margin + "}\n";
    }
    if (name.empty()) return inside;
    return fmt::format("{}label={}; labeljust=l; style=rounded; color=\"#b9bec5\"; bgcolor=\"{}\"; margin=5;\n", margin,
                       in_quotes(name), depth % 2 == 0 ? "#f7f7f4" : "#ffffff") +
           inside;
  }

  std::string op_node(std::size_t i) const {
    const RecordedOp& op = recording_.ops[i];
    std::string words = op.name + "\n";
    for (const int output : op.outputs)
      words += engram::text(recording_.values[static_cast<std::size_t>(output)].shape, " ");
    words += listed_bytes(op.kept_bytes) + parameters(op);
    if (times_) words += "\n" + time_text(op.forward.seconds) + ", " + time_text(op.backward.seconds);
    // From white to blue.
    const double share = most_kept_ == 0 ? 0 : static_cast<double>(op.kept_bytes) / static_cast<double>(most_kept_);
    const auto between = [share](int from, int to) { return from + static_cast<int>(share * (to - from)); };
    return fmt::format("op{} [fillcolor=\"#{:02x}{:02x}{:02x}\", label={}];", i, between(255, 158), between(255, 202),
                       between(255, 232), label(words));
  }

  /// A line for each parameter that it reads.
  std::string parameters(const RecordedOp& op) const {
    std::string names;
    for (const RecordedInput& input : op.inputs) {
      if (input.value < 0) continue;
      const RecordedValue& value = recording_.values[static_cast<std::size_t>(input.value)];
      if (value.kind == ValueKind::parameter) names += "\n" + short_name(value.name, op.scope);
    }
    return names;
  }

  /// Lines of a label are divided by "\n", which Graphviz reads itself.
  static std::string label(const std::string& words) {
    std::string out;
    for (const char c : in_quotes(words)) out += c == '\n' ? std::string("\\n") : std::string(1, c);
    return out;
  }

  std::string node(int index) const {
    const RecordedValue& value = recording_.values[static_cast<std::size_t>(index)];
    return value.maker >= 0 ? fmt::format("op{}", value.maker) : fmt::format("value{}", index);
  }

  std::string edges_to(std::size_t i) const {
    std::string edges;
    for (const RecordedInput& input : recording_.ops[i].inputs) {
      if (input.value < 0) continue;
      const RecordedValue& value = recording_.values[static_cast<std::size_t>(input.value)];
      if (value.kind != ValueKind::output && value.kind != ValueKind::leaf) continue;
      edges += fmt::format("  {} -> op{};\n", node(input.value), i);
    }
    return edges;
  }

  const TapeRecording& recording_;
  bool times_;
  std::size_t most_kept_ = 0;
  int boxes_ = 0;
  std::map<std::string, std::vector<std::string>> lines_in_, boxes_in_;  // of a scope, by its path
};

}  // namespace

std::string tape_graph(const TapeRecording& recording, bool times) { return TapeGraph(recording, times).text(); }

}  // namespace engram
