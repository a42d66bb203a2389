// A source in pieces that end with a line, so that a file of any length is read through a small buffer.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace retrompi {

class Pieces {
 public:
  explicit Pieces(const Source &source) : source_(source), streamed_(static_cast<bool>(source.next)) {
    if (streamed_) source.rewind();
  }
  // The next piece; only the last one may end without a newline. It is valid until the next call.
  bool next(std::string_view &piece) {
    if (!streamed_) {
      if (!std::exchange(more_, false)) return false;
      piece = source_.text;
      return true;
    }
    buffer_.erase(0, used_);
    used_ = 0;
    while (more_) {
      const size_t before = buffer_.size();
      more_ = source_.next(buffer_);
      if (!more_) break;
      const void *last = ::memrchr(buffer_.data() + before, '\n', buffer_.size() - before);
      if (last != nullptr) {
        used_ = static_cast<size_t>(static_cast<const char *>(last) - buffer_.data()) + 1;
        piece = std::string_view(buffer_).substr(0, used_);
        return true;
      }
      if (buffer_.size() > LONGEST_LINE) throw TraceError(source_.name, 0, "a line of it is longer than 256 MiB: this is no trace");
    }
    used_ = buffer_.size();
    piece = buffer_;
    return used_ > 0;
  }

 private:
  static constexpr size_t LONGEST_LINE = size_t{256} << 20;
  const Source &source_;
  bool streamed_, more_ = true;
  std::string buffer_;
  size_t used_ = 0;  // bytes of the buffer already returned
};

}  // namespace retrompi
