#include "apps/studies/page/page_server.hpp"

#include "core/error.hpp"
#ifdef ENGRAM_HAVE_HTTPLIB
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>

namespace engram {
namespace {

/// What is answered to requests that are none of the page's.
using Handled = httplib::Server::HandlerResponse;

/// Sets what every answer says: it is for this page alone, and kept by nobody.
void set_common_headers(httplib::Response& response) {
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Referrer-Policy", "no-referrer");
}

Handled refuse(httplib::Response& response, int status, const char* words) {
  response.status = status;
  response.set_header("Connection", "close");
  response.set_content(words, "text/plain; charset=utf-8");
  return Handled::Handled;
}

/// Refuses what is not asked by a browser of this machine for the page.
Handled check(const httplib::Request& request, httplib::Response& response, const std::set<std::string>& hosts) {
  set_common_headers(response);
  if (request.method != "GET" && request.method != "HEAD") {
    response.set_header("Allow", "GET, HEAD");
    return refuse(response, 405, "engram watch only shows: GET and HEAD\n");
  }
  if (request.get_header_value_count("Host") != 1 || !hosts.contains(request.get_header_value("Host")))
    return refuse(response, 403, "engram watch answers to 127.0.0.1 and localhost\n");
  if (request.path != "/" && request.path != "/data") return refuse(response, 404, "engram watch has / and /data\n");
  if (request.has_header("Content-Length") || request.has_header("Transfer-Encoding"))
    return refuse(response, 400, "engram watch takes nothing\n");
  return Handled::Unhandled;
}

void set_up(httplib::Server& server, LivePage& page) {
  using std::chrono::seconds;
  constexpr int kThreads = 4;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // The library's own would share a port with another server that has it already.
  server.set_socket_options([](socket_t link) {
    const int yes = 1;
    ::setsockopt(link, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_payload_max_length(1);
  server.set_read_timeout(seconds(5));
  server.set_write_timeout(seconds(10));
  server.set_keep_alive_timeout(5);
  server.Get("/", [&page](const httplib::Request&, httplib::Response& response) {
    response.set_content(page.html(), "text/html; charset=utf-8");
  });
  server.Get("/data", [&page](const httplib::Request& request, httplib::Response& response) {
    const std::string changes = page.changes(request.get_param_value("since"));
    if (changes.empty())
      response.status = 204;
    else
      response.set_content(changes, "application/json");
  });
}

}  // namespace

bool has_page_server() { return true; }

void serve_page(LivePage& page, int port, const std::function<void(int)>& began, const std::function<bool()>& stop) {
  constexpr const char* kHere = "127.0.0.1";
  httplib::Server server;
  set_up(server, page);
  const int taken = port == 0 ? server.bind_to_any_port(kHere) : server.bind_to_port(kHere, port) ? port : -1;
  if (taken < 0)
    throw UsageError(text("watch: --port must be one that is free and may be had, got ", port,
                          "\n  without --port the system chooses one"));
  const std::set<std::string> hosts{text("127.0.0.1:", taken), text("localhost:", taken)};
  server.set_pre_routing_handler([&hosts](const httplib::Request& request, httplib::Response& response) {
    return check(request, response, hosts);
  });
  std::atomic<bool> ended = false;
  std::thread listener([&server, &ended] {
    server.listen_after_bind();
    ended = true;
  });
  began(taken);
  // A server can be stopped only once it runs.
  while (!ended && !(stop() && server.is_running())) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server.stop();
  listener.join();
}

}  // namespace engram
#else
namespace engram {

bool has_page_server() { return false; }

void serve_page(LivePage&, int, const std::function<void(int)>&, const std::function<bool()>&) {
  throw NotAvailable("watch: this program was built without cpp-httplib");
}

}  // namespace engram
#endif
