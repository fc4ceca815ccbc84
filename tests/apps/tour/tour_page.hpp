#pragma once
/// A page of docs/guide/autograd-tour*.md taken apart. A fenced block of C++ follows a line that holds nothing but the
/// path of a source file in backquotes; a fenced block of text follows the line "`autograd_tour N` prints:", or that of
/// `autograd_tour --trace OP`. Blocks of shell commands are not looked at.

#include <string>
#include <vector>

namespace engram::tour {

using Lines = std::vector<std::string>;

struct Listing {
  std::string path;  ///< of the source file, from the root
  Lines lines;
  std::size_t line = 0;  ///< of the page, from 1
};
struct Output {
  std::size_t step = 0;  ///< from 1
  std::string text;
};
/// What `autograd_tour --trace` prints.
struct ShownTrace {
  std::string operation;
  std::string text;
};
struct Page {
  std::vector<std::string> headings;  ///< "1. Title"
  std::vector<Listing> listings;
  std::vector<Output> outputs;
  std::vector<ShownTrace> traces;
  std::string text;
  Lines faults;  ///< blocks without a caption
};

Lines lines_of(const std::string& text);
Page parse_page(const std::string& text);

/// Empty when the listing stands in the source: its lines one after the other, a line "// ..." standing for any number
/// of lines that are left out. Otherwise a line that says what was not found.
std::string listing_fault(const Listing& listing, const Lines& source);

}  // namespace engram::tour
