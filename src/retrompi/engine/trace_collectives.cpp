// Collective lines, and the checks that need more than one rank's lines.
#include "trace_parser.hpp"

namespace retrompi::parsing {

void Parser::collective(const Word &word, Action &a) {
  switch (word.form) {
    case Form::Bcast:
      need(word, 1, "COUNT [ROOT [TYPE]]");
      a.peer2 = root(1);
      a.bytes = bytes(count(0, "count"), type(2), word.name);
      at_most(word, 3);
      return;
    case Form::Reduce:
      need(word, 2, "COUNT FLOPS [ROOT [TYPE]]");
      a.peer2 = root(2);
      a.amount = amount(1, "amount of computation");
      a.bytes = bytes(count(0, "count"), type(3), word.name);
      at_most(word, 4);
      return;
    case Form::Allreduce:
      need(word, 2, "COUNT FLOPS [TYPE]");
      a.amount = amount(1, "amount of computation");
      a.bytes = bytes(count(0, "count"), type(2), word.name);
      at_most(word, 3);
      return;
    case Form::Alltoall: {
      need(word, 2, "SCOUNT RCOUNT [STYPE [RTYPE]]");
      const int64_t sent = count(0, "count sent");
      // SMPI's tracer leaves RCOUNT out when it is 0, and then the types stand where it was.
      if (args_.size() == 3 && sent == 0)
        refuse(word.name, "with nothing sent and three arguments, SMPI's tracer and its replay disagree on the second; write all four");
      a.bytes = bytes(sent, type(2), word.name);
      a.bytes2 = bytes(count(1, "count received"), type(3), word.name);
      at_most(word, 4);
      return;
    }
    case Form::Rooted: {
      need(word, 2, "SCOUNT RCOUNT [ROOT [STYPE [RTYPE]]]");
      if (args_.size() == 4) {
        // Either RTYPE was left out, as replay would read it, or RCOUNT, which SMPI's tracer drops when it is 0.
        Ambiguous x{static_cast<size_t>(rank_), static_cast<uint32_t>(trace_.ranks[static_cast<size_t>(rank_)].size()), {}};
        for (size_t i = 0; i < 4; ++i) x.raw[i] = i < 2 ? count(i, "count") : integer(i, i == 2 ? "root or type" : "type");
        type(3);
        ambiguous_.push_back(x);
        return;
      }
      a.peer2 = root(2);
      const bool at_root = a.peer2 == rank_;
      a.bytes = bytes(count(0, "count sent"), type(3), word.name, a.op == Op::Gather || at_root);
      a.bytes2 = bytes(count(1, "count received"), type(4), word.name, a.op == Op::Scatter || at_root);
      at_most(word, 5);
      return;
    }
    default:
      vector_arguments(word, a);
  }
}

void Parser::vector_arguments(const Word &word, Action &a) {
  const auto n = static_cast<size_t>(n_);
  // Trailing fields that each form may have after its counts.
  const size_t least = word.form == Form::Alltoallv ? 2 * n + 2 : n + 1;
  const size_t most = word.form == Form::ReduceScatter ? n + 2
                      : word.form == Form::Alltoallv   ? 2 * n + 4
                      : word.form == Form::Allgatherv  ? 2 * n + 3
                                                       : n + 4;
  if (args_.size() < least || args_.size() > most)
    fail(quoted(word.name) + " of " + std::to_string(n) + " ranks has " + std::to_string(least) + " to " + std::to_string(most) +
         " arguments, here are " + std::to_string(args_.size()) +
         ": the counts must be one a rank (a collective on part of the ranks cannot be written in this format)");
  std::vector<int64_t> counts;
  counts.reserve(word.form == Form::Alltoallv ? 2 * n : n);
  const auto add = [&](size_t from, int32_t code, bool significant) {
    int64_t sum = 0, elements = 0;
    for (size_t i = 0; i < n; ++i) {
      const int64_t c = count(from + i, "count");
      elements += c != 0;
      counts.push_back(bytes(c, code, word.name, false));
      sum += counts.back();
      if (sum > MAX_BYTES) fail("the counts add up to more than 256 TiB");
    }
    bytes(elements, code, word.name, significant);  // refused once, not once a count
    return sum;
  };
  switch (word.form) {
    case Form::ReduceScatter:
      a.bytes = add(0, type(n + 1), true);
      a.amount = amount(n, "amount of computation");
      if (std::all_of(counts.begin(), counts.end(), [](int64_t c) { return c == 0; }))
        refuse(word.name, "all counts are 0: SMPI's tracer writes MPI_Reduce_scatter_block so and loses its size");
      else if (args_.size() == n + 1 && a.amount != 0)
        warn(word.name, "no type: taken as bytes; SMPI 4 writes the type of MPI_Reduce_scatter_block where the flops are");
      break;
    case Form::Alltoallv:
      count(0, "length of the send buffer");
      count(n + 1, "length of the receive buffer");
      a.bytes = add(1, type(2 * n + 2), true);
      a.bytes2 = add(n + 2, type(2 * n + 3), true);
      break;
    case Form::Gatherv:
      a.peer2 = root(n + 1);
      a.bytes = bytes(count(0, "count sent"), type(n + 2), word.name);
      a.bytes2 = add(1, type(n + 3), a.peer2 == rank_);
      break;
    case Form::Allgatherv: {
      const int32_t stype = type(n + 1);
      a.bytes = bytes(count(0, "count sent"), stype, word.name);
      a.bytes2 = add(1, args_.size() == n + 2 ? stype : type(n + 2), true);
      for (size_t i = n + 3; i < args_.size(); ++i) integer(i, "displacement");
      break;
    }
    default:  // Scatterv
      a.peer2 = root(n + 1);
      a.bytes = add(0, type(n + 2), a.peer2 == rank_);
      a.bytes2 = bytes(count(n, "count received"), type(n + 3), word.name);
  }
  a.aux = store(std::move(counts));
}

// The other ranks' line of the same collective has the root, and that tells the two readings apart.
void Parser::resolve_rooted(size_t first) {
  const Ambiguous &x = ambiguous_[first];
  Action a = trace_.ranks[x.rank][x.index];
  const auto &own = state_[x.rank].collectives;
  const auto k = static_cast<size_t>(std::lower_bound(own.begin(), own.end(), x.index) - own.begin());
  const auto is_ambiguous = [&](size_t rank, uint32_t index) {
    const auto it = std::lower_bound(ambiguous_.begin(), ambiguous_.end(), std::pair{rank, index}, [](const Ambiguous &y, const auto &key) {
      return std::pair{y.rank, y.index} < key;
    });
    return it != ambiguous_.end() && it->rank == rank && it->index == index;
  };
  rank_ = static_cast<int32_t>(x.rank);
  line_ = a.line;
  source_ = state_[x.rank].source;
  const std::string_view name = canonical_name(a.op);
  bool as_replay = x.raw[2] >= 0 && x.raw[2] < n_, as_tracer = x.raw[1] < n_ && x.raw[2] >= -1 && x.raw[2] < static_cast<int64_t>(TYPE_SIZE.size());
  for (size_t r = 0; r < trace_.ranks.size(); ++r) {
    if (k >= state_[r].collectives.size()) continue;
    const uint32_t index = state_[r].collectives[k];
    const Action other = trace_.ranks[r][index];
    if (other.op != a.op || is_ambiguous(r, index)) continue;
    as_replay = as_replay && x.raw[2] == other.peer2;
    as_tracer = as_tracer && x.raw[1] == other.peer2;
    break;
  }
  // Both readings may come to the same: away from a gather's root the receive side does not count.
  if (as_replay && as_tracer && a.op == Op::Gather && x.raw[1] == x.raw[2] && x.raw[2] == x.raw[3] && x.raw[1] != rank_) as_replay = false;
  if (as_replay == as_tracer) {
    refuse(name, "four arguments: either the receive type or (SMPI's tracer, for 0) the receive count is missing; write all five");
    return;
  }
  a.peer2 = static_cast<int32_t>(as_replay ? x.raw[2] : x.raw[1]);
  const bool at_root = a.peer2 == rank_;
  const auto stype = static_cast<int32_t>(as_replay ? x.raw[3] : x.raw[2]);
  a.bytes = bytes(x.raw[0], stype, name, a.op == Op::Gather || at_root);
  a.bytes2 = as_replay ? bytes(x.raw[1], state_[x.rank].default_type, name, a.op == Op::Scatter || at_root) : 0;
  trace_.ranks[x.rank].set(x.index, a);
}

std::string Parser::describe(size_t rank, size_t i) const {
  const Action a = trace_.ranks[rank][i];
  const Form form = form_of(a.op);
  const bool rooted = form == Form::Bcast || form == Form::Reduce || form == Form::Rooted || form == Form::Gatherv || form == Form::Scatterv;
  return "'" + std::string(canonical_name(a.op)) + "'" + (rooted ? " with root " + std::to_string(a.peer2) : "");
}

// Every rank must call the same collectives of the world in the same order. Where names or roots differ, the trace has
// collectives of a sub-communicator, which it cannot name: simulating them would be a guess.
void Parser::compare_collectives() {
  const auto &reference = state_[0].collectives;
  for (size_t r = 1; r < trace_.ranks.size(); ++r) {
    const auto &own = state_[r].collectives;
    const size_t common = std::min(own.size(), reference.size());
    rank_ = static_cast<int32_t>(r);
    size_t k = 0;
    for (; k < common; ++k) {
      const Action a = trace_.ranks[r][own[k]];
      const Action b = trace_.ranks[0][reference[k]];
      if (a.op == b.op && a.peer2 == b.peer2) continue;
      line_ = a.line;
      refuse(canonical_name(a.op), "collective " + std::to_string(k + 1) + " of rank " + std::to_string(r) + " is " + describe(r, own[k]) +
                                       ", of rank 0 it is " + describe(0, reference[k]) + " (" + trace_.where(0, b) +
                                       "): a collective on part of the ranks, which this format cannot tell, or an error of the program");
      break;
    }
    if (k == common && own.size() != reference.size()) {
      line_ = state_[r].last_line;
      warn("finalize",
           "rank " + std::to_string(r) + " calls " + std::to_string(own.size()) + " collectives, rank 0 calls " + std::to_string(reference.size()));
    }
  }
}

}  // namespace retrompi::parsing
