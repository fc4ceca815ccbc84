/// The module libengram_mpi.so, the only source that knows MPI.

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "cpu/ranks/mpi_calls.hpp"

struct EngramMpiMessages {
  std::vector<MPI_Request> requests;
  std::vector<int> others, lengths;  // length -1: it is sent
  std::vector<MPI_Status> statuses;
};

namespace {

using engram::cpu::kMpiTooShort;

constexpr int kTag = 1;

/// Communicators of the program's own, and words that are on their way to who may never take them.
struct Ours {
  MPI_Comm messages = MPI_COMM_NULL, words = MPI_COMM_NULL;
  struct Told {
    std::string words;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::list<Told> told;
};
Ours& ours() {
  static Ours all;
  return all;
}

int own_copy_of_world(MPI_Comm& copy) {
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &copy)) return code;
  return MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
}

int begin(int* rank, int* size) {
  int provided = 0;
  // One thread calls MPI; others compute beside it.
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)) return code;
  if (const int code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)) return code;
  if (provided < MPI_THREAD_FUNNELED) return MPI_ERR_OTHER;
  if (const int code = own_copy_of_world(ours().messages)) return code;
  if (const int code = own_copy_of_world(ours().words)) return code;
  if (const int code = MPI_Comm_rank(ours().messages, rank)) return code;
  return MPI_Comm_size(ours().messages, size);
}

int end() {
  for (Ours::Told& told : ours().told) {
    if (told.request == MPI_REQUEST_NULL) continue;
    MPI_Request_free(&told.request);
  }
  MPI_Comm_free(&ours().messages);
  MPI_Comm_free(&ours().words);
  return MPI_Finalize();
}

void abort_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

void copy_cut(const char* from, std::size_t length, char* to, std::size_t room) {
  if (room == 0) return;
  const std::size_t cut = std::min(length, room - 1);
  std::memcpy(to, from, cut);
  to[cut] = '\0';
}

void library(char* name, std::size_t room) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) length = 0;
  // Open MPI says more after a comma, MPICH on further lines.
  const char* const stop = std::find_if(version, version + length, [](char c) { return c == ',' || c == '\n'; });
  std::string written(static_cast<const char*>(version), stop);
  std::replace(written.begin(), written.end(), '\t', ' ');
  copy_cut(written.data(), written.size(), name, room);
}

void error_text(int code, char* message, std::size_t room) {
  char described[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (code == kMpiTooShort)
    length = static_cast<int>(std::string("a message was shorter than was waited for").copy(described, 64));
  else if (MPI_Error_string(code, described, &length) != MPI_SUCCESS)
    length = 0;
  copy_cut(described, static_cast<std::size_t>(length), message, room);
}

EngramMpiMessages* new_messages() { return new EngramMpiMessages; }
void delete_messages(EngramMpiMessages* messages) { delete messages; }

int send(EngramMpiMessages* messages, const void* bytes, int length, int to) {
  messages->others.push_back(to);
  messages->lengths.push_back(-1);
  return MPI_Isend(bytes, length, MPI_BYTE, to, kTag, ours().messages,
                   &messages->requests.emplace_back(MPI_REQUEST_NULL));
}

int receive(EngramMpiMessages* messages, void* bytes, int length, int from) {
  messages->others.push_back(from);
  messages->lengths.push_back(length);
  return MPI_Irecv(bytes, length, MPI_BYTE, from, kTag, ours().messages,
                   &messages->requests.emplace_back(MPI_REQUEST_NULL));
}

int test(EngramMpiMessages* messages, int* arrived) {
  const std::size_t count = messages->requests.size();
  messages->statuses.resize(count);
  const int code = MPI_Testall(static_cast<int>(count), messages->requests.data(), arrived, messages->statuses.data());
  if (code != MPI_SUCCESS) {
    int kind = MPI_SUCCESS;
    MPI_Error_class(code, &kind);
    if (kind == MPI_ERR_IN_STATUS)
      for (const MPI_Status& status : messages->statuses)
        if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) return status.MPI_ERROR;
    return code;
  }
  if (*arrived == 0) return MPI_SUCCESS;
  for (std::size_t i = 0; i < count; ++i) {
    int got = 0;
    if (messages->lengths[i] < 0) continue;
    if (const int failed = MPI_Get_count(&messages->statuses[i], MPI_BYTE, &got)) return failed;
    if (got != messages->lengths[i]) return kMpiTooShort;
  }
  return MPI_SUCCESS;
}

int waits_for(EngramMpiMessages* messages) {
  for (const bool received : {true, false})
    for (std::size_t i = 0; i < messages->requests.size(); ++i) {
      int complete = 0;
      if ((messages->lengths[i] >= 0) != received || messages->requests[i] == MPI_REQUEST_NULL) continue;
      if (MPI_Request_get_status(messages->requests[i], &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && complete == 0)
        return messages->others[i];
    }
  return -1;
}

int tell(const char* words, int length, int to) {
  Ours::Told& told = ours().told.emplace_back();
  told.words.assign(words, static_cast<std::size_t>(length));
  return MPI_Isend(told.words.data(), length, MPI_CHAR, to, kTag, ours().words, &told.request);
}

int hear(int* from, char* words, int room, int* length) {
  *from = -1;
  *length = 0;
  int there = 0;
  MPI_Status status;
  if (const int code = MPI_Iprobe(MPI_ANY_SOURCE, kTag, ours().words, &there, &status)) return code;
  if (there == 0) return MPI_SUCCESS;
  int count = 0;
  if (const int code = MPI_Get_count(&status, MPI_CHAR, &count)) return code;
  std::string all(static_cast<std::size_t>(count), '\0');
  if (const int code = MPI_Recv(all.data(), count, MPI_CHAR, status.MPI_SOURCE, kTag, ours().words, MPI_STATUS_IGNORE))
    return code;
  *from = status.MPI_SOURCE;
  *length = std::min(count, room);
  std::memcpy(words, all.data(), static_cast<std::size_t>(*length));
  return MPI_SUCCESS;
}

}  // namespace

extern "C" const EngramMpiCalls* engram_mpi_calls() {
  static const EngramMpiCalls calls{engram::cpu::kMpiCallsVersion,
                                    begin,
                                    end,
                                    abort_all,
                                    library,
                                    error_text,
                                    new_messages,
                                    delete_messages,
                                    send,
                                    receive,
                                    test,
                                    waits_for,
                                    tell,
                                    hear};
  return &calls;
}
