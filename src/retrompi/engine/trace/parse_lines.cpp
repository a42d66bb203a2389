// Lines in general, and those of point-to-point calls. They are split in place: no string is created unless an error is reported.
#include <cstring>
#include <limits>
#include <utility>

#include "trace/parser.hpp"
#include "trace/pieces.hpp"

namespace retrompi::parsing {

void Parser::at_most(const Word &word, size_t most) {
  if (args_.size() <= most) return;
  // A word among surplus fields indicates two lines run together, not a field of a newer SMPI.
  for (size_t i = most; i < args_.size(); ++i) {
    double value = 0;
    if (!to_double(args_[i], value)) fail("unexpected " + quoted(args_[i]) + " after the arguments of " + quoted(word.name));
  }
  warn(word.name, "surplus arguments are ignored, as SMPI does");
}

void Parser::read(const Source &source) {
  source_ = &source;
  line_ = 0;
  known_.clear();
  bool any = false;
  Pieces pieces(source);
  for (std::string_view piece; pieces.next(piece);) any |= lines(source, piece.data(), piece.data() + piece.size());
  terminated_ = true;
  if (!any) throw TraceError(source.name, 0, "no action in it: the file is empty");
  if (source.rank >= 0 && state_[static_cast<size_t>(source.rank)].last_line == 0)
    throw TraceError(source.name, 0, "no action of rank " + std::to_string(source.rank) + " in it, only of other ranks");
  const auto end_of = [this](size_t r) {
    if (state_[r].more) release(trace_.ranks[r], *state_[r].more);
  };
  if (source.rank >= 0) {
    end_of(static_cast<size_t>(source.rank));
    trace_.ranks[static_cast<size_t>(source.rank)].seal();
    return;
  }
  for (size_t r = 0; r < state_.size(); ++r) end_of(r);
}

void Parser::repeat(int32_t rank, int32_t like) {
  const RankState &from = state_[static_cast<size_t>(like)];
  if (from.more) throw TraceError(from.source->name, 0, "a pattern of several ranks has no communicators, windows or requests by identity");
  RankState &to = state_[static_cast<size_t>(rank)];
  to.default_type = from.default_type;
  to.init = from.init;
  to.finalize = from.finalize;
  to.last_line = from.last_line;
  to.source = from.source;
  to.world.calls = from.world.calls;
  trace_.ranks[static_cast<size_t>(rank)] = trace_.ranks[static_cast<size_t>(like)].of_rank(rank);
}

bool Parser::lines(const Source &source, const char *p, const char *end) {
  bool any = false;
  while (p < end) {
    if (line_ == std::numeric_limits<uint32_t>::max()) fail("more than 4294967295 lines");
    ++line_;
    const auto *newline = static_cast<const char *>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    terminated_ = newline != nullptr;
    const char *stop = terminated_ ? newline : end;
    while (p < stop && is_blank(*p)) ++p;
    if (p < stop) {
      if (*p == '#') {
        comment(p + 1, stop);
      } else {
        if (!known_line({p, static_cast<size_t>(stop - p)})) line(p, stop);
        any = true;
        const RankState &s = state_[static_cast<size_t>(rank_)];
        if (!terminated_ && s.init && !s.finalize && !options_.partial)
          throw TraceError(source.name, line_, "the file ends inside this line and before 'finalize': it looks truncated");
      }
    }
    p = terminated_ ? newline + 1 : end;
  }
  return any;
}

// `# mark LABEL` or `# RANK mark LABEL`; every other comment is skipped.
void Parser::comment(const char *p, const char *end) {
  const auto skip = [&] {
    while (p < end && is_blank(*p)) ++p;
  };
  const auto token = [&] {
    const char *start = p;
    while (p < end && !is_blank(*p)) ++p;
    return std::string_view(start, static_cast<size_t>(p - start));
  };
  skip();
  std::string_view word = token();
  int32_t rank = std::max(source_->rank, 0);  // in a shared file a mark without a rank is rank 0's
  bool named = false;
  if (digits_only(word)) {
    named = to_int(word, rank);
    skip();
    word = token();
    if (word == "mark" && !named) fail("the rank of a mark is not an integer");
  }
  if (word != "mark") return;
  skip();
  while (end > p && is_blank(end[-1])) --end;
  if (p == end) return;
  if (rank >= n_) fail("the rank of a mark, " + std::to_string(rank) + ", is out of range 0.." + std::to_string(n_ - 1));
  if (source_->rank >= 0 && rank != source_->rank) {
    rank_ = source_->rank;
    warn("mark", "the mark is of rank " + std::to_string(rank) + " in the file of rank " + std::to_string(source_->rank) + ": ignored");
    return;
  }
  const std::string_view label(p, static_cast<size_t>(end - p));
  if (!is_text(label)) fail("the label of the mark, " + quoted(label) + ", is not printable UTF-8");
  Action a(Op::Mark, line_);
  a.get<action::Mark>().label = this->label(label);
  const int32_t now = std::exchange(rank_, rank);
  add(state_[static_cast<size_t>(rank)], a);
  rank_ = now;
}

int32_t Parser::label(std::string_view text) {
  auto &labels = trace_.labels;
  // Every rank may use the same few labels: search the latest before adding one.
  for (size_t i = labels.size(), tried = 0; i > 0 && tried < 64; --i, ++tried)
    if (labels[i - 1] == text) return static_cast<int32_t>(i - 1);
  labels.emplace_back(text);
  return static_cast<int32_t>(labels.size() - 1);
}

bool Parser::known_line(std::string_view text) {
  const KnownLines::Line *known = known_.find(text);
  if (known == nullptr) return false;
  RankState &state = state_[static_cast<size_t>(known->rank)];
  if (state.more || state.finalize) return false;
  rank_ = known->rank;
  state.last_line = line_;
  state.source = source_;
  Action a = known->action;
  a.line = line_;
  trace_.ranks[static_cast<size_t>(rank_)].push_back(a);
  return true;
}

void Parser::line(const char *p, const char *end) {
  const std::string_view text(p, static_cast<size_t>(end - p));
  const size_t remarks = trace_.refused_total + trace_.warned_total;
  args_.clear();
  std::string_view first, name;
  for (size_t i = 0; p < end; ++i) {
    const char *start = p;
    while (p < end && !is_blank(*p)) ++p;
    const std::string_view token(start, static_cast<size_t>(p - start));
    if (i == 0)
      first = token;
    else if (i == 1)
      name = token;
    else
      args_.push_back(token);
    while (p < end && is_blank(*p)) ++p;
  }
  int32_t rank = 0;
  if (!to_int(first, rank)) fail("a line begins with its rank, " + quoted(first) + " is not an integer");
  rank_ = member(rank, first, "rank");
  if (name.empty()) fail("no action after the rank: expected 'RANK ACTION ARGUMENTS'");
  if (source_->rank >= 0 && rank != source_->rank) {
    rank_ = source_->rank;
    warn(find_word(name) != nullptr ? std::string(name) : quoted(name),
         "a line of rank " + std::to_string(rank) + " in the file of rank " + std::to_string(source_->rank) + ": ignored, as SMPI does");
    return;
  }
  const Word *word = find_word(name);
  if (word == nullptr) fail("unknown action " + quoted(name) + suggestion(name));
  given_.mask = 0;
  const bool call = word->op != Op::Init || word->form == Form::Init;  // else a word that is skipped or refused
  if (!args_.empty() && args_.back().size() > 2 && args_.back().find('=') != std::string_view::npos && call) attributes();

  RankState &state = state_[static_cast<size_t>(rank_)];
  state.last_line = line_;
  state.source = source_;
  if (state.finalize && word->form != Form::Compute && word->form != Form::Kernel && word->form != Form::Sleep && word->form != Form::Ignored &&
      word->form != Form::Location)
    fail(quoted(word->name) + " comes after 'finalize'");

  Action a(word->op, line_);
  a.flags = word->flags;
  refused_before_ = trace_.refused_total;
  here_ = &state.world;
  if (given_.mask != 0) {
    allow(*word);
    if (given_.has(Key::Comm)) choose_comm();
    a.comm = here_->index;
  }
  if (a.flags != 0 && !given_.has(Key::Req)) {
    refuse(word->name, word->reason);
    return;
  }
  if (!call) {
    if (word->form == Form::Refused) refuse(word->name, word->reason);
    if (word->form == Form::Location) need(*word);
    return;
  }
  bool keep = true;
  switch (a.kind()) {
    case ActionKind::PointToPoint:
      if (word->form == Form::Send)
        send(*word, a);
      else
        keep = receive(*word, a);
      break;
    case ActionKind::SendReceive:
      keep = send_receive(*word, a);
      break;
    case ActionKind::OneRequest:
      keep = request(*word, a);
      if (keep) one_request(a);
      break;
    case ActionKind::SeveralRequests:
      a.get<action::SeveralRequests>().count = args_.empty() ? -1 : count(0, "count");
      at_most(*word);
      if (given_.mask != 0 || state.more) several_requests(*word, a);
      break;
    case ActionKind::Collective:
      collective(*word, a);
      break;
    case ActionKind::NewComm:
      keep = make_comm(*word, a);
      break;
    case ActionKind::NewWindow:
      if (a.op == Op::WinNew)
        make_window(*word, a);
      else
        free_window(*word, a);
      break;
    case ActionKind::Rma:
    case ActionKind::WindowSync:
      keep = window_call(*word, a);
      break;
    default:
      arguments(*word, a);
  }
  if (!keep) return;
  if (given_.has(Key::Req) && a.kind() != ActionKind::OneRequest) take_request(*word, a);
  if (is(a.op, Trait::Joint)) note_collective(a, word->form != Form::Rooted || args_.size() != 4);
  add(state, a);
  // Nothing else follows from such a line unless the rank has requests by identity or communicators (`Extension`).
  const bool alone =
      a.op == Op::Compute || a.kind() == ActionKind::PointToPoint || a.kind() == ActionKind::OneRequest || a.kind() == ActionKind::SeveralRequests;
  if (alone && given_.mask == 0 && !state.more && trace_.refused_total + trace_.warned_total == remarks) known_.add(text, a, rank_);
}

void Parser::send(const Word &word, Action &a) {
  auto &x = a.get<action::PointToPoint>();
  need(word);
  x.peer = destination(0);
  x.tag = tag(1, false);
  x.bytes = bytes(count(2, "count"), type(3), word.name, x.peer != PROC_NULL);
  at_most(word);
  if (a.comm != 0) require_member(x.peer, "destination");
}

bool Parser::receive(const Word &word, Action &a) {
  auto &x = a.get<action::PointToPoint>();
  need(word);
  const bool keep = source_rank(0, word.name, x.peer);
  x.tag = tag(1, true);
  if (word.form != Form::Probe) {
    const int64_t elements = count(2, "count", true);
    x.bytes = bytes(elements, type(3), word.name);
    if (elements < 0) {
      a.flags |= FLAG_UNKNOWN_COUNT;
      x.bytes = -1;
    }
  }
  at_most(word);
  if (given_.mask != 0) {
    require_member(x.peer, "source");
    direct_match(a, x.peer, x.tag);
  }
  return keep;
}

bool Parser::send_receive(const Word &word, Action &a) {
  auto &x = a.get<action::SendReceive>();
  need(word);
  x.destination = destination(1);
  const bool keep = source_rank(3, word.name, x.source);
  x.bytes = bytes(count(0, "count sent"), type(4), word.name, x.destination != PROC_NULL);
  x.receive_bytes = bytes(count(2, "count received"), type(5), word.name, x.source != PROC_NULL);
  at_most(word);
  if (given_.mask == 0) return keep;
  require_member(x.destination, "destination");
  require_member(x.source, "source");
  if (given_.has(Key::Stag)) x.send_tag = attribute(Key::Stag, 0);
  if (given_.has(Key::Rtag)) {
    x.receive_tag = attribute(Key::Rtag, ANY_TAG);
    if (x.receive_tag < 0 && x.receive_tag != ANY_TAG) fail_attribute(Key::Rtag, given_[Key::Rtag], "a tag, or -444 (MPI_ANY_TAG)");
  }
  direct_match(a, x.source, x.receive_tag);
  return keep;
}

bool Parser::request(const Word &word, Action &a) {
  auto &x = a.get<action::OneRequest>();
  const bool identified = given_.has(Key::Req);
  if (!identified)
    need(word);
  else if (!args_.empty() && args_.size() < 3)
    fail_count(word, 3, "SRC DST TAG, or none beside req=");
  if (identified && (args_.empty() || (args_[0] == "-333" && args_[1] == "-333"))) {
    x.source = x.destination = -1;
    at_most(word);
    return true;
  }
  // Which end this rank is decides the meaning of -333 at the other one; both ends may be this rank.
  const int32_t src = integer(0, "source");
  const int32_t dst = integer(1, "destination");
  const int32_t tag_value = integer(2, "tag");
  if (src == UNDEFINED && dst == UNDEFINED) {
    refuse(word.name, "the request is of a call that the trace does not describe (a non-blocking collective, for one)");
    return false;
  }
  const bool receiving = dst == rank_;
  if (!receiving && src != rank_)
    fail(quoted(word.name) + " of rank " + std::to_string(rank_) + " for a message from " + quoted(args_[0]) + " to " + quoted(args_[1]) +
         ": one end must be the rank itself");
  x.source = src;
  const bool keep = !receiving || source_rank(0, word.name, x.source);
  x.destination = receiving ? dst : destination(1);
  if (tag_value < 0 && tag_value != ANY_TAG) fail("tag " + quoted(args_[2]) + " is negative");
  x.tag = tag_value;
  at_most(word);
  return keep;
}

void Parser::arguments(const Word &word, Action &a) {
  RankState &state = state_[static_cast<size_t>(rank_)];
  need(word);
  switch (a.op) {
    case Op::Init:
      state.init = true;
      // SMPI: an argument of init marks the old traces whose sizes are counts of doubles
      state.default_type = args_.empty() ? TYPE_BYTE : TYPE_DOUBLE;
      known_.clear();
      break;
    case Op::Finalize:
      state.finalize = true;
      break;
    case Op::CommFree:
      free_comm(word);
      return;
    case Op::Compute:
      a.get<action::Compute>().flops = amount(0, "amount of computation");
      break;
    case Op::Sleep:
      a.get<action::Sleep>().seconds = amount(0, "duration");
      break;
    default: {  // Kernel
      auto &x = a.get<action::Kernel>();
      if (!is_text(args_[0])) fail("the name of the kernel, " + quoted(args_[0]) + ", is not printable UTF-8");
      x.length = count(1, "vector length");
      x.times = args_.size() > 2 ? amount(2, "number of repetitions") : 1;
      if (x.length < 1) fail("a vector length is at least 1");
      x.label = label(args_[0]);
    }
  }
  at_most(word);
}

void Parser::finish() {
  const bool any_finalize = std::any_of(state_.begin(), state_.end(), [](const RankState &s) { return s.finalize; });
  for (size_t r = 0; r < state_.size(); ++r) {
    const RankState &s = state_[r];
    rank_ = static_cast<int32_t>(r);
    line_ = s.last_line;
    if (s.last_line == 0) warn("", "no line of rank " + std::to_string(r) + ": it does nothing");
    if (!s.init || s.finalize) continue;
    remember(trace_.cut, trace_.cut_total, remark("init", any_finalize ? "ends without 'finalize'" : "no rank reaches 'finalize'"));
    // Some programs exit without MPI_Finalize; then no rank has it. If others have it, this file is truncated.
    if (any_finalize && !options_.partial)
      throw TraceError(
          trace_.files[r], s.last_line,
          "rank " + std::to_string(r) + " begins with 'init' but ends without 'finalize', which other ranks have: the trace is truncated");
    if (any_finalize) warn("init", "rank " + std::to_string(r) + " ends without 'finalize'");
  }
  const auto begun = std::find_if(state_.begin(), state_.end(), [](const RankState &s) { return s.init; });
  if (!any_finalize && begun != state_.end()) {
    rank_ = static_cast<int32_t>(begun - state_.begin());
    line_ = begun->last_line;
    warn("init", "no rank reaches 'finalize'");
  }
  finish_comms();
  std::sort(ambiguous_.begin(), ambiguous_.end(), [](const Ambiguous &x, const Ambiguous &y) {
    return std::pair{x.rank, x.index} < std::pair{y.rank, y.index};
  });
  for (const Ambiguous &x : ambiguous_) resolve_rooted(x);
  compare_open_parts();
  compare_collectives();
  for (ActionList &r : trace_.ranks) r.seal();
}

}  // namespace retrompi::parsing
