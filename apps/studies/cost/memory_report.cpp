#include "apps/studies/cost/memory_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include "apps/run/training/rank_split.hpp"
#include "apps/studies/cost/rank_report.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

std::string gibibytes(std::int64_t bytes) {
  return fmt::format("{:.3f} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
}

std::string byte_line(std::string_view name, std::int64_t bytes, const std::string& note = {}) {
  return fmt::format("{:<26} {:>16}{}{}\n", name, bytes, note.empty() ? "" : "  ", note);
}

std::string setting_line(const MemoryReport& report) {
  std::string line =
      fmt::format("memory on {}: {} rows of {} tokens", text(report.setting.device), report.batch, report.block);
  if (report.split > 1) line += fmt::format(" in {} pieces", report.split);
  if (report.setting.ranks > 1) line += fmt::format(", one of {} ranks", report.setting.ranks);
  return line;
}

std::string fit_lines(const FitReport& fit) {
  std::string lines = fmt::format("\nroom for {} ({})\n", fit.room, gibibytes(fit.room));
  if (fit.value == 0)
    return lines + fmt::format("{} fits with no value: the smallest needs {}\n", fmt::join(fit.keys, ", "),
                               gibibytes(fit.bytes));
  lines += "--set";
  for (const std::string& key : fit.keys) lines += fmt::format(" {}={}", key, fit.value);
  lines += fmt::format("  needs {}\n", gibibytes(fit.bytes));
  if (!fit.refused.empty()) return lines + fmt::format("no larger one can be: {}\n", fit.refused);
  if (fit.next == 0) return lines + "the memory does not grow with it\n";
  return lines + fmt::format("{} would need {}\n", fit.next, gibibytes(fit.next_bytes));
}

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<Unit, 7> kUnits{{{"", 1},
                                      {"KiB", std::int64_t{1} << 10},
                                      {"MiB", std::int64_t{1} << 20},
                                      {"GiB", std::int64_t{1} << 30},
                                      {"kB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000}}};

/// What is said of a value that a configuration cannot have: the first line.
std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

}  // namespace

MemoryReport memory_report(const RunConfig& config, const data::ArticleSplit& training, const MemorySetting& setting) {
  RunConfig shared = config;
  if (setting.ranks > 1) shared.training.split = split_for_ranks(config, setting.ranks);
  return {.setting = setting,
          .batch = shared.training.batch,
          .block = shared.training.block,
          .split = shared.training.split,
          .memory = count_step_memory(shared, training, setting),
          .fit = {}};
}

namespace {

/// In units.
constexpr std::int64_t kWidestGap = 256;

/// Values that a configuration can have, and what their runs take.
class Values {
 public:
  Values(std::int64_t unit, const std::function<std::int64_t(std::int64_t)>& bytes_of)
      : unit_(unit), bytes_of_(&bytes_of) {}

  struct Found {
    std::int64_t value, bytes;
  };
  /// The one nearest to `value`, above `low` and below `high`; of two that are as near, the smaller. All are multiples
  /// of the unit.
  std::optional<Found> nearest(std::int64_t value, std::int64_t low, std::int64_t high) {
    for (std::int64_t away = 0; away <= kWidestGap; ++away)
      for (const std::int64_t tried : {value - away * unit_, value + away * unit_}) {
        if (tried <= low || tried >= high) continue;
        try {
          return Found{tried, (*bytes_of_)(tried)};
        } catch (const UsageError& error) {
          if (tried == value) refused = first_line(error.what());
        }
        if (away == 0) break;
      }
    return std::nullopt;
  }

  std::string refused;  ///< why the last value that was asked for cannot be, if it cannot

 private:
  std::int64_t unit_;
  const std::function<std::int64_t(std::int64_t)>* bytes_of_;
};

}  // namespace

void find_fit(FitReport& report, std::int64_t unit, const std::function<std::int64_t(std::int64_t value)>& bytes_of) {
  Values values(unit, bytes_of);
  // From here on values are too large, or refused.
  std::optional<std::int64_t> beyond;
  // Takes the value nearest to this one as what fits, or as what is beyond; false where there is none.
  const auto look = [&](std::int64_t value, std::int64_t below) {
    const auto found = values.nearest(value, report.value, below);
    if (!found) {
      if (report.next == 0) report.refused = values.refused;
      return false;
    }
    if (report.smallest == 0 || found->value < report.smallest) report.smallest = found->value;
    if (found->bytes > report.room) {
      report.refused.clear();
      std::tie(report.next, report.next_bytes) = std::pair(found->value, found->bytes);
      beyond = found->value;
      return true;
    }
    std::tie(report.value, report.bytes) = std::pair(found->value, found->bytes);
    return true;
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::int64_t value = unit; !beyond && value < kMost; value *= 2) {
    if (look(value, 2 * value)) continue;
    if (report.smallest > 0) beyond = value;
    if (report.smallest == 0 && value > kWidestGap * unit) break;
  }
  if (report.smallest == 0) bytes_of(unit);  // says why
  while (beyond && *beyond - report.value > unit) {
    const std::int64_t middle = (report.value + *beyond) / 2 / unit * unit;
    if (!look(middle, *beyond)) beyond = middle;
  }
  if (report.value == 0) report.bytes = report.next_bytes;
}

std::int64_t parse_bytes(const std::string& amount) {
  double number = 0;
  const char* const end = amount.data() + amount.size();
  const auto [stop, error] = std::from_chars(amount.data(), end, number);
  if (error == std::errc())
    for (const Unit& unit : kUnits)
      if (const double bytes = number * static_cast<double>(unit.bytes);
          unit.name == std::string_view(stop, static_cast<std::size_t>(end - stop)) && bytes >= 1 && bytes < 9e18)
        return static_cast<std::int64_t>(bytes);
  throw UsageError(text("count: memory must be a number of bytes, or one with kB, MB, GB, KiB, MiB or GiB, got '",
                        amount, "'", "\n  24GiB is one"));
}

std::string table_of(const MemoryReport& report) {
  const StepMemory& memory = report.memory;
  std::string lines = fmt::format("\n{}\n", setting_line(report));
  lines += fmt::format("{:<26} {:>16}\n", "kept from step to step", "bytes");
  for (const KeptMemory& line : kept_memory(memory.kept))
    if (line.bytes > 0) lines += byte_line(line.name, line.bytes);
  if (memory.caches > 0) lines += byte_line("caches of streams", memory.caches);
  if (memory.validation_caches > 0) lines += byte_line("the same for validations", memory.validation_caches);
  lines += byte_line("tokens and losses", memory.blocks);
  lines += byte_line("together", memory.kept_bytes());
  lines += fmt::format("{:<26} {:>16}\n", "a step", "bytes");
  lines += byte_line("activations", memory.activations, "when backward begins");
  lines += byte_line("peak", memory.peak, memory.kernel.empty() ? "" : "at " + memory.kernel);
  lines += byte_line("workspace", memory.workspace, "of the peak");
  lines += byte_line("memory of steps", memory.arena, "taken for the peak");
  lines += byte_line("of the first step", memory.first_arena, "at most, if there is room");
  lines += byte_line("in all", memory.total(), gibibytes(memory.total()));
  lines += "the program, its libraries and mapped files come on top\n";
  if (report.fit) lines += fit_lines(*report.fit);
  return lines;
}

nlohmann::json json_of(const MemoryReport& report) {
  const StepMemory& memory = report.memory;
  nlohmann::json kept{{"caches", memory.caches},
                      {"validation_caches", memory.validation_caches},
                      {"tokens_and_losses", memory.blocks},
                      {"bytes", memory.kept_bytes()}};
  for (const KeptMemory& line : kept_memory(memory.kept)) kept[line.json_name] = line.bytes;
  nlohmann::json object{{"device", text(report.setting.device)},
                        {"batch", report.batch},
                        {"block", report.block},
                        {"split", report.split},
                        {"ranks", report.setting.ranks},
                        {"kept", kept},
                        {"step",
                         {{"activations", memory.activations},
                          {"peak", memory.peak},
                          {"peak_kernel", memory.kernel},
                          {"workspace", memory.workspace},
                          {"first_arena", memory.first_arena},
                          {"arena", memory.arena}}},
                        {"counted_steps", memory.steps},
                        {"bytes", memory.total()}};
  if (!report.fit) return object;
  const FitReport& fit = *report.fit;
  object["fit"] = {{"key", fmt::format("{}", fmt::join(fit.keys, ","))},
                   {"room", fit.room},
                   {"value", fit.value},
                   {"bytes", fit.bytes}};
  if (!fit.refused.empty())
    object["fit"]["refused"] = fit.refused;
  else if (fit.next > 0)
    object["fit"].update({{"next", fit.next}, {"next_bytes", fit.next_bytes}});
  return object;
}

}  // namespace engram
