// Lines of which nothing follows but their action: iterative programs repeat few, which are then not split and read again.
#pragma once

#include <array>
#include <cstring>
#include <string_view>

#include "trace/trace.hpp"

namespace retrompi::parsing {

class KnownLines {
 public:
  struct Line {
    Action action;
    int32_t rank = 0;
  };
  /// The line with this text, if it is one of the latest; else nullptr.
  const Line *find(std::string_view text) const {
    if (!may_be_known(text)) return nullptr;
    const Slot &slot = slots_[place_of(text)];
    return slot.size == text.size() && std::memcmp(slot.text.data(), text.data(), text.size()) == 0 ? &slot.line : nullptr;
  }
  void add(std::string_view text, const Action &action, int32_t rank) {
    if (!may_be_known(text)) return;
    Slot &slot = slots_[place_of(text)];
    slot.size = static_cast<uint8_t>(text.size());
    std::memcpy(slot.text.data(), text.data(), text.size());
    slot.line = {action, rank};
  }
  void clear() {
    for (Slot &slot : slots_) slot.size = 0;
  }

 private:
  static constexpr size_t LEAST = 8, MOST = 60;  // bytes of a line
  struct Slot {
    std::array<char, MOST> text;
    uint8_t size = 0;
    Line line;
  };
  static bool may_be_known(std::string_view text) { return text.size() >= LEAST && text.size() <= MOST; }
  /// By all of its bytes, eight at a time; the last eight may have been among those before.
  static size_t place_of(std::string_view text) {
    uint64_t sum = text.size(), word = 0;
    for (size_t at = 0; at + LEAST < text.size(); at += LEAST) {
      std::memcpy(&word, text.data() + at, LEAST);
      sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
    }
    std::memcpy(&word, text.data() + text.size() - LEAST, LEAST);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
    return sum >> 56;
  }
  std::array<Slot, 256> slots_;
};

}  // namespace retrompi::parsing
