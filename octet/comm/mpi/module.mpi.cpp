#include <mpi.h>

#include <climits>
#include <cstdio>
#include <memory>
#include <mutex>

#include "octet/comm/mpi/transport.hpp"

namespace octet::comm {

struct MpiGroup {
  MPI_Comm comm;
};
struct MpiRequest {
  MPI_Request request = MPI_REQUEST_NULL;
};

namespace {

constexpr int tag = 19;

// Of every call: a rank has a second thread that tests its transfers, and MPI serves one thread at a time.
std::mutex mutex;

// `bytes` bytes as a count of a type, since MPI counts in int: above 16 MiB one element of a type of that size.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes) {
    if (bytes <= piece) {
      count = int(bytes);
      return;
    }
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    MPI_Type_contiguous(int(piece), MPI_BYTE, &parts[0]);
    int lengths[2] = {int(bytes / piece), int(bytes % piece)};
    MPI_Aint offsets[2] = {0, MPI_Aint(bytes / piece * piece)};
    MPI_Type_create_struct(2, lengths, offsets, parts, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&parts[0]);
    made = true;
    count = 1;
  }
  ~Bytes() {
    if (made) MPI_Type_free(&type);  // transfers under way keep it
  }
  Bytes(const Bytes&) = delete;

  MPI_Datatype type = MPI_BYTE;
  int count = 0;

 private:
  static constexpr std::size_t piece = 16 << 20;
  bool made = false;
};

template <class Start>
int begin(MpiRequest** out, Start start) {
  auto request = std::make_unique<MpiRequest>();
  const int code = start(&request->request);
  *out = code == MPI_SUCCESS ? request.release() : nullptr;
  return code;
}

template <class Make>
int wrap(MpiGroup** out, Make make) {
  const std::lock_guard lock(mutex);
  MPI_Comm comm = MPI_COMM_NULL;
  if (const int code = make(&comm); code != MPI_SUCCESS) return code;
  *out = new MpiGroup{comm};
  return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

int open(MpiGroup** world) {
  int provided = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided); code != MPI_SUCCESS) return code;
  if (provided < MPI_THREAD_SERIALIZED) return MPI_ERR_OTHER;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return wrap(world, [](MPI_Comm* copy) { return MPI_Comm_dup(MPI_COMM_WORLD, copy); });
}
int close() {
  const std::lock_guard lock(mutex);
  return MPI_Finalize();
}

int rank(MpiGroup* g) {
  const std::lock_guard lock(mutex);
  int rank = 0;
  MPI_Comm_rank(g->comm, &rank);
  return rank;
}
int size(MpiGroup* g) {
  const std::lock_guard lock(mutex);
  int size = 0;
  MPI_Comm_size(g->comm, &size);
  return size;
}
int split(MpiGroup* g, int color, int key, MpiGroup** part) {
  return wrap(part, [&](MPI_Comm* comm) { return MPI_Comm_split(g->comm, color, key, comm); });
}
int free_group(MpiGroup* g) {
  const std::lock_guard lock(mutex);
  const int code = MPI_Comm_free(&g->comm);
  delete g;
  return code;
}

int all_to_all(MpiGroup* g, const void* from, void* to, std::size_t bytes, MpiRequest** out) {
  const std::lock_guard lock(mutex);
  const Bytes b(bytes);
  return begin(out, [&](MPI_Request* r) { return MPI_Ialltoall(from, b.count, b.type, to, b.count, b.type, g->comm, r); });
}
int all_gather(MpiGroup* g, const void* from, void* to, std::size_t bytes, MpiRequest** out) {
  const std::lock_guard lock(mutex);
  const Bytes b(bytes);
  return begin(out, [&](MPI_Request* r) {
    return MPI_Iallgather(from == nullptr ? MPI_IN_PLACE : from, b.count, b.type, to, b.count, b.type, g->comm, r);
  });
}
int broadcast(MpiGroup* g, void* x, std::size_t bytes, int root, MpiRequest** out) {
  const std::lock_guard lock(mutex);
  const Bytes b(bytes);
  return begin(out, [&](MPI_Request* r) { return MPI_Ibcast(x, b.count, b.type, root, g->comm, r); });
}
int send(MpiGroup* g, const void* from, std::size_t bytes, int peer, MpiRequest** out) {
  const std::lock_guard lock(mutex);
  const Bytes b(bytes);
  return begin(out, [&](MPI_Request* r) { return MPI_Isend(from, b.count, b.type, peer, tag, g->comm, r); });
}
int receive(MpiGroup* g, void* to, std::size_t bytes, int peer, MpiRequest** out) {
  const std::lock_guard lock(mutex);
  const Bytes b(bytes);
  return begin(out, [&](MPI_Request* r) { return MPI_Irecv(to, b.count, b.type, peer, tag, g->comm, r); });
}
int barrier(MpiGroup* g, MpiRequest** out) {
  const std::lock_guard lock(mutex);
  return begin(out, [&](MPI_Request* r) { return MPI_Ibarrier(g->comm, r); });
}

int test(MpiRequest* r, int* done) {
  const std::lock_guard lock(mutex);
  const int code = MPI_Test(&r->request, done, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS && *done != 0) delete r;
  return code;
}

int cancel(MpiRequest* r) {
  const std::lock_guard lock(mutex);
  MPI_Cancel(&r->request);
  const int code = MPI_Request_free(&r->request);
  delete r;
  return code;
}

void describe(int code, char* text, std::size_t most) {
  const std::lock_guard lock(mutex);
  char whole[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, whole, &length);
  std::snprintf(text, most, "%s", whole);
}

constexpr MpiTransport transport{MpiTransport::current_version,
                                 open,
                                 close,
                                 rank,
                                 size,
                                 split,
                                 free_group,
                                 all_to_all,
                                 all_gather,
                                 broadcast,
                                 send,
                                 receive,
                                 barrier,
                                 test,
                                 cancel,
                                 describe};

}  // namespace
}  // namespace octet::comm

extern "C" const octet::comm::MpiTransport* octet_mpi_transport() { return &octet::comm::transport; }
