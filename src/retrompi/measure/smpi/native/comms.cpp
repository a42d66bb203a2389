// Communicators: SimGrid creates them, the runtime's messages are charged, and all ranks agree on one number.
#include <algorithm>
#include <map>

#include "calls.hpp"

namespace retrompi::online {

int Comm::rank_of(int world_rank) const {
  const auto at = remote > 0 ? std::find(world.begin() + n, world.end(), world_rank) : std::find(world.begin(), world.begin() + n, world_rank);
  if (at == world.end()) return MPI_UNDEFINED;
  return static_cast<int>(at - world.begin()) - (remote > 0 ? n : 0);
}

int Comm::peer(int rank) const {
  if (rank == MPI_ANY_SOURCE || rank == MPI_PROC_NULL) return rank;
  const size_t at = static_cast<size_t>(remote > 0 ? n + rank : rank);
  return rank >= 0 && at < world.size() ? world[at] : MPI_PROC_NULL;
}

namespace {

std::vector<int32_t> world_ranks(MPI_Group group) {
  int n = 0;
  NATIVE(Group_size)(group, &n);
  static MPI_Group everyone = MPI_GROUP_NULL;
  if (everyone == MPI_GROUP_NULL) NATIVE(Comm_group)(MPI_COMM_WORLD, &everyone);
  std::vector<int> mine(static_cast<size_t>(n)), there(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) mine[static_cast<size_t>(i)] = i;
  NATIVE(Group_translate_ranks)(group, n, mine.data(), everyone, there.data());
  return {there.begin(), there.end()};
}

/// The same number at all members: communicators of the same ranks are created in the same order everywhere.
int number_of(const std::vector<int32_t>& members, int nth) {
  static std::map<std::pair<std::vector<int32_t>, int>, int> known;
  return known.try_emplace({members, nth}, static_cast<int>(known.size())).first->second;
}

}  // namespace

Comm& Rank::comm(MPI_Comm handle) {
  auto& slot = comms_[handle];
  if (slot) return *slot;
  slot = std::make_unique<Comm>();
  slot->handle = handle;
  MPI_Group group = MPI_GROUP_NULL;
  NATIVE(Comm_group)(handle, &group);
  slot->world = world_ranks(group);
  slot->n = static_cast<int>(slot->world.size());
  std::vector<int32_t> key = slot->world;
  for (const int32_t r : slot->world) slot->host.push_back(environment().ranks[static_cast<size_t>(r)].host);
  slot->me = static_cast<int>(std::find(slot->world.begin(), slot->world.end(), id) - slot->world.begin());
  slot->id = number_of(key, made_[key]++);
  return *slot;
}

int Rank::next_number(MPI_Comm handle) {
  MPI_Group group = MPI_GROUP_NULL;
  NATIVE(Comm_group)(handle, &group);
  const std::vector<int32_t> key = world_ranks(group);
  return number_of(key, made_[key]);
}

namespace {

/// A new communicator is registered as soon as it is created, so that all members number it alike.
int made(Rank& r, int rc, const MPI_Comm* handle) {
  if (rc == MPI_SUCCESS && *handle != MPI_COMM_NULL) {
    r.forget(*handle);
    r.comm(*handle);
  }
  return rc;
}

void agree(Rank& r, Comm& c, bool colors) {
  if (colors) r.follow(coll::agree_on_colors(r.args(c)), c);
  r.follow(coll::agree_on_context(r.args(c)), c);
}

/// SimGrid creates it once the members have agreed at the runtime's costs.
template <class F>
int agreed(const Call& r, MPI_Comm comm, bool colors, const MPI_Comm* made_comm, F make, bool waits = false) {
  if (!r) return make();
  agree(*r, r->comm(comm), colors);
  const Gratis free(waits);
  return made(*r, make(), made_comm);
}

/// What the members of a communicator exchange without messages once all have called: those messages have been charged.
struct Split {
  std::map<int, std::pair<int, int>> said;  // rank -> color, key
};
std::map<std::pair<int, int>, Split>& splits() {
  static std::map<std::pair<int, int>, Split> all;
  return all;
}

}  // namespace

// The members of each part are known when the colors are; SimGrid's own method would make every rank wait for all others.
DEFINE(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made_comm)) {
  const Call r("MPI_Comm_split");
  if (!r) return NATIVE(Comm_split)(comm, color, key, made_comm);
  Comm& c = r->comm(comm);
  const std::pair<int, int> which{c.id, c.sequence};
  splits()[which].said[c.me] = {color, key};
  agree(*r, c, true);
  const Split& s = splits()[which];
  std::vector<std::pair<int, int>> members;  // key, rank
  for (const auto& [rank, what] : s.said)
    if (color != MPI_UNDEFINED && what.first == color) members.emplace_back(what.second, rank);
  std::sort(members.begin(), members.end());
  *made_comm = MPI_COMM_NULL;
  if (members.empty()) return MPI_SUCCESS;
  std::vector<int> ranks;
  for (const auto& m : members) ranks.push_back(m.second);
  MPI_Group all = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
  NATIVE(Comm_group)(comm, &all);
  NATIVE(Group_incl)(all, static_cast<int>(ranks.size()), ranks.data(), &part);
  const Gratis free;
  return made(*r, NATIVE(Comm_create)(comm, part, made_comm), made_comm);
}

