// The requests that a trace names. A request is known by its identity (`req=`) or, where the trace has none, by its key, as SMPI's replay
// files them. Recorded outcomes are followed: the recorded request completes, and the rank waits for it if necessary.
#pragma once
#include <optional>
#include <vector>

#include "mpi/request.hpp"

namespace retrompi {

class Rank;

class RequestTable {
 public:
  struct Filed {
    int32_t src, dst, tag;
    int32_t req;  // its identity, 0: none; kSucceeded: the test that completed it is recorded to have succeeded
    Request* r;   // null: completed by a test, its wait is a no-op
  };
  explicit RequestTable(Rank& rank) : rank_(rank) {}
  void file(Request& r, int32_t req);
  /// Wait*, Test*, Start*, RequestFree.
  Task execute(const Action& a);
  [[nodiscard]] const std::vector<Filed>& filed() const { return filed_; }
  void fetch() const { fetch_lines(filed_.data(), 2); }
  /// Its future, in words.
  void state(State& s) const {
    const auto& [rank_, filed_] = *this;
    s.put(filed_.size());
    for (const Filed& each : filed_) {
      const auto& [src, dst, tag, req, r] = each;
      for (const int32_t n : {src, dst, tag, req}) s.put(n);
      put_request(s, r);
    }
  }

 private:
  Task wait_for(const Action& a);
  Task test(const Action& a);
  Task complete_listed(const Action& a);
  Task complete_all(const Action& a);
  Task start(size_t i, std::optional<action::Envelope> matched);
  Task start_listed(const Action& a);
  void release(const Action& a);
  [[nodiscard]] Request* find(const Action& a, bool& marker);
  [[nodiscard]] bool posted_since(size_t mark) const;
  static constexpr int32_t kSucceeded = -1;
  static constexpr size_t kNone = SIZE_MAX;
  /// kNone: a test or wait whose outcome was not recorded has completed it, and to later calls it is MPI_REQUEST_NULL.
  [[nodiscard]] size_t place_of(int64_t req, size_t hint = 0) const;
  [[nodiscard]] size_t index_of(const Request& r) const;
  [[nodiscard]] size_t index_of(const Action& a, int64_t req, size_t hint = 0) const;
  void fetch_from(size_t i) const;
  void retire(size_t i);  // a filed request is complete: removes it, or deactivates it
  void retire_complete(bool one);
  void take_out(std::vector<size_t> indices);

  Rank& rank_;
  std::vector<Filed> filed_;
};

}  // namespace retrompi
