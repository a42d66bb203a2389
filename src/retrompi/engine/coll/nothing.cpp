// A call without data returns at once, without synchronisation.
// code: MPICH2 1.0 to 1.3, src/mpi/coll (count == 0 at the beginning of each; MPICH 1 does so in its broadcast, reductions and scan)
#include "coll/data.hpp"

namespace retrompi::coll::nothing {
namespace {

template <Op op>
Steps nothing(Args a) {
  if (volume(op, a) > 0) throw ConfigError(std::string(op_name(op)) + ": the algorithm 'nothing' is for calls without data");
  co_return;
}

template <Op op>
const Algorithm kNothing{op, "nothing", &nothing<op>};

template const Algorithm kNothing<Op::Bcast>;
template const Algorithm kNothing<Op::Reduce>;
template const Algorithm kNothing<Op::Allreduce>;
template const Algorithm kNothing<Op::Scan>;
template const Algorithm kNothing<Op::Exscan>;
template const Algorithm kNothing<Op::Gather>;
template const Algorithm kNothing<Op::Scatter>;
template const Algorithm kNothing<Op::Allgather>;
template const Algorithm kNothing<Op::Allgatherv>;
template const Algorithm kNothing<Op::Alltoall>;
template const Algorithm kNothing<Op::ReduceScatter>;
template const Algorithm kNothing<Op::ReduceScatterBlock>;

}  // namespace
}  // namespace retrompi::coll::nothing
