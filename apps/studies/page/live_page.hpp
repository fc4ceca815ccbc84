#pragma once
/// The page of `engram watch` behind the server: read anew as its runs go on.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/studies/page/page_html.hpp"

namespace engram {

/// A page that is kept up to date. Its functions may be called from several threads.
class LivePage {
 public:
  /// `arguments`: what the runs were found by. A sweep gets new ones while it goes on: `read` makes the page anew then.
  LivePage(std::vector<std::string> arguments, std::function<Page()> read);
  ~LivePage();

  /// The whole page, of now.
  std::string html();
  /// What has changed since a version, as live_json_of() with that version; empty: nothing.
  std::string changes(const std::string& since);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace engram
