#include "nn/checkpoint.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <set>
#include <system_error>

#include "core/error.hpp"

namespace engram {
namespace {

constexpr const char* kFileName = "model.safetensors";
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

bool begins_with_any(std::string_view name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& prefix) { return name.starts_with(prefix); });
}

bool is_float_pair(DType a, DType b) {
  return (a == DType::f32 && b == DType::f64) || (a == DType::f64 && b == DType::f32);
}

void check_tensors(std::string_view op, const Backend& backend, std::span<const NamedTensor> tensors) {
  std::set<std::string_view> seen;
  for (const NamedTensor& entry : tensors) {
    const auto& [name, tensor, division] = entry;
    if (name.empty() || !seen.insert(name).second)
      throw Error(text(op, ": names must be unique and not empty, got '", name, "' twice or empty"));
    if (division && !tensor) continue;  // another rank has it
    if (!tensor) throw Error(text(op, ": every tensor must have memory, got none for '", name, "'"));
    if (tensor.device() != backend.device())
      throw DeviceError(text(op, ": tensors must be on ", backend.device(), ", got '", name, "' on ", tensor.device()));
  }
}

// Stored elements may be unaligned.
template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Without their sign, floats are ordered as their bits are, infinities and what is no number above all others.
template <class Bits>
bool any_beyond(std::span<const std::byte> bytes, Bits largest) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  bool beyond = false;
  const std::size_t count = bytes.size() / sizeof(Bits);
  for (std::size_t i = 0; i < count; ++i) beyond |= (element<Bits>(bytes, i) & kMagnitude) > largest;
  return beyond;
}

void refuse_beyond(double largest, DType dtype, std::span<const std::byte> bytes, const std::string& name) {
  const double finite = std::min<double>(largest, std::numeric_limits<float>::max());
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(finite));
  bool beyond = false;
  if (dtype == DType::f32) beyond = any_beyond<std::uint32_t>(bytes, single);
  if (dtype == DType::f64)
    beyond = any_beyond<std::uint64_t>(
        bytes, std::bit_cast<std::uint64_t>(std::min(largest, std::numeric_limits<double>::max())));
  // The upper half of an f32: its bits cut off only lower the limit.
  if (dtype == DType::bf16) beyond = any_beyond<std::uint16_t>(bytes, static_cast<std::uint16_t>(single >> 16));
  if (beyond && std::isinf(largest))
    throw NotFiniteError(text("save_checkpoint: every number must be finite, got others in '", name, "'"));
  if (beyond)
    throw NotFiniteError(
        text("save_checkpoint: every number must be finite and at most ", largest, ", got others in '", name, "'"));
}

// The index of the first finite value beyond f32, or the count when there is none.
std::size_t first_beyond_f32(std::span<const std::byte> stored) {
  const std::size_t count = stored.size() / sizeof(double);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = element<double>(stored, i);
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) return i;
  }
  return count;
}

template <class From, class To>
void copy_converted(Backend& backend, std::span<const std::byte> stored, const Tensor& tensor) {
  const std::size_t count = stored.size() / sizeof(From);
  std::vector<To> chunk;
  for (std::size_t begin = 0; begin < count; begin += chunk.size()) {
    chunk.resize(std::min(TensorSource::kChunkBytes, count - begin));
    for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = static_cast<To>(element<From>(stored, begin + i));
    backend.copy(tensor.data<To>() + begin, chunk.data(), chunk.size() * sizeof(To), CopyKind::host_to_device);
    // The chunk is filled anew; a device may still be reading it.
    backend.synchronize();
  }
}

