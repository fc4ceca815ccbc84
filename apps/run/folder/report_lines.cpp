#include "apps/run/folder/report_lines.hpp"

#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"

namespace engram {

std::optional<std::int64_t> count_in(const nlohmann::json& line, const char* name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  // One of 64 bits that is too large for a sign becomes negative here.
  const auto count = found->get<std::int64_t>();
  return count >= 0 && count <= kMost ? std::optional(count) : std::nullopt;
}

std::string text_in(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string take_report(std::string_view line, const std::function<void(const nlohmann::json&)>& take) {
  try {
    const nlohmann::json object = parse_json(line);
    if (!object.is_object() || text_in(object, "event").empty() || !object.contains("step"))
      return "it has no event and step";
    if (!count_in(object, "step")) return "its step is no count";
    take(object);
  } catch (const nlohmann::json::parse_error&) {
    return "it is no JSON";
  } catch (const nlohmann::json::exception&) {
    return "its members are not those of a report";
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void LeftOutLines::add(std::int64_t number, std::string_view fault) {
  if (count_++ > 0) return;
  first_ = number;
  fault_ = fault;
}

std::string LeftOutLines::words(const std::filesystem::path& file) const {
  if (count_ == 0) return "";
  const std::string more = count_ == 1   ? std::string()
                           : count_ == 2 ? std::string("; so is 1 more line")
                                         : text("; so are ", count_ - 1, " more lines");
  return text("line ", first_, " of '", file.string(), "' is no report and is left out: ", fault_, more);
}

LeftOutLines take_reports(const std::filesystem::path& metrics_file,
                          const std::function<void(const nlohmann::json&)>& take) {
  LeftOutLines left_out;
  const std::string bytes = data::read_bytes(metrics_file, data::Pipes::refused);
  std::int64_t number = 1;
  for (std::string_view rest = bytes; rest.find('\n') != rest.npos; ++number) {
    const std::size_t length = rest.find('\n');
    if (const std::string fault = take_report(rest.substr(0, length), take); !fault.empty())
      left_out.add(number, fault);
    rest.remove_prefix(length + 1);
  }
  return left_out;
}

}  // namespace engram
