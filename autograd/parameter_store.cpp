#include "autograd/parameter_store.hpp"

#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "autograd/drawn_values.hpp"
#include "autograd/rank_exchange.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"

namespace engram {
namespace {

/// Takes the parameter into a sum of elements.
void add_elements(std::int64_t& sum, std::int64_t elements, std::string_view what, const std::string& name,
                  const Shape& shape) {
  sum += elements;  // of two numbers that a Shape may have
  if (sum > Shape::kMostElements)
    throw ShapeError(text("parameter store: ", what, " must have at most 2^60 - 1 numbers together, got more with ",
                          name, " ", shape));
}

}  // namespace

ParameterStore::~ParameterStore() {
  for (const auto& [name, parameter] : parameters_) {
    parameter->value_ = {};
    parameter->mapped_ = {};
    parameter->gradient_ = {};
    parameter->rounded_ = {};
    parameter->row_gradient_ = {};
    parameter->shared_by_ = nullptr;
    parameter->store_ = nullptr;
  }
}

void ParameterStore::forget(Parameter& parameter) {
  std::erase_if(parameters_, [&](const auto& entry) { return entry.second == &parameter; });
  std::erase(tables_, &parameter);
  for (std::vector<ParameterGroup>* const groups : {&groups_, &frozen_})
    for (ParameterGroup& group : *groups) {
      const auto place = std::ranges::find(group.parameters, &parameter);
      if (place == group.parameters.end()) continue;
      // Without memory, after place() has thrown, there may be no segment for it.
      const auto index = place - group.parameters.begin();
      if (index < static_cast<std::ptrdiff_t>(group.segments.size()))
        group.segments.erase(group.segments.begin() + index);
      group.parameters.erase(place);
    }
}

void ParameterStore::add(std::string name, Parameter& parameter) {
  if (placed()) throw Error(text("parameter store: ", name, " was added after the memory was taken"));
  for (const auto& [other, existing] : parameters_) {
    if (existing == &parameter) {
      aliases_.emplace(std::move(name), other);
      return;
    }
  }
  const auto [entry, added] = parameters_.emplace(name, &parameter);
  if (!added) throw Error(text("parameter store: two parameters are named ", name));
  parameter.name_ = std::move(name);
  parameter.store_ = this;
}

void ParameterStore::freeze(std::string_view name) {
  if (placed()) throw Error(text("parameter store: ", name, " was frozen after the memory was taken"));
  const auto alias = aliases_.find(name);
  Parameter* const parameter = find(alias != aliases_.end() ? alias->second : name);
  if (parameter == nullptr) throw Error(text("parameter store: what is frozen must be a parameter, got ", name));
  parameter->frozen_ = true;
}

void ParameterStore::place(Backend& backend, DType dtype, std::uint64_t seed,
                           const std::filesystem::path& mapped_tables, Communicator* ranks) {
  if (placed()) throw Error("parameter store: memory can be taken only once");
  if (ranks != nullptr && !ranks->alone() && mapped_tables.empty())
    for (const auto& [name, parameter] : parameters_) share(*parameter, *ranks);
  allocator_ = std::make_unique<CountedHeap>(backend);
  dtype_ = dtype;
  for (const auto& [name, parameter] : parameters_) {  // a map: already sorted by name
    if (parameter->gradient_kind() != Gradient::dense) {
      const bool table = parameter->gradient_kind() == Gradient::rows;
      if (table && !mapped_tables.empty())
        map_table(backend, *parameter, mapped_tables);
      else
        place_alone(backend, *parameter, seed);
      if (table) tables_.push_back(parameter);
    }
  }
  for (GroupLayout& planned : layout(dtype)) groups_.push_back(place_group(backend, std::move(planned), seed, false));
  for (GroupLayout& planned : layout(dtype, true))
    frozen_.push_back(place_group(backend, std::move(planned), seed, true));
}

ParameterGroup ParameterStore::place_group(Backend& backend, GroupLayout planned, std::uint64_t seed,
                                           bool frozen) const {
  ParameterGroup group;
  group.name = std::move(planned.name);
  group.parameters = std::move(planned.parameters);
  group.segments = std::move(planned.segments);
  group.values = Tensor({planned.count}, dtype_, backend.device(), *allocator_);
  if (!frozen) group.gradients = Tensor({planned.count}, dtype_, backend.device(), *allocator_);
  std::vector<std::byte> host(backend.computes() ? group.values.bytes() : 0);
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    Parameter& parameter = *group.parameters[i];
    const auto [offset, count] = group.segments[i];
    if (!host.empty())
      parameter.initializer().fill(host.data() + static_cast<std::size_t>(offset) * size_of(dtype_), dtype_, count,
                                   seed, parameter.name());
    parameter.value_ = group.values.rows(offset, offset + count).view(parameter.shape());
    if (!frozen) parameter.gradient_ = group.gradients.rows(offset, offset + count).view(parameter.shape());
  }
  backend.copy(group.values.raw(), host.data(), host.size(), CopyKind::host_to_device);
  if (frozen) return group;
  std::ranges::fill(host, std::byte{0});
  backend.copy(group.gradients.raw(), host.data(), host.size(), CopyKind::host_to_device);
  return group;
}

