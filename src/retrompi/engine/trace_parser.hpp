// The parser's state and its small readers of fields, shared by trace.cpp (lines, point-to-point) and trace_collectives.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "trace.hpp"
#include "trace_actions.hpp"

namespace retrompi::parsing {

// Bytes of SMPI's datatype codes 0..59; -1: MPI_DATATYPE_NULL when SMPI is compiled from C. UB and LB have no extent.
// Source: SimGrid 3.32 smpi_datatype.cpp, the same in 4.1 (docs/trace-format.md).
constexpr std::array<int8_t, 60> TYPE_SIZE = {
    8, 4,  1, 2,  8,  4, 1,  8,  1, 1,  2,  4,  8,  8,  16, 4, 1,  1,  2, 4,  // 0 DOUBLE .. 19 INT32_T
    8, 1,  2, 4,  8,  8, 16, 32, 8, 8,  8,  16, 16, 8,  8,  8, 16, 16, 4, 4,  // 20 INT64_T .. 39 REAL4
    8, 16, 8, 16, 16, 4, 2,  4,  8, 16, 32, -1, -1, -1, -1, 0, 0,  1,  8, 8   // 40 REAL8 .. 59 COUNT
};
constexpr int TYPE_BYTE = 6;
constexpr int TYPE_DOUBLE = 0;
constexpr int64_t MAX_BYTES = int64_t{1} << 48;  // of one message: far above any machine, far below overflow of a sum
constexpr int32_t MAX_RANKS = 1 << 20;

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline bool digits_only(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Numbers as SMPI's std::stod and std::stoi take them, except that a tail ("12x") is an error here.
inline bool to_double(std::string_view s, double &value) {
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  return error == std::errc{} && end == s.data() + s.size() && std::isfinite(value);
}

inline bool to_int(std::string_view s, int32_t &value) {
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  return error == std::errc{} && end == s.data() + s.size();
}

struct RankState {
  int32_t default_type = TYPE_BYTE;
  bool init = false;
  bool finalize = false;
  uint32_t last_line = 0;
  const Source *source = nullptr;
  std::vector<uint32_t> collectives;  // indices into Trace::ranks[r]
};

class Parser {
 public:
  Parser(Trace &trace, const ReadOptions &options)
      : trace_(trace), options_(options), n_(static_cast<int32_t>(trace.ranks.size())), state_(trace.ranks.size()) {}

  void read(const Source &source);
  void finish();

 private:
  bool lines(const Source &source, const char *p, const char *end);  // whether one of them is an action
  void line(const char *p, const char *end);
  void comment(const char *p, const char *end);
  int32_t label(std::string_view text);  // its index in Trace::labels
  void arguments(const Word &word, Action &a);
  void collective(const Word &word, Action &a);
  void vector_arguments(const Word &word, Action &a);

  [[noreturn]] void fail(const std::string &message) const {
    throw TraceError(source_->name, line_, terminated_ ? message : message + " (the file ends inside this line: it looks truncated)");
  }
  [[noreturn]] void fail_count(const Word &word, size_t least, const char *names) const {
    fail(quoted(word.name) + " needs at least " + std::to_string(least) + (least == 1 ? " argument (" : " arguments (") + names + "), has " +
         std::to_string(args_.size()));
  }
  Remark remark(std::string_view action, std::string reason) const { return {rank_, line_, std::string(action), std::move(reason)}; }
  void refuse(std::string_view action, std::string reason) {
    if (trace_.refused_total++ < REMARK_LIMIT) trace_.refused.push_back(remark(action, std::move(reason)));
  }
  void warn(std::string_view action, const std::string &reason) {
    if (trace_.warned_total++ < REMARK_LIMIT) trace_.warned.push_back(remark(action, reason));
  }

  void need(const Word &word, size_t least, const char *names) const {
    if (args_.size() < least) fail_count(word, least, names);
  }
  void at_most(const Word &word, size_t most);
  int32_t integer(size_t i, const char *what) const {
    int32_t value = 0;
    if (!to_int(args_[i], value)) fail(std::string(what) + " " + quoted(args_[i]) + " is not an integer");
    return value;
  }
  double amount(size_t i, const char *what) const {
    double value = 0;
    if (!to_double(args_[i], value)) fail(std::string(what) + " " + quoted(args_[i]) + " is not a number");
    if (value < 0) fail(std::string(what) + " " + quoted(args_[i]) + " is negative");
    return value;
  }
  // Counts are doubles cut to integers, as in SMPI: 1e6 is legal. -1 means unknown, where that is allowed.
  int64_t count(size_t i, const char *what, bool may_be_unknown = false) const {
    const std::string_view s = args_[i];
    if (s.size() <= 15 && digits_only(s)) {
      int64_t value = 0;
      for (char c : s) value = value * 10 + (c - '0');
      return check_count(static_cast<double>(value), value, i, what);
    }
    double value = 0;
    if (!to_double(s, value)) fail(std::string(what) + " " + quoted(s) + " is not a number");
    value = std::trunc(value);
    if (value < 0) {
      if (may_be_unknown) return -1;
      fail(std::string(what) + " " + quoted(s) + " is negative");
    }
    return check_count(value, value < 1e15 ? static_cast<int64_t>(value) : 0, i, what);
  }
  int64_t check_count(double value, int64_t exact, size_t i, const char *what) const {
    if (value > static_cast<double>(MAX_BYTES)) fail(std::string(what) + " " + quoted(args_[i]) + " is larger than 256 TiB");
    return exact;
  }
  int32_t type(size_t i) const {  // absent: the default of this rank
    if (i >= args_.size()) return state_[static_cast<size_t>(rank_)].default_type;
    int32_t code = 0;
    if (!to_int(args_[i], code) || code < -1 || code >= static_cast<int32_t>(TYPE_SIZE.size()))
      fail("unknown type code " + quoted(args_[i]) + " (known are -1..59, 6 is MPI_BYTE)");
    return code;
  }
  // Size of `elements` of a type. Where the size matters and the type is null, the trace does not have it.
  int64_t bytes(int64_t elements, int32_t code, std::string_view action, bool significant = true) {
    const int size = code < 0 ? -1 : TYPE_SIZE[static_cast<size_t>(code)];
    if (size < 0) {
      if (significant && elements > 0)
        refuse(action, "the size is lost: type code " + std::to_string(code) + " is a derived datatype, write the bytes with type code 6");
      return 0;
    }
    if (elements > MAX_BYTES / std::max(size, 1))
      fail("a message of " + std::to_string(elements) + " elements of " + std::to_string(size) + " bytes is larger than 256 TiB");
    return elements < 0 ? -1 : elements * size;
  }
  int32_t member(int32_t value, std::string_view text, const char *what) const {
    if (value >= 0 && value < n_) return value;
    fail(std::string(what) + " " + quoted(text) + " is out of range 0.." + std::to_string(n_ - 1) +
         (n_ == 1 ? " (there is one rank: is this one file of a larger trace?)" : ""));
  }
  int32_t root(size_t i) const { return i < args_.size() ? member(integer(i, "root"), args_[i], "root") : 0; }
  int32_t destination(size_t i) const {
    const int32_t value = integer(i, "destination");
    if (value == UNDEFINED || value == PROC_NULL)  // nobody sends to ANY_SOURCE: -333 is certain here
      return PROC_NULL;
    return member(value, args_[i], "destination");
  }
  // false: -333, and the reader was not told what it is; the line has been refused
  bool source_rank(size_t i, std::string_view action, int32_t &value) {
    value = integer(i, "source");
    if (value == ANY_SOURCE || value == PROC_NULL) return true;
    if (value == UNDEFINED) {
      if (options_.undefined_source == ReadOptions::Undefined::Refuse) {
        refuse(action,
               "source -333 is MPI_ANY_SOURCE or MPI_PROC_NULL, SMPI's tracer writes both so; write -555 or -666, "
               "or choose with undefined_source");
        return false;
      }
      value = options_.undefined_source == ReadOptions::Undefined::AnySource ? ANY_SOURCE : PROC_NULL;
      return true;
    }
    value = member(value, args_[i], "source");
    return true;
  }
  int32_t tag(size_t i, bool receiving) const {
    const int32_t value = integer(i, "tag");
    if (value < 0 && !(receiving && value == ANY_TAG))
      fail("tag " + quoted(args_[i]) + " is negative" + (receiving ? " and not -444 (MPI_ANY_TAG)" : ""));
    return value;
  }
  int32_t store(std::vector<int64_t> &&counts) {
    // Repeated calls repeat their counts; keeping one copy of a run of equal ones is most of what can be saved.
    if (trace_.vec.empty() || trace_.vec.back() != counts) trace_.vec.push_back(std::move(counts));
    return static_cast<int32_t>(trace_.vec.size() - 1);
  }
  void request(const Word &word, Action &a, bool &keep);
  void resolve_rooted(size_t rank);
  void compare_collectives();
  std::string describe(size_t rank, size_t i) const;

  Trace &trace_;
  const ReadOptions &options_;
  int32_t n_;
  std::vector<RankState> state_;
  const Source *source_ = nullptr;
  uint32_t line_ = 0;
  int32_t rank_ = 0;
  bool terminated_ = true;
  std::vector<std::string_view> args_;
  // `gather`/`scatter` lines of four arguments: which one is missing is only known beside the other ranks
  struct Ambiguous {
    size_t rank;
    uint32_t index;
    std::array<int64_t, 4> raw;
  };
  std::vector<Ambiguous> ambiguous_;
};

}  // namespace retrompi::parsing
