// The parser's state and its small readers of fields, shared by parse_lines.cpp (lines, point-to-point), parse_collectives.cpp and the
// parts of the extension: parse_attributes.cpp, parse_comms.cpp, parse_requests.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <unordered_map>

#include "trace/known_lines.hpp"
#include "trace/parser_state.hpp"
#include "trace/trace.hpp"
#include "trace/words.hpp"

namespace retrompi::parsing {

// Bytes of SMPI's datatype codes 0..59; -1: MPI_DATATYPE_NULL when SMPI is compiled from C. UB and LB have no extent.
// Source: SimGrid 3.32 smpi_datatype.cpp, the same in 4.1 (docs/trace-format.md).
constexpr std::array<int8_t, 60> TYPE_SIZE = {
    8, 4,  1, 2,  8,  4, 1,  8,  1, 1,  2,  4,  8,  8,  16, 4, 1,  1,  2, 4,  // 0 DOUBLE .. 19 INT32_T
    8, 1,  2, 4,  8,  8, 16, 32, 8, 8,  8,  16, 16, 8,  8,  8, 16, 16, 4, 4,  // 20 INT64_T .. 39 REAL4
    8, 16, 8, 16, 16, 4, 2,  4,  8, 16, 32, -1, -1, -1, -1, 0, 0,  1,  8, 8   // 40 REAL8 .. 59 COUNT
};
constexpr int64_t MAX_BYTES = int64_t{1} << 48;  // of one message: far above any machine, far below overflow of a sum
constexpr int32_t MAX_RANKS = 1 << 20;

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline bool digits_only(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Up to 15 digits: most counts and amounts, exact in a double.
inline bool few_digits(std::string_view s, int64_t &value) {
  if (s.empty() || s.size() > 15) return false;
  int64_t sum = 0;
  for (const char c : s) {
    if (c < '0' || c > '9') return false;
    sum = sum * 10 + (c - '0');
  }
  value = sum;
  return true;
}

// Numbers as SMPI's std::stod and std::stoi take them, except that a tail ("12x") is an error here.
inline bool to_double(std::string_view s, double &value) {
  if (int64_t digits = 0; few_digits(s, digits)) {
    value = static_cast<double>(digits);
    return true;
  }
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  return error == std::errc{} && end == s.data() + s.size() && std::isfinite(value);
}

inline bool to_int(std::string_view s, int32_t &value) {
  if (int64_t digits = 0; s.size() <= 9 && few_digits(s, digits)) {  // nearly all: ranks, tags and types
    value = static_cast<int32_t>(digits);
    return true;
  }
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  return error == std::errc{} && end == s.data() + s.size();
}

class Parser {
 public:
  Parser(Trace &trace, const ReadOptions &options, size_t bytes);

  void read(const Source &source);
  void repeat(int32_t rank, int32_t like);  // the rank does what another has done, with its peers at the same distances
  void finish();

 private:
  bool lines(const Source &source, const char *p, const char *end);  // whether one of them is an action
  void line(const char *p, const char *end);
  bool known_line(std::string_view text);  // whether it is one, and has been added
  void comment(const char *p, const char *end);
  int32_t label(std::string_view text);  // its index in Trace::labels
  void arguments(const Word &word, Action &a);
  // The actions of a rank. A later line gives the match of a wildcard receive, and changing packed actions is slow: while one
  // is open, actions wait in Extension::held.
  static constexpr size_t MOST_HELD = size_t{1} << 14;
  void add(RankState &state, const Action &a) {
    ActionList &list = trace_.ranks[static_cast<size_t>(rank_)];
    if (!state.more) {
      list.push_back(a);
      return;
    }
    Extension &ext = *state.more;
    if (ext.wild == 0 || ext.held.size() >= MOST_HELD) release(list, ext);
    if (ext.wild == 0)
      list.push_back(a);
    else
      ext.held.push_back(a);
  }
  static void release(ActionList &list, Extension &ext) {
    for (const Action &a : ext.held) list.push_back(a);
    ext.held.clear();
  }
  Action action(size_t rank, uint32_t index) const {
    const ActionList &list = trace_.ranks[rank];
    return index < list.size() ? list[index] : state_[rank].more->held[index - list.size()];
  }
  void replace(size_t rank, uint32_t index, const Action &a) {
    ActionList &list = trace_.ranks[rank];
    if (index < list.size())
      list.set(index, a);
    else
      state_[rank].more->held[index - list.size()] = a;
  }

  // parse_attributes.cpp
  void attributes();  // removes KEY=VALUE from the end of args_
  void allow(const Word &word);
  int32_t attribute(Key key, int32_t least) const;
  bool flag() const;
  std::vector<int32_t> list(Key key, int32_t least) const;                       // 1,2,3 or none
  std::vector<std::pair<int32_t, int32_t>> pairs(Key key, int32_t least) const;  // 1:2,3:4, sorted
  [[noreturn]] void fail_attribute(Key key, std::string_view value, const char *right) const;

  // parse_comms.cpp
  Extension &more() {
    auto &m = state_[static_cast<size_t>(rank_)].more;
    if (!m) m = std::make_unique<Extension>();
    return *m;
  }
  uint32_t next_index() const {
    const auto rank = static_cast<size_t>(rank_);
    const RankState &s = state_[rank];
    return static_cast<uint32_t>(trace_.ranks[rank].size() + (s.more ? s.more->held.size() : 0));
  }
  std::string place_of(int32_t rank, uint32_t line) const { return trace_.files[static_cast<size_t>(rank)] + ":" + std::to_string(line); }
  void choose_comm();                 // sets here_
  int32_t size_here(bool own) const;  // of the communicator; Inter: of the own or the other group
  bool is_member(const Membership &in, int32_t world_rank);
  void require_member(int32_t world_rank, const char *what);
  bool make_comm(const Word &word, Action &a);
  void first_definition(const Word &word, int32_t id, const std::vector<Run> &own, Membership &m);
  void describe_topology(const Word &word, const CommInfo &info, Comm &comm, Membership &m, bool fresh);
  void free_comm(const Word &word);
  void make_window(const Word &word, Action &a);
  Window &window(int32_t id);
  void free_window(const Word &word, Action &a);
  bool window_call(const Word &word, Action &a);
  int32_t window_group(int32_t win);
  void finish_comms();
  std::vector<Run> group(std::string_view text) const;
  std::vector<int32_t> expand(const std::vector<Run> &runs, bool beside = false);
  void spend(size_t ranks);

  // parse_requests.cpp
  struct Match {
    int32_t req = 0, source = 0, tag = 0;
    bool has_source = false, has_tag = false;
    bool wild = false;  // the receive has a wildcard
  };
  void take_request(const Word &word, Action &a);
  bool in_use(const Pending &p) const;
  Pending &outstanding(int32_t req);
  void complete(int32_t req, Pending &p);
  void restart(Pending &p, int32_t req);
  void one_request(Action &a);
  void forget_wild(const Pending &p);
  void several_requests(const Word &word, Action &a);
  Match own_match() const;
  std::vector<Match> matches(const std::vector<int32_t> &among) const;
  void fill_match(Match &m, int32_t source, int32_t tag, const Membership &comm);
  void put_match(Action &a, const Match &m);
  void match(const Pending &p, Match m);
  void direct_match(Action &a, int32_t source, int32_t tag);

  // parse_collectives.cpp
  static uint16_t kind_of(const Action &a);
  void note_collective(const Action &a, bool root_known);
  void neighbours(const Word &word) const;
  bool of_extension() const { return given_.mask != 0; }  // not a line of SMPI's tracer
  void collective(const Word &word, Action &a);
  bool dropped_by_tracer(const Word &word, const Action &a);
  void need_counts(const Word &word, const Action &a, size_t least, size_t most) const;

  [[noreturn]] void fail(const std::string &message) const {
    throw TraceError(source_->name, line_, terminated_ ? message : message + " (the file ends inside this line: it looks truncated)");
  }
  [[noreturn]] void fail_count(const Word &word, size_t least, const char *names) const {
    fail(quoted(word.name) + " needs at least " + std::to_string(least) + (least == 1 ? " argument (" : " arguments (") + names + "), has " +
         std::to_string(args_.size()));
  }
  // Whether the line has as many arguments as its form wants; surplus numbers are ignored, as SMPI does.
  void need(const Word &word) const {
    if (const Layout &form = layout_of(word.form); args_.size() < form.least) fail_count(word, form.least, form.text);
  }
  void at_most(const Word &word) { at_most(word, layout_of(word.form).most); }
  Remark remark(std::string_view action, std::string reason) const { return {rank_, line_, std::string(action), std::move(reason)}; }
  void refuse(std::string_view action, std::string reason) {
    if (trace_.refused_total++ < REMARK_LIMIT) trace_.refused.push_back(remark(action, std::move(reason)));
  }
  void warn(std::string_view action, const std::string &reason) {
    if (trace_.warned_total++ < REMARK_LIMIT) trace_.warned.push_back(remark(action, reason));
  }

  void remember(std::vector<Remark> &list, size_t &total, Remark what) {
    if (total++ < REMARK_LIMIT) list.push_back(std::move(what));
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
    if (int64_t digits = 0; few_digits(s, digits)) return check_count(static_cast<double>(digits), digits, i, what);
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
  // Size of `elements` of a type. If the size matters and the type is null, the trace lacks the size.
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
  int32_t root(size_t i) const {
    if (i >= args_.size()) return 0;
    const int32_t value = integer(i, "root");
    if (here_->index != 0) return root_here(value, args_[i]);
    return member(value, args_[i], "root");
  }
  int32_t root_here(int32_t value, std::string_view text) const;
  bool at_root(int32_t root) const { return root == (inter() ? ROOT : here_->me); }
  bool inter() const { return here_->index != 0 && trace_.comms[static_cast<size_t>(here_->index)].kind == Comm::Inter; }
  int32_t destination(size_t i) const {
    const int32_t value = integer(i, "destination");
    if (value == UNDEFINED || value == PROC_NULL)  // no send goes to ANY_SOURCE: -333 is unambiguous here
      return PROC_NULL;
    return member(value, args_[i], "destination");
  }
  // false: -333 without an option that defines it; the line has been refused
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
  int32_t store(std::vector<int64_t> &&counts);
  // Reading the arguments of a line; false: it is refused, or ignored.
  bool request(const Word &word, Action &a);
  void send(const Word &word, Action &a);
  bool receive(const Word &word, Action &a);
  bool send_receive(const Word &word, Action &a);
  struct Ambiguous;
  struct Mismatch;
  void resolve_rooted(const Ambiguous &x);
  void compare_collectives();

  // parse_counts.cpp
  void note_bytes(const Membership &m, uint32_t k, const Action &a);
  void state_bytes(const Membership &m, uint32_t k, int64_t bytes, Call::Side side);
  void note_part(const Membership &m, uint32_t k, const Action &a);
  using Called = std::span<const Part>;  // by member
  // false: they differ, which has been told
  bool compare_pairs(const Comm &c, const Parts &parts, Called from, Called to);
  bool compare_vectors(const Comm &c, const Parts &parts);
  bool compare_neighbours(const Comm &c, const Parts &parts);
  void pair_differs(const Comm &c, const Parts &parts, const Part &sender, int64_t sent, const Part &receiver, int64_t received);
  void compare_parts(int32_t comm, Parts &parts);
  void compare_open_parts();
  void differ(Mismatch &&m);

  Trace &trace_;
  const ReadOptions options_;  // a copy: the caller's may be a temporary
  int32_t n_;
  std::vector<RankState> state_;
  KnownLines known_;
  const Source *source_ = nullptr;
  uint32_t line_ = 0;
  int32_t rank_ = 0;
  bool terminated_ = true;
  std::vector<std::string_view> args_;
  Attributes given_;
  Membership *here_ = nullptr;   // the communicator of the line
  std::vector<CommInfo> infos_;  // beside Trace::comms
  std::unordered_map<int32_t, int32_t> comm_ids_;
  struct WindowInfo {
    int32_t comm, rank;
    uint32_t line;
  };
  std::unordered_map<int32_t, WindowInfo> window_ids_;
  std::unordered_multimap<uint64_t, int32_t> stored_;  // hash of a vector -> its place
  std::vector<uint32_t> stamp_;                        // by rank: seen in the group being expanded
  uint32_t stamped_ = 0;
  size_t members_left_;  // of all communicators together, see make_comm
  size_t spent_ = 0;
  struct Mismatch {
    int32_t rank;
    uint32_t line;
    std::string action, reason;
  };
  std::vector<Mismatch> mismatches_;
  size_t mismatches_left_out_ = 0;
  size_t refused_before_ = 0;  // lines, when this one was begun
  std::vector<Amounts> amounts_;
  std::unordered_multimap<uint64_t, uint32_t> amounts_by_hash_;
  std::map<std::pair<int32_t, uint32_t>, Parts> parts_;  // communicator, number of the call -> collectives not complete yet
  std::map<std::pair<int32_t, Op>, std::vector<std::pair<uint32_t, uint32_t>>> compared_;  // the last one that was found right, as programs repeat it
  // `gather`/`scatter` lines of four arguments: which one is missing is only known from the other ranks
  struct Ambiguous {
    size_t rank;
    uint32_t index;
    std::array<int64_t, 4> raw;
    int32_t comm, me, size;
    bool inter;
    uint32_t call;  // in the communicator's sequence
  };
  std::vector<Ambiguous> ambiguous_;
};

}  // namespace retrompi::parsing
