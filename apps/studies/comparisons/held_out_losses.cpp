#include "apps/studies/comparisons/held_out_losses.hpp"

#include <string>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/terminal/signals.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"
#include "core/files/parse_json.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

using nlohmann::json;

/// What a file of losses is of.
json facts_of(const std::filesystem::path& checkpoint, const data::DataSet& data, std::string_view split,
              std::int64_t block) {
  return {{"format", "engram held-out losses"},
          {"version", 1},
          {"checkpoint", data::hash_text(data::hash_of(data::read_bytes(checkpoint)))},
          {"data", data::hash_text(data.hash())},
          {"split", split},
          {"block", block}};
}

/// Nothing where there is no such file, or one of something else; it is measured again then.
std::optional<HeldOutLosses> read_losses(const std::filesystem::path& kept, const json& facts) {
  if (!is_there(kept)) return std::nullopt;
  try {
    const json found = parse_json(data::read_bytes(kept));
    for (const auto& [name, value] : facts.items())
      if (found.at(name) != value) return std::nullopt;
    HeldOutLosses losses{{}, found.at("nats"), integer_of<std::int64_t>(found.at("all_scored")), found.at("all_nats")};
    for (const json& scored : found.at("scored").get_ref<const json::array_t&>())
      losses.scored.push_back(integer_of<std::int64_t>(scored));
    if (losses.scored.size() != losses.sums.size()) return std::nullopt;
    return losses;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

HeldOutLosses held_out_losses(const SweepRun& run, const data::DataSet& data, std::string_view split,
                              std::int64_t block, const std::filesystem::path& kept, int threads,
                              WorkProgress& progress, const std::function<bool()>& stop) {
  const std::filesystem::path checkpoint = checkpoint_path(run.folder, CheckpointKind::newest);
  json facts = facts_of(checkpoint, data, split, block);
  if (const std::optional<HeldOutLosses> known = read_losses(kept, facts)) return *known;
  if (stop()) throw Interrupted("interrupted before it was measured");
  Runtime runtime(Device{}, threads);
  TrainedModel trained(checkpoint, CheckpointKind::newest, runtime);
  progress.begin(text(run.name, ", ", split, " scored"), "tokens");
  HeldOutLosses losses;
  losses.scored.assign(static_cast<std::size_t>(data.split(split).size() / block), 0);
  losses.sums.assign(losses.scored.size(), 0);
  const auto add = [&](std::int64_t token, double nats) {
    losses.all_scored++;
    losses.all_sum += nats;
    const auto place = static_cast<std::size_t>(token / block);
    if (place >= losses.scored.size()) return;
    losses.scored[place]++;
    losses.sums[place] += nats;
  };
  evaluate_split(trained, {data, split}, {.watch = progress.watch()}, {.found = add});
  facts.update({{"scored", losses.scored},
                {"nats", losses.sums},
                {"all_scored", losses.all_scored},
                {"all_nats", losses.all_sum}});
  make_folder("study", kept.parent_path());
  write_durably(kept, facts.dump() + "\n");
  return losses;
}

}  // namespace engram
