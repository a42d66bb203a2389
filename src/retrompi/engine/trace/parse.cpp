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
  trace.ranks.resize(static_cast<size_t>(n));
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

}  // namespace retrompi
