#include "cuda/card/captured_step.hpp"

#include <cstddef>
#include <utility>

#include "cuda/card/check.hpp"

namespace engram::card {
namespace {

constexpr const char* kCapture = "capture of a step";

}  // namespace

CapturedStep::~CapturedStep() {
  for (const Part& part : parts_)
    if (part.graph != nullptr) (void)cudaGraphExecDestroy(part.graph);
}

bool CapturedStep::add(cudaGraph_t graph) {
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph, nullptr, &nodes), kCapture);
  if (nodes == 0) return true;
  Part& part = parts_.emplace_back();
  cudaError_t code = cudaGraphInstantiate(&part.graph, graph, 0);
  // Its memory on the card is taken now, and not when the first part of a step has run already.
  if (code == cudaSuccess) code = cudaGraphUpload(part.graph, stream_);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return false;
  }
  check(code, kCapture);
  nodes_ += nodes;
  return true;
}

void CapturedStep::add(std::function<void()> action) {
  parts_.push_back({.graph = nullptr, .action = std::move(action)});
}

void CapturedStep::run() {
  for (const Part& part : parts_)
    if (part.graph != nullptr)
      check(cudaGraphLaunch(part.graph, stream_), "replay of a step");
    else if (part.action)
      part.action();
}

Capture::Capture(cudaStream_t stream) : stream_(stream), step_(std::make_unique<CapturedStep>(stream)) { begin_part(); }

Capture::~Capture() {
  if (!recording_) return;
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(stream_, &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}

void Capture::begin_part() {
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), kCapture);
  recording_ = true;
}

void Capture::end_part() {
  recording_ = false;
  struct Recorded {
    cudaGraph_t graph = nullptr;
    ~Recorded() {
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
    }
  } recorded;
  check(cudaStreamEndCapture(stream_, &recorded.graph), kCapture);
  fits_ = step_->add(recorded.graph) && fits_;
}

void Capture::between(std::function<void()> action) {
  end_part();
  step_->add(std::move(action));
  begin_part();
}

std::unique_ptr<CapturedStep> Capture::finish() {
  end_part();
  return fits_ ? std::move(step_) : nullptr;
}

}  // namespace engram::card
