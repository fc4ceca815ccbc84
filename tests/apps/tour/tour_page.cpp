#include "tests/apps/tour/tour_page.hpp"

#include <algorithm>
#include <sstream>

namespace engram::tour {
namespace {

/// The text between the two backquotes of "`...`suffix"; empty when the line is not of this form.
std::string quoted(const std::string& line, const std::string& suffix) {
  if (line.size() < suffix.size() + 3 || line.front() != '`' || !line.ends_with("`" + suffix)) return {};
  const std::string inside = line.substr(1, line.size() - suffix.size() - 2);
  return inside.find('`') == std::string::npos ? inside : std::string();
}

bool left_out(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line.substr(first) == "// ...";
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void take_block(Page& page, const std::string& language, const std::string& caption, std::size_t line, Lines block) {
  const std::string program = "autograd_tour ", trace = program + "--trace ";
  if (language == "sh") return;  // what a reader may type
  const std::string path = quoted(caption, ""), run = quoted(caption, " prints:");
  if (language == "cpp" && !path.empty())
    page.listings.push_back({path, std::move(block), line});
  else if (language == "text" && run.starts_with(trace))
    page.traces.push_back({run.substr(trace.size()), joined(block)});
  else if (language == "text" && run.starts_with(program))
    page.outputs.push_back({std::stoul(run.substr(program.size())), joined(block)});
  else
    page.faults.push_back("line " + std::to_string(line) + ": a block of '" + language + "' after '" + caption + "'");
}

}  // namespace

Lines lines_of(const std::string& text) {
  std::istringstream in(text);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Page parse_page(const std::string& text) {
  Page page;
  page.text = text;
  const Lines lines = lines_of(text);
  std::string caption;  // the last line that is not empty
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("```")) {
      const std::size_t start = i++;
      Lines block;
      while (i < lines.size() && lines[i] != "```") block.push_back(lines[i++]);
      take_block(page, lines[start].substr(3), caption, start + 1, std::move(block));
    } else if (lines[i].starts_with("## ")) {
      page.headings.push_back(lines[i].substr(3));
    }
    if (!lines[i].empty()) caption = lines[i];
  }
  return page;
}

std::string listing_fault(const Listing& listing, const Lines& source) {
  auto from = source.begin();
  for (std::size_t first = 0; first < listing.lines.size();) {
    std::size_t last = first;
    while (last < listing.lines.size() && !left_out(listing.lines[last])) ++last;
    const Lines piece(listing.lines.begin() + static_cast<std::ptrdiff_t>(first),
                      listing.lines.begin() + static_cast<std::ptrdiff_t>(last));
    const auto found = std::search(from, source.end(), piece.begin(), piece.end());
    if (found == source.end() && !piece.empty())
      return "line " + std::to_string(listing.line + 1 + first) + " of the page: not in " + listing.path +
             ", or not there in this order:\n" + joined(piece);
    from = found + static_cast<std::ptrdiff_t>(piece.size());
    first = last + 1;
  }
  return {};
}

}  // namespace engram::tour
