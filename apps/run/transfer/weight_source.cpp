#include "apps/run/transfer/weight_source.hpp"

#include <string_view>

#include "apps/data/files/hash.hpp"
#include "core/error.hpp"

namespace engram {

WeightSource::WeightSource(const std::filesystem::path& run_or_checkpoint)
    : file_(find_checkpoint(run_or_checkpoint, CheckpointKind::newest)),
      facts_(read_facts(file_)),
      averaged_(updates_of_means(file_) > 0 || count_entry(file_, metadata_keys::kAveraged, "averaged updates") > 0),
      has_means_(updates_of_means(file_) > 0) {
  if (!facts_.mapped_tables.empty())
    throw UsageError(text("training: --from must name weights that are all in one file, got '", path().string(),
                          "', whose ", facts_.mapped_tables.size(),
                          " tables are in mapped files\n  name the run that it was made from"));
}

bool WeightSource::was_trained() const { return file_.metadata().contains(metadata_keys::kData); }

std::string WeightSource::identity() const {
  if (!file_.checksum().empty()) return file_.checksum();
  data::Fnv1a64 hash;
  for (const std::string& name : file_.names()) {
    const auto bytes = file_.bytes(file_.at(name));
    hash.add(name);
    hash.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return data::hash_text(hash.value());
}

std::vector<std::string> WeightSource::names() const {
  std::vector<std::string> names = file_.names();
  std::erase_if(names, [](const std::string& name) { return !is_parameter_name(name); });
  return names;
}

std::optional<WeightSource::Weight> WeightSource::find(const std::string& name) const {
  const std::string mean = text(kAveragePrefix, name, ".weight_mean");
  const std::string& stored = has_means_ && file_.has(mean) ? mean : name;
  if (!is_parameter_name(name) || !file_.has(stored)) return std::nullopt;
  const StoredTensor& tensor = file_.at(stored);
  return Weight{.dtype = tensor.dtype, .shape = tensor.shape, .bytes = file_.bytes(tensor)};
}

}  // namespace engram
