#pragma once
/// Walks a module's parameters and builds their names: `layers.3.attention.query`.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/parameter.hpp"
#include "autograd/parameter_store.hpp"
#include "nn/module.hpp"

namespace engram {

class Visitor {
 public:
  /// `found` is called with the full name of every parameter, in the order of the visits.
  explicit Visitor(std::function<void(const std::string& name, Parameter&)> found) : found_(std::move(found)) {}

  void operator()(std::string_view name, Parameter& parameter);
  void operator()(std::string_view name, Module& part);
  /// Parts of a list are called name.0, name.1, ...
  template <class Part>
  void operator()(std::string_view name, std::vector<std::unique_ptr<Part>>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) (*this)(std::string(name) + "." + std::to_string(i), *parts[i]);
  }

 private:
  std::string path_of(std::string_view name) const;

  std::function<void(const std::string&, Parameter&)> found_;
  std::string path_;
};

/// Registers all parameters of a module in a store. Tied parameters keep their first name.
void collect(Module& module, ParameterStore& store);

}  // namespace engram