/// Calls take(rank, first, place, count) for the runs that elements [begin, end) of a tensor that ranks share are made
/// of: those of `rank` from its held element `first` on are elements `place`, ... of the whole tensor.
void for_runs(const Division& division, int ranks, std::int64_t begin, std::int64_t end,
              const std::function<void(int rank, std::int64_t first, std::int64_t place, std::int64_t count)>& take) {
  const std::int64_t row = division.row_length();
  for (std::int64_t start = row == 0 ? end : begin / row * row; start < end; start += row)
    for (int q = 0; q < ranks; ++q) {
      const std::int64_t from = std::max(begin, start + division.begin(q)), to = std::min(end, start + division.end(q));
      if (from < to) take(q, division.held_before(q, from), from, to - from);
    }
}

/// Bytes [offset, offset + to.size()) of a tensor that ranks share, on rank 0.
void gather_chunk(Backend& backend, const NamedTensor& entry, std::size_t offset, std::span<std::byte> to,
                  Communicator& ranks) {
  const Division& division = *entry.division;
  const std::size_t number = size_of(entry.dtype());
  const auto begin = static_cast<std::int64_t>(offset / number),
             end = static_cast<std::int64_t>((offset + to.size()) / number);
  // Rank by rank; of a tensor that is one row they lie so in the file.
  std::vector<std::size_t> ends;
  for (int q = 0; q < ranks.size(); ++q) {
    const std::int64_t held = division.held_before(q, end) - division.held_before(q, begin);
    ends.push_back((q == 0 ? 0 : ends.back()) + static_cast<std::size_t>(held) * number);
  }
  std::vector<std::byte> by_rank(division.one_row() ? 0 : to.size());
  const std::span<std::byte> gathered = division.one_row() ? to : std::span<std::byte>(by_rank);
  if (const std::size_t bytes = part_length(ends, ranks.rank()); bytes > 0) {
    const auto first = static_cast<std::size_t>(division.held_before(ranks.rank(), begin)) * number;
    backend.copy(gathered.data() + part_begin(ends, ranks.rank()),
                 static_cast<const std::byte*>(entry.tensor.raw()) + first, bytes, CopyKind::device_to_host);
  }
  ranks.collect_host(gathered.data(), ends);
  if (division.one_row() || !ranks.leads()) return;
  for_runs(division, ranks.size(), begin, end, [&](int q, std::int64_t first, std::int64_t at, std::int64_t count) {
    const std::size_t from =
        part_begin(ends, q) + static_cast<std::size_t>(first - division.held_before(q, begin)) * number;
    std::memcpy(to.data() + static_cast<std::size_t>(at - begin) * number, by_rank.data() + from,
                static_cast<std::size_t>(count) * number);
  });
}

/// Copies stored elements into a tensor, which has as many.
void copy_stored(Backend& backend, DType dtype, std::span<const std::byte> stored, const Tensor& tensor) {
  if (dtype == tensor.dtype())
    backend.copy(tensor.raw(), stored.data(), stored.size(), CopyKind::host_to_device);
  else if (tensor.dtype() == DType::f32)
    copy_converted<double, float>(backend, stored, tensor);
  else
    copy_converted<float, double>(backend, stored, tensor);
}

/// What rank number `rank` holds of a stored tensor.
void copy_held(Backend& backend, const StoredTensor& stored, std::span<const std::byte> bytes, const NamedTensor& entry,
               int rank) {
  const Division& division = *entry.division;
  const std::size_t number = size_of(stored.dtype);
  const std::int64_t width = division.end(rank) - division.begin(rank), row = division.row_length();
  const auto run = [&](std::int64_t place, std::int64_t count) {
    return bytes.subspan(static_cast<std::size_t>(place) * number, static_cast<std::size_t>(count) * number);
  };
  if (division.one_row()) return copy_stored(backend, stored.dtype, run(division.begin(rank), width), entry.tensor);
  const Tensor flat = entry.tensor.view({entry.tensor.count()});
  const std::int64_t rows = division.shape.count() / row;
  const std::int64_t chunk = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(TensorSource::kChunkBytes / number) / std::max<std::int64_t>(1, width));
  std::vector<std::byte> held;
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    const std::int64_t end = std::min(rows, begin + chunk);
    held.clear();
    for (std::int64_t r = begin; r < end; ++r) {
      const auto own = run(r * row + division.begin(rank), width);
      held.insert(held.end(), own.begin(), own.end());
    }
    copy_stored(backend, stored.dtype, held, flat.rows(begin * width, end * width));
    // The chunk is filled anew; a device may still be reading it.
    backend.synchronize();
  }
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, Backend& backend, std::span<const NamedTensor> tensors,
                     const Metadata& metadata, const NumberLimits& limits) {
  OneRank one;
  save_checkpoint(path, backend, tensors, metadata, limits, one);
}

