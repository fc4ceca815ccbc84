#include "tests/apps/report/rooms_drawing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "apps/report/svg_canvas.hpp"

namespace engram {
namespace {

using Graph = std::map<std::string, std::set<std::string>>;  // from each box to those that it includes from

constexpr double kWidth = 940, kMargin = 20, kLine = 16, kTitle = 22, kBetweenFloors = 46, kBetweenBoxes = 18;
constexpr std::string_view kInk = "#1a1a1a", kGrey = "#5f5f5f", kArrow = "#8a8a8a", kBox = "#eef2f7", kEdge = "#9db0c6";

/// The first `parts` parts of a path of folders; what the path has, if it has fewer. No part for the file's own name.
std::string folder_of(const std::string& path, int parts) {
  std::size_t end = 0;
  for (int i = 0; i < parts; ++i) {
    const std::size_t next = path.find('/', end == 0 ? 0 : end + 1);
    if (next == std::string::npos) break;
    end = next;
  }
  return path.substr(0, end);
}

int depth_of_box(const std::string& path) { return path.starts_with("apps/") ? 2 : 1; }
std::string box_of(const std::string& path) { return folder_of(path, depth_of_box(path)); }
/// The folder of a box that a file is in; "" for the box itself.
std::string inner_of(const std::string& path) {
  const std::string box = box_of(path), inner = folder_of(path, depth_of_box(path) + 1);
  return inner == box ? "" : inner.substr(box.size() + 1);
}

bool has_circle(const Graph& graph) {
  std::set<std::string> done, open;
  const auto visit = [&](auto&& self, const std::string& node) -> bool {
    if (done.contains(node)) return false;
    if (!open.insert(node).second) return true;
    for (const std::string& below : graph.at(node))
      if (self(self, below)) return true;
    open.erase(node);
    done.insert(node);
    return false;
  };
  return std::ranges::any_of(graph, [&](const auto& entry) { return visit(visit, entry.first); });
}

/// The longest way down from each node; all on one floor where there is a circle.
std::map<std::string, int> floors_of(const Graph& graph) {
  std::map<std::string, int> floors;
  if (has_circle(graph)) {
    for (const auto& [node, unused] : graph) floors[node] = 0;
    return floors;
  }
  const auto floor = [&](auto&& self, const std::string& node) -> int {
    if (const auto known = floors.find(node); known != floors.end()) return known->second;
    int above = 0;
    for (const std::string& below : graph.at(node)) above = std::max(above, self(self, below) + 1);
    return floors[node] = above;
  };
  for (const auto& [node, unused] : graph) floor(floor, node);
  return floors;
}

bool leads(const Graph& graph, const std::string& from, const std::string& to) {
  return from == to ||
         std::ranges::any_of(graph.at(from), [&](const std::string& next) { return leads(graph, next, to); });
}

/// Without the arrows that others say already.
Graph reduced(const Graph& graph) {
  Graph left = graph;
  if (has_circle(graph)) return left;
  for (const auto& [from, below] : graph)
    for (const std::string& to : below)
      if (std::ranges::any_of(below, [&](const std::string& other) { return other != to && leads(graph, other, to); }))
        left[from].erase(to);
  return left;
}

struct Box {
  std::string name;
  std::vector<std::string> lines;  // its folders, the highest floor first
  double x = 0, y = 0, width = 0;  // the middle of its upper edge