std::vector<GroupLayout> ParameterStore::layout(DType dtype, bool frozen) const {
  std::vector<GroupLayout> groups;
  const auto aligned = static_cast<std::int64_t>(Allocator::kAlignment / size_of(dtype));
  for (const auto& [name, parameter] : parameters_) {  // a map: already sorted by name
    if (parameter->gradient_kind() != Gradient::dense || parameter->frozen() != frozen) continue;
    auto group = std::ranges::find(groups, parameter->group(), &GroupLayout::name);
    if (group == groups.end()) group = groups.insert(groups.end(), GroupLayout{.name = parameter->group()});
    const std::int64_t count = parameter->shape().count();
    group->parameters.push_back(parameter);
    group->segments.push_back({group->count, count});
    add_elements(group->count, (count + aligned - 1) / aligned * aligned, "the parameters of a group", name,
                 parameter->shape());
  }
  std::ranges::sort(groups, {}, &GroupLayout::name);
  return groups;
}

void ParameterStore::place_alone(Backend& backend, Parameter& parameter, std::uint64_t seed) {
  const DType dtype = parameter.stored_dtype(dtype_);
  const TableColumns columns = parameter.columns();
  const Shape held = columns.are_all() ? parameter.shape() : parameter.shape().with(-1, columns.count);
  parameter.value_ = Tensor(held, dtype, backend.device(), *allocator_);
  if (!backend.computes()) return;
  const int threads =
      backend.works_behind() ? static_cast<int>(std::thread::hardware_concurrency()) : backend.threads();
  auto* const values = static_cast<std::byte*>(parameter.value_.raw());
  draw_values(parameter.initializer(), dtype, parameter.value_.count(), columns, seed, parameter.name(), threads,
              [&](std::int64_t first, std::span<const std::byte> piece) {
                backend.copy(values + static_cast<std::size_t>(first) * size_of(dtype), piece.data(), piece.size(),
                             CopyKind::host_to_device);
                // The piece is filled anew; a device may still be reading it.
                backend.synchronize();
              });
}

void ParameterStore::share(Parameter& parameter, Communicator& ranks) {
  if (parameter.gradient_kind() != Gradient::rows) return;
  check_shared_columns(parameter.name(), parameter.shape()[-1], ranks.size());
  parameter.shared_by_ = &ranks;
}

void ParameterStore::map_table(Backend& backend, Parameter& table, const std::filesystem::path& folder) {
  if (backend.device().kind != DeviceKind::cpu)
    throw DeviceError(text("parameter store: tables in mapped files are read on the CPU, got ", table.name(), " for ",
                           backend.device(), "\n  --device cpu reads them; a table in memory may be on any device"));
  table.mapped_ =
      std::make_unique<MappedTable>(table_path(folder, table.name()), table.shape(), table.stored_dtype(dtype_));
}

Parameter* ParameterStore::find(std::string_view name) const {
  const auto entry = parameters_.find(name);
  return entry == parameters_.end() ? nullptr : entry->second;
}

std::int64_t ParameterStore::count() const {
  std::int64_t total = 0;
  for (const auto& [name, parameter] : parameters_)
    if (parameter->gradient_kind() != Gradient::none)
      add_elements(total, parameter->shape().count(), "all parameters", name, parameter->shape());
  return total;
}

void ParameterStore::zero_gradients(Step& step) {
  zero_dense_gradients(step);
  clear_row_gradients();
}

void ParameterStore::zero_dense_gradients(Step& step) {
  for (ParameterGroup& group : groups_) kernels::fill(step, group.gradients, 0.0);
}

void ParameterStore::clear_row_gradients() {
  for (Parameter* table : tables_) table->row_gradient_.parts.clear();
}

void ParameterStore::keep_rounded(Step& step) {
  if (!placed()) throw Error("parameter store: bf16 copies need values, got a store that has no memory yet");
  if (dtype_ != DType::f32) throw DTypeError(text("parameter store: bf16 copies are of f32 parameters, got ", dtype_));
  for (std::vector<ParameterGroup>* const groups : {&groups_, &frozen_})
    for (ParameterGroup& group : *groups) keep_rounded(group);
  refresh_rounded(step);
}

void ParameterStore::keep_rounded(ParameterGroup& group) const {
  if (group.rounded || std::ranges::none_of(group.parameters, &Parameter::is_matrix)) return;
  group.rounded = Tensor(group.values.shape(), DType::bf16, group.values.device(), *allocator_);
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    Parameter& parameter = *group.parameters[i];
    const auto [offset, count] = group.segments[i];
    if (parameter.is_matrix()) parameter.rounded_ = group.rounded.rows(offset, offset + count).view(parameter.shape());
  }
}

void ParameterStore::refresh_rounded(Step& step) {
  for (std::vector<ParameterGroup>* const groups : {&groups_, &frozen_})
    for (ParameterGroup& group : *groups)
      if (group.rounded) kernels::convert(step, group.values, group.rounded);
}

}  // namespace engram
