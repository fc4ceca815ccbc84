#pragma once
/// The page of `engram watch`: served to this machine alone while its runs are trained.

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

/// Whether the program was built with a server (cpp-httplib).
bool has_page_server();

/// Answers GET and HEAD of "/" and "/data?since=VERSION" on 127.0.0.1 and nothing else, until `stop` says so. Requests
/// that name another host are refused, so that no web page can read it through a name of its own. `port`: 0 lets the
/// system choose; `began` gets the one that it is. Throws NotAvailable without a server in the program, UsageError for
/// a port that is taken or may not be had.
void serve_page(LivePage& page, int port, const std::function<void(int port)>& began,
                const std::function<bool()>& stop);

}  // namespace engram
