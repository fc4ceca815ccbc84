#pragma once
/// The page of `engram watch`, served to this machine alone.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

#include "apps/studies/page/live_page.hpp"

namespace engram {

/// Whether the program was built with a server (cpp-httplib).
bool has_page_server();

/// Whether a request's Host is this machine at a port, as browsers say it: "127.0.0.1:8000" or "localhost:8000", in
/// whatever case; port 80 is left out.
bool is_page_host(std::string_view host, int port);

/// What a server bears with.
struct PageServerLimits {
  std::size_t at_once = 32;                  ///< connections that are answered; others wait for one of these
  std::chrono::milliseconds patience{5000};  ///< a connection that has not asked anything whole by then is closed
};

/// Answers GET and HEAD of "/" and "/data?since=VERSION" on 127.0.0.1 and nothing else. Requests that name another host
/// are refused, so that no web page can read it through a name of its own.
class PageServer {
 public:
  /// Takes the port; 0 lets the system choose. `page` must outlive it. Throws NotAvailable without a server in the
  /// program, UsageError for a port that is taken or may not be had.
  PageServer(LivePage& page, int port, const PageServerLimits& limits = {});
  ~PageServer();

  int port() const;
  /// Answers until stop().
  void run();
  /// Ends run(), also one that begins later. May be called from another thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace engram
