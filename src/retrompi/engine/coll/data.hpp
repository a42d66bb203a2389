// The data that the steps of an algorithm move. An algorithm reports them with each step; a simulation installs no listener.
#pragma once
#include <vector>

#include "coll/coll.hpp"

namespace retrompi::coll {

/// A piece of the data of a collective: at most two ranges, or a list of blocks, and how many bytes that is.
struct Part {
  enum Unit : uint8_t {
    Bytes,  // of the vector, or of all blocks in the order of the ranks
    Blocks  // one of each rank; of an alltoall: source * n + destination
  } unit = Bytes;
  int64_t bytes = 0;
  int64_t from = 0, to = 0;                    // first range, to excluded
  int64_t from2 = 0, to2 = 0;                  // second range
  const std::vector<int64_t>* list = nullptr;  // in place of the ranges
};

/// Where data are stored. Buffer 0 is the result of the operation, buffer 1 a running partial result.
struct Into {
  uint8_t buffers = 1;   // a bit for each buffer
  bool combine = false;  // with the existing data; otherwise replacing them
};
constexpr Into kCombined{1, true};

/// Listens to the sends and receives in the order in which they are started.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void sent(const Part& p, uint8_t buffer) = 0;
  virtual void received(const Part& p, Into into) = 0;
  static inline Listener* now = nullptr;
};

constexpr Part bytes_of(int64_t from, int64_t to) { return {Part::Bytes, to - from, from, to}; }
constexpr Part block_of(int64_t id, int64_t bytes) { return {Part::Blocks, bytes, id, id + 1}; }
/// `count` blocks from `first` on, in a circle of `n`.
constexpr Part blocks_of(int32_t first, int32_t count, int32_t n, int64_t bytes) {
  first %= n;
  if (first + count <= n) return {Part::Blocks, bytes, first, first + count};
  return {Part::Blocks, bytes, first, n, 0, first + count - n};
}

inline Step send(int32_t peer, const Part& p, int32_t slot = 0, uint8_t buffer = 0) {
  if (Listener::now) Listener::now->sent(p, buffer);
  return isend(peer, p.bytes, slot);
}
/// A send that is complete when its receiver has matched it.
inline Step send_sync(int32_t peer, const Part& p, int32_t slot = 0) {
  Step s = send(peer, p, slot);
  s.sync = true;
  return s;
}
inline Step receive(int32_t peer, const Part& p, int32_t slot = 0, Into into = {}) {
  if (Listener::now) Listener::now->received(p, into);
  return irecv(peer, p.bytes, slot);
}

/// Bytes of `count` blocks from `first` on, in a circle: those that come from each member.
inline int64_t total(const Args& a, int32_t first, int32_t count) {
  if (a.in.empty()) return a.bytes_in * count;
  int64_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += a.from((first + i) % a.n);
  return sum;
}

/// The largest power of two not above n.
constexpr int32_t power_below(int32_t n) {
  int32_t p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

/// A vector cut into `count` pieces as the MPICHs cut it: `bytes` / `count` each, the last takes the rest.
struct Cut {
  int64_t bytes;
  int32_t count;
  [[nodiscard]] int64_t at(int32_t i) const { return i >= count ? bytes : bytes / count * i; }
  [[nodiscard]] Part pieces(int32_t from, int32_t to) const { return bytes_of(at(from), at(to)); }
};

/// A vector cut as MPICH2's broadcast cuts it: the pieces are rounded up, the last ones may be short or empty.
struct CutUp {
  int64_t bytes;
  int32_t count;
  [[nodiscard]] int64_t at(int32_t i) const { return std::min(bytes, (bytes + count - 1) / count * i); }
  [[nodiscard]] Part pieces(int32_t from, int32_t to) const { return bytes_of(at(from), at(to)); }
};

}  // namespace retrompi::coll
