// Communicators (part of our extension): their creation and their members.
#include <limits>

#include "trace/parser.hpp"

namespace retrompi::parsing {
namespace {

constexpr size_t MOST_EXPANDED = size_t{1} << 28;  // ranks in all groups of a trace that must be expanded one by one

int64_t count_of(const std::vector<Run> &runs) {
  int64_t sum = 0;
  for (const Run &r : runs) sum += r.count;
  return sum;
}

int32_t position(const std::vector<Run> &runs, int32_t rank) {
  int32_t before = 0;
  for (const Run &r : runs) {
    const int64_t ahead = int64_t{rank} - r.first;
    if (r.step == 0 ? ahead == 0 : ahead % r.step == 0 && ahead / r.step >= 0 && ahead / r.step < r.count)
      return before + static_cast<int32_t>(r.step == 0 ? 0 : ahead / r.step);
    before += r.count;
  }
  return -1;
}

}  // namespace

Parser::Parser(Trace &trace, const ReadOptions &options, size_t bytes)
    : trace_(trace), options_(options), n_(static_cast<int32_t>(trace.ranks.size())), state_(trace.ranks.size()) {
  Comm world;
  world.group.resize(static_cast<size_t>(n_));
  for (int32_t r = 0; r < n_; ++r) {
    world.group[static_cast<size_t>(r)] = r;
    state_[static_cast<size_t>(r)].world.me = r;
  }
  trace_.comms.push_back(std::move(world));
  infos_.resize(1);
  infos_[0].defined = static_cast<uint32_t>(n_);
  // Every member creates its communicator by a separate line of at least 12 characters; a truncated trace may lack some.
  members_left_ = bytes / 12 + 16 * static_cast<size_t>(n_) + 4096;
}

void Parser::spend(size_t ranks) {
  spent_ += ranks;
  if (spent_ > MOST_EXPANDED) fail("the groups of this trace name more than 268435456 ranks: write the same group in the same words on all ranks");
}

// R, A-B, A-B:STEP, separated by commas; B may be below A.
std::vector<Run> Parser::group(std::string_view text) const {
  std::vector<Run> runs;
  std::string_view rest = text;
  int64_t total = 0;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t dash = item.find('-');
    const size_t colon = item.find(':');
    int32_t a = 0, b = 0, step = 1;
    bool good = digits_only(item.substr(0, dash)) && to_int(item.substr(0, dash), a);
    if (dash == std::string_view::npos) {
      b = a;
    } else {
      const std::string_view end = item.substr(dash + 1, colon == std::string_view::npos ? colon : colon - dash - 1);
      good = good && (colon == std::string_view::npos || colon > dash) && digits_only(end) && to_int(end, b);
      if (colon != std::string_view::npos) good = good && digits_only(item.substr(colon + 1)) && to_int(item.substr(colon + 1), step) && step > 0;
    }
    if (!good) fail("the group " + quoted(text) + " has " + quoted(item) + " in it; it is a list of R, A-B and A-B:STEP, as in 0,2-5,8-14:2");
    member(a, item, "in the group, rank");
    member(b, item, "in the group, rank");
    const int32_t many = a <= b ? (b - a) / step + 1 : (a - b) / step + 1;
    runs.push_back({a, many == 1 ? 0 : a <= b ? step : -step, many});
    total += many;
    if (total > n_) fail("the group " + quoted(text) + " names more ranks than there are (" + std::to_string(n_) + ")");
    if (comma == std::string_view::npos) return runs;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<int32_t> Parser::expand(const std::vector<Run> &runs, bool beside) {
  if (stamp_.empty()) stamp_.resize(static_cast<size_t>(n_));
  if (!beside) ++stamped_;
  const auto size = static_cast<size_t>(count_of(runs));
  spend(size);
  std::vector<int32_t> out;
  out.reserve(size);
  for (const Run &r : runs)
    for (int32_t i = 0; i < r.count; ++i) {
      const int32_t rank = r.first + i * r.step;
      uint32_t &seen = stamp_[static_cast<size_t>(rank)];
      if (seen == stamped_) fail("rank " + std::to_string(rank) + " stands twice in the group" + (beside ? "s" : ""));
      seen = stamped_;
      out.push_back(rank);
    }
  return out;
}

void Parser::choose_comm() {
  const int32_t id = attribute(Key::Comm, 0);
  if (id == 0) return;
  const auto &own = state_[static_cast<size_t>(rank_)].more;
  const auto found = own ? own->comms.find(id) : decltype(own->comms.find(id)){};
  if (!own || found == own->comms.end()) {
    const std::string what = "communicator " + std::to_string(id);
    if (const auto any = comm_ids_.find(id); any != comm_ids_.end()) {
      const CommInfo &info = infos_[static_cast<size_t>(any->second)];
      fail(what + " is made in " + place_of(info.rank, info.line) + ", but not by rank " + std::to_string(rank_) + " before this line");
    }
    fail("unknown " + what + ": rank " + std::to_string(rank_) + " has not made it before this line (comm_split NEW GROUP and its like)");
  }
  here_ = &found->second;
  if (here_->freed != 0) fail("communicator " + std::to_string(id) + " was freed in line " + std::to_string(here_->freed));
}

int32_t Parser::size_here(bool own) const {
  if (here_->index == 0) return n_;
  const Comm &c = trace_.comms[static_cast<size_t>(here_->index)];
  const bool far = c.kind == Comm::Inter && (own ? here_->side == 1 : here_->side == 0);
  return static_cast<int32_t>(far ? c.remote.size() : c.group.size());
}

int32_t Parser::root_here(int32_t value, std::string_view text) const {
  const Comm &c = trace_.comms[static_cast<size_t>(here_->index)];
  const int32_t size = size_here(false);
  if (value >= 0 && value < size) return value;
  if (c.kind == Comm::Inter) {
    if (value == ROOT || value == PROC_NULL) return value;
    fail("root " + quoted(text) + " is neither a rank of the remote group, 0.." + std::to_string(size - 1) + ", nor -777 (MPI_ROOT) nor -666");
  }
  fail("root " + quoted(text) + " is out of range 0.." + std::to_string(size - 1) + " of communicator " + std::to_string(c.id));
}

// Peers are ranks of the world: whether one belongs to the communicator (Inter: to the other group).
bool Parser::is_member(const Membership &in, int32_t world_rank) {
  if (in.index == 0 || world_rank < 0) return true;
  const Comm &c = trace_.comms[static_cast<size_t>(in.index)];
  const bool other = c.kind == Comm::Inter && in.side == 0;
  CommInfo &info = infos_[static_cast<size_t>(in.index)];
  std::vector<int32_t> &sorted = info.sorted[other ? 1 : 0];
  if (sorted.empty()) {
    sorted = other ? c.remote : c.group;
    std::sort(sorted.begin(), sorted.end());
  }
  return std::binary_search(sorted.begin(), sorted.end(), world_rank);
}

void Parser::require_member(int32_t world_rank, const char *what) {
  if (is_member(*here_, world_rank)) return;
  const Comm &c = trace_.comms[static_cast<size_t>(here_->index)];
  fail(std::string(what) + " " + std::to_string(world_rank) + " is not in " + (c.kind == Comm::Inter ? "the other group of " : "") + "communicator " +
       std::to_string(c.id) + " (peers are ranks of MPI_COMM_WORLD)");
}

// false: the line is one of SMPI's, which has no such field
bool Parser::make_comm(const Word &word, Action &a) {
  const CommHow how = word.how;
  const bool create_inter = how == CommHow::IntercommCreate;
  auto &x = a.get<action::NewComm>();
  x.how = how;
  if ((how == CommHow::Split || how == CommHow::Dup) && given_.mask == 0 && (args_.empty() || (args_.size() == 1 && args_[0] != "-1"))) {
    warn(word.name, "is accepted and ignored, as SMPI does: collectives run on all ranks");
    return false;
  }
  if (args_.empty()) fail_count(word, 1, layout_of(word.form).text);
  const int32_t id = integer(0, "communicator");
  const bool over_inter = inter();
  if (how == CommHow::IntercommMerge && !over_inter) fail("'intercomm_merge' needs comm= of an intercommunicator");
  if (over_inter && (create_inter || how == CommHow::Cart || how == CommHow::Graph))
    fail(quoted(word.name) + " needs comm= of a communicator that is no intercommunicator");
  if (id == -1 && (how == CommHow::Split || how == CommHow::Create || how == CommHow::Cart || how == CommHow::Graph)) {
    at_most(word, 1);
    x.made = -1;
    return true;
  }
  if (id < 1) fail("a communicator is numbered from 1 (-1: this rank gets none), not " + quoted(args_[0]));
  need(word);
  at_most(word);
  const std::string name = "communicator " + std::to_string(id);
  const auto [made, first_time] = more().comms.try_emplace(id);
  Membership &m = made->second;
  if (!first_time) fail(name + " is made a second time by this rank, first in line " + std::to_string(m.line) + "; numbers are not used again");
  const std::vector<Run> own = group(args_[1]);
  const int32_t me = position(own, rank_);
  if (me < 0) fail("rank " + std::to_string(rank_) + " is not in the group " + quoted(args_[1]) + " of the " + name + " that it makes");
  if (over_inter && how != CommHow::Dup && how != CommHow::IntercommMerge)
    refuse(word.name, "making a communicator of an intercommunicator is simulated for comm_dup and intercomm_merge only");

  const auto [entry, fresh] = comm_ids_.try_emplace(id, static_cast<int32_t>(trace_.comms.size()));
  m = {.index = entry->second, .me = me, .line = line_};
  if (fresh) first_definition(word, id, own, m);
  CommInfo &info = infos_[static_cast<size_t>(m.index)];
  Comm &comm = trace_.comms[static_cast<size_t>(m.index)];
  const auto differ = [&](const std::string &what) { fail(name + ": " + what + " differs from that in " + place_of(info.rank, info.line)); };
  if (info.how != how) differ("how it is made, " + quoted(word.name) + ",");
  if (!fresh) {
    if (create_inter) {
      m.side = args_[1] == info.text[1] ? 1 : 0;
      if (args_[1] != info.text[m.side] || args_[2] != info.text[1 - m.side]) {
        const std::vector<int32_t> near = expand(own), far = expand(group(args_[2]));
        m.side = near == comm.group ? 0 : 1;
        if (near != (m.side == 0 ? comm.group : comm.remote) || far != (m.side == 0 ? comm.remote : comm.group))
          differ("the pair of groups " + quoted(args_[1]) + " " + quoted(args_[2]));
      }
    } else {
      m.side = over_inter && how == CommHow::Dup ? here_->side : 0;
      if (!info.known[m.side]) {  // the other side of an intercommunicator's duplicate
        if (expand(own) != (m.side == 0 ? comm.group : comm.remote)) differ("the group " + quoted(args_[1]));
        info.text[m.side] = args_[1];
        info.known[m.side] = true;
      } else if (args_[1] != info.text[m.side] && expand(own) != (m.side == 0 ? comm.group : comm.remote)) {
        differ("the group " + quoted(args_[1]));
      }
    }
  }
  int32_t &parent = info.parent[create_inter ? m.side : 0];
  if (parent < 0) {
    if (create_inter && trace_.comms[static_cast<size_t>(here_->index)].group != (m.side == 0 ? comm.group : comm.remote))
      fail("the local group " + quoted(args_[1]) + " is not that of the local communicator " +
           std::to_string(trace_.comms[static_cast<size_t>(here_->index)].id));
    parent = here_->index;
  } else if (parent != here_->index) {
    differ("its parent, communicator " + std::to_string(trace_.comms[static_cast<size_t>(here_->index)].id) + ",");
  }
  describe_topology(word, info, comm, m, fresh);
  ++info.defined;
  x.made = m.index;
  return true;
}

void Parser::first_definition(const Word &word, int32_t id, const std::vector<Run> &own, Membership &m) {
  const std::string name = "communicator " + std::to_string(id);
  Comm comm;
  comm.id = id;
  CommInfo info;
  info.how = word.how;
  info.rank = rank_;
  info.line = line_;
  const Comm &parent = trace_.comms[static_cast<size_t>(here_->index)];
  const bool copy = word.how == CommHow::Dup;
  std::vector<Run> far;
  if (word.how == CommHow::IntercommCreate) far = group(args_[2]);
  const auto size = static_cast<size_t>(count_of(own) + count_of(far)) + (copy ? parent.remote.size() : 0);
  if (size > members_left_)
    fail(name + " has " + std::to_string(size) + " members, and each of them makes it by a line of its own: this trace is too short for that");
  members_left_ -= size;
  comm.group = expand(own);
  info.text[0] = args_[1];
  info.known[0] = true;
  if (!far.empty()) {
    comm.kind = Comm::Inter;
    comm.remote = expand(far, true);
    info.text[1] = args_[2];
    info.known[1] = true;
    // Which side is `group` must not depend on whose line is read first.
    if (*std::min_element(comm.remote.begin(), comm.remote.end()) < *std::min_element(comm.group.begin(), comm.group.end())) {
      std::swap(comm.group, comm.remote);
      std::swap(info.text[0], info.text[1]);
      m.side = 1;
    }
  }
  if (copy) {
    comm.kind = parent.kind;
    comm.dims = parent.dims;
    comm.periods = parent.periods;
    const bool other = parent.kind == Comm::Inter && here_->side == 1;
    if (comm.group != (other ? parent.remote : parent.group))
      fail("the group " + quoted(args_[1]) + " of " + name + " is not that of communicator " + std::to_string(parent.id) + ", which it duplicates");
    if (parent.kind == Comm::Inter) {
      comm.remote = parent.remote;
      if (other) {
        comm.group = parent.group;
        std::swap(info.text[0], info.text[1]);
        std::swap(info.known[0], info.known[1]);
        m.side = 1;
      }
    }
  }
  if (word.how == CommHow::IntercommMerge && comm.group.size() != parent.group.size() + parent.remote.size())
    fail("the group " + quoted(args_[1]) + " of " + name + " is not both groups of communicator " + std::to_string(parent.id));
  if (word.how == CommHow::Cart) comm.kind = Comm::Cart;
  if (word.how == CommHow::Graph) comm.kind = Comm::Graph;
  if (comm.kind == Comm::Graph) {
    comm.sources.resize(comm.group.size());
    comm.destinations.resize(comm.group.size());
  }
  trace_.comms.push_back(std::move(comm));
  infos_.push_back(std::move(info));
}

void Parser::free_comm(const Word &word) {
  at_most(word);
  if (here_->index == 0) fail("'comm_free' needs comm=, of a communicator that the program has made");
  here_->freed = line_;
}

}  // namespace retrompi::parsing
