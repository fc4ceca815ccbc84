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

void CapturedStep::add(cudaGraph_t graph) {
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph, nullptr, &nodes), kCapture);
  if (nodes == 0) return;
  Part& part = parts_.emplace_back();
  check(cudaGraphInstantiate(&part.graph, graph, 0), kCapture);
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
  step_->add(recorded.graph);
}

void Capture::between(std::function<void()> action) {
  end_part();
  step_->add(std::move(action));
  begin_part();
}

std::unique_ptr<CapturedStep> Capture::finish() {
  end_part();
  return std::move(step_);
}

}  // namespace engram::card