void save_checkpoint(const std::filesystem::path& path, Backend& backend, std::span<const NamedTensor> tensors,
                     const Metadata& metadata, const NumberLimits& limits, Communicator& ranks) {
  check_tensors("save_checkpoint", backend, tensors);
  // Of tensors that ranks share: chunks that have been gathered, and those that no one waits for any more.
  std::size_t gathered = 0, left_out = 0;
  bool writes = ranks.leads();  // else the numbers that arrive are nobody's
  std::vector<TensorSource> sources;
  for (const NamedTensor& entry : tensors) {
    const double largest = entry.name.find('/') == std::string::npos ? limits.largest_parameter : kNoLimit;
    const bool limited = limits.only_finite || std::isfinite(largest);
    const auto read = [&, entry, limited, largest](std::size_t offset, std::span<std::byte> to) {
      if (entry.division) {
        if (left_out > 0) {
          --left_out;
          return;
        }
        gather_chunk(backend, entry, offset, to, ranks);
        ++gathered;
      } else if (writes) {
        backend.copy(to.data(), static_cast<const std::byte*>(entry.tensor.raw()) + offset, to.size(),
                     CopyKind::device_to_host);
      }
      if (limited && writes) refuse_beyond(largest, entry.dtype(), to, entry.name);
    };
    sources.push_back({entry.name, entry.dtype(), entry.shape(), read});
  }
  if (ranks.alone()) return write_safetensors(path, sources, metadata);
  std::exception_ptr failed;
  try {
    if (ranks.leads()) write_safetensors(path, sources, metadata);
  } catch (const RankError&) {
    throw;  // no one comes to another gathering
  } catch (...) {
    failed = std::current_exception();
  }
  // The other ranks read what rank 0 writes, and it what they wait for when its file came to an end too early: whatever
  // the numbers are then.
  if (!ranks.leads() || failed) {
    writes = false;
    left_out = gathered;
    read_in_file_order(sources, [](std::span<const std::byte>) {});
  }
  together(ranks, [&failed] {
    if (failed) std::rethrow_exception(failed);
  });
}

bool CheckpointFile::has_group(std::string_view prefix) const {
  const auto first = file_.tensors().lower_bound(prefix);
  return first != file_.tensors().end() && first->first.starts_with(prefix);
}

std::vector<std::string> CheckpointFile::names() const {
  std::vector<std::string> all;
  for (const auto& [name, stored] : file_.tensors()) all.push_back(name);
  return all;
}

const StoredTensor& CheckpointFile::at(std::string_view name) const {
  const auto found = file_.tensors().find(name);
  if (found == file_.tensors().end())
    throw FileError(text("load_checkpoint: '", path().string(), "' must hold the tensor '", name, "', got none"));
  return found->second;
}

