#pragma once
/// Base class of a recorded operation. The members of a derived struct are what its backward pass keeps.

#include <string_view>
#include <vector>

#include "core/step.hpp"

namespace engram {

class Backward;

class Node {
 public:
  struct Saved {
    std::string_view name;
    Tensor tensor;
  };

  Node() = default;
  Node(Node&&) = default;
  Node& operator=(Node&&) = default;
  virtual ~Node() = default;
  virtual std::string_view name() const = 0;
  /// Adds this operation's share to the gradients of its inputs. Runs once; the node is freed right after.
  virtual void backward(Step& step, Backward& pass) = 0;
  /// What it keeps for that, for listings. Tensors that several nodes keep appear in each.
  virtual std::vector<Saved> saved() const { return {}; }
};

}  // namespace engram
