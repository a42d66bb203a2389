// A trace of events, to debug the engine: one line each, with its time, the process that it belongs to, and the member function that it calls.
#pragma once
#include <cstdio>
#include <memory>
#include <string>

#include "event/callback.hpp"
#include "event/time.hpp"

namespace retrompi {

/// "Thread::on_done": what a call is named after.
[[nodiscard]] std::string call_name(const Callback& c);

class EventTrace {
 public:
  /// Lines are "picoseconds <tab> process, or - <tab> member function"; ConfigError when the file cannot be written.
  explicit EventTrace(const std::string& path);
  void write(Ps t, const Callback& c);

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace retrompi
