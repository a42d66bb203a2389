// Whether the members of a collective agree on its bytes: MPI wants what one sends to another to be what the other receives, to the byte, and
// the same vector at all members of a broadcast or a reduction (MPI 4.0, chapter 6: "the type signature ... must be equal"). Whether a wrong
// program would nevertheless end depends on the algorithm; here it is refused whichever algorithm a model has.
#include "trace/parser.hpp"

namespace retrompi::parsing {
namespace {

std::string of_bytes(int64_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace

void Parser::differ(Mismatch &&m) {
  if (mismatches_.size() < REMARK_LIMIT)
    mismatches_.push_back(std::move(m));
  else
    ++mismatches_left_out_;
}

void Parser::note_bytes(const Membership &m, uint32_t k, const Action &a) {
  const auto &x = a.get<action::Collective>();
  const bool between = m.index != 0 && trace_.comms[static_cast<size_t>(m.index)].kind == Comm::Inter;
  const bool root_here = x.root == (between ? ROOT : m.me);
  if (between && is_rooted(a.op) && x.root == PROC_NULL) return;
  const Layout &form = layout_of(a.op);
  if (form.sent == Many::None && form.received == Many::None) return;
  if (form.sent == Many::One && form.received == Many::None) {
    int64_t has = x.bytes;
    if (a.op == Op::ReduceScatterBlock && between) {  // the parts of all ranks of a group add up to the vector
      const Comm &c = trace_.comms[static_cast<size_t>(m.index)];
      const size_t own = m.side == 1 ? c.remote.size() : c.group.size();
      if (__builtin_mul_overflow(x.bytes, static_cast<int64_t>(own), &has)) has = x.bytes;
    }
    return state_bytes(m, k, has, Call::Has);
  }
  if (form.root && !form.vector()) {
    const bool gather = is(a.op, Trait::ToRoot);
    const int64_t from_or_to_each = gather ? x.receive_bytes : x.bytes, own = gather ? x.bytes : x.receive_bytes;
    if (root_here) state_bytes(m, k, from_or_to_each, gather ? Call::Receives : Call::Sends);
    // A root whose block is in place (MPI_IN_PLACE) has 0 here.
    if (!root_here || (!between && own != 0)) state_bytes(m, k, own, gather ? Call::Sends : Call::Receives);
    return;
  }
  if (!form.vector() && !between && !is_neighbour(a.op)) {
    state_bytes(m, k, x.bytes, Call::Sends);
    state_bytes(m, k, x.receive_bytes, Call::Receives);
    return;
  }
  note_part(m, k, a);
}

void Parser::state_bytes(const Membership &m, uint32_t k, int64_t bytes, Call::Side side) {
  Call &first = infos_[static_cast<size_t>(m.index)].calls[k];
  if (first.bytes == bytes || first.bytes == Call::DIFFERENT) return;
  if (first.bytes == Call::UNKNOWN) {
    first.bytes = bytes;
    first.side = side;
    first.rank = rank_;
    first.line = line_;
    return;
  }
  const Op op = static_cast<Op>(first.kind & 0xff);
  Action a(op);
  a.flags = (first.kind & 0x100) != 0 ? FLAG_NONBLOCKING : 0;
  const auto says = [op](Call::Side what, int64_t n) {
    if (what == Call::Has) return "has " + of_bytes(n);
    const bool sends = what == Call::Sends, one = is_rooted(op) && is(op, Trait::ToRoot) == sends;
    return (sends ? "sends " : "receives ") + of_bytes(n) + (sends ? " to " : " from ") + (one ? "the root" : "each");
  };
  const int64_t sent = side == Call::Sends ? bytes : first.bytes, received = side == Call::Sends ? first.bytes : bytes;
  const char *why = side == first.side ? ": all members of the call must have the same"
                    : sent > received  ? ": the message is longer than its receive buffer (MPI_ERR_TRUNCATE)"
                                       : ": MPI needs what is sent to be what is received";
  const std::string who = "rank " + std::to_string(rank_) + " " + says(side, bytes);
  const std::string other = rank_ == first.rank ? " and " + says(first.side, first.bytes)
                                                : ", rank " + std::to_string(first.rank) + " " + says(first.side, first.bytes) + " (" +
                                                      place_of(first.rank, first.line) + ")";
  differ({rank_, line_, std::string(word_of(a).name), who + other + why});
  first.bytes = Call::DIFFERENT;
}

void Parser::note_part(const Membership &m, uint32_t k, const Action &a) {
  const auto &x = a.get<action::Collective>();
  const Comm &c = trace_.comms[static_cast<size_t>(m.index)];
  Parts &parts = parts_[{m.index, k}];
  if (parts.of.empty()) {
    parts.op = a.op;
    parts.flags = a.flags;
  }
  const Amounts amounts{x.bytes, x.receive_bytes, x.counts, x.root};
  uint64_t hash = static_cast<uint64_t>(amounts.bytes) * 0x9e3779b97f4a7c15ULL ^ static_cast<uint64_t>(amounts.receive_bytes);
  hash = hash * 0xbf58476d1ce4e5b9ULL ^ static_cast<uint32_t>(amounts.counts) ^ static_cast<uint64_t>(static_cast<uint32_t>(amounts.root)) << 32;
  const auto [low, high] = amounts_by_hash_.equal_range(hash);
  auto at = low;
  while (at != high && amounts_[at->second] != amounts) ++at;
  if (at == high) {
    at = amounts_by_hash_.emplace(hash, static_cast<uint32_t>(amounts_.size()));
    amounts_.push_back(amounts);
  }
  parts.of.push_back({static_cast<uint32_t>(m.me) + (m.side == 1 ? static_cast<uint32_t>(c.group.size()) : 0), line_, at->second});
  // The neighbours of a grid are known when all of its members have been read.
  if (parts.of.size() < c.group.size() + c.remote.size() || is_neighbour(a.op)) return;
  compare_parts(m.index, parts);
  parts_.erase({m.index, k});
}

void Parser::compare_open_parts() {
  for (auto &[key, parts] : parts_) compare_parts(key.first, parts);
  parts_.clear();
}

// The rank of the world that is the n-th member; of an intercommunicator the members of `remote` come after those of `group`.
static int32_t world_rank(const Comm &c, size_t member) { return member < c.group.size() ? c.group[member] : c.remote[member - c.group.size()]; }

static std::string name_of(const Parts &parts) {
  Action a(parts.op);
  a.flags = parts.flags;
  return std::string(word_of(a).name);
}

void Parser::pair_differs(const Comm &c, const Parts &parts, const Part &sender, int64_t sent, const Part &receiver, int64_t received) {
  const int32_t from = world_rank(c, sender.member), to = world_rank(c, receiver.member);
  const char *why =
      sent > received ? ": the message is longer than its receive buffer (MPI_ERR_TRUNCATE)" : ": MPI needs what is sent to be what is received";
  const std::string sends = "rank " + std::to_string(from) + " sends " + of_bytes(sent) + " to rank " + std::to_string(to);
  const std::string receives = "rank " + std::to_string(to) + " receives " + of_bytes(received) + " from rank " + std::to_string(from);
  const auto at = [&](const Part &p) { return " (" + place_of(world_rank(c, p.member), p.line) + ")"; };
  const Part &later = from > to ? sender : receiver;
  const std::string both = from == to  ? "rank " + std::to_string(from) + " sends " + of_bytes(sent) + " to itself and receives " + of_bytes(received)
                           : from > to ? sends + ", " + receives + at(receiver)
                                       : receives + ", " + sends + at(sender);
  differ({world_rank(c, later.member), later.line, name_of(parts), both + why});
}

// The first pair of members that differ is told.
void Parser::compare_parts(int32_t comm, Parts &parts) {
  const Comm &c = trace_.comms[static_cast<size_t>(comm)];
  std::sort(parts.of.begin(), parts.of.end(), [](const Part &x, const Part &y) { return x.member < y.member; });
  std::vector<std::pair<uint32_t, uint32_t>> all;
  all.reserve(parts.of.size());
  for (const Part &p : parts.of) all.emplace_back(p.member, p.amounts);
  std::vector<std::pair<uint32_t, uint32_t>> &compared = compared_[{comm, parts.op}];
  if (compared == all) return;
  const auto middle = std::find_if(parts.of.begin(), parts.of.end(), [&c](const Part &p) { return p.member >= c.group.size(); });
  const Called low(parts.of.begin(), middle), high(middle, parts.of.end());
  const bool right = is_neighbour(parts.op)          ? compare_neighbours(c, parts)
                     : parts.op == Op::ReduceScatter ? compare_vectors(c, parts)
                     : c.kind != Comm::Inter         ? compare_pairs(c, parts, low, low)
                                                     : compare_pairs(c, parts, low, high) && compare_pairs(c, parts, high, low);
  if (right) compared = std::move(all);
}

// The counts of a reduce_scatter: the same at all members; between groups within each, and the sums of both.
bool Parser::compare_vectors(const Comm &c, const Parts &parts) {
  const Part *first[2] = {nullptr, nullptr};
  const auto whose = [&](const Part &p) { return "rank " + std::to_string(world_rank(c, p.member)); };
  const auto place = [&](const Part &p) { return " (" + place_of(world_rank(c, p.member), p.line) + ")"; };
  for (const Part &p : parts.of) {
    const Part *&f = first[p.member < c.group.size() ? 0 : 1];
    if (!f) f = &p;
    const int32_t mine = amounts_[p.amounts].counts, others = amounts_[f->amounts].counts;
    if (mine == others) continue;
    const auto &x = trace_.vec[static_cast<size_t>(mine)], &y = trace_.vec[static_cast<size_t>(others)];
    const auto k = static_cast<size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
    if (k == x.size()) continue;
    differ({world_rank(c, p.member), p.line, name_of(parts),
            whose(p) + " has " + of_bytes(x[k]) + " for member " + std::to_string(k) + ", " + whose(*f) + " has " + of_bytes(y[k]) + place(*f) +
                ": all members of the call must have the same counts"});
    return false;
  }
  if (!first[0] || !first[1]) return true;
  const int64_t low = amounts_[first[0]->amounts].bytes, high = amounts_[first[1]->amounts].bytes;
  if (low == high) return true;
  differ({world_rank(c, first[1]->member), first[1]->line, name_of(parts),
          "the counts of " + whose(*first[1]) + " add up to " + of_bytes(high) + ", those of " + whose(*first[0]) + " in the other group to " +
              of_bytes(low) + place(*first[0]) + ": the sums must be equal"});
  return false;
}

bool Parser::compare_pairs(const Comm &c, const Parts &parts, Called from, Called to) {
  const Layout &form = layout_of(parts.op);
  const bool sends_each = Layout::several(form.sent), receives_each = Layout::several(form.received), vectors = sends_each && receives_each;
  const bool to_root = form.root && receives_each, from_root = form.root && sends_each, all_receive = receives_each && !form.root && !vectors;
  const bool between = c.kind == Comm::Inter;
  const auto counts = [&](const Part &p) { return trace_.vec[static_cast<size_t>(amounts_[p.amounts].counts)].data(); };
  const auto place = [&](const Part &p) { return p.member < c.group.size() ? p.member : p.member - c.group.size(); };  // in its group
  const auto is_root = [&](const Part &p) { return amounts_[p.amounts].root == (between ? ROOT : static_cast<int32_t>(place(p))); };
  int32_t right = -1;  // counts of an allgatherv that agree with what all members send
  for (const Part &j : to) {
    const Amounts &in = amounts_[j.amounts];
    if ((to_root && !is_root(j)) || (all_receive && in.counts == right)) continue;
    // The counts received come after those sent, of which there is one for each member of the other group.
    const int64_t *const each = vectors ? counts(j) + trace_.vec[static_cast<size_t>(in.counts)].size() / 2 : receives_each ? counts(j) : nullptr;
    for (const Part &i : from) {
      if (from_root && !is_root(i)) continue;
      const int64_t sent = from_root || vectors ? counts(i)[place(j)] : amounts_[i.amounts].bytes;
      const int64_t received = each ? each[place(i)] : in.receive_bytes;
      // A root whose own block is in place (MPI_IN_PLACE) has 0 there.
      if (sent == received || (i.member == j.member && ((to_root && sent == 0) || (from_root && received == 0)))) continue;
      pair_differs(c, parts, i, sent, j, received);
      return false;
    }
    right = in.counts;
  }
  return true;
}

// Two members can be neighbours more than once; then the blocks between them are compared as a whole, in any order.
bool Parser::compare_neighbours(const Comm &c, const Parts &parts) {
  struct Block {
    size_t from, to;  // in parts.of
    int64_t bytes;
    auto operator<=>(const Block &) const = default;
  };
  const Layout &form = layout_of(parts.op);
  const bool receives_each = Layout::several(form.received), vectors = Layout::several(form.sent);
  const size_t none = parts.of.size();
  const auto place = [&](int32_t member) {
    if (member < 0) return none;
    const auto at =
        std::lower_bound(parts.of.begin(), parts.of.end(), static_cast<uint32_t>(member), [](const Part &p, uint32_t m) { return p.member < m; });
    return at != parts.of.end() && at->member == static_cast<uint32_t>(member) ? static_cast<size_t>(at - parts.of.begin()) : none;
  };
  std::vector<Block> sent, received;
  for (size_t me = 0; me < parts.of.size(); ++me) {
    const Part &p = parts.of[me];
    if (p.member >= c.sources.size() || p.member >= c.destinations.size()) continue;
    const Amounts &a = amounts_[p.amounts];
    const int64_t *counts = a.counts < 0 ? nullptr : trace_.vec[static_cast<size_t>(a.counts)].data();
    const auto &to = c.destinations[p.member], &from = c.sources[p.member];
    const size_t needed = vectors ? to.size() + from.size() : receives_each ? from.size() : 0;
    if (needed > 0 && (!counts || trace_.vec[static_cast<size_t>(a.counts)].size() < needed)) continue;
    for (size_t k = 0; k < to.size(); ++k)
      if (const size_t other = place(to[k]); other != none) sent.push_back({me, other, vectors ? counts[k] : a.bytes});
    for (size_t k = 0; k < from.size(); ++k)
      if (const size_t other = place(from[k]); other != none)
        received.push_back({other, me, vectors ? counts[to.size() + k] : receives_each ? counts[k] : a.receive_bytes});
  }
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  for (size_t i = 0; i < sent.size() && i < received.size(); ++i) {
    if (sent[i] == received[i]) continue;
    if (sent[i].from != received[i].from || sent[i].to != received[i].to) return true;  // the members do not agree on who are neighbours
    pair_differs(c, parts, parts.of[sent[i].from], sent[i].bytes, parts.of[sent[i].to], received[i].bytes);
    return false;
  }
  return true;
}

}  // namespace retrompi::parsing
