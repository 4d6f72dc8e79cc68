#pragma once

#include <cstddef>

// The functions of liboctet_mpi.so, the module that is linked with MPI. Bytes only: the module knows nothing else of Octet. Every int that
// is returned is 0 or an error code of MPI. Thread-safe: one call at a time enters MPI.

namespace octet::comm {

struct MpiGroup;    // a communicator of MPI
struct MpiRequest;  // a transfer under way

struct MpiTransport {
  static constexpr int current_version = 3;
  int version;

  /// MPI_Init_thread and a copy of MPI_COMM_WORLD. Once per process.
  int (*open)(MpiGroup** world);
  /// MPI_Finalize.
  int (*close)();
  int (*rank)(MpiGroup*);
  int (*size)(MpiGroup*);
  /// Blocks until all ranks have come.
  int (*split)(MpiGroup*, int color, int key, MpiGroup** part);
  int (*free)(MpiGroup*);

  // Start a transfer. `bytes`: per rank. The memory stays in use until test() has said that it is done.
  int (*all_to_all)(MpiGroup*, const void* from, void* to, std::size_t bytes, MpiRequest**);
  /// from == null: the own part of `to`.
  int (*all_gather)(MpiGroup*, const void* from, void* to, std::size_t bytes, MpiRequest**);
  int (*broadcast)(MpiGroup*, void* x, std::size_t bytes, int root, MpiRequest**);
  int (*send)(MpiGroup*, const void* from, std::size_t bytes, int peer, MpiRequest**);
  int (*receive)(MpiGroup*, void* to, std::size_t bytes, int peer, MpiRequest**);
  int (*barrier)(MpiGroup*, MpiRequest**);
  /// Sets *done, and frees the request if it is.
  int (*test)(MpiRequest*, int* done);
  /// Gives up a receive, and frees its request.
  int (*cancel)(MpiRequest*);

  /// The text of an error code, at most `most` bytes with the final 0.
  void (*describe)(int code, char* text, std::size_t most);
};

/// The only symbol of the module.
inline constexpr const char* mpi_module_symbol = "octet_mpi_transport";
using MpiModule = const MpiTransport* (*)();

}  // namespace octet::comm
