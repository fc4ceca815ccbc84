#pragma once
/// A stack of names such as `layers.3/attention`, read by error messages, tape listings and profilers. It is
/// the only thread-local state of the library and carries names, never behaviour.

#include <string>
#include <string_view>

namespace engram {

class Scope {
 public:
  /// Pushes a component of the path for the lifetime of this object. The text must outlive it.
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// The open names of this thread, outermost first, joined by '/'; empty when none is open.
  static std::string path();

 private:
  std::string_view name_;
  Scope* outer_;
};

}  // namespace engram
