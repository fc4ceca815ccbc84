/// What of the CUDA runtime the ranks of cards use, on the host: a stream is a thread that does what it was handed, in
/// order and late, so that whoever does not wait for it finds nothing done.

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace engram::harness::fake_cuda {

using Work = std::function<void()>;

/// What the card has memory for in one graph.
constexpr std::size_t kMostNodes = 100;

/// How far a stream has come.
struct Place {
  std::mutex mutex;
  std::condition_variable passed;
  unsigned long recorded = 0, done = 0;
  std::chrono::steady_clock::time_point time;  // when it was done
};

}  // namespace engram::harness::fake_cuda

using engram::harness::fake_cuda::kMostNodes;
using engram::harness::fake_cuda::Place;
using engram::harness::fake_cuda::Work;

struct CUevent_st {
  std::shared_ptr<Place> place = std::make_shared<Place>();
};

struct CUgraph_st {
  std::vector<Work> work;
};

struct CUgraphExec_st {
  std::vector<Work> work;
};

struct CUstream_st {
  CUstream_st() : worker([this] { run(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    worker.join();
  }
  void put(Work one) {
    if (capturing) {
      recorded.work.push_back(std::move(one));
      return;
    }
    {
      const std::lock_guard lock(mutex);
      work.push_back(std::move(one));
      ++handed;
    }
    changed.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ending || !work.empty(); });
      if (work.empty()) return;
      const Work one = std::move(work.front());
      work.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      one();
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> work;
  unsigned long handed = 0, done = 0;
  bool ending = false;
  bool capturing = false;  // of the host's thread alone
  CUgraph_st recorded;
  std::thread worker;  // last: it begins when the rest is there
};

extern "C" {

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the fake"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorFake"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(stream->mutex);
  return stream->done == stream->handed ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->capturing) return cudaErrorStreamCaptureUnsupported;
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [stream] { return stream->done == stream->handed; });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->capturing) return cudaErrorStreamCaptureUnsupported;
  unsigned long number = 0;
  {
    const std::lock_guard lock(event->place->mutex);
    number = ++event->place->recorded;
  }
  stream->put([place = event->place, number] {
    const std::lock_guard lock(place->mutex);
    place->done = number;
    place->time = std::chrono::steady_clock::now();
    place->passed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(event->place->mutex);
  return event->place->done == event->place->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::unique_lock lock(event->place->mutex);
  event->place->passed.wait(lock, [event] { return event->place->done == event->place->recorded; });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  if (stream->capturing) return cudaErrorStreamCaptureUnsupported;
  unsigned long number = 0;
  {
    const std::lock_guard lock(event->place->mutex);
    number = event->place->recorded;
  }
  stream->put([place = event->place, number] {
    std::unique_lock lock(place->mutex);
    place->passed.wait(lock, [&] { return place->done >= number; });
  });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::scoped_lock lock(begin->place->mutex, end->place->mutex);
  if (begin->place->done != begin->place->recorded || end->place->done != end->place->recorded)
    return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->place->time - begin->place->time).count();
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  stream->put([function, data] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capturing) return cudaErrorIllegalState;
  stream->capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!stream->capturing) return cudaErrorIllegalState;
  stream->capturing = false;
  *graph = new CUgraph_st(std::exchange(stream->recorded, {}));
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (graph->work.size() > kMostNodes) return cudaErrorMemoryAllocation;
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  return stream->capturing ? cudaErrorIllegalState : cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (stream->capturing) return cudaErrorIllegalState;
  for (const Work& one : executable->work) stream->put(one);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
}
