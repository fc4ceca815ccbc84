/// `engram watch`: what is answered to browsers of this machine and what to others, and a run that goes on meanwhile.

#include "apps/studies/page/page_server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/error.hpp"
#include "tests/apps/studies/page/page_contents.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::page_server_test {
namespace {

namespace fs = std::filesystem;

/// A server of a page with a run, in a thread of its own.
class Served {
 public:
  explicit Served(const fs::path& folder)
      : page_({folder.string()}, [folder] {
          Page page;
          for (const PageSource& source : find_sources({folder.string()}).runs) page.runs.push_back(open_run(source));
          return page;
        }) {
    std::promise<int> began;
    std::future<int> port = began.get_future();
    thread_ = std::thread([this, &began] {
      serve_page(
          page_, 0, [&began](int taken) { began.set_value(taken); }, [this] { return stopped_.load(); });
    });
    port_ = port.get();
  }
  ~Served() {
    stopped_ = true;
    thread_.join();
  }

  /// The whole answer to some bytes, as far as it comes within half a second of silence.
  std::string ask(const std::string& bytes) const {
    const int link = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(link, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t more = ::send(link, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) break;  // it was refused before all was sent
      sent += static_cast<std::size_t>(more);
    }
    // The server waits for what may follow; one that is asked wrongly need not answer.
    const timeval patience{.tv_sec = 0, .tv_usec = 500'000};
    ::setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string answer;
    char piece[4096];
    for (ssize_t got = 0; (got = ::recv(link, piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<std::size_t>(got));
    ::close(link);
    return answer;
  }
  std::string get(const std::string& path, const std::string& method = "GET", const std::string& more = "") const {
    return ask(
        text(method, " ", path, " HTTP/1.1\r\nHost: 127.0.0.1:", port_, "\r\nConnection: close\r\n", more, "\r\n"));
  }
  int port() const { return port_; }

 private:
  LivePage page_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
  int port_ = 0;
};

std::string status_of(const std::string& answer) { return answer.substr(0, answer.find('\r')); }
std::string body_of(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

constexpr const char* kStart = "{\"event\":\"start\",\"step\":0,\"steps\":9}\n";
std::string report(int step) { return text("{\"event\":\"train\",\"step\":", step, ",\"nll\":2,\"bpc\":2}\n"); }

TEST_CASE("a watched run is shown as it goes on, is resumed and diverges") {
  if (!has_page_server()) return;
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  const auto log = put_file(folder / "run" / "metrics.jsonl", kStart + report(1));
  const auto append = [&log](const std::string& lines) { std::ofstream(log, std::ios::app) << lines; };
  const Served served(folder / "run");
  const std::string html = body_of(served.get("/"));
  CHECK(data_of(html).at("live") == true);
  CHECK_THAT(html, ContainsSubstring("connect-src 'self'"));
  std::string version;
  const auto ask = [&] {
    const std::string answer = served.get("/data?since=" + version);
    if (status_of(answer).find("204") != std::string::npos) return nlohmann::json();
    nlohmann::json changes = nlohmann::json::parse(body_of(answer));
    version = changes.at("version").get<std::string>();
    return changes;
  };
  CHECK(ask().at("runs").at(0).at("step") == 1);
  CHECK(ask().is_null());
  append(report(2));
  CHECK(ask().at("runs").at(0).at("train").at("loss").at("n") == 2);
  append("{\"event\":\"resume\",\"step\":1,\"steps\":9}\n");
  CHECK(ask().at("runs").at(0).at("train").at("loss").at("n") == 1);
  append("{\"event\":\"diverged\",\"step\":1,\"reason\":\"<b>too far\"}\n");
  const nlohmann::json last = ask();
  CHECK(last.at("runs").at(0).at("state") == "diverged");
  CHECK_THAT(last.at("head").get<std::string>(), ContainsSubstring("&lt;b&gt;too far"));
  // A file that is cut short or gone is read anew, and the server goes on.
  put_file(log, kStart);
  CHECK(!ask().at("runs").at(0).at("train").contains("loss"));
  fs::remove(log);
  CHECK(status_of(served.get("/")).find("200") != std::string::npos);
}

TEST_CASE("a sweep that gets another run while it is watched has its page made anew") {
  if (!has_page_server()) return;
  const TemporaryFolder folder;
  for (const char* const name : {"sweep/a", "sweep/b"}) fs::create_directories(folder / name);
  put_file(folder / "sweep" / "a" / "metrics.jsonl", kStart);
  const Served served(folder / "sweep");
  const nlohmann::json before = nlohmann::json::parse(body_of(served.get("/data")));
  put_file(folder / "sweep" / "b" / "metrics.jsonl", kStart);
  const nlohmann::json after = nlohmann::json::parse(body_of(served.get("/data")));
  CHECK(before.at("runs").size() == 1);
  CHECK(after.at("runs").size() == 2);
  CHECK(before.at("studied") != after.at("studied"));
}

TEST_CASE("what is asked in another way, of another place, or is too large is refused, and the page stays") {
  if (!has_page_server()) return;
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  put_file(folder / "run" / "metrics.jsonl", kStart);
  const Served served(folder / "run");
  const auto status = [&](const std::string& answer, const char* expected) {
    CAPTURE(answer.substr(0, 200));
    CHECK_THAT(status_of(answer), ContainsSubstring(expected));
  };
  for (const char* const method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) status(served.get("/", method), "405");
  status(served.get("/", "POST", "Content-Length: 3\r\n"), "405");
  for (const char* const path : {"/metrics.jsonl", "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                                 "//etc/passwd", "/data/", "/data/../x", "/index.html", "/%00"})
    status(served.get(path), "404");
  status(served.ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), "403");
  status(served.ask("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), "403");
  status(served.ask(
             text("GET / HTTP/1.1\r\nHost: 127.0.0.1:", served.port(), ".evil.example\r\nConnection: close\r\n\r\n")),
         "403");
  status(served.get("/" + std::string(100'000, 'a')), "414");
  // Headers without end and what is no HTTP get no answer of the page's.
  for (const std::string& bytes :
       {text("GET / HTTP/1.1\r\nX: ", std::string(1'000'000, 'x')), std::string("\x16\x03\x01\x02"),
        std::string("GET /\r\n\r\n"), std::string(5000, '\0'), std::string()})
    CHECK(served.ask(bytes).find("200 OK") == std::string::npos);
  status(served.get("/"), "200");
  const std::string head = served.get("/", "HEAD");
  status(head, "200");
  CHECK(body_of(head).empty());
  for (const char* const header :
       {"X-Content-Type-Options: nosniff", "Cache-Control: no-store", "X-Frame-Options: DENY"})
    CHECK_THAT(head, ContainsSubstring(header));
  // One that says nothing keeps nobody else from being answered.
  const Served other(folder / "run");
  CHECK(other.port() != served.port());
  LivePage page({}, [] { return Page{}; });
  CHECK_THROWS_AS(serve_page(
                      page, served.port(), [](int) {}, [] { return true; }),
                  UsageError);
}

}  // namespace
}  // namespace engram::harness::page_server_test
