#pragma once
/// The page of `engram watch`, served to this machine alone.

#include <functional>

#include "apps/studies/page/live_page.hpp"

namespace engram {

/// Whether the program was built with a server (cpp-httplib).
bool has_page_server();

/// Answers GET and HEAD of "/" and "/data?since=VERSION" on 127.0.0.1 and nothing else, until `stop` says so. Requests
/// that name another host are refused, so that no web page can read it through a name of its own. `port`: 0 lets the
/// system choose; `began` gets the one that it is. Throws NotAvailable without a server in the program, UsageError for
/// a port that is taken or may not be had.
void serve_page(LivePage& page, int port, const std::function<void(int port)>& began,
                const std::function<bool()>& stop);

}  // namespace engram
