/// Requests to the server of `engram watch`, which bytes of anybody on this machine reach.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "apps/studies/page/page_server.hpp"
#include "core/error.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

/// A server of a page without runs, for as long as the process.
class Served {
 public:
  Served()
      : page_({}, {.read = [] { return Page{}; }, .study = {}}),
        server_(page_, 0),
        thread_([this] { server_.run(); }) {}
  ~Served() {
    server_.stop();
    thread_.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  int port() const { return server_.port(); }
  LivePage& page() { return page_; }

 private:
  LivePage page_;
  PageServer server_;
  std::thread thread_;
};

/// How the answer to some bytes begins. Nothing follows them.
std::string ask(int port, std::string_view bytes) {
  const int link = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (link < 0 || ::connect(link, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "the server must take connections");
  while (!bytes.empty()) {
    const ssize_t sent = ::send(link, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // it has answered, and hears no more
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(link, SHUT_WR);
  std::string answer;
  char piece[4096];
  for (ssize_t got = 0; (got = ::recv(link, piece, sizeof piece, 0)) > 0;)
    if (answer.size() < sizeof piece) answer.append(piece, static_cast<std::size_t>(got));
  ::close(link);
  return answer;
}

}  // namespace

void read_requests(std::string_view bytes) {
  if (!has_page_server()) return;
  static Served served;
  is_page_host(bytes, served.port());
  refuses([&] { served.page().changes(std::string(bytes)); });
  // Any port of a request is this one's.
  std::string request(bytes);
  for (std::size_t at = request.find("PORT"); at != request.npos; at = request.find("PORT", at + 1))
    request.replace(at, 4, std::to_string(served.port()));
  const std::string answer = ask(served.port(), request);
  if (!answer.empty() && !answer.starts_with("HTTP/1."))
    throw std::logic_error("an answer must be HTTP, got " + answer);
  if (answer.starts_with("HTTP/1.1 500")) throw std::logic_error("a request must not make the page fail");
}

}  // namespace engram::fuzz
