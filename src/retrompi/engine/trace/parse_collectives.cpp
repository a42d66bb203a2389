// Collective lines, and the checks that need more than one rank's lines.
#include "trace/parser.hpp"

namespace retrompi::parsing {

// Lines that SMPI's tracer writes without one of the arguments. true: what the line says is settled, or will be by other ranks' lines.
bool Parser::dropped_by_tracer(const Word &word, const Action &a) {
  if (word.form == Form::Rooted && args_.size() == 4) {
    // Either RTYPE was left out, as replay would read it, or RCOUNT, which SMPI's tracer drops when it is 0.
    Ambiguous both{static_cast<size_t>(rank_), next_index(), {}, here_->index, here_->me, size_here(false), inter(), here_->calls};
    for (size_t i = 0; i < 4; ++i) both.raw[i] = i < 2 ? count(i, "count") : integer(i, i == 2 ? "root or type" : "type");
    type(3);
    ambiguous_.push_back(both);
    return true;
  }
  // The tracer leaves RCOUNT out when it is 0, and then the types take its position.
  if (word.form == Form::Alltoall && count(0, "count sent") == 0 && args_.size() == 3 && !of_extension() && !is_neighbour(a.op))
    refuse(word.name, "with nothing sent and three arguments, SMPI's tracer and its replay disagree on the second; write all four");
  return false;
}

// A line with vectors has one count for each member or neighbour.
void Parser::need_counts(const Word &word, const Action &a, size_t least, size_t most) const {
  if (args_.size() >= least && args_.size() <= most) return;
  const bool near = is_neighbour(a.op);
  const std::string where = near ? std::to_string(here_->out) + " destinations and " + std::to_string(here_->in) + " sources"
                                 : std::to_string(size_here(a.op == Op::ReduceScatter)) + " ranks";
  fail(quoted(word.name) + " of " + where + " has " + std::to_string(least) + (most == least ? "" : " to " + std::to_string(most)) +
       " arguments, here are " + std::to_string(args_.size()) + ": the counts must be one " + (near ? "a neighbour" : "a rank") +
       (a.comm == 0 ? " (a collective on part of the ranks names its communicator, comm=)" : ""));
}

void Parser::collective(const Word &word, Action &a) {
  auto &x = a.get<action::Collective>();
  const Layout &form = layout_of(word.form);
  if (is_neighbour(a.op)) neighbours(word);
  const auto many = [&](Many m) {
    return m == Many::None  ? size_t{0}
           : m == Many::One ? size_t{1}
                            : static_cast<size_t>(m == Many::In    ? here_->in
                                                  : m == Many::Out ? here_->out
                                                                   : size_here(a.op == Op::ReduceScatter));
  };
  // Where the arguments are (Layout).
  const size_t first = form.buffers, sent = many(form.sent), second = first + sent + form.buffers, received = many(form.received);
  const size_t flops = second + received, root_at = flops + form.flops, types = root_at + form.root;
  if (form.vector())
    need_counts(word, a, root_at, types + form.types + (form.displacements ? received : 0));
  else
    need(word);
  if (dropped_by_tracer(word, a)) return;
  if (form.buffers) {
    count(0, "length of the send buffer");
    count(second - 1, "length of the receive buffer");
  }
  if (form.root) x.root = root(root_at);
  if (form.flops && !form.vector()) x.flops = amount(flops, "amount of computation");

  std::vector<int64_t> counts;
  if (form.vector()) counts.reserve(sent + received);
  const auto vector = [&](size_t from, size_t n, int32_t code, bool significant) {
    int64_t sum = 0, elements = 0;
    for (size_t i = 0; i < n; ++i) {
      const int64_t c = count(from + i, "count");
      elements += c != 0;
      counts.push_back(bytes(c, code, word.name, false));
      sum += counts.back();
      if (sum > MAX_BYTES) fail("the counts add up to more than 256 TiB");
    }
    bytes(elements, code, word.name, significant);  // reported once, not once per count
    return sum;
  };
  // What a root alone sends or receives does not count elsewhere, nor what goes to no neighbour.
  const bool here = !form.root || at_root(x.root), both = form.sent != Many::None && form.received != Many::None;
  const bool sent_here = (here || !both || is(a.op, Trait::ToRoot)) && (form.received != Many::In || here_->out > 0);
  const bool received_here = here || !is(a.op, Trait::ToRoot);
  const int32_t sent_type = form.types == 0 ? TYPE_BYTE : type(types);
  if (form.sent == Many::One) {
    x.bytes = bytes(count(first, both ? "count sent" : "count"), sent_type, word.name, sent_here);
  } else if (form.sent != Many::None) {
    x.bytes = vector(first, sent, sent_type, sent_here);
  }
  if (form.received != Many::None) {
    // An allgatherv without RTYPE has one type.
    const bool one = !both || form.types == 0 || (form.displacements && args_.size() == types + 1);
    const int32_t code = one ? sent_type : type(types + 1);
    (both ? x.receive_bytes : x.bytes) = form.received == Many::One ? bytes(count(second, "count received"), code, word.name, received_here)
                                                                    : vector(second, received, code, received_here);
  }
  if (!form.vector()) return at_most(word);
  if (form.flops) x.flops = amount(flops, "amount of computation");
  for (size_t i = types + form.types; i < args_.size(); ++i) integer(i, "displacement");
  if (a.op == Op::ReduceScatter && !of_extension()) {
    if (std::all_of(counts.begin(), counts.end(), [](int64_t c) { return c == 0; }))
      refuse(word.name, "all counts are 0: SMPI's tracer writes MPI_Reduce_scatter_block so and loses its size");
    else if (args_.size() == types && x.flops != 0)
      warn(word.name, "no type: taken as bytes; SMPI 4 writes the type of MPI_Reduce_scatter_block where the flops are");
  }
  x.counts = store(std::move(counts));
}

void Parser::neighbours(const Word &word) const {
  if (here_->in < 0) fail(quoted(word.name) + " needs comm= of a communicator with a topology, made by cart_create or graph_create");
}

// The other ranks' line of the same collective has the root, which distinguishes the two readings.
void Parser::resolve_rooted(const Ambiguous &x) {
  Action a = action(x.rank, x.index);
  rank_ = static_cast<int32_t>(x.rank);
  line_ = a.line;
  source_ = state_[x.rank].source;
  const std::string_view name = word_of(a).name;
  bool as_replay = x.raw[2] >= 0 && x.raw[2] < x.size,
       as_tracer = x.raw[1] < x.size && x.raw[2] >= -1 && x.raw[2] < static_cast<int64_t>(TYPE_SIZE.size());
  const std::vector<Call> &calls = infos_[static_cast<size_t>(x.comm)].calls;
  const Call &other = calls[x.call];
  if (other.root != Call::NO_ROOT && other.kind == kind_of(a)) {
    as_replay = as_replay && x.raw[2] == other.root;
    as_tracer = as_tracer && x.raw[1] == other.root;
  }
  const bool gather = is(a.op, Trait::ToRoot);
  // Both readings may be equivalent: away from a gather's root the receive side does not count.
  if (as_replay && as_tracer && gather && x.raw[1] == x.raw[2] && x.raw[2] == x.raw[3] && x.raw[1] != x.me) as_replay = false;
  if (as_replay == as_tracer || x.inter) {
    refuse(name, "four arguments: either the receive type or (SMPI's tracer, for 0) the receive count is missing; write all five");
    return;
  }
  auto &rooted = a.get<action::Collective>();
  rooted.root = static_cast<int32_t>(as_replay ? x.raw[2] : x.raw[1]);
  const bool root_here = rooted.root == x.me;
  const auto stype = static_cast<int32_t>(as_replay ? x.raw[3] : x.raw[2]);
  rooted.bytes = bytes(x.raw[0], stype, name, gather || root_here);
  rooted.receive_bytes = as_replay ? bytes(x.raw[1], state_[x.rank].default_type, name, !gather || root_here) : 0;
  replace(x.rank, x.index, a);
  note_bytes({.index = x.comm, .me = x.me}, x.call, a);
}

uint16_t Parser::kind_of(const Action &a) {
  const auto *made = a.get_if<action::NewComm>();
  return static_cast<uint16_t>(static_cast<unsigned>(a.op) | (a.nonblocking() ? 0x100U : 0U) |
                               (made != nullptr ? static_cast<unsigned>(made->how) << 9 : 0U));
}

static std::string describe(const Call &c) {
  Action a(static_cast<Op>(c.kind & 0xff));
  a.flags = (c.kind & 0x100) != 0 ? FLAG_NONBLOCKING : 0;
  if (a.op == Op::CommNew) a.get<action::NewComm>().how = static_cast<CommHow>(c.kind >> 9);
  return "'" + std::string(word_of(a).name) + "'" + (is_rooted(a.op) && c.root != Call::NO_ROOT ? " with root " + std::to_string(c.root) : "");
}

// Every member must call the same collectives of a communicator in the same order: each is compared with the calls of the first one to get
// so far has called. Where names or roots differ, simulating them would be a guess.
void Parser::note_collective(const Action &a, bool root_known) {
  if (a.op == Op::CommNew && a.get<action::NewComm>().how == CommHow::CreateGroup) return;  // of the new group, not of the parent's
  Membership &m = *here_;
  std::vector<Call> &calls = infos_[static_cast<size_t>(m.index)].calls;
  const int32_t root = is_rooted(a.op) && root_known ? a.get<action::Collective>().root : -1;
  const Call own{line_, rank_, root >= 0 ? root : Call::NO_ROOT, kind_of(a)};
  const uint32_t k = m.calls++;
  if (k == calls.size()) calls.push_back(own);
  Call &first = calls[k];
  if (first.kind == own.kind && (first.root == own.root || own.root == Call::NO_ROOT || first.root == Call::NO_ROOT)) {
    if (root_known && !m.told && trace_.refused_total == refused_before_ && a.kind() == ActionKind::Collective) note_bytes(m, k, a);
    if (first.root == Call::NO_ROOT) first.root = own.root;
    return;
  }
  if (m.told) return;
  m.told = true;
  const int32_t id = trace_.comms[static_cast<size_t>(m.index)].id;
  differ({rank_, line_, std::string(word_of(a).name),
          "collective " + std::to_string(k + 1) + " of rank " + std::to_string(rank_) + (id == 0 ? "" : " on communicator " + std::to_string(id)) +
              " is " + describe(own) + ", of rank " + std::to_string(first.rank) + " it is " + describe(first) + " (" +
              place_of(first.rank, first.line) + "): " +
              (id == 0 ? "a collective on part of the ranks without comm=, or an error of the program" : "an error of the program, or of comm=")});
}

void Parser::compare_collectives() {
  std::stable_sort(mismatches_.begin(), mismatches_.end(), [](const Mismatch &x, const Mismatch &y) { return x.rank < y.rank; });
  for (Mismatch &m : mismatches_) {
    rank_ = m.rank;
    line_ = m.line;
    refuse(m.action, std::move(m.reason));
  }
  trace_.refused_total += mismatches_left_out_;
  const auto compare = [&](const Membership &m) {
    const Comm &c = trace_.comms[static_cast<size_t>(m.index)];
    const RankState &s = state_[static_cast<size_t>(c.group[0])];
    uint32_t others = s.world.calls;
    if (m.index != 0) {
      if (!s.more) return;
      const auto found = s.more->comms.find(c.id);
      if (found == s.more->comms.end()) return;
      others = found->second.calls;
    }
    if (m.told || m.calls == others) return;
    const std::string on = m.index == 0 ? "" : " on communicator " + std::to_string(c.id);
    const std::string differ = "rank " + std::to_string(rank_) + " calls " + std::to_string(m.calls) + " collectives" + on + ", rank " +
                               std::to_string(c.group[0]) + " calls " + std::to_string(others);
    warn("finalize", differ);
    remember(trace_.uneven, trace_.uneven_total, remark("finalize", differ));
  };
  std::vector<const Membership *> own;
  for (size_t r = 0; r < state_.size(); ++r) {
    rank_ = static_cast<int32_t>(r);
    line_ = state_[r].last_line;
    compare(state_[r].world);
    if (!state_[r].more) continue;
    own.clear();
    for (const auto &entry : state_[r].more->comms) own.push_back(&entry.second);
    std::sort(own.begin(), own.end(), [](const Membership *x, const Membership *y) { return x->index < y->index; });
    for (const Membership *m : own) compare(*m);
  }
}

}  // namespace retrompi::parsing
