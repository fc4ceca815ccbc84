#include "cuda/card/nccl_comm.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "core/stopwatch.hpp"

namespace engram::card {
namespace {

/// Done, or on its way.
bool is_good(ncclResult_t code) { return code == ncclSuccess || code == ncclInProgress; }

}  // namespace

NcclComm::NcclComm(const Nccl& library, Communicator& host) : library_(library), host_(host) {
  ncclUniqueId own{};
  together(host, [&] {
    if (!host.leads()) return;
    if (const ncclResult_t code = library.GetUniqueId(&own); code != ncclSuccess)
      throw RankError(text("ranks: NCCL must find a way to other ranks, got: ", library.GetErrorString(code), ": ",
                           library.GetLastError(nullptr),
                           "\n  NCCL_DEBUG=INFO shows what it tries, NCCL_SOCKET_IFNAME names the network to use"));
  });
  std::vector<ncclUniqueId> ids(static_cast<std::size_t>(host.size()));
  host.gather_host(&own, sizeof(own), ids.data());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // no call waits for another rank, which may have ended
  try {
    settle(library.CommInitRankConfig(&comm_, host.size(), ids.front(), host.rank(), &config), "the beginning");
  } catch (...) {
    abort();
    throw;
  }
}

NcclComm::~NcclComm() {
  if (comm_ == nullptr) return;
  // The others may wait for this rank, which will not come any more: they must hear why, and not from here.
  if (std::uncaught_exceptions() > 0) {
    abort();
    return;
  }
  try {
    settle(library_.CommFinalize(comm_), "the end");
    (void)library_.CommDestroy(comm_);
  } catch (const Error&) {
    // Nobody needs what was on its way, and abort() was called.
  }
}

void NcclComm::exchange(const void* send, PartEnds send_ends, void* receive, PartEnds receive_ends,
                        cudaStream_t stream) {
  const auto* const from = static_cast<const std::byte*>(send);
  auto* const to = static_cast<std::byte*>(receive);
  const int size = host_.size(), rank = host_.rank();
  group("an exchange", [&] {
    ncclResult_t code = ncclSuccess;
    // Each begins with its neighbour, so that not all talk to rank 0 at once.
    for (int distance = 1; distance < size && is_good(code); ++distance) {
      const int after = (rank + distance) % size, before = (rank + size - distance) % size;
      if (const std::size_t bytes = part_length(send_ends, after); bytes > 0)
        code = library_.Send(from + part_begin(send_ends, after), bytes, ncclUint8, after, comm_, stream);
      if (const std::size_t bytes = part_length(receive_ends, before); bytes > 0 && is_good(code))
        code = library_.Recv(to + part_begin(receive_ends, before), bytes, ncclUint8, before, comm_, stream);
    }
    return code;
  });
}

void NcclComm::gather(void* all, PartEnds ends, cudaStream_t stream) {
  auto* const bytes = static_cast<std::byte*>(all);
  const int size = host_.size();
  require_whole("a gathering");
  const std::size_t first = part_length(ends, 0);
  bool equal = true;
  for (int q = 1; q < size; ++q) equal = equal && part_length(ends, q) == first;
  if (equal) {
    if (first == 0) return;
    settle(library_.AllGather(bytes + part_begin(ends, host_.rank()), all, first, ncclUint8, comm_, stream),
           "a gathering");
    return;
  }
  group("a gathering", [&] {
    ncclResult_t code = ncclSuccess;
    for (int q = 0; q < size && is_good(code); ++q) {
      std::byte* const part = bytes + part_begin(ends, q);
      if (const std::size_t length = part_length(ends, q); length > 0)
        code = library_.Broadcast(part, part, length, ncclUint8, q, comm_, stream);
    }
    return code;
  });
}

void NcclComm::look(double seconds) {
  if (comm_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  if (library_.CommGetAsyncError(comm_, &state) != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
    fail(text("ranks: NCCL must succeed on ", host_.name(host_.rank()), ", got: ", library_.GetErrorString(state), ": ",
              library_.GetLastError(comm_)));
  try {
    host_.check_others();
  } catch (...) {
    abort();
    throw;
  }
  if (seconds > host_.deadline())
    fail(text("ranks: ", others(), " must answer within ", host_.deadline(), " s, got no answer on ",
              host_.name(host_.rank()), "\n  ENGRAM_RANK_TIMEOUT, in seconds, lets ranks wait longer"));
}

void NcclComm::abort() {
  if (comm_ != nullptr) (void)library_.CommAbort(comm_);
  comm_ = nullptr;
}

void NcclComm::settle(ncclResult_t code, const char* what) {
  const Stopwatch clock;
  double looked = 0;
  while (code == ncclInProgress) {
    const double now = clock.seconds();
    if (now - looked > 0.01) {
      look(now);
      looked = now;
    }
    if (now > 0.001) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (const ncclResult_t asked = library_.CommGetAsyncError(comm_, &code); asked != ncclSuccess) code = asked;
  }
  check(code, what);
}

void NcclComm::group(const char* what, const std::function<ncclResult_t()>& calls) {
  require_whole(what);
  check(library_.GroupStart(), what);
  const ncclResult_t called = calls();
  // Whatever was refused: in an open group nothing can be aborted, and what follows would belong to it.
  const ncclResult_t ended = library_.GroupEnd();
  check(called, what);
  settle(ended, what);
}

void NcclComm::require_whole(const char* what) {
  if (comm_ == nullptr) throw RankError(text("ranks: NCCL must go on for ", what, ", but was ended before"));
}

void NcclComm::check(ncclResult_t code, const char* what) {
  if (is_good(code)) return;
  fail(text("ranks: ", what, " by NCCL must succeed on ", host_.name(host_.rank()),
            ", got: ", library_.GetErrorString(code), ": ", library_.GetLastError(comm_)));
}

void NcclComm::fail(const std::string& rule) {
  abort();
  throw RankError(rule);
}

std::string NcclComm::others() const {
  std::string names;
  for (int q = 0; q < host_.size(); ++q)
    if (q != host_.rank()) names += (names.empty() ? "" : ", ") + host_.name(q);
  return names;
}

}  // namespace engram::card
