// What every MPI function defined here has in common.
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

/// An MPI function that a program calls, by this or by its profiling name.
#define DEFINE(name, params)                                                                     \
  extern "C" int PMPI_##name params;                                                             \
  extern "C" __attribute__((alias("PMPI_" #name), visibility("default"))) int MPI_##name params; \
  extern "C" __attribute__((visibility("default"))) int PMPI_##name params

/// From entering a call to leaving it. What was computed before it is simulated first.
class Call {
 public:
  explicit Call(const char* name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// False outside of MPI_Init .. MPI_Finalize and inside of another call: those are SimGrid's own affair.
  explicit operator bool() const { return rank_ != nullptr; }
  Rank* operator->() const { return rank_; }
  Rank& operator*() const { return *rank_; }

 private:
  Rank* rank_ = nullptr;
};

/// Requests by their handles; null: SimGrid's own.
Request* request_of(MPI_Request handle);
/// A handle for a request of ours, for which SimGrid knows the number that Fortran sees.
void give_handle(Request& r, MPI_Request* where);
void drop_handle(Request& r, MPI_Request* where);
/// SimGrid's own traffic, of making a communicator: costs nothing, since the runtime's has been paid.
class Gratis {
 public:
  Gratis() {
    ++depth;
    simulated().go_on();  // SimGrid may let others run
  }
  ~Gratis() { --depth; }
  Gratis(const Gratis&) = delete;
  Gratis& operator=(const Gratis&) = delete;
  static inline int depth = 0;
};

void report(const std::string& line);    // into the file of results
inline constexpr int kThreshold = 1000;  // ns of computation that are worth an event, as the recorder's

}  // namespace retrompi::online
