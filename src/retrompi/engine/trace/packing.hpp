// A block of packed actions: a dictionary of the distinct ones (a column for each field of FlatAction), then for every action the number
// of its entry, its line as a run of equal steps, and what does not repeat: the amount of computation and the identity of a request.
#pragma once

#include <cstddef>
#include <cstdint>
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
constexpr uint8_t HAS_AMOUNT = 1, HAS_REQUEST = 2;

std::string encode(std::span<const Action> actions);

// Unpacks a block, action by action.
class Decoder {
 public:
  void open(std::string_view bytes, size_t count);  // TraceError when they are not a block
  [[nodiscard]] size_t left() const { return left_; }
  void next(Action &a) {
    --left_;
    size_t e = *entries_++;
    if (!narrow_) e |= static_cast<size_t>(*entries_++) << 8;
    if (e >= rows_.size()) broken();
    a = rows_[e];
    if (run_ == 0) {
      step_ = lines_.signed_number();
      run_ = lines_.number();
      if (run_ == 0) broken();
    }
    --run_;
    line_ += step_;
    a.line = static_cast<uint32_t>(line_);
    if (has_[e] == 0) return;
    if (has_[e] & HAS_AMOUNT) set_amount(a, take_amount(amounts_, amount_[e]));
    if (has_[e] & HAS_REQUEST) {
      request_ += requests_.signed_number();
      set_request(a, static_cast<int32_t>(request_));
    }
  }

 private:
  std::vector<Action> rows_;
  std::vector<uint8_t> has_;
  std::vector<LastAmount> amount_;
  const uint8_t *entries_ = nullptr;
  Input lines_, amounts_, requests_;
  uint64_t line_ = 0, step_ = 0, run_ = 0, request_ = 0;
  size_t left_ = 0;
  bool narrow_ = true;
};

}  // namespace retrompi::packing
