#pragma once
/// docs/reference/papers.md, as the lists of apps/studies/papers have it today.

#include <string>

namespace engram::harness {

std::string papers_page();

}  // namespace engram::harness
