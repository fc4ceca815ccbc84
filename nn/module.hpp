#pragma once

namespace engram {

class Visitor;

/// A part of a model: something with parameters. Every module has its own typed `forward`; what they have in common is
/// one list of their parameters and parts.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  /// Shows every parameter and part to the visitor. Names, memory, initial values, checkpoints and counts come from
  /// here alone: what is left out has no memory, and its first use throws.
  virtual void visit(Visitor& visit) = 0;
};

}  // namespace engram
