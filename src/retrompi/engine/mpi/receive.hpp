// The receiving side of a rank's messages: the posted and the unexpected queue, matching, and the actions that a match triggers.
#pragma once
#include "mpi/matching.hpp"
#include "mpi/request.hpp"

namespace retrompi {

class Rank;

class ReceiveSide {
 public:
  explicit ReceiveSide(Rank& rank) : rank_(rank) {}
  /// MPI_Irecv: takes a message out of the unexpected queue, or is posted.
  Task irecv(int32_t src, int32_t tag, int32_t ctx, int64_t bytes, Request& r);
  /// An envelope has arrived: it matches a posted receive, or goes into the unexpected queue.
  void arrive(Message& m);
  /// A receive and a message have matched: performs the protocol's next step.
  Task on_match(Message& m);
  /// A request for permission to send has arrived, with the first bytes of its message.
  void on_request(Message& m, int64_t bytes);
  /// A packet with payload has been copied out of its channel.
  Task on_data(Message& m, const Packet& p);
  /// A message of the rank to itself: its data are in the library's buffer.
  Task from_self(Message& m);
  bool leave_in_pool(const Packet& p);
  /// Its future, in words.
  void state(State& s) const {
    const auto& [rank_, posted_, unexpected_, unexpected_bytes_] = *this;
    s.put(unexpected_.size());
    for (const Message* m : unexpected_) put_message(s, m);
    s.put(posted_.size());
    for (const Request* r : posted_) put_request(s, r);
    s.put(unexpected_bytes_);
  }
  [[nodiscard]] const MatchQueue<Request>& posted() const { return posted_; }
  [[nodiscard]] const MatchQueue<Message>& unexpected() const { return unexpected_; }

 private:
  Task take_unexpected(Message& m);  // copies data waiting in the pool or in the library's buffer
  Task clear_to_send(Message& m);
  Task copy_directly(Message& m);
  [[nodiscard]] bool unpacks(const Message& m) const;
  Task finish(Message& m);  // all of it has arrived and is matched
  Task unpack(Message& m);
  void complete(Message& m);
  void buffer_unexpected(Message& m, int64_t bytes);
  [[nodiscard]] static bool too_long(const Message& m);  // longer than the receive it has matched
  [[noreturn]] static void truncated(const Message& m);

  Rank& rank_;
  MatchQueue<Request> posted_;
  MatchQueue<Message> unexpected_;
  int64_t unexpected_bytes_ = 0;
};

}  // namespace retrompi
