#include "cuda/card/backend.hpp"

#include "core/error.hpp"
#include "cuda/card/check.hpp"
#include "cuda/card/launch.hpp"

namespace engram::card {
namespace {

/// A captured step.
class Graph final : public Replay {
 public:
  Graph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    check(cudaGraphInstantiate(&executable_, graph, 0), "capture of a step");
  }
  ~Graph() override { (void)cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void run() override { check(cudaGraphLaunch(executable_, stream_), "replay of a step"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

/// The stream records instead of working, from its making to finish().
class Capture {
 public:
  Capture(cudaStream_t stream, bool& flag) : stream_(stream), flag_(flag) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture of a step");
    flag_ = true;
  }
  ~Capture() {
    if (flag_) (void)cudaStreamEndCapture(stream_, &graph_);
    flag_ = false;
    if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
    (void)cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  /// What was recorded; belongs to this object.
  cudaGraph_t finish() {
    flag_ = false;
    check(cudaStreamEndCapture(stream_, &graph_), "capture of a step");
    return graph_;
  }

 private:
  cudaStream_t stream_;
  bool& flag_;
  cudaGraph_t graph_ = nullptr;
};

std::string mebibytes(std::size_t bytes) { return text((bytes + (1 << 20) - 1) >> 20, " MiB"); }

}  // namespace

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
Stream::~Stream() { (void)cudaStreamDestroy(stream_); }

void* CardBackend::reserve(std::size_t bytes) {
  if (capturing_)
    throw DeviceError(text("memory: a captured step must find its memory in the arena, asked for ", bytes));
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes == 0 ? 1 : bytes);
  if (code != cudaErrorMemoryAllocation) {
    check(code, "memory");
    reserved_.add(data, bytes);
    return data;
  }
  (void)cudaGetLastError();
  std::size_t free = 0, total = 0;
  (void)cudaMemGetInfo(&free, &total);
  throw OutOfMemory(text("memory: ", device(), " (", facts_.name, ") must have ", mebibytes(bytes), " free, got ",
                         mebibytes(free), " of ", mebibytes(total),
                         "\n  less is needed with a larger training.split, a smaller training.batch or training.block; "
                         "nvidia-smi shows what other programs take"));
}

void CardBackend::release(void* data) noexcept {
  reserved_.remove(data);
  (void)cudaFree(data);
}

void CardBackend::copy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  if (bytes == 0) return;
  if (kind == CopyKind::device_to_device) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy on the card");
    return;
  }
  if (capturing_) throw DeviceError("copy: a captured step must not read or write memory of the host");
  if (kind == CopyKind::host_to_device) {
    staging_.copy_to_card(to, from, bytes);
  } else {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the card");
    synchronize();
  }
}

void CardBackend::synchronize() {
  if (capturing_) throw DeviceError("synchronize: a captured step must not wait for the card");
  check(cudaStreamSynchronize(stream_), "waiting for the card");
}

std::unique_ptr<Replay> CardBackend::capture(std::function<void()> step) {
  Capture capture(stream_, capturing_);
  step();
  auto graph = std::make_unique<Graph>(capture.finish(), stream_);
  graph->run();
  return graph;
}

CardBackend& card_of(Backend& backend) {
  if (backend.device().kind != DeviceKind::cuda)
    throw DeviceError(text("launch: the step's device must be cuda, got ", backend.device()));
  return static_cast<CardBackend&>(backend);
}

cudaStream_t stream_of(Backend& backend) { return card_of(backend).stream(); }
std::size_t shared_bytes_of(Backend& backend) { return card_of(backend).facts().shared_bytes; }

namespace {

std::unique_ptr<Backend> open(int index) { return std::make_unique<CardBackend>(index); }

const bool registered = register_backend(DeviceKind::cuda, &open);

}  // namespace
}  // namespace engram::card
