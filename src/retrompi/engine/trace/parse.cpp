// Reading the files of a trace: the number of ranks, and which file belongs to which rank.
#include <cstring>

#include "trace/parser.hpp"
#include "trace/pieces.hpp"

namespace retrompi {
namespace parsing {

constexpr size_t PIECES = size_t{1} << 28;  // bytes, as a bound on what the members of communicators may take

// How many ranks a shared file has. Each rank needs at least one line, so a number beyond the count of lines is an error
// and no reason to allocate memory for a million ranks.
static int32_t ranks_of_shared(const Source &source) {
  int32_t highest = -1;
  uint32_t line = 0, at = 0, used = 0;
  Pieces pieces(source);
  for (std::string_view piece; pieces.next(piece);) {
    const char *p = piece.data();
    const char *const end = p + piece.size();
    for (; p < end; ++p) {
      ++line;
      while (p < end && is_blank(*p)) ++p;
      int64_t rank = 0;
      const char *start = p;
      while (p < end && *p >= '0' && *p <= '9' && rank < MAX_RANKS) rank = rank * 10 + (*p++ - '0');
      if (p > start) {
        ++used;
        if (rank >= MAX_RANKS)
          throw TraceError(
              source.name, line,
              "rank " + quoted(std::string_view(start, static_cast<size_t>(p - start))) + " is out of range 0.." + std::to_string(MAX_RANKS - 1));
        if (rank > highest) {
          highest = static_cast<int32_t>(rank);
          at = line;
        }
      }
      const auto *newline = static_cast<const char *>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
      if (newline == nullptr) break;
      p = newline;
    }
  }
  if (highest >= 0 && static_cast<uint32_t>(highest) >= used)
    throw TraceError(source.name, at,
                     "rank " + std::to_string(highest) + " is out of range: " + std::to_string(used) + " line" + (used == 1 ? "" : "s") +
                         " cannot be the trace of " + std::to_string(highest + 1) + " ranks (is this one rank's file of a larger trace?)");
  return std::max(highest + 1, 1);  // 1: empty, which the parser reports
}

}  // namespace parsing

Trace parse(std::span<const Source> sources, const ReadOptions &options) {
  if (sources.empty()) throw TraceError("trace", 0, "no file to read");
  if (options.ranks < 0 || options.ranks > parsing::MAX_RANKS || sources.size() > static_cast<size_t>(parsing::MAX_RANKS))
    throw TraceError(sources[0].name, 0, "the number of ranks must be 1.." + std::to_string(parsing::MAX_RANKS));
  Trace trace;
  const bool shared = sources.size() == 1 && sources[0].rank < 0;
  const int32_t n = options.ranks > 0 ? options.ranks : shared ? parsing::ranks_of_shared(sources[0]) : static_cast<int32_t>(sources.size());
  trace.ranks.reserve(static_cast<size_t>(n));
  for (int32_t r = 0; r < n; ++r) trace.ranks.emplace_back(r);
  trace.files.resize(static_cast<size_t>(n));
  if (shared) {
    std::fill(trace.files.begin(), trace.files.end(), sources[0].name);
  } else {
    if (sources.size() != static_cast<size_t>(n))
      throw TraceError(sources[0].name, 0, "there are " + std::to_string(sources.size()) + " files, one a rank, for " + std::to_string(n) + " ranks");
    std::vector<bool> seen(static_cast<size_t>(n));
    for (const Source &s : sources) {
      if (s.rank < 0 || s.rank >= n || seen[static_cast<size_t>(s.rank)])
        throw TraceError(s.name, 0, "the files must be of ranks 0.." + std::to_string(n - 1) + ", each once");
      seen[static_cast<size_t>(s.rank)] = true;
      trace.files[static_cast<size_t>(s.rank)] = s.name;
    }
  }
  // What comes in pieces has a length that nobody knows before its end.
  const bool pieces = std::any_of(sources.begin(), sources.end(), [](const Source &s) { return s.next != nullptr; });
  size_t bytes = pieces ? parsing::PIECES : 0;
  for (const Source &s : sources) bytes += s.text.size();
  parsing::Parser parser(trace, options, bytes);
  for (const Source &s : sources) parser.read(s);
  parser.finish();
  return trace;
}

namespace {

/// The nearest and the farthest peer of a rank, as distances.
std::pair<int64_t, int64_t> reach(const ActionList &list, int64_t rank) {
  int64_t low = 0, high = 0;
  const auto peer = [&](int32_t p) {
    if (p < 0) return;
    low = std::min(low, p - rank);
    high = std::max(high, p - rank);
  };
  for (const Action &a : list) {
    if (const auto *x = a.get_if<action::PointToPoint>()) peer(x->peer);
    if (const auto *x = a.get_if<action::SendReceive>()) peer(x->destination), peer(x->source);
    if (const auto *x = a.get_if<action::OneRequest>()) peer(x->source), peer(x->destination);
    if (const auto *x = a.get_if<action::Rma>()) peer(x->target);
    if (const auto *x = a.get_if<action::WindowSync>()) peer(x->target);
  }
  return {low, high};
}

}  // namespace

Trace parse_patterns(std::span<const Source> sources, std::span<const int64_t> of, const std::string &name) {
  const auto n = static_cast<int64_t>(of.size());
  if (n < 1 || n > parsing::MAX_RANKS) throw TraceError(name, 0, "the number of ranks must be 1.." + std::to_string(parsing::MAX_RANKS));
  Trace trace;
  trace.ranks.reserve(of.size());
  trace.files.reserve(of.size());
  for (int64_t r = 0; r < n; ++r) {
    trace.ranks.emplace_back(static_cast<int32_t>(r));
    trace.files.push_back(name + "/rank-" + std::to_string(r) + ".txt");
  }
  parsing::Parser parser(trace, {}, parsing::PIECES);
  std::vector<std::pair<int64_t, int64_t>> reaches;
  for (const Source &s : sources) {
    if (s.rank < 0 || s.rank >= n) throw TraceError(name, 0, "rank " + std::to_string(s.rank) + " is out of range 0.." + std::to_string(n - 1));
    parser.read(s);
    reaches.push_back(reach(trace.ranks[static_cast<size_t>(s.rank)], s.rank));
  }
  for (int64_t r = 0; r < n; ++r) {
    const int64_t which = of[static_cast<size_t>(r)];
    if (which < 0 || which >= static_cast<int64_t>(sources.size()))
      throw TraceError(name, 0, "pattern " + std::to_string(which) + " is out of range 0.." + std::to_string(sources.size() - 1));
    const auto [low, high] = reaches[static_cast<size_t>(which)];
    if (r + low < 0 || r + high >= n)
      throw TraceError(
          trace.files[static_cast<size_t>(r)], 0,
          "with pattern " + std::to_string(which) + " a peer of rank " + std::to_string(r) + " is out of range 0.." + std::to_string(n - 1));
    if (sources[static_cast<size_t>(which)].rank != r) parser.repeat(static_cast<int32_t>(r), sources[static_cast<size_t>(which)].rank);
  }
  parser.finish();
  return trace;
}

}  // namespace retrompi
