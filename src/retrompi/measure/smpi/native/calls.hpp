// Common parts of every MPI function defined here.
#pragma once
#include <dlfcn.h>

#include "device.hpp"

namespace retrompi::online {

/// SimGrid's own function of this name.
#define NATIVE(name)                                                                              \
  (*[] {                                                                                          \
    static auto found = reinterpret_cast<decltype(&PMPI_##name)>(native_function("PMPI_" #name)); \
    return found;                                                                                 \
  }())
void* native_function(const char* name);

/// An MPI function that a program calls, by its MPI_ or its PMPI_ name.
#define DEFINE(name, params)                                                                     \
  extern "C" int PMPI_##name params;                                                             \
  extern "C" __attribute__((alias("PMPI_" #name), visibility("default"))) int MPI_##name params; \
  extern "C" __attribute__((visibility("default"))) int PMPI_##name params

/// Scope of a call, from entry to return. Computation before it is simulated first.
class Call {
 public:
  explicit Call(const char* name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// False outside MPI_Init .. MPI_Finalize and inside another call: those are left to SimGrid.
  explicit operator bool() const { return rank_ != nullptr; }
  Rank* operator->() const { return rank_; }
  Rank& operator*() const { return *rank_; }

 private:
  Rank* rank_ = nullptr;
};

/// Our requests by handle; null: SimGrid's own.
Request* request_of(MPI_Request handle);
/// A handle for one of our requests, for which SimGrid knows the number that Fortran sees.
void give_handle(Request& r, MPI_Request* where);
void drop_handle(Request& r, MPI_Request* where);
/// SimGrid's own messages for creating a communicator: free, since the runtime's have been paid for. `waits`: this actor may stop there until
/// others come, so that the others' events have to go on; those of this instant then come before what this actor still does in it.
class Gratis {
 public:
  explicit Gratis(bool waits = false) {
    ++depth;
    if (waits) simulated().go_on();
  }
  ~Gratis() { --depth; }
  Gratis(const Gratis&) = delete;
  Gratis& operator=(const Gratis&) = delete;
  static inline int depth = 0;
};

void report(const std::string& line);    // writes to the result file
inline constexpr int kThreshold = 1000;  // ns of computation that justify an event; the recorder's threshold

}  // namespace retrompi::online
