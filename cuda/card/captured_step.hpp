#pragma once
/// A step that a stream has recorded: graphs, and what the host does between them.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/backend.hpp"

namespace engram::card {

class CapturedStep final : public Replay {
 public:
  explicit CapturedStep(cudaStream_t stream) : stream_(stream) {}
  ~CapturedStep() override;
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Appends what a capture has recorded, unless it is nothing. false: the card has no memory for it. Throws
  /// DeviceError.
  bool add(cudaGraph_t graph);
  void add(std::function<void()> action);
  /// Hands the graphs to the stream and calls the actions, in their order.
  void run() override;
  std::size_t nodes() const override { return nodes_; }

 private:
  struct Part {
    cudaGraphExec_t graph = nullptr;  // nullptr: an action
    std::function<void()> action;
  };

  cudaStream_t stream_;
  std::vector<Part> parts_;
  std::size_t nodes_ = 0;
};

/// From its making to finish() the stream records instead of working.
class Capture {
 public:
  /// Throws DeviceError.
  explicit Capture(cudaStream_t stream);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// The action has its place between what was recorded so far and what will be.
  void between(std::function<void()> action);
  /// What was recorded, or nullptr where the card has no memory for it. Nothing of it has been done.
  std::unique_ptr<CapturedStep> finish();

 private:
  void begin_part();
  void end_part();

  cudaStream_t stream_;
  bool recording_ = false;
  bool fits_ = true;
  std::unique_ptr<CapturedStep> step_;
};

}  // namespace engram::card
