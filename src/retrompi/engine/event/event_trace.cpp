#include "event/event_trace.hpp"

#include <string_view>
#include <unordered_map>

#include "event/core.hpp"

namespace retrompi {

namespace {

struct NamedCall {
  std::string name;
  detail::ProcessOf process;
};
/// A function's own, because names are kept before the program's other statics are there.
std::unordered_map<Callback::Fn, NamedCall>& named_calls() {
  static std::unordered_map<Callback::Fn, NamedCall> all;
  return all;
}

/// The member function in "... Method = &{anonymous}::DmaChan::on_left; T = ..." (GCC; Clang ends it with a comma or a bracket).
std::string member_in(std::string_view signature) {
  const size_t from = signature.find("= &");
  std::string name(from == std::string_view::npos ? signature : signature.substr(from + 3));
  name = name.substr(0, name.find_first_of(";,]"));
  for (const char* space : {"retrompi::", "{anonymous}::", "(anonymous namespace)::"})
    for (size_t at = name.find(space); at != std::string::npos; at = name.find(space)) name.erase(at, std::string_view(space).size());
  return name;
}

}  // namespace

bool detail::name_call(Callback::Fn fn, const char* signature, ProcessOf process) {
  return named_calls().try_emplace(fn, NamedCall{member_in(signature), process}).second;
}

std::string call_name(const Callback& c) {
  const auto known = named_calls().find(c.fn);
  return known == named_calls().end() ? "?" : known->second.name;
}

EventTrace::EventTrace(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
  if (!file_) throw ConfigError("cannot write the trace of events to " + path);
}

void EventTrace::write(Ps t, const Callback& c) {
  const auto known = named_calls().find(c.fn);
  const std::string process = known == named_calls().end() ? "" : known->second.process(c.object);
  std::fprintf(file_.get(), "%lld\t%s\t%s\n", static_cast<long long>(t.count()), process.empty() ? "-" : process.c_str(), call_name(c).c_str());
}

}  // namespace retrompi
