/// What a checkpoint says about its model, in the entries of its metadata. The bytes are entries: key, 0x1f, value,
/// 0x1e.

#include <cstring>
#include <string>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/transfer/weight_source.hpp"
#include "core/files/safetensors_header.hpp"
#include "nn/checkpoint.hpp"
#include "tests/fuzz/checksums.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

constexpr char kEntryEnd = '\x1e', kKeyEnd = '\x1f';

Metadata entries_of(std::string_view bytes) {
  Metadata metadata;
  while (!bytes.empty()) {
    const std::string_view entry = bytes.substr(0, bytes.find(kEntryEnd));
    bytes.remove_prefix(std::min(bytes.size(), entry.size() + 1));
    const std::size_t end = entry.find(kKeyEnd);
    if (end != entry.npos) metadata.emplace(entry.substr(0, end), entry.substr(end + 1));
  }
  return metadata;
}

/// A checkpoint of one small tensor with this metadata.
std::string file_of(const Metadata& metadata) {
  const float number = 1;
  const TensorSource tensor = host_tensor("weight", DType::f32, Shape{1}, &number);
  const TensorSource* const all[] = {&tensor};
  const std::string header = make_safetensors_header(all, metadata);
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) file += static_cast<char>(header.size() >> shift & 0xff);
  file += header;
  file.append(reinterpret_cast<const char*>(&number), sizeof number);
  return with_safetensors_checksum(file);
}

}  // namespace

void read_checkpoint_metadata(std::string_view bytes) {
  std::filesystem::path path;
  if (refuses([&] { path = scratch_file(file_of(entries_of(bytes)), "input.safetensors"); })) return;
  const CheckpointFile file(path);
  refuses([&] {
    const CheckpointFacts facts = read_facts(file);
    facts.vocabulary.json_text();
    facts.text.json_text();
    to_toml(facts.config);
    refuses([&] { last_step_of(file, facts.config); });
  });
  refuses([&] { updates_of_means(file); });
  refuses([&] { count_entry(file, metadata_keys::kSeed, "seed"); });
  refuses([&] {
    const WeightSource source(path);
    source.was_trained();
    source.identity();
    source.names();
  });
}

}  // namespace engram::fuzz
