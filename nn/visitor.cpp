#include "nn/visitor.hpp"

namespace engram {

std::string Visitor::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void Visitor::operator()(std::string_view name, Parameter& parameter) { found_(path_of(name), parameter); }

void Visitor::operator()(std::string_view name, Module& part) {
  std::string outer = path_of(name);
  std::swap(outer, path_);
  part.visit(*this);
  std::swap(outer, path_);
}

void collect(Module& module, ParameterStore& store) {
  Visitor visitor([&store](const std::string& name, Parameter& parameter) { store.add(name, parameter); });
  module.visit(visitor);
}

}  // namespace engram
