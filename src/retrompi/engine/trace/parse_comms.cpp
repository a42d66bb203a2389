// Communicators and windows (ours): how they are made, who is in them, and whether their members agree.
#include <limits>

#include "trace/parser.hpp"

namespace retrompi::parsing {
namespace {

constexpr size_t MOST_DIMS = 16;
constexpr size_t MOST_EXPANDED = size_t{1} << 28;  // ranks named by all groups of a trace that have to be looked at one by one

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
  // Every member makes its communicator by a line of its own, of 12 characters at least; a trace that was cut may lack some.
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

// false: the line is one of SMPI's, which say nothing
bool Parser::make_comm(const Word &word, Action &a) {
  const CommHow how = word.how;
  const bool create_inter = how == CommHow::IntercommCreate;
  auto &x = a.get<action::NewComm>();
  x.how = how;
  if ((how == CommHow::Split || how == CommHow::Dup) && given_.mask == 0 && (args_.empty() || (args_.size() == 1 && args_[0] != "-1"))) {
    warn(word.name, "is accepted and ignored, as SMPI does: collectives run on all ranks");
    return false;
  }
  need(word, 1, create_inter ? "NEW LOCALGROUP REMOTEGROUP" : "NEW GROUP");
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
  need(word, create_inter ? 3 : 2, create_inter ? "NEW LOCALGROUP REMOTEGROUP" : "NEW GROUP");
  at_most(word, create_inter ? 3 : 2);
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

void Parser::describe_topology(const Word &word, const CommInfo &info, Comm &comm, Membership &m, bool fresh) {
  if (word.how == CommHow::Dup) {
    m.in = here_->in;
    m.out = here_->out;
    return;
  }
  const auto differ = [&](const char *what) {
    fail("communicator " + std::to_string(comm.id) + ": " + what + " differs from that in " + place_of(info.rank, info.line));
  };
  if (word.how == CommHow::Cart) {
    if (!given_.has(Key::Dims)) fail("'cart_create' needs dims=, as in dims=4x4 periods=1x0");
    const auto numbers = [&](Key key) {
      std::vector<int32_t> out;
      for (std::string_view rest = given_[key];;) {
        const size_t x = rest.find('x');
        int32_t value = 0;
        if (!digits_only(rest.substr(0, x)) || !to_int(rest.substr(0, x), value)) fail_attribute(key, given_[key], "numbers with x between them");
        out.push_back(value);
        if (out.size() > MOST_DIMS) fail("a Cartesian topology of more than " + std::to_string(MOST_DIMS) + " dimensions");
        if (x == std::string_view::npos) return out;
        rest.remove_prefix(x + 1);
      }
    };
    const std::vector<int32_t> dims = numbers(Key::Dims);
    int64_t product = 1;
    for (const int32_t d : dims) {
      product *= d;
      if (product > n_) break;
    }
    if (product != static_cast<int64_t>(comm.group.size()))
      fail("dims=" + std::string(given_[Key::Dims].substr(0, 40)) + " does not make the " + std::to_string(comm.group.size()) +
           " ranks of the group");
    std::vector<uint8_t> periods(dims.size());
    if (given_.has(Key::Periods)) {
      const std::vector<int32_t> read = numbers(Key::Periods);
      if (read.size() != dims.size() || std::any_of(read.begin(), read.end(), [](int32_t p) { return p > 1; }))
        fail_attribute(Key::Periods, given_[Key::Periods], "0 or 1 for each of dims=");
      std::copy(read.begin(), read.end(), periods.begin());
    }
    m.in = m.out = 2 * static_cast<int32_t>(dims.size());
    if (fresh) {
      comm.dims = dims;
      comm.periods = periods;
    } else if (dims != comm.dims || periods != comm.periods) {
      differ("its grid");
    }
  }
  if (word.how == CommHow::Graph) {
    if (!given_.has(Key::In) || !given_.has(Key::Out))
      fail("'graph_create' needs in= and out=, this rank's neighbours as ranks of the new communicator");
    const auto neighbours = [&](Key key) {
      std::vector<int32_t> out = list(key, 0);
      for (const int32_t r : out)
        if (r >= static_cast<int32_t>(comm.group.size())) fail_attribute(key, given_[key], "a list of ranks of the new communicator");
      return out;
    };
    auto &in = comm.sources[static_cast<size_t>(m.me)] = neighbours(Key::In);
    auto &out = comm.destinations[static_cast<size_t>(m.me)] = neighbours(Key::Out);
    m.in = static_cast<int32_t>(in.size());
    m.out = static_cast<int32_t>(out.size());
  }
}

void Parser::free_comm(const Word &word) {
  at_most(word, 0);
  if (here_->index == 0) fail("'comm_free' needs comm=, of a communicator that the program has made");
  here_->freed = line_;
}

// --- windows ---------------------------------------------------------------------------------------------------------------

void Parser::make_window(const Word &word, Action &a) {
  need(word, 2, "WIN BYTES");
  at_most(word, 2);
  auto &x = a.get<action::NewWindow>();
  x.window = integer(0, "window");
  if (x.window < 1) fail("a window is numbered from 1, not " + quoted(args_[0]));
  x.bytes = count(1, "length of the window");
  const auto [own, first_time] = more().windows.try_emplace(x.window);
  if (!first_time)
    fail("window " + std::to_string(x.window) + " is made a second time by this rank, first in line " + std::to_string(own->second.line) +
         "; numbers are not used again");
  own->second = {here_, line_, 0};
  const auto [entry, fresh] = window_ids_.try_emplace(x.window, WindowInfo{here_->index, rank_, line_});
  if (!fresh && entry->second.comm != here_->index)
    fail("window " + std::to_string(x.window) + " is of another communicator in " + place_of(entry->second.rank, entry->second.line));
}

Window &Parser::window(int32_t id) {
  Extension &ext = more();
  const auto found = ext.windows.find(id);
  if (found == ext.windows.end())
    fail("unknown window " + std::to_string(id) + ": rank " + std::to_string(rank_) + " has not made it before this line (win_create WIN BYTES)");
  Window &w = found->second;
  if (w.freed != 0) fail("window " + std::to_string(id) + " was freed in line " + std::to_string(w.freed));
  if (given_.has(Key::Comm) && here_ != w.members) fail("window " + std::to_string(id) + " is not of the communicator that comm= names");
  here_ = w.members;
  return w;
}

void Parser::free_window(const Word &word, Action &a) {
  need(word, 1, "WIN");
  at_most(word, 1);
  const int32_t id = a.get<action::NewWindow>().window = integer(0, "window");
  window(id).freed = line_;
  a.comm = here_->index;
}

bool Parser::window_call(const Word &word, Action &a) {
  int32_t win = 0;
  if (given_.has(Key::Win)) {
    win = attribute(Key::Win, 1);
    window(win);
    a.comm = here_->index;
  } else if (word.reason != nullptr && word.form != Form::OneSided) {
    refuse(word.name, word.reason);
    return false;
  }
  if (word.form == Form::OneSided) {
    auto &x = a.get<action::Rma>();
    x.window = win;
    need(word, 3, "TARGET TAG COUNT [TYPE]");
    x.target = destination(0);
    require_member(x.target, "target");
    x.tag = tag(1, false);
    x.bytes = bytes(count(2, "count"), type(3), word.name, x.target != PROC_NULL);
    at_most(word, 4);
    return true;
  }
  auto &x = a.get<action::WindowSync>();
  x.window = win;
  const auto target = [&] {
    const int32_t value = member(integer(0, "target"), args_[0], "target");
    require_member(value, "target");
    return value;
  };
  switch (word.form) {
    case Form::WinTarget:
      if (win != 0 && (a.op == Op::Unlock || !args_.empty())) {
        need(word, 1, "TARGET");
        x.target = target();
        x.argument = -1;
        at_most(word, 1);
        return true;
      }
      [[fallthrough]];
    case Form::WinAll:
      x.argument = args_.empty() ? -1 : count(0, "count");
      at_most(word, 1);
      return true;
    case Form::WinLock: {
      need(word, 2, "TARGET 0|1");
      x.target = target();
      const int32_t kind = integer(1, "kind of lock");
      if (kind != 0 && kind != 1) fail("the kind of lock is 0 (shared) or 1 (exclusive), not " + quoted(args_[1]));
      x.exclusive = kind == 1;
      at_most(word, 2);
      return true;
    }
    case Form::WinGroup:
      need(word, 1, "GROUP");
      x.ranks = window_group(win);
      at_most(word, 1);
      return true;
    default:
      at_most(word, 0);
      return true;
  }
}

// The GROUP of a Win_post or Win_start, its ranks in Trace::vec; programs repeat the same one.
int32_t Parser::window_group(int32_t win) {
  Extension &ext = more();
  if (ext.group_index < 0 || ext.group != args_[0]) {
    std::vector<int64_t> ranks;
    for (const int32_t r : expand(group(args_[0]))) {
      require_member(r, "rank");
      ranks.push_back(r);
    }
    ext.group = args_[0];
    ext.group_index = store(std::move(ranks));
    ext.group_win = win;
  } else if (ext.group_win != win) {
    for (const int64_t r : trace_.vec[static_cast<size_t>(ext.group_index)]) require_member(static_cast<int32_t>(r), "rank");
    ext.group_win = win;
  }
  return ext.group_index;
}

// --- when all lines are read -----------------------------------------------------------------------------------------------

namespace {

void fill_grid(Comm &c) {
  const size_t n = c.group.size(), dims = c.dims.size();
  c.sources.assign(n, std::vector<int32_t>(2 * dims));
  for (size_t r = 0; r < n; ++r) {
    int64_t below = 1;  // ranks per step in this dimension; the last one varies fastest (MPI 1.1, 6.5)
    for (size_t d = dims; d-- > 0;) {
      const int64_t extent = c.dims[d], at = static_cast<int64_t>(r) / below % extent;
      for (const int64_t way : {-1, 1}) {
        int64_t to = at + way;
        if (c.periods[d] != 0) to = (to + extent) % extent;
        c.sources[r][2 * d + (way > 0 ? 1 : 0)] =
            to < 0 || to >= extent ? PROC_NULL : static_cast<int32_t>(static_cast<int64_t>(r) + (to - at) * below);
      }
      below *= extent;
    }
  }
  c.destinations = c.sources;
}

}  // namespace

void Parser::finish_comms() {
  for (size_t i = 1; i < trace_.comms.size(); ++i) {
    Comm &c = trace_.comms[i];
    const CommInfo &info = infos_[i];
    rank_ = info.rank;
    line_ = info.line;
    source_ = state_[static_cast<size_t>(rank_)].source;
    Action made(Op::CommNew);
    made.get<action::NewComm>().how = info.how;
    const bool whole = info.defined == c.group.size() + c.remote.size();
    for (const auto *group : {&c.group, &c.remote}) {
      for (size_t k = 0; !whole && k < group->size(); ++k) {
        const RankState &s = state_[static_cast<size_t>((*group)[k])];
        if (s.more && s.more->comms.contains(c.id)) continue;
        const std::string what =
            "rank " + std::to_string((*group)[k]) + " is in the group of communicator " + std::to_string(c.id) + " and never makes it";
        if (s.finalize) fail(what);
        warn(word_of(made).name, what);
        break;
      }
    }
    if (c.kind == Comm::Cart && info.how == CommHow::Cart) fill_grid(c);
    if (c.kind == Comm::Graph && info.how == CommHow::Graph && whole) {
      std::vector<std::pair<int32_t, int32_t>> in, out;
      for (size_t r = 0; r < c.group.size(); ++r) {
        for (const int32_t s : c.sources[r]) in.emplace_back(s, static_cast<int32_t>(r));
        for (const int32_t d : c.destinations[r]) out.emplace_back(static_cast<int32_t>(r), d);
      }
      std::sort(in.begin(), in.end());
      std::sort(out.begin(), out.end());
      if (in != out) {
        const auto [x, y] = std::mismatch(in.begin(), in.end(), out.begin(), out.end());
        const bool missing_in = x == in.end() || (y != out.end() && *y < *x);
        const auto edge = missing_in ? *y : *x;
        fail("the graph of communicator " + std::to_string(c.id) + ": rank " + std::to_string(edge.first) + " of it sends to rank " +
             std::to_string(edge.second) + " according to " +
             (missing_in ? "out= of the former, but not to in= of the latter" : "in= of the latter, but not to out= of the former"));
      }
    }
    if (info.how == CommHow::Dup && (c.kind == Comm::Cart || c.kind == Comm::Graph)) {  // a parent stands before its children
      c.sources = trace_.comms[static_cast<size_t>(info.parent[0])].sources;
      c.destinations = trace_.comms[static_cast<size_t>(info.parent[0])].destinations;
    }
  }
}

}  // namespace retrompi::parsing
