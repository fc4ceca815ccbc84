#include "apps/studies/page/live_page.hpp"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

std::vector<PageState> states_of(const Page& page) {
  std::vector<PageState> states;
  for (const PageRun& run : page.runs) states.push_back(summary_of(run).state);
  return states;
}

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

}  // namespace

struct LivePage::State {
  /// Reads what is new. To be called with the mutex held.
  void update();

  std::mutex mutex;
  std::vector<std::string> arguments;
  std::function<Page()> read;
  Page page;
  std::vector<PageState> states;
  std::int64_t version = 1;  // of what changes
  std::int64_t studied = 1;  // of the page itself: a browser that has an older one loads it anew
  std::int64_t cached = 0;   // version of the text below
  std::string cached_text;
};

void LivePage::State::update() {
  bool changed = false;
  if (folders_of(find_sources(arguments).runs) != folders_of(page)) {
    page = read();
    page.live = true;
    ++studied;
    changed = true;
  }
  for (PageRun& run : page.runs) changed = engram::update(run) || changed;
  std::vector<PageState> now = states_of(page);
  if (!changed && now == states) return;
  states = std::move(now);
  ++version;
}

LivePage::LivePage(std::vector<std::string> arguments, std::function<Page()> read) : state_(std::make_unique<State>()) {
  state_->arguments = std::move(arguments);
  state_->read = std::move(read);
  state_->page = state_->read();
  state_->page.live = true;
  state_->states = states_of(state_->page);
}

LivePage::~LivePage() = default;

std::string LivePage::html() {
  const std::scoped_lock lock(state_->mutex);
  state_->update();
  state_->page.studied = state_->studied;
  return html_of(state_->page);
}

std::string LivePage::changes(const std::string& since) {
  const std::scoped_lock lock(state_->mutex);
  state_->update();
  if (since == text(state_->version)) return "";
  if (state_->cached != state_->version) {
    state_->page.studied = state_->studied;
    state_->cached_text = live_json_of(state_->page, text(state_->version));
    state_->cached = state_->version;
  }
  return state_->cached_text;
}

}  // namespace engram
