#include "core/scope.hpp"

namespace engram {
namespace {

thread_local Scope* innermost = nullptr;

}  // namespace

Scope::Scope(std::string_view name) : name_(name), outer_(innermost) { innermost = this; }
Scope::~Scope() { innermost = outer_; }

std::string Scope::path() {
  std::string joined;
  for (const Scope* scope = innermost; scope != nullptr; scope = scope->outer_)
    joined = joined.empty() ? std::string(scope->name_) : std::string(scope->name_) + "/" + joined;
  return joined;
}

}  // namespace engram
