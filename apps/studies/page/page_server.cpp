#include "apps/studies/page/page_server.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace engram {

bool is_page_host(std::string_view host, int port) {
  std::string name(host);
  for (char& byte : name)
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  constexpr int kPortOfHttp = 80;
  for (const char* const own : {"127.0.0.1", "localhost"})
    if (name == text(own, ":", port) || (port == kPortOfHttp && name == own)) return true;
  return false;
}

}  // namespace engram
#ifdef ENGRAM_HAVE_HTTPLIB
#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/log.hpp"

namespace engram {
namespace {

/// Threads that answer connections, and one that closes those whose request is not whole in time: the library has a
/// limit for each piece that it reads, so one who sends a byte now and then would hold a thread for good.
class PageConnections : public httplib::TaskQueue {
 public:
  /// What the library's function returns: nothing, or in later versions whether there is room.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));

  PageConnections(int port, const PageServerLimits& limits)
      : port_(port), patience_(limits.patience), pool_(limits.at_once), watch_([this] { close_late_ones(); }) {}
  ~PageConnections() override = default;
  PageConnections(const PageConnections&) = delete;
  PageConnections& operator=(const PageConnections&) = delete;

  Taken enqueue(std::function<void()> answer) override;
  void shutdown() override;
  /// The request that the calling thread answers is whole: it may take its time from here on.
  void heard();

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int link = -1;  ///< a descriptor of its own, so that it is the same connection whatever the library did with its
    in_port_t peer = 0;
    Clock::time_point until = Clock::time_point::max();  ///< counted from when a thread listens to it
    bool is_heard = false;
    std::thread::id thread;
  };

  /// The connection that was accepted last, which the library does not name; with the mutex held.
  Connection newest() const;
  void close_late_ones();

  int port_;
  std::chrono::milliseconds patience_;
  httplib::ThreadPool pool_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool ended_ = false;
  std::list<Connection> open_;
  std::thread watch_;
};

PageConnections::Connection PageConnections::newest() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const auto link = static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    sockaddr_in own{}, peer{};
    socklen_t own_size = sizeof own, peer_size = sizeof peer;
    if (::getsockname(link, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 || own.sin_family != AF_INET ||
        ntohs(own.sin_port) != port_ || ::getpeername(link, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
      continue;
    const auto is_its = [&peer](const Connection& known) { return known.peer == peer.sin_port; };
    if (std::ranges::none_of(open_, is_its)) return {.link = ::dup(link), .peer = peer.sin_port, .thread = {}};
  }
  return {};
}

PageConnections::Taken PageConnections::enqueue(std::function<void()> answer) {
  const std::scoped_lock lock(mutex_);
  const auto connection = open_.insert(open_.end(), newest());
  return pool_.enqueue([this, connection, answer = std::move(answer)] {
    {
      const std::scoped_lock begun(mutex_);
      connection->thread = std::this_thread::get_id();
      connection->until = Clock::now() + patience_;
      changed_.notify_one();
    }
    answer();
    const std::scoped_lock ended(mutex_);
    if (connection->link >= 0) ::close(connection->link);
    open_.erase(connection);
  });
}

void PageConnections::heard() {
  const std::scoped_lock lock(mutex_);
  for (Connection& connection : open_)
    if (connection.thread == std::this_thread::get_id()) connection.is_heard = true;
}

void PageConnections::close_late_ones() {
  std::unique_lock lock(mutex_);
  while (true) {
    Clock::time_point next = Clock::time_point::max();
    for (const Connection& connection : open_) {
      if (connection.is_heard || connection.link < 0) continue;
      if (ended_ || connection.until <= Clock::now())
        ::shutdown(connection.link, SHUT_RDWR);
      else
        next = std::min(next, connection.until);
    }
    if (ended_) return;
    if (next == Clock::time_point::max())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, next);
  }
}

void PageConnections::shutdown() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  watch_.join();
  pool_.shutdown();
}

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

