#pragma once
/// The memory of a model's parameters: per group one flat block of values and one of gradients, entries sorted by
/// name and 256-byte aligned, so that clearing, norms, updates and checkpoints are one call per group. For steps with
/// bf16 activations there is a third block, of the values rounded to bf16. Tables and buffers have memory of their own,
/// and parameters that are frozen lie in blocks without gradients, which no optimiser sees.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/parameter.hpp"
#include "core/backend.hpp"
#include "core/counted_heap.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/step.hpp"

namespace engram {

/// Parameters that an optimiser treats alike.
struct ParameterGroup {
  std::string name;
  std::vector<Parameter*> parameters;  ///< sorted by name
  SegmentTable segments;               ///< in the same order
  Tensor values;                       ///< [n], padding between entries stays zero
  Tensor gradients;                    ///< [n]; none of frozen parameters
  Tensor rounded;                      ///< [n] bf16, of the values; empty: not kept, or no matrix in the group
};

/// Where the parameters of a group lie in its block.
struct GroupLayout {
  std::string name;
  std::vector<Parameter*> parameters;  ///< sorted by name
  SegmentTable segments;               ///< in the same order
  std::int64_t count = 0;              ///< numbers of the block, padding with them
};

class ParameterStore {
 public:
  ParameterStore() = default;
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;
  /// Its parameters lose their memory.
  ~ParameterStore();

  /// Registers a parameter under its full name; a second name for the same one is recorded as an alias. Throws Error
  /// when the name belongs to another parameter, or after place().
  void add(std::string name, Parameter& parameter);

  /// Keeps a parameter, of either of its names, or a buffer from training: Parameter::frozen(). Throws Error for a name
  /// that is none, or after place().
  void freeze(std::string_view name);

  /// Takes memory (dtype f32 or f64) and fills it from the initialisers. Gradients start at zero. The backend must
  /// outlive the store. `mapped_tables`: the folder in whose files (core/files/table_file.hpp) all tables are; they
  /// stay there and can be read, but not changed. `ranks`: where there are several, they share the columns of tables,
  /// each an equal part, and must outlive the store; mapped tables are not shared. After an exception neither the store
  /// nor its parameters can be used. Throws FileError as MappedTable does, and DeviceError for another device than the
  /// CPU then; ShapeError where the parameters of a group are too many to count; UsageError where ranks cannot share a
  /// table: there must be 1, 2, 4 or 8, and they must divide its width.
  void place(Backend& backend, DType dtype, std::uint64_t seed, const std::filesystem::path& mapped_tables = {},
             Communicator* ranks = nullptr);
  bool placed() const { return allocator_ != nullptr; }
  /// The groups that place() makes of all that was added and is trained, or is frozen, sorted by name. It needs no
  /// memory: throws ShapeError where the parameters of a group are too many to count.
  std::vector<GroupLayout> layout(DType dtype, bool frozen = false) const;

  std::vector<ParameterGroup>& groups() { return groups_; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  /// Those with gradients of rows, frozen ones too, sorted by name; they are in no group. Known from place() on.
  const std::vector<Parameter*>& tables() const { return tables_; }
  /// By full name (not alias); nullptr when there is none.
  Parameter* find(std::string_view name) const;
  /// All that were added, sorted by name: those that are trained, frozen ones, tables, and buffers such as running
  /// statistics. A model is saved and read again as a whole with these: named_tensors() in nn/optim/named_tensors.hpp.
  const std::map<std::string, Parameter*, std::less<>>& parameters() const { return parameters_; }
  /// Second name -> first name of tied parameters.
  const std::map<std::string, std::string, std::less<>>& aliases() const { return aliases_; }
  /// Number of parameters' values, frozen or not; every one once, buffers not. Throws ShapeError beyond
  /// Shape::kMostElements.
  std::int64_t count() const;
  DType dtype() const { return dtype_; }
  /// Long-lived memory of the same device, for optimiser state and caches.
  Allocator& allocator() const { return *allocator_; }
  /// Bytes in use of that memory, the parameters' own with them.
  std::size_t bytes_in_use() const { return allocator_->bytes(); }

  /// Dense gradients become zero, gradients of rows empty.
  void zero_gradients(Step& step);
  /// Dense gradients alone.
  void zero_dense_gradients(Step& step);
  /// Gradients of rows alone. Their memory is the step's: due before it ends, where no update of an optimiser took
  /// them.
  void clear_row_gradients();

  /// From now on the matrices of f32 parameters have bf16 copies. Throws DTypeError for f64, Error before place().
  void keep_rounded(Step& step);
  /// Makes the copies anew, if they are kept: after every change of values, by an update or by loading. One launch per
  /// group.
  void refresh_rounded(Step& step);

 private:
  friend class Parameter;
  void forget(Parameter& parameter);  // it is being destroyed
  void place_alone(Backend& backend, Parameter& parameter, std::uint64_t seed);
  ParameterGroup place_group(Backend& backend, GroupLayout planned, std::uint64_t seed, bool frozen) const;
  void keep_rounded(ParameterGroup& group) const;
  static void share(Parameter& parameter, Communicator& ranks);
  void map_table(Backend& backend, Parameter& table, const std::filesystem::path& folder);

  std::map<std::string, Parameter*, std::less<>> parameters_;
  std::map<std::string, std::string, std::less<>> aliases_;
  std::unique_ptr<CountedHeap> allocator_;  // before groups_: it must outlive their tensors
  std::vector<ParameterGroup> groups_, frozen_;
  std::vector<Parameter*> tables_;
  DType dtype_ = DType::f32;
};

}  // namespace engram
