// Collectives of two groups: a phase within each group, the leaders' exchange, a phase within each group. Ranks of the own group are
// 0..n-1, those of the other one n..n+remote-1.
//
// code: MPICH2 1.0 to 1.3, src/mpi/coll/*.c, the functions MPIR_*_inter; the 2048 B of gather and scatter are MPIR_GATHER_SHORT_MSG and
// MPIR_SCATTER_SHORT_MSG there. MPI-1 has no collectives of intercommunicators, so the older runtimes use the same algorithms.
#include "coll/coll.hpp"

namespace retrompi::coll {
namespace {

constexpr int64_t kShort = 2048;

Args within(const Args& a, int64_t bytes, int64_t bytes_in = 0) {
  Args l = a;
  l.remote = 0;
  l.root = 0;
  l.bytes = bytes;
  l.bytes_in = bytes_in;
  l.out = l.in = {};
  return l;
}

Steps bcast(Args a) {
  if (a.root == PROC_NULL) co_return;
  if (a.root == ROOT) {
    co_yield isend(a.n, a.bytes);
    co_yield wait();
    co_return;
  }
  if (a.me == 0) {
    co_yield irecv(a.n + a.root, a.bytes);
    co_yield wait();
  }
  for (Steps s = a.table->make(Op::Bcast, within(a, a.bytes)); s.next();) co_yield s.step();
}

/// The first members notify the other group, the low one first.
Steps tell_each_other(Args a, int64_t bytes, int64_t bytes_back) {
  for (int turn = 0; turn < 2; ++turn) {
    Args b = a;
    const bool mine = a.low == (turn == 0);
    b.bytes = mine ? bytes : bytes_back;
    b.root = !mine ? 0 : a.me == 0 ? ROOT : PROC_NULL;
    for (Steps s = bcast(b); s.next();) co_yield s.step();
  }
}

Steps barrier(Args a) {
  for (Steps s = a.table->make(Op::Barrier, within(a, 0)); s.next();) co_yield s.step();
  for (Steps s = tell_each_other(a, 1, 1); s.next();) co_yield s.step();
}

Steps reduce(Args a) {
  if (a.root == PROC_NULL) co_return;
  if (a.root == ROOT) {
    co_yield irecv(a.n, a.bytes);
    co_yield wait();
    co_return;
  }
  for (Steps s = a.table->make(Op::Reduce, within(a, a.bytes)); s.next();) co_yield s.step();
  if (a.me != 0) co_return;
  co_yield isend(a.n + a.root, a.bytes);
  co_yield wait();
}

Steps allreduce(Args a) {
  for (Steps s = a.table->make(Op::Reduce, within(a, a.bytes)); s.next();) co_yield s.step();
  if (a.me == 0) {
    co_yield irecv(a.n, a.bytes, 0);
    co_yield isend(a.n, a.bytes, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  for (Steps s = a.table->make(Op::Bcast, within(a, a.bytes)); s.next();) co_yield s.step();
}

Steps reduce_scatter(Args a) {
  const int64_t all = volume(Op::ReduceScatter, a);
  for (int turn = 0; turn < 2; ++turn) {
    Args r = a;
    r.bytes = all;
    r.root = a.low != (turn == 0) ? 0 : a.me == 0 ? ROOT : PROC_NULL;
    for (Steps s = reduce(r); s.next();) co_yield s.step();
  }
  Args part = within(a, a.bytes_in, a.from(a.me));
  part.out = a.in;
  for (Steps s = a.table->make(Op::Scatterv, part); s.next();) co_yield s.step();
}

Steps linear_gather(Args a) {
  if (a.root == PROC_NULL) co_return;
  if (a.root != ROOT) {
    co_yield isend(a.n + a.root, a.bytes);
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.remote; ++r) {
    co_yield irecv(a.n + r, a.from(r));
    co_yield wait();
  }
}

Steps gather(Args a) {
  if (a.root == PROC_NULL) co_return;
  const int64_t all = a.root == ROOT ? a.bytes_in * a.remote : a.bytes * a.n;
  if (all >= kShort) {
    for (Steps s = linear_gather(a); s.next();) co_yield s.step();
  } else if (a.root == ROOT) {
    co_yield irecv(a.n, all);
    co_yield wait();
  } else {
    for (Steps s = a.table->make(Op::Gather, within(a, a.bytes, a.bytes)); s.next();) co_yield s.step();
    if (a.me != 0) co_return;
    co_yield isend(a.n + a.root, all);
    co_yield wait();
  }
}

Steps linear_scatter(Args a) {
  if (a.root == PROC_NULL) co_return;
  if (a.root != ROOT) {
    co_yield irecv(a.n + a.root, a.bytes_in);
    co_yield wait();
    co_return;
  }
  for (int32_t r = 0; r < a.remote; ++r) {
    co_yield isend(a.n + r, a.to(r));
    co_yield wait();
  }
}

Steps scatter(Args a) {
  if (a.root == PROC_NULL) co_return;
  const int64_t all = a.root == ROOT ? a.bytes * a.remote : a.bytes_in * a.n;
  if (all >= kShort) {
    for (Steps s = linear_scatter(a); s.next();) co_yield s.step();
  } else if (a.root == ROOT) {
    co_yield isend(a.n, all);
    co_yield wait();
  } else {
    if (a.me == 0) {
      co_yield irecv(a.n + a.root, all);
      co_yield wait();
    }
    for (Steps s = a.table->make(Op::Scatter, within(a, a.bytes_in, a.bytes_in)); s.next();) co_yield s.step();
  }
}

Steps allgather(Args a) {
  for (Steps s = a.table->make(Op::Gather, within(a, a.bytes, a.bytes)); s.next();) co_yield s.step();
  for (Steps s = tell_each_other(a, a.bytes * a.n, a.bytes_in * a.remote); s.next();) co_yield s.step();
}

/// The counts of the own group are unknown here, so everything goes to the other group's first member, which passes it to its group.
Steps allgatherv(Args a) {
  for (int turn = 0; turn < 2; ++turn) {
    Args g = a;
    g.root = a.low != (turn == 0) ? 0 : a.me == 0 ? ROOT : PROC_NULL;
    for (Steps s = linear_gather(g); s.next();) co_yield s.step();
  }
  for (Steps s = a.table->make(Op::Bcast, within(a, volume(Op::Allgatherv, a))); s.next();) co_yield s.step();
}

Steps alltoall(Args a) {
  const int32_t rounds = std::max(a.n, a.remote);
  for (int32_t i = 0; i < rounds; ++i) {
    const int32_t source = (a.me - i + rounds) % rounds, target = (a.me + i) % rounds;
    if (source < a.remote) co_yield irecv(a.n + source, a.from(source), 0);
    if (target < a.remote) {
      co_yield isend(a.n + target, a.to(target), 1);
      co_yield wait(1);
    }
    if (source < a.remote) co_yield wait(0);
  }
}

}  // namespace

Steps between_groups(Op op, Args a) {
  switch (op) {
    case Op::Barrier:
      return barrier(a);
    case Op::Bcast:
      return bcast(a);
    case Op::Reduce:
      return reduce(a);
    case Op::Allreduce:
      return allreduce(a);
    case Op::ReduceScatter:
    case Op::ReduceScatterBlock:
      return reduce_scatter(a);
    case Op::Gather:
      return gather(a);
    case Op::Gatherv:
      return linear_gather(a);
    case Op::Scatter:
      return scatter(a);
    case Op::Scatterv:
      return linear_scatter(a);
    case Op::Allgather:
      return allgather(a);
    case Op::Allgatherv:
      return allgatherv(a);
    case Op::Alltoall:
    case Op::Alltoallv:
    case Op::Alltoallw:
      return alltoall(a);
    default:
      throw ConfigError(std::string(op_name(op)) + ": MPI has none on an intercommunicator");
  }
}

Steps agree_on_context(Args a) {
  const Table& t = *a.table;
  if (a.remote == 0) {
    a.bytes = t.context_bytes;
    for (Steps s = t.make(Op::Allreduce, a); s.next();) co_yield s.step();
    co_return;
  }
  // Each group agrees internally, then the first members exchange the contexts found and inform the rest.
  // code: MPICH2, src/mpi/comm/commutil.c, MPIR_Get_intercomm_contextid
  constexpr int64_t kContext = 4;
  for (Steps s = t.make(Op::Allreduce, within(a, t.context_bytes)); s.next();) co_yield s.step();
  if (a.me == 0) {
    co_yield irecv(a.n, kContext, 0);
    co_yield isend(a.n, kContext, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  for (Steps s = t.make(Op::Bcast, within(a, kContext)); s.next();) co_yield s.step();
}

Steps agree_on_colors(Args a) {
  constexpr int64_t kColorAndKey = 8;
  Args c = a;
  const bool gathers = a.table->split_gathers;
  c.bytes = c.bytes_in = gathers ? kColorAndKey : kColorAndKey * a.n;
  for (Steps s = a.table->make(gathers ? Op::Allgather : Op::Allreduce, c); s.next();) co_yield s.step();
}

Steps swap_groups(Args a) {
  // The leaders exchange their groups, then each informs its own group of the other: an identity of 8 B for each member.
  constexpr int64_t kIdentity = 8;
  if (a.me == 0) {
    co_yield irecv(a.n, kIdentity * a.remote, 0);
    co_yield isend(a.n, kIdentity * a.n, 1);
    co_yield wait(1);
    co_yield wait(0);
  }
  for (Steps s = a.table->make(Op::Bcast, within(a, kIdentity * a.remote)); s.next();) co_yield s.step();
}

}  // namespace retrompi::coll
