#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "apps/command_line/command.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// "a, b or c"
std::string listed_words(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list += text(i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
  return list;
}

bool is_in(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

Option::Option(CLI::Option* option, std::shared_ptr<NumberBounds> bounds)
    : option_(option), bounds_(std::move(bounds)) {}

Option* Option::required() {
  option_->required();
  return this;
}
Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}
Option* Option::positive() {
  *bounds_ = {.least = 0, .above_least = true};
  return this;
}
Option* Option::non_negative() {
  *bounds_ = {.least = 0};
  return this;
}
Option* Option::within(double least, double most) {
  *bounds_ = {.least = least, .most = most};
  return this;
}
Option* Option::one_of(const std::vector<std::string>& values) {
  const auto check = [values](const std::string& given) {
    return is_in(values, given) ? "" : text("must be ", listed_words(values), ", got '", given, "'");
  };
  option_->check(CLI::Validator(check, ""));
  return suggest(values);
}
Option* Option::needs(const Option* other) {
  option_->needs(other->option_);
  return this;
}
Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}
Option* Option::delimiter(char between) {
  option_->delimiter(between);
  return this;
}
Option* Option::allow_extra_args(bool all) {
  option_->allow_extra_args(all);
  return this;
}
Option* Option::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}
Option* Option::value_name(const std::string& name) {
  option_->type_name(name);
  return this;
}
Option* Option::suggest(const std::vector<std::string>& words) {
  offered_ = words;
  return this;
}
Option* Option::hidden() {
  option_->group("");
  return this;
}
Option* Option::value_if(std::function<bool(const std::string&)> is_value, const std::string& otherwise) {
  is_value_ = std::move(is_value);
  otherwise_ = otherwise;
  return this;
}
Option* Option::one_of_or(const std::vector<std::string>& values, const std::string& otherwise) {
  words_ = values;
  one_of(values)->expected(0, 1);
  return value_if([values](const std::string& given) { return is_in(values, given); }, otherwise);
}
std::string Option::words_rule() const { return text(option_->get_name(), " must be ", listed_words(words_)); }
bool Option::has_name(const std::string& name) const { return option_->check_name(name); }
bool Option::is_list() const { return option_->get_items_expected_max() > 1; }

}  // namespace engram
