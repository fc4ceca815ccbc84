/// A library with the functions of NCCL that ranks use, for ranks that are threads and streams of fake_cuda.cpp: a
/// module that is loaded as NCCL is. It refuses what NCCL must not be asked.

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

/// What ranks share that have one id.
struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, here = 0;
  bool aborted = false;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> sent;  // from, to
};

struct Piece {
  bool sends = false;
  int other = 0;
  char* bytes = nullptr;
  std::size_t length = 0;
};

std::map<std::string, std::shared_ptr<Group>>& groups() {
  static std::map<std::string, std::shared_ptr<Group>> all;
  return all;
}
std::mutex& groups_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::atomic<long> sends{0}, gathers{0}, broadcasts{0}, living{0}, aborts_in_groups{0};

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::atomic<bool> aborted{false}, wrong{false};
};

namespace {

/// What one call hands to a stream: all that is sent, then all that is received.
struct Handed {
  ncclComm* comm = nullptr;
  std::shared_ptr<Group> group;
  std::vector<Piece> pieces;
};

void move_pieces(void* data) {
  const std::unique_ptr<Handed> handed(static_cast<Handed*>(data));
  Group& group = *handed->group;
  std::unique_lock lock(group.mutex);
  const int rank = handed->comm->rank;
  for (const Piece& piece : handed->pieces)
    if (piece.sends) group.sent[{rank, piece.other}].emplace_back(piece.bytes, piece.bytes + piece.length);
  group.changed.notify_all();
  for (const Piece& piece : handed->pieces) {
    if (piece.sends) continue;
    auto& waiting = group.sent[{piece.other, rank}];
    group.changed.wait(lock, [&] { return !waiting.empty() || handed->comm->aborted; });
    if (waiting.empty()) return;
    const std::vector<char> bytes = std::move(waiting.front());
    waiting.pop_front();
    if (bytes.size() != piece.length) {
      handed->comm->wrong = true;
      group.changed.wait(lock, [&] { return handed->comm->aborted.load(); });
      return;
    }
    std::memcpy(piece.bytes, bytes.data(), bytes.size());
  }
}

struct Grouped {
  int depth = 0;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Piece> pieces;
};
Grouped& grouped() {
  thread_local Grouped one;
  return one;
}

ncclResult_t hand_over() {
  Grouped& all = grouped();
  if (all.pieces.empty()) return ncclSuccess;
  auto* const handed = new Handed{all.comm, all.comm->group, std::exchange(all.pieces, {})};
  return cudaLaunchHostFunc(all.stream, move_pieces, handed) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t add(ncclComm* comm, cudaStream_t stream, const std::vector<Piece>& pieces) {
  if (comm == nullptr || stream == nullptr || comm->group->here < comm->group->size) return ncclInvalidArgument;
  Grouped& all = grouped();
  all.comm = comm;
  all.stream = stream;
  all.pieces.insert(all.pieces.end(), pieces.begin(), pieces.end());
  return all.depth > 0 ? ncclSuccess : hand_over();
}

char* writable(const void* bytes) { return static_cast<char*>(const_cast<void*>(bytes)); }

}  // namespace

extern "C" {

long fake_nccl_sends() { return sends; }
long fake_nccl_gathers() { return gathers; }
long fake_nccl_broadcasts() { return broadcasts; }
long fake_nccl_living() { return living; }
long fake_nccl_open_groups() { return grouped().depth; }
long fake_nccl_aborts_in_groups() { return aborts_in_groups; }

ncclResult_t ncclGetVersion(int* version) {
  const char* const wanted = std::getenv("FAKE_NCCL_VERSION");
  *version = wanted == nullptr ? NCCL_VERSION_CODE : std::atoi(wanted);
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> number{0};
  const std::string name = "group " + std::to_string(++number);
  std::fill(id->internal, id->internal + NCCL_UNIQUE_ID_BYTES, '\0');
  std::copy(name.begin(), name.end(), id->internal);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int count, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->size != sizeof(ncclConfig_t) || config->magic != 0xcafebeef || config->blocking != 0 || rank < 0 ||
      rank >= count || id.internal[0] == '\0')
    return ncclInvalidArgument;
  const std::lock_guard lock(groups_mutex());
  std::shared_ptr<Group>& group = groups()[id.internal];
  if (!group) group = std::make_shared<Group>();
  const std::lock_guard inner(group->mutex);
  group->size = count;
  ++group->here;
  *comm = new ncclComm{group, rank};
  ++living;
  return ncclInProgress;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclInProgress; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  --living;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (grouped().depth > 0) ++aborts_in_groups;
  {
    const std::lock_guard lock(comm->group->mutex);
    comm->aborted = true;
    comm->group->aborted = true;
    comm->group->changed.notify_all();
  }
  // Streams may still ask for it: it stays until the program ends.
  static std::vector<std::unique_ptr<ncclComm>> kept;
  const std::lock_guard lock(groups_mutex());
  kept.emplace_back(comm);
  --living;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(comm->group->mutex);
  *state = comm->wrong                             ? ncclInvalidUsage
           : comm->group->aborted                  ? ncclRemoteError
           : comm->group->here < comm->group->size ? ncclInProgress
                                                   : ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t code) { return code == ncclRemoteError ? "remote error" : "invalid usage"; }
const char* ncclGetLastError(ncclComm_t) { return "says the fake"; }

ncclResult_t ncclGroupStart() {
  ++grouped().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return --grouped().depth > 0 ? ncclSuccess : hand_over(); }

ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (count == 0 || type != ncclUint8 || peer == comm->rank) return ncclInvalidArgument;
  ++sends;
  return add(comm, stream, {{true, peer, writable(bytes), count}});
}
ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  if (count == 0 || type != ncclUint8 || peer == comm->rank) return ncclInvalidArgument;
  return add(comm, stream, {{false, peer, writable(bytes), count}});
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  if (count == 0 || type != ncclUint8 || from != to) return ncclInvalidArgument;
  ++broadcasts;
  std::vector<Piece> pieces;
  if (root != comm->rank) pieces.push_back({false, root, writable(to), count});
  for (int q = 0; root == comm->rank && q < comm->group->size; ++q)
    if (q != root) pieces.push_back({true, q, writable(from), count});
  return add(comm, stream, pieces);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  if (comm == nullptr || count == 0 || type != ncclUint8 ||
      from != writable(to) + count * static_cast<size_t>(comm->rank))
    return ncclInvalidArgument;
  ++gathers;
  std::vector<Piece> pieces;
  for (int q = 0; q < comm->group->size; ++q)
    if (q != comm->rank) {
      pieces.push_back({true, q, writable(from), count});
      pieces.push_back({false, q, writable(to) + count * static_cast<size_t>(q), count});
    }
  return add(comm, stream, pieces);
}
}
