#pragma once
/// Numbers as the page writes them for people.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace engram {

/// "687,840".
std::string grouped(std::int64_t number);
/// "3.07 M", "12,300".
std::string shortened(double number);
/// A message of several lines as one: its advice behind a semicolon.
std::string one_line(std::string_view message);
/// "47 s", "2 min 9 s", "3 h 20 min", "2 d 4 h".
std::string duration_text(double seconds);
/// Of a time that utc_now() wrote, "2026-11-26 08:03 UTC".
std::string utc_minute(std::string_view time);
/// What a score of RunSummary is called: "bits per character", "perplexity".
std::string_view score_words(std::string_view score);
/// The score of a loss in nats, as a number; of an empty score the nats.
double score_value(std::string_view score, double loss);
/// The score of a loss in nats: "1.969", "24.9"; of an empty score the nats.
std::string score_text(std::string_view score, double loss);
/// A number without the places behind its point, "12,300"; with an exponent from 10^15 on, "-" for none.
std::string whole_text(double number);
/// A score as it is.
std::string score_number(double score);

}  // namespace engram
