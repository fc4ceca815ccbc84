#include "apps/studies/page/run_log.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/data/files/open_stream.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

/// A report of gradients of a large model has a few hundred thousand bytes.
constexpr std::size_t kLongestLine = std::size_t{1} << 24;
/// The first line of a log has the time at which its run began.
constexpr std::size_t kBeginning = 4096;

double number_of(const json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::vector<double> numbers_in(const json& line, const char* name) {
  const auto found = line.find(name);
  std::vector<double> list;
  if (found == line.end() || !found->is_array()) return list;
  for (const json& one : *found) list.push_back(one.is_number() ? one.get<double>() : 0);
  return list;
}

/// Layers of memories. Throws FileError for one that cannot be.
std::vector<std::int64_t> layers_in(const json& line) {
  const auto found = line.find("memory_layers");
  std::vector<std::int64_t> list;
  if (found == line.end() || !found->is_array()) return list;
  for (const json& one : *found) {
    const std::optional<std::int64_t> layer = count_in({{"layer", one}}, "layer");
    if (!layer) throw FileError("a layer of its memories is no count");
    list.push_back(*layer);
  }
  return list;
}

/// `error`: the system's, or 0 for what is no regular file.
std::string unreadable(const std::filesystem::path& file, int error) {
  return text("'", file.string(), "' must be readable, got '",
              error != 0 ? std::generic_category().message(error) : std::string("not a regular file"), "'");
}

template <class Reports>
void drop_behind(Reports& reports, std::int64_t step) {
  while (!reports.empty() && reports.back().step > step) reports.pop_back();
}

}  // namespace

void RunLog::clear() { *this = RunLog(std::move(file_)); }

void RunLog::go_back(std::int64_t step) {
  drop_behind(reports_.train, step);
  drop_behind(reports_.valid, step);
  drop_behind(reports_.spans, step);
  drop_behind(reports_.samples, step);
  if (reports_.gradients_step > step) reports_.gradients = nullptr;
}

bool RunLog::is_another(const Place& now) const {
  return now.read < place_.read || now.device != place_.device || now.inode != place_.inode ||
         !now.beginning.starts_with(place_.beginning);
}

bool RunLog::update() {
  struct stat facts {};
  const int error = ::stat(file_.c_str(), &facts) != 0 ? errno : 0;
  if (error != 0 || !S_ISREG(facts.st_mode)) {
    const bool had = place_.line > 0;
    clear();
    // One that has not begun has none.
    if (error != ENOENT) problem_ = unreadable(file_, error);
    return had;
  }
  problem_.clear();  // what is readable again has none
  std::ifstream in = data::open_stream(file_);
  if (!in.is_open()) {
    problem_ = unreadable(file_, errno);
    return false;
  }
  Place now{.device = facts.st_dev,
            .inode = facts.st_ino,
            .beginning = {},
            .read = static_cast<std::uint64_t>(facts.st_size)};
  now.beginning.resize(std::min<std::size_t>(kBeginning, now.read));
  in.read(now.beginning.data(), static_cast<std::streamsize>(now.beginning.size()));
  now.beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  const bool had = place_.line > 0, is_other = is_another(now);
  if (is_other) clear();
  place_.device = now.device;
  place_.inode = now.inode;
  const std::uint64_t before = place_.read;
  if (now.read == before) return is_other && had;
  in.clear();
  in.seekg(static_cast<std::streamoff>(before));
  const bool changed = read_lines(in);
  // Of whole lines alone: a torn one may be written anew.
  place_.beginning = now.beginning.substr(0, std::min<std::size_t>(now.beginning.size(), place_.read));
  return changed || (is_other && had);
}

bool RunLog::read_lines(std::istream& in) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 18;
  std::string piece(kAtOnce, '\0'), line;
  bool changed = false;
  // A last line without an end is being written, or was torn; it counts when it has one.
  while (in.read(piece.data(), static_cast<std::streamsize>(kAtOnce)), in.gcount() > 0) {
    std::string_view rest(piece.data(), static_cast<std::size_t>(in.gcount()));
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      ++place_.line;
      line += rest.substr(0, end);
      place_.read += line.size() + 1;
      if (place_.is_skipping || line.size() > kLongestLine)
        left_out_.add(place_.line, text("it is longer than ", kLongestLine, " bytes"));
      else
        take_line(line);
      place_.is_skipping = false;
      line.clear();
      changed = true;
    }
    line += rest;
    if (!place_.is_skipping && line.size() <= kLongestLine) continue;
    place_.is_skipping = true;
    place_.read += line.size();
    line.clear();
  }
  if (in.bad()) problem_ = unreadable(file_, errno);
  return changed;
}

void RunLog::take_line(std::string_view line) {
  const std::string fault = take_report(line, [this](const json& report) { take(report); });
  if (!fault.empty()) left_out_.add(place_.line, fault);
}

void RunLog::take(const json& line) {
  const std::string event = text_in(line, "event");
  const std::int64_t step = *count_in(line, "step");
  if (event == "train") {
    take_train(line);
  } else if (event == "valid_short") {
    take_valid(line);
  } else if (event == "gradients") {
    reports_.gradients = line;
    reports_.gradients_step = step;
  } else if (event == "sample") {
    reports_.samples.push_back({step, text_in(line, "prompt"), text_in(line, "text")});
  } else {
    for (const char* const name : {"steps", "parameters"})
      if (line.contains(name) && !count_in(line, name)) throw FileError(text("its ", name, " are no count"));
    if (event == "start") reports_ = {};
    if (event == "resume") go_back(step);
    reports_.marks.push_back({event, step, line});
  }
  step_ = step;
}

void RunLog::take_train(const json& line) {
  const std::int64_t step = *count_in(line, "step");
  // What cannot be read leaves nothing of its line behind.
  SpanReportLine heads{.step = step, .heads = {}};
  const auto spans = line.find("spans");
  const bool has_spans = spans != line.end() && spans->is_array();
  if (has_spans)
    for (const json& layer : *spans) heads.heads.push_back(layer.get<std::vector<double>>());
  if (has_spans) reports_.spans.push_back(std::move(heads));
  if (reports_.score.empty())
    for (const char* const name : {"bpc", "ppl", "ppl_bpe"})
      if (line.contains(name)) reports_.score = name;
  reports_.train.push_back({.step = step,
                            .seconds = number_of(line, "seconds"),
                            .loss = number_of(line, "nll"),
                            .rate = number_of(line, "learning_rate"),
                            .gradient_norm = number_of(line, "gradient_norm"),
                            .above_clip = number_of(line, "tensors_above_clip"),
                            .tokens_per_second = number_of(line, "tokens_per_second"),
                            .mean_span = number_of(line, "span_mean")});
}

void RunLog::take_valid(const json& line) {
  reports_.valid.push_back({.step = *count_in(line, "step"),
                            .loss = number_of(line, "nll"),
                            .memory_layers = layers_in(line),
                            .memory_usage = numbers_in(line, "memory_usage"),
                            .memory_kl = numbers_in(line, "memory_kl")});
}

}  // namespace engram
