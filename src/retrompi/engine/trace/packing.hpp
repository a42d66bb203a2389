// A block of packed actions: a dictionary of the distinct ones (a column for each field of FlatAction), then for every action the number
// of its entry, its line as a run of equal steps, and what does not repeat: the amount of computation and the identity of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/flat_action.hpp"

namespace retrompi::packing {

[[noreturn]] void broken();  // TraceError: not the image of a parsed trace

// Numbers of few bytes.
inline void put_number(std::string &out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  out += static_cast<char>(v);
}
constexpr uint64_t zigzag(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
constexpr uint64_t unzigzag(uint64_t v) { return (v >> 1) ^ (0 - (v & 1)); }

struct Input {
  const char *p = nullptr, *end = nullptr;
  uint64_t number() {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (p == end) broken();
      const auto byte = static_cast<uint8_t>(*p++);
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    broken();
  }
  uint64_t signed_number() { return unzigzag(number()); }
  const char *take(uint64_t n) {
    if (n > static_cast<uint64_t>(end - p)) broken();
    const char *at = p;
    p += n;
    return at;
  }
};

// An amount is coded by the last one of its row, which is likely the same place of a loop.
struct LastAmount {
  double value = 0;
  int64_t number = 0;
};
double take_amount(Input &in, LastAmount &last);
// PEER, PEER2: the column is relative to the rank whose list it is, so that ranks that do the same towards their neighbours have the same bytes.
constexpr uint8_t HAS_AMOUNT = 1, HAS_REQUEST = 2, PEER = 4, PEER2 = 8;

std::string encode(std::span<const Action> actions, int32_t rank);

// A block as its readers share it: all ranks whose actions are equal.
struct Dictionary {
  std::string own;  // its bytes, unless they are held elsewhere for as long as it is used
  std::vector<Action> rows;
  std::vector<uint8_t> has;  // of each row
  bool amounts_differ = false;
  bool narrow = true;
  size_t count = 0;
  const uint8_t *entries = nullptr;
  Input lines, amounts, requests;
};
// TraceError when they are not a block. `own`: read from a file; else `held` outlives it.
std::shared_ptr<const Dictionary> decode(std::string_view held, std::string own, size_t count);

inline void move_by(int32_t &peer, int32_t by) { peer = static_cast<int32_t>(static_cast<uint32_t>(peer) + static_cast<uint32_t>(by)); }
inline void move_peers(Action &a, uint8_t has, int32_t by) {
  const int32_t first = (has & PEER) != 0 ? by : 0, second = (has & PEER2) != 0 ? by : 0;
  switch (a.kind()) {
    case ActionKind::PointToPoint:
      return move_by(a.get<action::PointToPoint>().peer, first);
    case ActionKind::SendReceive:
      move_by(a.get<action::SendReceive>().destination, first);
      return move_by(a.get<action::SendReceive>().source, second);
    case ActionKind::OneRequest:
      move_by(a.get<action::OneRequest>().source, first);
      return move_by(a.get<action::OneRequest>().destination, second);
    case ActionKind::Rma:
      return move_by(a.get<action::Rma>().target, first);
    case ActionKind::WindowSync:
      return move_by(a.get<action::WindowSync>().target, first);
    default:
      broken();
  }
}

// Unpacks a block for a rank, action by action.
class Decoder {
 public:
  void open(std::shared_ptr<const Dictionary> of, int32_t rank) {
    of_ = std::move(of);
    rank_ = rank;
    rows_ = of_->rows.data();
    has_ = of_->has.data();
    distinct_ = static_cast<uint32_t>(of_->rows.size());
    narrow_ = of_->narrow;
    entries_ = of_->entries;
    lines_ = of_->lines;
    amounts_ = of_->amounts;
    requests_ = of_->requests;
    if (of_->amounts_differ) amount_.assign(distinct_, {});
    line_ = run_ = request_ = 0;
    left_ = of_->count;
  }
  void close() {
    of_.reset();
    std::vector<LastAmount>().swap(amount_);
  }
  [[nodiscard]] size_t left() const { return left_; }
  void next(Action &a) {
    --left_;
    size_t e = *entries_++;
    if (!narrow_) e |= static_cast<size_t>(*entries_++) << 8;
    if (e >= distinct_) broken();
    a = rows_[e];
    if (run_ == 0) {
      step_ = lines_.signed_number();
      run_ = lines_.number();
      if (run_ == 0) broken();
    }
    --run_;
    line_ += step_;
    a.line = static_cast<uint32_t>(line_);
    const uint8_t has = has_[e];
    if (has == 0) return;
    if (has & (PEER | PEER2)) move_peers(a, has, rank_);
    if (has & HAS_AMOUNT) set_amount(a, take_amount(amounts_, amount_[e]));
    if (has & HAS_REQUEST) {
      request_ += requests_.signed_number();
      set_request(a, static_cast<int32_t>(request_));
    }
  }

 private:
  std::shared_ptr<const Dictionary> of_;
  const Action *rows_ = nullptr;
  const uint8_t *has_ = nullptr;
  std::vector<LastAmount> amount_;
  const uint8_t *entries_ = nullptr;
  Input lines_, amounts_, requests_;
  uint64_t line_ = 0, step_ = 0, run_ = 0, request_ = 0;
  size_t left_ = 0;
  uint32_t distinct_ = 0;
  int32_t rank_ = 0;
  bool narrow_ = true;
};

}  // namespace retrompi::packing
