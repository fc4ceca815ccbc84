#pragma once
/// The page of `engram watch` behind the server: read anew as its runs go on.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/studies/page/page_html.hpp"

namespace engram {

/// How a live page is made.
struct LivePageMaker {
  /// The whole page, its checkpoints studied: at first, and when other runs are found. What it throws of Error later is
  /// a line on the page that there was.
  std::function<Page()> read;
  /// Studies the checkpoint of a run that had none before; empty: nobody does.
  std::function<void(PageRun&)> study;
};

/// A page that is kept up to date. Its functions may be called from several threads.
class LivePage {
 public:
  /// `arguments`: what the runs are found by. A sweep gets new ones while it goes on. Runs that are gone stay on the
  /// page as they were, which says so.
  LivePage(std::vector<std::string> arguments, LivePageMaker maker);
  ~LivePage();

  /// The whole page, of now.
  std::string html();
  /// What has changed since a version, as live_json_of() with that version; empty: nothing. Versions of another process
  /// are unknown here: everything has changed since then.
  std::string changes(const std::string& since);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace engram
