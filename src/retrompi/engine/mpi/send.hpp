// The sending side of a rank's messages: eager, rendezvous and direct.
#pragma once
#include <deque>
#include <map>

#include "mpi/request.hpp"

namespace retrompi {

class Rank;

class SendSide {
 public:
  explicit SendSide(Rank& rank) : rank_(rank) {}
  /// MPI_Isend and its modes: `r` is complete when the buffer may be used again.
  Task isend(int32_t dst, int32_t tag, int32_t ctx, int64_t bytes, Op mode, Request& r);
  /// The receiver of a rendezvous is ready (clear to send).
  Task cleared(Message& m);
  /// The last byte has left this process.
  void sent(Message& m);
  /// Completes the send once the data have left and, for a synchronous send, it has been matched.
  void try_complete(Message& m);
  [[nodiscard]] bool all_complete() const { return open_ == 0; }
  /// Its future, in words.
  void state(State& s) const;

 private:
  Task isend_with_work(Message& m, bool buffered);  // with work of the library before the message can leave
  Task to_self(Message& m);
  Task depart(Message& m);
  Task push_data(Message& m);
  Task push_packets(Message& m, Chan& c, int64_t packet);
  Task push_bulk(Message& m);
  [[nodiscard]] ProtocolRow::Kind protocol(int32_t dst, int64_t bytes) const;

  Rank& rank_;
  int32_t open_ = 0;  // sends that MPI_Finalize must complete
  struct Bulk {
    std::deque<Message*> waiting;
    bool active = false;
  };
  std::map<int32_t, Bulk> bulk_;  // by destination
};

}  // namespace retrompi