DEFINE(Comm_dup, (MPI_Comm comm, MPI_Comm* made_comm)) {
  const Call r("MPI_Comm_dup");
  return agreed(r, comm, false, made_comm, [=] { return NATIVE(Comm_dup)(comm, made_comm); });
}

DEFINE(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* made_comm)) {
  const Call r("MPI_Comm_dup_with_info");
  return agreed(r, comm, false, made_comm, [=] { return NATIVE(Comm_dup_with_info)(comm, info, made_comm); });
}

DEFINE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made_comm)) {
  const Call r("MPI_Comm_create");
  return agreed(r, comm, false, made_comm, [=] { return NATIVE(Comm_create)(comm, group, made_comm); });
}

DEFINE(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made_comm)) {
  const Call r("MPI_Comm_split_type");
  return agreed(
      r, comm, true, made_comm, [=] { return NATIVE(Comm_split_type)(comm, type, key, info, made_comm); }, true);
}

DEFINE(Cart_create, (MPI_Comm comm, int ndims, const int* dims, const int* periods, int reorder, MPI_Comm* made_comm)) {
  const Call r("MPI_Cart_create");
  int places = 1;
  for (int i = 0; i < ndims; ++i) places *= dims[i];
  const bool colors = r && places != r->comm(comm).n;  // some ranks are left out
  return agreed(r, comm, colors, made_comm, [=] { return NATIVE(Cart_create)(comm, ndims, dims, periods, reorder, made_comm); });
}

// Cartesian sub-grids are computed here from coordinates: SimGrid splits the communicator, where every rank would wait for all others.
DEFINE(Cart_sub, (MPI_Comm comm, const int* remain, MPI_Comm* made_comm)) {
  const Call r("MPI_Cart_sub");
  if (!r) return NATIVE(Cart_sub)(comm, remain, made_comm);
  agree(*r, r->comm(comm), true);
  int ndims = 0;
  NATIVE(Cartdim_get)(comm, &ndims);
  const Gratis free(std::none_of(remain, remain + ndims, [](int kept) { return kept != 0; }));  // SimGrid's own method, below
  const auto n = static_cast<size_t>(ndims);
  std::vector<int> dims(n), periods(n), here(n), kept_dims, kept_periods;
  NATIVE(Cart_get)(comm, ndims, dims.data(), periods.data(), here.data());
  std::vector<int> members{0};  // ranks of a grid vary fastest in its last dimension
  for (size_t d = 0; d < n; ++d) {
    std::vector<int> longer;
    for (const int m : members)
      for (int k = remain[d] ? 0 : here[d]; k <= (remain[d] ? dims[d] - 1 : here[d]); ++k) longer.push_back(m * dims[d] + k);
    members = std::move(longer);
    if (remain[d]) kept_dims.push_back(dims[d]), kept_periods.push_back(periods[d]);
  }
  if (kept_dims.empty()) return made(*r, NATIVE(Cart_sub)(comm, remain, made_comm), made_comm);
  MPI_Group all = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
  NATIVE(Comm_group)(comm, &all);
  NATIVE(Group_incl)(all, static_cast<int>(members.size()), members.data(), &part);
  MPI_Comm flat = MPI_COMM_NULL;
  if (const int rc = NATIVE(Comm_create)(comm, part, &flat); rc != MPI_SUCCESS) return rc;
  const int rc = NATIVE(Cart_create)(flat, static_cast<int>(kept_dims.size()), kept_dims.data(), kept_periods.data(), 0, made_comm);
  NATIVE(Comm_free)(&flat);
  return made(*r, rc, made_comm);
}

// Collective over the group only (code: MPICH 3, src/mpi/comm/comm_create_group.c), once its members have synchronized.
DEFINE(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made_comm)) {
  const Call r("MPI_Comm_create_group");
  if (!r) return NATIVE(Comm_create_group)(comm, group, tag, made_comm);
  {
    const Gratis free;
    if (const int rc = made(*r, NATIVE(Comm_create)(comm, group, made_comm), made_comm); rc != MPI_SUCCESS) return rc;
  }
  if (*made_comm != MPI_COMM_NULL) agree(*r, r->comm(*made_comm), false);
  return MPI_SUCCESS;
}

DEFINE(Comm_free, (MPI_Comm * comm)) {
  const Call r("MPI_Comm_free");
  if (r) r->forget(*comm);
  return NATIVE(Comm_free)(comm);
}

}  // namespace retrompi::online
