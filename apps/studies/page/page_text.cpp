#include "apps/studies/page/page_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace engram {

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string whole_text(double number) {
  constexpr double kMostDigits = 1e15;
  if (!std::isfinite(number)) return "-";
  return std::abs(number) < kMostDigits ? grouped(std::llround(number)) : fmt::format("{:.2e}", number);
}

std::string one_line(std::string_view message) {
  std::string line;
  for (std::size_t begin = 0; begin <= message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    const std::size_t first = std::min(message.find_first_not_of(' ', begin), end);
    if (first < end) line += (line.empty() ? "" : "; ") + std::string(message.substr(first, end - first));
    begin = end + 1;
  }
  return line;
}

std::string shortened(double number) {
  if (number < 1e6 || !(number < 1e15)) return whole_text(number);
  const int power = number < 1e9 ? 6 : number < 1e12 ? 9 : 12;
  const double shown = number / std::pow(10, power);
  return fmt::format("{:.{}f} {}", shown,
                     shown < 10    ? 2
                     : shown < 100 ? 1
                                   : 0,
                     power == 6   ? "M"
                     : power == 9 ? "G"
                                  : "T");
}

std::string duration_text(double seconds) {
  constexpr double kMostSeconds = 1e12;
  if (!(std::abs(seconds) < kMostSeconds)) return whole_text(seconds) + " s";
  const std::int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

std::string utc_minute(std::string_view time) {
  return text(time.substr(0, time.find('T')), " ", time.substr(time.find('T') + 1, 5), " UTC");
}

std::string_view score_words(std::string_view score) {
  return score == "bpc"       ? "bits per character"
         : score == "ppl"     ? "perplexity"
         : score == "ppl_bpe" ? "perplexity of subwords"
                              : "nats per token";
}

std::string score_number(double score) {
  if (!std::isfinite(score)) return "-";
  return score < 10    ? fmt::format("{:.4f}", score)
         : score < 1e5 ? fmt::format("{:.2f}", score)
                       : fmt::format("{:.3g}", score);
}

double score_value(std::string_view score, double loss) {
  return score.empty() ? loss : score == "bpc" ? loss / std::numbers::ln2 : std::exp(loss);
}

std::string score_text(std::string_view score, double loss) { return score_number(score_value(score, loss)); }

}  // namespace engram
