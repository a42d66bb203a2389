// Topologies of communicators (part of our extension), and the checks after all lines are read: whether the members agree.
#include "trace/parser.hpp"

namespace retrompi::parsing {

namespace {

constexpr size_t MOST_DIMS = 16;

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
