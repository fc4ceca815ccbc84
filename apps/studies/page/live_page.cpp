#include "apps/studies/page/live_page.hpp"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "apps/studies/page/page_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::vector<std::filesystem::path> folders_of(const std::vector<PageSource>& runs) {
  std::vector<std::filesystem::path> folders;
  for (const PageSource& run : runs) folders.push_back(run.folder);
  return folders;
}

std::vector<std::filesystem::path> folders_of(const Page& page) {
  std::vector<std::filesystem::path> folders;
  for (const PageRun& run : page.runs) folders.push_back(run.source.folder);
  return folders;
}

/// Versions count on from here, so that no two processes have the same.
std::int64_t first_version() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

struct LivePage::State {
  /// Reads what is new. To be called with the mutex held.
  void update();
  /// The page anew, or a problem on the one that there is.
  void read_again();
  bool update_runs();
  bool set_problems(std::vector<std::string> problems);

  std::mutex mutex;
  std::vector<std::string> arguments;
  LivePageMaker maker;
  Page page;
  std::vector<PageState> states;
  std::vector<std::int64_t> changed;  // version of the last change of each run
  std::int64_t first = first_version();
  std::int64_t version = first;  // of what changes
  std::int64_t studied = first;  // of the page itself: a browser that has an older one loads it anew
};

bool LivePage::State::set_problems(std::vector<std::string> problems) {
  if (problems == page.problems) return false;
  page.problems = std::move(problems);
  return true;
}

void LivePage::State::read_again() {
  page = maker.read();
  page.live = true;
  page.studied = ++studied;
  states.clear();
  for (const PageRun& run : page.runs) states.push_back(summary_of(run).state);
  changed.assign(page.runs.size(), ++version);
}

bool LivePage::State::update_runs() {
  bool any = false;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    PageRun& run = page.runs[i];
    bool is_new = engram::update(run);
    if (!run.study && maker.study && !checkpoint_of(run.source).empty()) {
      maker.study(run);
      if (run.study) page.studied = ++studied;
      is_new = is_new || run.study;
    }
    const PageState now = summary_of(run).state;
    if (!is_new && now == states[i]) continue;
    states[i] = now;
    changed[i] = version + 1;
    any = true;
  }
  return any;
}

void LivePage::State::update() {
  PageSources found = find_sources(arguments);
  if (found.runs.empty()) {
    found.problems.insert(found.problems.begin(), "The runs are gone. Shown is what was read of them before.");
    if (set_problems(std::move(found.problems))) ++version;
    return;
  }
  try {
    if (folders_of(found.runs) != folders_of(page)) return read_again();
  } catch (const Error& error) {
    if (set_problems({one_line(error.what())})) ++version;
    return;
  }
  const bool other_problems = set_problems(std::move(found.problems)), other_runs = update_runs();
  if (other_problems || other_runs) ++version;
}

LivePage::LivePage(std::vector<std::string> arguments, LivePageMaker maker) : state_(std::make_unique<State>()) {
  state_->arguments = std::move(arguments);
  state_->maker = std::move(maker);
  state_->read_again();
}

LivePage::~LivePage() = default;

std::string LivePage::html() {
  const std::scoped_lock lock(state_->mutex);
  state_->update();
  state_->page.version = text(state_->version);
  return html_of(state_->page);
}

std::string LivePage::changes(const std::string& since) {
  const std::scoped_lock lock(state_->mutex);
  state_->update();
  state_->page.version = text(state_->version);
  if (since == state_->page.version) return "";
  // Of a version that this process never gave nothing is known.
  std::int64_t last = 0;
  const auto [end, error] = std::from_chars(since.data(), since.data() + since.size(), last);
  const bool is_known =
      error == std::errc() && end == since.data() + since.size() && last >= state_->first && last < state_->version;
  std::vector<bool> is_new;
  for (const std::int64_t run : state_->changed) is_new.push_back(!is_known || run > last);
  return live_json_of(state_->page, is_new);
}

}  // namespace engram
