/// `engram watch`: what is answered to browsers of this machine and what to others, and a run that goes on meanwhile.

#include "apps/studies/page/page_server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "tests/apps/studies/page/page_contents.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::page_server_test {
namespace {

namespace fs = std::filesystem;

/// Without a server in the program its tests are hidden: they would count as passed.
const char* const kTags = has_page_server() ? "" : "[.without cpp-httplib]";

LivePageMaker page_maker(const fs::path& folder) {
  return {.read =
              [folder] {
                Page page;
                for (const PageSource& source : find_sources({folder.string()}).runs)
                  page.runs.push_back(open_run(source));
                return page;
              },
          .study = {}};
}

/// A server of a page with a run, in a thread of its own.
class Served {
 public:
  explicit Served(const fs::path& folder, const PageServerLimits& limits = {})
      : Served(folder, page_maker(folder), limits) {}
  Served(const fs::path& folder, LivePageMaker maker, const PageServerLimits& limits = {})
      : page_({folder.string()}, std::move(maker)), server_(page_, 0, limits), thread_([this] { server_.run(); }) {}
  ~Served() {
    server_.stop();
    thread_.join();
  }

  /// A connection that has said nothing yet.
  int connect() const {
    const int link = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(link, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return link;
  }
  /// The whole answer to some bytes, as far as it comes within a time of silence.
  std::string ask(const std::string& bytes, timeval patience = {.tv_sec = 20, .tv_usec = 0}) const {
    const int link = connect();
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t more = ::send(link, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) break;  // it was refused before all was sent
      sent += static_cast<std::size_t>(more);
    }
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
        text(method, " ", path, " HTTP/1.1\r\nHost: 127.0.0.1:", port(), "\r\nConnection: close\r\n", more, "\r\n"));
  }
  int port() const { return server_.port(); }

 private:
  LivePage page_;
  PageServer server_;
  std::thread thread_;
};

std::string status_of(const std::string& answer) { return answer.substr(0, answer.find('\r')); }
std::string body_of(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

constexpr const char* kStart = "{\"event\":\"start\",\"step\":0,\"steps\":9}\n";
/// How many the first run has.
std::size_t losses_of(const nlohmann::json& page) {
  return unpacked_floats(page.at("runs").at(0).at("train").at("loss").at("x")).size();
}
std::string report(int step) { return text("{\"event\":\"train\",\"step\":", step, ",\"nll\":2,\"bpc\":2}\n"); }

TEST_CASE("a watched run is shown as it goes on, is resumed and diverges", kTags) {
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
  CHECK(losses_of(ask()) == 2);
  append("{\"event\":\"resume\",\"step\":1,\"steps\":9}\n");
  CHECK(losses_of(ask()) == 1);
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

TEST_CASE("a sweep that gets another run while it is watched has its page made anew", kTags) {
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

TEST_CASE("what is asked in another way, of another place, or is too large is refused, and the page stays", kTags) {
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
  status(served.get("/" + std::string(10'000, 'a')), "414");
  // From 32 KiB on, later versions of the library read no further, and hang up without a word.
  if (const std::string answer = served.get("/" + std::string(100'000, 'a')); !answer.empty()) status(answer, "414");
  std::string headers;
  for (int i = 0; i < 200'000; ++i) headers += "X: y\r\n";
  status(served.get("/", "GET", headers), " 4");  // 431, or what later versions of the library say of so many
  for (const char* const line : {"GET /\r\n\r\n", "\x16\x03\x01\x02\r\n", "GET / HTTP/7.0\r\n\r\n"})
    status(served.ask(line), "400");
  status(served.get("/"), "200");
  status(served.ask(text("GET / HTTP/1.1\r\nHost: LocalHost:", served.port(), "\r\n\r\n")), "200");
  const std::string head = served.get("/", "HEAD");
  status(head, "200");
  CHECK(body_of(head).empty());
  for (const char* const header :
       {"X-Content-Type-Options: nosniff", "Cache-Control: no-store", "X-Frame-Options: DENY"})
    CHECK_THAT(head, ContainsSubstring(header));
  const Served other(folder / "run");
  CHECK(other.port() != served.port());
  LivePage page({}, {.read = [] { return Page{}; }, .study = {}});
  CHECK_THROWS_AS(PageServer(page, served.port()), UsageError);
}

TEST_CASE("who says nothing, or one byte now and then, is let go, and the others are answered", kTags) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  put_file(folder / "run" / "metrics.jsonl", kStart);
  const Served served(folder / "run", {.at_once = 2, .patience = std::chrono::seconds(1)});
  std::vector<int> links;
  for (int i = 0; i < 3; ++i) links.push_back(served.connect());
  std::atomic<bool> is_enough = false;
  // Bytes of a request that never ends, each long before the library would have lost its patience.
  std::thread slow([&] {
    for (const std::string all(100'000, 'x'); !is_enough; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
      for (const int link : links) (void)::send(link, all.data(), 1, MSG_NOSIGNAL);
  });
  CHECK_THAT(served.get("/"), ContainsSubstring("200 OK"));
  is_enough = true;
  slow.join();
  for (const int link : links) ::close(link);
  // Nor does who sends headers without end.
  CHECK(served.ask(text("GET / HTTP/1.1\r\nX: ", std::string(1'000'000, 'x'))).find("200 OK") == std::string::npos);
  // Nor does a page that asks again and again hold what another one needs: its connection ends with the answer.
  const std::string host = text("Host: 127.0.0.1:", served.port(), "\r\n\r\n");
  CHECK_THAT(served.ask("GET /data HTTP/1.1\r\n" + host), ContainsSubstring("Connection: close"));
}

TEST_CASE("what a page is called by is its own port, which browsers leave out where it is 80") {
  for (const char* const own : {"127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000"}) CHECK(is_page_host(own, 8000));
  for (const char* const other : {"127.0.0.1", "localhost", "127.0.0.1:8001", "localhost.:8000", "localhost:8000.evil",
                                  "evil.example:8000", "", ":8000", "[::1]:8000"})
    CHECK(!is_page_host(other, 8000));
  for (const char* const own : {"127.0.0.1", "localhost", "localhost:80"}) CHECK(is_page_host(own, 80));
  CHECK(!is_page_host("evil.example", 80));
}

TEST_CASE("what goes wrong while a page is made is told to who started it, and not to the browser", kTags) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "sweep" / "a");
  put_file(folder / "sweep" / "a" / "metrics.jsonl", kStart);
  LivePageMaker maker = page_maker(folder / "sweep");
  bool is_broken = false;
  const Served served(folder / "sweep", {.read =
                                             [&is_broken, read = maker.read] {
                                               if (is_broken) throw std::runtime_error("a secret");
                                               return read();
                                             },
                                         .study = {}});
  is_broken = true;
  fs::create_directories(folder / "sweep" / "b");
  put_file(folder / "sweep" / "b" / "metrics.jsonl", kStart);
  const std::string answer = served.get("/data");
  CHECK_THAT(status_of(answer), ContainsSubstring("500"));
  CHECK_THAT(answer, !ContainsSubstring("a secret") && !ContainsSubstring("EXCEPTION"));
}

}  // namespace
}  // namespace engram::harness::page_server_test