std::vector<std::string> CheckpointFile::differences(std::span<const NamedTensor> wanted,
                                                     const LoadRules& rules) const {
  std::vector<std::string> found;
  std::set<std::string_view> wanted_names;
  // A group that the file has in part must be there as a whole, so its absence excuses nothing.
  std::vector<std::string> absent_groups;
  for (const std::string& prefix : rules.may_be_absent)
    if (!has_group(prefix)) absent_groups.push_back(prefix);
  for (const NamedTensor& entry : wanted) {
    const std::string& name = entry.name;
    wanted_names.insert(name);
    const auto stored = file_.tensors().find(name);
    if (stored == file_.tensors().end()) {
      if (!begins_with_any(name, absent_groups))
        found.push_back(text("missing: ", name, " ", entry.dtype(), " ", entry.shape()));
      continue;
    }
    const auto& [dtype, shape, begin, end] = stored->second;
    const bool convertible = rules.convert_floats && is_float_pair(dtype, entry.dtype());
    if (shape != entry.shape() || (dtype != entry.dtype() && !convertible)) {
      found.push_back(
          text("different: ", name, " must be ", entry.dtype(), " ", entry.shape(), ", got ", dtype, " ", shape));
    } else if (dtype == DType::f64 && entry.dtype() == DType::f32) {
      const auto bytes = file_.bytes(stored->second);
      if (const std::size_t index = first_beyond_f32(bytes); index * sizeof(double) < bytes.size())
        found.push_back(
            text("different: ", name, " must fit f32, got ", element<double>(bytes, index), " at element ", index));
    }
  }
  for (const auto& [name, stored] : file_.tensors())
    if (!wanted_names.contains(name) && !begins_with_any(name, rules.may_be_ignored))
      found.push_back(text("extra: ", name, " ", stored.dtype, " ", stored.shape));
  return found;
}

void CheckpointFile::load(Backend& backend, std::span<const NamedTensor> wanted, const LoadRules& rules,
                          int rank) const {
  check_tensors("load_checkpoint", backend, wanted);
  if (const std::vector<std::string> found = differences(wanted, rules); !found.empty()) {
    std::string message =
        text("load_checkpoint: '", path().string(), "' must hold exactly the tensors of the model, got ", found.size(),
             found.size() == 1 ? " difference" : " differences");
    for (const std::string& line : found) message += "\n  " + line;
    throw FileError(message);
  }
  for (const NamedTensor& entry : wanted) {
    const auto stored = file_.tensors().find(entry.name);
    if (stored == file_.tensors().end() || !entry.tensor) continue;
    const std::span<const std::byte> bytes = file_.bytes(stored->second);
    if (entry.division)
      copy_held(backend, stored->second, bytes, entry, rank);
    else
      copy_stored(backend, stored->second.dtype, bytes, entry.tensor);
  }
  // The mapping may be gone the moment this returns.
  backend.synchronize();
}

std::filesystem::path checkpoint_path(const std::filesystem::path& run_dir, CheckpointKind kind) {
  return run_dir / (kind == CheckpointKind::best ? "best" : "checkpoint") / kFileName;
}

std::filesystem::path find_checkpoint(const std::filesystem::path& run_dir_or_file, CheckpointKind kind) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(run_dir_or_file, ignored);
  const std::string shown = run_dir_or_file.string();
  if (status.type() == fs::file_type::not_found)
    throw FileError(text("find_checkpoint: '", shown, "' must be a run's folder or a checkpoint, got nothing there"));
  if (status.type() != fs::file_type::directory) return run_dir_or_file;
  std::vector<fs::path> places{run_dir_or_file / kFileName, checkpoint_path(run_dir_or_file, CheckpointKind::newest)};
  if (kind == CheckpointKind::best)
    places.insert(places.begin() + 1, checkpoint_path(run_dir_or_file, CheckpointKind::best));
  for (const fs::path& place : places)
    if (fs::exists(place, ignored)) return place;
  std::string tried;
  for (const fs::path& place : places)
    tried += (tried.empty() ? "" : ", ") + place.lexically_relative(run_dir_or_file).string();
  const fs::path best = checkpoint_path(run_dir_or_file, CheckpointKind::best);
  throw FileError(text("find_checkpoint: the folder '", shown, "' must hold a checkpoint, got none of ", tried,
                       fs::exists(best, ignored)
                           ? text("\n  its best weights are there: '", best.string(), "'")
                           : "\n  a run saves its first one after some steps; name its folder or the file itself"));
}

}  // namespace engram