  double height() const { return kTitle + kLine * static_cast<double>(lines.size()) + 8; }
};

/// The folders of a box by floors; none where it has at most one.
std::vector<std::string> inner_lines(const Graph& inner) {
  if (inner.size() < 2) return {};
  std::map<int, std::string, std::greater<>> by_floor;
  for (const auto& [name, floor] : floors_of(inner)) {
    std::string& line = by_floor[floor];
    line += (line.empty() ? "" : ", ") + (name.empty() ? "(itself)" : name);
  }
  std::vector<std::string> lines;
  for (const auto& [unused, line] : by_floor)
    for (std::size_t begin = 0; begin < line.size();) {  // wrapped behind commas
      constexpr std::size_t kLongest = 34;
      std::size_t end = line.size() - begin <= kLongest ? line.size() : line.rfind(", ", begin + kLongest);
      lines.push_back(line.substr(begin, end - begin) + (end == line.size() ? "" : ","));
      begin = end == line.size() ? end : end + 2;
    }
  return lines;
}

/// The boxes of a floor side by side, ordered by where the boxes above that point at them are.
void place(std::vector<Box*>& row, const std::map<std::string, Box>& boxes, const Graph& arrows, double y) {
  const auto wanted = [&](const Box* box) {
    double sum = 0;
    int count = 0;
    for (const auto& [from, below] : arrows)
      if (below.contains(box->name) && boxes.at(from).x > 0) {
        sum += boxes.at(from).x;
        ++count;
      }
    return count == 0 ? kWidth / 2 : sum / count;
  };
  std::vector<std::pair<double, Box*>> order;
  for (Box* const box : row) order.emplace_back(wanted(box), box);
  std::ranges::stable_sort(order, {}, &std::pair<double, Box*>::first);
  double total = -kBetweenBoxes;
  for (const Box* const box : row) total += box->width + kBetweenBoxes;
  double x = (kWidth - total) / 2;
  for (const auto& [unused, box] : order) {
    box->x = x + box->width / 2;
    box->y = y;
    x += box->width + kBetweenBoxes;
  }
}

void draw_arrow(SvgCanvas& canvas, const Box& from, const Box& to) {
  const double x1 = from.x, y1 = from.y + from.height(), x2 = to.x, y2 = to.y;
  canvas.line(x1, y1, x2, y2, kArrow);
  const double length = std::hypot(x2 - x1, y2 - y1), along_x = (x2 - x1) / length, along_y = (y2 - y1) / length;
  for (const double side : {-1.0, 1.0})
    canvas.line(x2, y2, x2 - 8 * along_x - 4 * side * along_y, y2 - 8 * along_y + 4 * side * along_x, kArrow);
}

}  // namespace

std::string draw_rooms(const source_tree::Includes& includes) {
  Graph graph;
  std::map<std::string, Graph> inner;
  for (const auto& [from, targets] : includes) {
    if (from.starts_with("tests/")) continue;
    graph[box_of(from)];
    inner[box_of(from)][inner_of(from)];
    for (const std::string& to : targets) {
      graph[box_of(to)];
      inner[box_of(to)][inner_of(to)];
      if (box_of(to) != box_of(from))
        graph[box_of(from)].insert(box_of(to));
      else if (inner_of(to) != inner_of(from))
        inner[box_of(from)][inner_of(from)].insert(inner_of(to));
    }
  }
  const Graph arrows = reduced(graph);
  std::map<std::string, Box> boxes;
  std::map<int, std::vector<Box*>, std::greater<>> rows;
  for (const auto& [name, floor] : floors_of(graph)) {
    Box& box = boxes[name];
    box.name = name;
    box.lines = inner_lines(inner.at(name));
    box.width = text_width(name, 14) + 24;
    for (const std::string& line : box.lines) box.width = std::max(box.width, text_width(line, 12) + 24);
    rows[floor].push_back(&box);
  }
  double y = kMargin;
  for (auto& [unused, row] : rows) {
    place(row, boxes, arrows, y);
    double height = 0;
    for (const Box* const box : row) height = std::max(height, box->height());
    y += height + kBetweenFloors;
  }
  SvgCanvas canvas({kWidth, y - kBetweenFloors + kMargin}, "Rooms of Engram, and who includes whom");
  for (const auto& [from, below] : arrows)
    for (const std::string& to : below) draw_arrow(canvas, boxes.at(from), boxes.at(to));
  for (const auto& [name, box] : boxes) {
    canvas.rect(box.x - box.width / 2 - 1, box.y - 1, box.width + 2, box.height() + 2, kEdge);
    canvas.rect(box.x - box.width / 2, box.y, box.width, box.height(), kBox);
    canvas.text(box.x, box.y + 16, name,
                {.size = 14, .anchor = TextStyle::Anchor::middle, .colour = kInk, .bold = true});
    for (std::size_t i = 0; i < box.lines.size(); ++i)
      canvas.text(box.x, box.y + kTitle + 12 + kLine * static_cast<double>(i), box.lines[i],
                  {.size = 12, .anchor = TextStyle::Anchor::middle, .colour = kGrey});
  }
  return canvas.document();
}

}  // namespace engram
