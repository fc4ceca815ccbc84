#include "apps/studies/page/run_log.hpp"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

double number_of(const json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string text_of(const json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

template <class T>
std::vector<T> list_of(const json& line, const char* name) {
  const auto found = line.find(name);
  std::vector<T> list;
  if (found == line.end() || !found->is_array()) return list;
  for (const json& one : *found) list.push_back(one.is_number() ? one.get<T>() : T(0));
  return list;
}

template <class Reports>
void drop_behind(Reports& reports, std::int64_t step) {
  while (!reports.empty() && reports.back().step > step) reports.pop_back();
}

}  // namespace

void RunLog::clear() { *this = RunLog(std::move(file_)); }

void RunLog::go_back(std::int64_t step) {
  drop_behind(train_, step);
  drop_behind(valid_, step);
  drop_behind(spans_, step);
  drop_behind(samples_, step);
}

bool RunLog::update() {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file_, error);
  if (error) {
    const bool had = line_ > 0;
    clear();
    // One that has not begun has none.
    if (error != std::errc::no_such_file_or_directory)
      problem_ = text("'", file_.string(), "' must be readable, got '", error.message(), "'");
    return had;
  }
  if (size < read_) clear();
  if (size == read_) return false;
  std::ifstream in(file_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(read_));
  std::string line;
  bool changed = false;
  // A last line without an end is being written, or was torn; it counts when it has one.
  while (std::getline(in, line) && !in.eof()) {
    read_ += line.size() + 1;
    ++line_;
    take_line(line);
    changed = true;
  }
  if (in.bad())
    problem_ = text("'", file_.string(), "' must be readable, got '", std::generic_category().message(errno), "'");
  return changed;
}

void RunLog::take_line(std::string_view line) {
  std::string fault;
  try {
    const json object = json::parse(line);
    if (object.is_object() && object.contains("event") && object.contains("step"))
      take(object);
    else
      fault = "it has no event and step";
  } catch (const json::parse_error&) {
    fault = "it is no JSON";
  } catch (const json::exception&) {
    fault = "its members are not those of a report";
  }
  if (fault.empty() || !problem_.empty()) return;
  problem_ = text("line ", line_, " of '", file_.string(), "' is no report and is left out: ", fault);
}

void RunLog::take(const json& line) {
  const std::string event = line.at("event");
  step_ = line.at("step");
  if (event == "train") return take_train(line);
  if (event == "valid_short") return take_valid(line);
  if (event == "gradients") {
    gradients_ = line;
    return;
  }
  if (event == "sample") {
    samples_.push_back({step_, text_of(line, "prompt"), text_of(line, "text")});
    return;
  }
  if (event == "start") {
    std::string problem = std::move(problem_);
    const std::uint64_t read = read_;
    const std::int64_t number = line_, step = step_;
    clear();
    problem_ = std::move(problem), read_ = read, line_ = number, step_ = step;
  }
  if (event == "resume") go_back(step_);
  marks_.push_back({event, step_, line});
}

void RunLog::take_train(const json& line) {
  if (score_.empty())
    for (const char* const name : {"bpc", "ppl", "ppl_bpe"})
      if (line.contains(name)) score_ = name;
  train_.push_back({.step = step_,
                    .seconds = number_of(line, "seconds"),
                    .loss = number_of(line, "nll"),
                    .rate = number_of(line, "learning_rate"),
                    .gradient_norm = number_of(line, "gradient_norm"),
                    .above_clip = number_of(line, "tensors_above_clip"),
                    .tokens_per_second = number_of(line, "tokens_per_second"),
                    .mean_span = number_of(line, "span_mean")});
  const auto spans = line.find("spans");
  if (spans == line.end() || !spans->is_array()) return;
  SpanReportLine heads{.step = step_, .heads = {}};
  for (const json& layer : *spans) heads.heads.push_back(layer.get<std::vector<double>>());
  spans_.push_back(std::move(heads));
}

void RunLog::take_valid(const json& line) {
  valid_.push_back({.step = step_,
                    .seconds = number_of(line, "seconds"),
                    .loss = number_of(line, "nll"),
                    .best = line.value("best", false),
                    .memory_layers = list_of<std::int64_t>(line, "memory_layers"),
                    .memory_usage = list_of<double>(line, "memory_usage"),
                    .memory_kl = list_of<double>(line, "memory_kl")});
}

}  // namespace engram