Handled refuse(httplib::Response& response, int status, const std::string& words) {
  response.status = status;
  response.set_header("Connection", "close");
  response.set_content(words, "text/plain; charset=utf-8");
  return Handled::Handled;
}

/// Refuses what is not asked by a browser of this machine for the page.
Handled check(const httplib::Request& request, httplib::Response& response, int port) {
  constexpr std::size_t kMostHeaders = 100;
  set_common_headers(response);
  if (request.method != "GET" && request.method != "HEAD") {
    response.set_header("Allow", "GET, HEAD");
    return refuse(response, 405, "engram watch only shows: GET and HEAD\n");
  }
  if (request.headers.size() > kMostHeaders) return refuse(response, 431, "engram watch reads 100 headers\n");
  if (request.get_header_value_count("Host") != 1 || !is_page_host(request.get_header_value("Host"), port))
    return refuse(response, 403,
                  text("engram watch answers to 127.0.0.1:", port, " and localhost:", port,
                       ": a tunnel must have this port on both sides\n"));
  if (request.path != "/" && request.path != "/data") return refuse(response, 404, "engram watch has / and /data\n");
  if (request.has_header("Content-Length") || request.has_header("Transfer-Encoding"))
    return refuse(response, 400, "engram watch takes nothing\n");
  return Handled::Unhandled;
}

/// What went wrong is for who started the program; the browser gets no words of it.
void fail(httplib::Response& response, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    log(LogLevel::warning, text("watch: the page could not be made: ", error.what()));
  } catch (...) {
    log(LogLevel::warning, "watch: the page could not be made");
  }
  refuse(response, 500, "engram watch could not make the page\n");
}

}  // namespace

struct PageServer::State {
  httplib::Server server;
  int port = 0;
  PageConnections* connections = nullptr;  // the library's, while it runs
  std::mutex mutex;                        // of what follows
  bool is_stopped = false;
  std::atomic<bool> is_running = false;

  void set_up(LivePage& page, const PageServerLimits& limits);
};

void PageServer::State::set_up(LivePage& page, const PageServerLimits& limits) {
  using std::chrono::seconds;
  server.new_task_queue = [this, limits] { return connections = new PageConnections(port, limits); };
  // The library's own would share a port with another server that has it already.
  server.set_socket_options([](socket_t link) {
    const int yes = 1;
    ::setsockopt(link, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_payload_max_length(1);
  server.set_read_timeout(seconds(5));
  server.set_write_timeout(seconds(10));
  // A page asks every two seconds: its connection would hold a thread between.
  server.set_keep_alive_max_count(1);
  server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    connections->heard();
    return check(request, response, port);
  });
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response,
                                  const std::exception_ptr& thrown) { fail(response, thrown); });
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

bool has_page_server() { return true; }

PageServer::PageServer(LivePage& page, int port, const PageServerLimits& limits) : state_(std::make_unique<State>()) {
  constexpr const char* kHere = "127.0.0.1";
  state_->set_up(page, limits);
  httplib::Server& server = state_->server;
  state_->port = port == 0 ? server.bind_to_any_port(kHere) : server.bind_to_port(kHere, port) ? port : -1;
  if (state_->port < 0)
    throw UsageError(text("watch: --port must be one that is free and may be had, got ", port,
                          "\n  without --port the system chooses one"));
}

PageServer::~PageServer() = default;

int PageServer::port() const { return state_->port; }

void PageServer::run() {
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->is_stopped) return;
    state_->is_running = true;
  }
  state_->server.listen_after_bind();
  state_->is_running = false;
}

void PageServer::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->is_stopped = true;
  }
  // A server can be stopped only once it listens.
  while (state_->is_running && !state_->server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  state_->server.stop();
}

}  // namespace engram
#else
namespace engram {

struct PageServer::State {};

bool has_page_server() { return false; }

PageServer::PageServer(LivePage&, int, const PageServerLimits&) {
  throw NotAvailable("watch: this program was built without cpp-httplib");
}
PageServer::~PageServer() = default;
int PageServer::port() const { return 0; }
void PageServer::run() {}
void PageServer::stop() {}

}  // namespace engram
#endif
