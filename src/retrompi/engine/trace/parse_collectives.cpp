// Collective lines, and the checks that need more than one rank's lines.
#include "trace/parser.hpp"

namespace retrompi::parsing {

void Parser::collective(const Word &word, Action &a) {
  auto &x = a.get<action::Collective>();
  switch (word.form) {
    case Form::Bcast:
      need(word, 1, "COUNT [ROOT [TYPE]]");
      x.root = root(1);
      x.bytes = bytes(count(0, "count"), type(2), word.name);
      at_most(word, 3);
      return;
    case Form::Reduce:
      need(word, 2, "COUNT FLOPS [ROOT [TYPE]]");
      x.root = root(2);
      x.flops = amount(1, "amount of computation");
      x.bytes = bytes(count(0, "count"), type(3), word.name);
      at_most(word, 4);
      return;
    case Form::Allreduce:
      need(word, 2, "COUNT FLOPS [TYPE]");
      x.flops = amount(1, "amount of computation");
      x.bytes = bytes(count(0, "count"), type(2), word.name);
      at_most(word, 3);
      return;
    case Form::Alltoall: {
      if (a.op == Op::NeighborAllgather || a.op == Op::NeighborAlltoall) neighbours(word);
      need(word, 2, "SCOUNT RCOUNT [STYPE [RTYPE]]");
      const int64_t sent = count(0, "count sent");
      // SMPI's tracer leaves RCOUNT out when it is 0, and then the types take its position.
      if (args_.size() == 3 && sent == 0 && !of_extension() && a.op < Op::NeighborAllgather)
        refuse(word.name, "with nothing sent and three arguments, SMPI's tracer and its replay disagree on the second; write all four");
      x.bytes = bytes(sent, type(2), word.name);
      x.receive_bytes = bytes(count(1, "count received"), type(3), word.name);
      at_most(word, 4);
      return;
    }
    case Form::Rooted: {
      need(word, 2, "SCOUNT RCOUNT [ROOT [STYPE [RTYPE]]]");
      if (args_.size() == 4) {
        // Either RTYPE was left out, as replay would read it, or RCOUNT, which SMPI's tracer drops when it is 0.
        Ambiguous both{static_cast<size_t>(rank_), next_index(), {}, here_->index, here_->me, size_here(false), inter(), here_->calls};
        for (size_t i = 0; i < 4; ++i) both.raw[i] = i < 2 ? count(i, "count") : integer(i, i == 2 ? "root or type" : "type");
        type(3);
        ambiguous_.push_back(both);
        return;
      }
      x.root = root(2);
      const bool root_here = at_root(x.root);
      x.bytes = bytes(count(0, "count sent"), type(3), word.name, a.op == Op::Gather || root_here);
      x.receive_bytes = bytes(count(1, "count received"), type(4), word.name, a.op == Op::Scatter || root_here);
      at_most(word, 5);
      return;
    }
    default:
      vector_arguments(word, a);
  }
}

// How many vectors of counts a form has, the fields around them, and how many types may follow.
namespace {
struct Layout {
  size_t before, first, between, second, after, optional;
};
}  // namespace

void Parser::vector_arguments(const Word &word, Action &a) {
  auto &x = a.get<action::Collective>();
  const bool neighbour = a.op >= Op::NeighborAllgather;
  if (neighbour) neighbours(word);
  const auto n = static_cast<size_t>(size_here(a.op == Op::ReduceScatter));
  const auto in = neighbour ? static_cast<size_t>(here_->in) : n, out = neighbour ? static_cast<size_t>(here_->out) : n;
  const Layout form = word.form == Form::ReduceScatter        ? Layout{0, n, 0, 0, 1, 1}
                      : word.form == Form::Alltoallv          ? Layout{1, n, 1, n, 0, 2}
                      : word.form == Form::Gatherv            ? Layout{1, 0, 0, n, 0, 3}
                      : word.form == Form::Allgatherv         ? Layout{1, 0, 0, n, 0, n + 2}
                      : word.form == Form::Scatterv           ? Layout{0, n, 0, 0, 1, 3}
                      : word.form == Form::NeighborAllgatherv ? Layout{1, 0, 0, in, 0, 2}
                      : word.form == Form::NeighborAlltoallv  ? Layout{0, out, 0, in, 0, 2}
                                                              : Layout{0, out, 0, in, 0, 0};  // Alltoallw, NeighborAlltoallw
  const size_t least = form.before + form.first + form.between + form.second + form.after, most = least + form.optional;
  if (args_.size() < least || args_.size() > most) {
    const std::string where = neighbour ? std::to_string(out) + " destinations and " + std::to_string(in) + " sources" : std::to_string(n) + " ranks";
    fail(quoted(word.name) + " of " + where + " has " + std::to_string(least) + (most == least ? "" : " to " + std::to_string(most)) +
         " arguments, here are " + std::to_string(args_.size()) + ": the counts must be one " + (neighbour ? "a neighbour" : "a rank") +
         (a.comm == 0 ? " (a collective on part of the ranks names its communicator, comm=)" : ""));
  }
  std::vector<int64_t> counts;
  counts.reserve(form.first + form.second);
  const auto add = [&](size_t from, size_t many, int32_t code, bool significant) {
    int64_t sum = 0, elements = 0;
    for (size_t i = 0; i < many; ++i) {
      const int64_t c = count(from + i, "count");
      elements += c != 0;
      counts.push_back(bytes(c, code, word.name, false));
      sum += counts.back();
      if (sum > MAX_BYTES) fail("the counts add up to more than 256 TiB");
    }
    bytes(elements, code, word.name, significant);  // reported once, not once per count
    return sum;
  };
  switch (word.form) {
    case Form::ReduceScatter:
      x.bytes = add(0, n, type(n + 1), true);
      x.flops = amount(n, "amount of computation");
      if (std::all_of(counts.begin(), counts.end(), [](int64_t c) { return c == 0; }) && !of_extension())
        refuse(word.name, "all counts are 0: SMPI's tracer writes MPI_Reduce_scatter_block so and loses its size");
      else if (args_.size() == n + 1 && x.flops != 0 && !of_extension())
        warn(word.name, "no type: taken as bytes; SMPI 4 writes the type of MPI_Reduce_scatter_block where the flops are");
      break;
    case Form::Alltoallv:
      count(0, "length of the send buffer");
      count(n + 1, "length of the receive buffer");
      x.bytes = add(1, n, type(2 * n + 2), true);
      x.receive_bytes = add(n + 2, n, type(2 * n + 3), true);
      break;
    case Form::Gatherv:
      x.root = root(n + 1);
      x.bytes = bytes(count(0, "count sent"), type(n + 2), word.name);
      x.receive_bytes = add(1, n, type(n + 3), at_root(x.root));
      break;
    case Form::Allgatherv: {
      const int32_t stype = type(n + 1);
      x.bytes = bytes(count(0, "count sent"), stype, word.name);
      x.receive_bytes = add(1, n, args_.size() == n + 2 ? stype : type(n + 2), true);
      for (size_t i = n + 3; i < args_.size(); ++i) integer(i, "displacement");
      break;
    }
    case Form::Scatterv:
      x.root = root(n + 1);
      x.bytes = add(0, n, type(n + 2), at_root(x.root));
      x.receive_bytes = bytes(count(n, "count received"), type(n + 3), word.name);
      break;
    case Form::NeighborAllgatherv:
      x.bytes = bytes(count(0, "count sent"), type(in + 1), word.name, out > 0);
      x.receive_bytes = add(1, in, type(in + 2), true);
      break;
    case Form::NeighborAlltoallv:
      x.bytes = add(0, out, type(out + in), true);
      x.receive_bytes = add(out, in, type(out + in + 1), true);
      break;
    default:  // Alltoallw, NeighborAlltoallw
      x.bytes = add(0, out, TYPE_BYTE, true);
      x.receive_bytes = add(out, in, TYPE_BYTE, true);
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
  // Both readings may be equivalent: away from a gather's root the receive side does not count.
  if (as_replay && as_tracer && a.op == Op::Gather && x.raw[1] == x.raw[2] && x.raw[2] == x.raw[3] && x.raw[1] != x.me) as_replay = false;
  if (as_replay == as_tracer || x.inter) {
    refuse(name, "four arguments: either the receive type or (SMPI's tracer, for 0) the receive count is missing; write all five");
    return;
  }
  auto &rooted = a.get<action::Collective>();
  rooted.root = static_cast<int32_t>(as_replay ? x.raw[2] : x.raw[1]);
  const bool root_here = rooted.root == x.me;
  const auto stype = static_cast<int32_t>(as_replay ? x.raw[3] : x.raw[2]);
  rooted.bytes = bytes(x.raw[0], stype, name, a.op == Op::Gather || root_here);
  rooted.receive_bytes = as_replay ? bytes(x.raw[1], state_[x.rank].default_type, name, a.op == Op::Scatter || root_here) : 0;
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
