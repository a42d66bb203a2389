// The identity of requests (part of our extension): which call returned one, which completed it, and what a wildcard receive matched.
#include "trace/parser.hpp"

namespace retrompi::parsing {

// A persistent request is in use until it is freed.
bool Parser::in_use(const Pending &p) const {
  if (p.persistent) return true;
  const Extension &ext = *state_[static_cast<size_t>(rank_)].more;
  return p.active && !p.doubtful && p.order >= ext.all_complete && p.order >= ext.doubtful;
}

void Parser::take_request(const Word &word, Action &a) {
  a.request = attribute(Key::Req, 1);
  Extension &ext = more();
  const auto [entry, fresh] = ext.requests.try_emplace(a.request);
  forget_wild(entry->second);
  if (!fresh && in_use(entry->second))
    fail("request " + std::to_string(a.request) + " of " + quoted(word.name) + " is in use since line " + std::to_string(entry->second.line));
  const bool persistent = is_persistent(a.op);
  const auto *message = a.get_if<action::PointToPoint>();
  const int32_t source = message != nullptr ? message->peer : 0, tag = message != nullptr ? message->tag : 0;
  entry->second = {.index = next_index(),
                   .line = line_,
                   .order = ext.order++,
                   .source = source,
                   .tag = tag,
                   .comm = here_,
                   .receive = is_receive(a.op),
                   .persistent = persistent,
                   .active = !persistent};
  // The matches of a persistent receive belong to its starts, of which there may be several while it is open.
  entry->second.wild = is_receive(a.op) && !persistent && (source == ANY_SOURCE || tag == ANY_TAG) && !a.matched();
  ext.wild += entry->second.wild;
}

Pending &Parser::outstanding(int32_t req) {
  Extension &ext = more();
  const auto found = ext.requests.find(req);
  const bool open = found != ext.requests.end() && (found->second.persistent || (found->second.active && found->second.order >= ext.all_complete));
  if (!open) fail("request " + std::to_string(req) + " is not outstanding: no call of this rank has returned it, or it is complete");
  return found->second;
}

// A waitall that names no request has completed all before it.
void Parser::forget_wild(const Pending &p) {
  Extension &ext = more();
  if (p.wild && p.order >= ext.all_complete) --ext.wild;
}

void Parser::complete(int32_t req, Pending &p) {
  forget_wild(p);
  if (p.persistent)
    p.active = p.doubtful = false;
  else
    more().requests.erase(req);
}

void Parser::restart(Pending &p, int32_t req) {
  Extension &ext = more();
  if (!p.persistent) fail("request " + std::to_string(req) + " is not persistent");
  if (p.active && !p.doubtful && p.order >= ext.all_complete && p.order >= ext.doubtful)
    fail("request " + std::to_string(req) + " is started already, in line " + std::to_string(p.line));
  p.active = true;
  p.doubtful = false;
  p.index = next_index();
  p.order = ext.order++;
}

// wait, test, start, requestFree
void Parser::one_request(Action &a) {
  const bool told = a.op == Op::Test && given_.has(Key::Flag);
  if (told) a.flags |= static_cast<uint8_t>(FLAG_TOLD | (flag() ? FLAG_DONE : 0));
  const bool matched = given_.has(Key::From) || given_.has(Key::Mtag);
  if (matched && a.op == Op::Test && (a.flags & FLAG_DONE) == 0) fail("from= and mtag= are of a message that has come: flag=1 is missing");
  if (!given_.has(Key::Req)) {
    if (matched) fail("from= and mtag= need req=, and the receive as well: which one matched is not told by its key");
    // It completes one of those filed under its key, possibly one with an identity.
    if (Extension *ext = state_[static_cast<size_t>(rank_)].more.get(); ext != nullptr && (a.op == Op::Wait || a.op == Op::Test))
      ext->doubtful = ext->order;
    return;
  }
  a.request = attribute(Key::Req, 1);
  Pending &p = outstanding(a.request);
  Match m = own_match();
  switch (a.op) {
    case Op::Start:
      restart(p, a.request);
      if (matched) {
        if (!p.receive) fail("'from=' and 'mtag=' are of a receive");
        fill_match(m, p.source, p.tag, *p.comm);
        put_match(a, m);
      }
      break;
    case Op::RequestFree:
      forget_wild(p);
      more().requests.erase(a.request);
      break;
    default:
      if (a.op == Op::Test && !told) {
        p.doubtful = true;
      } else if (a.op == Op::Wait || (a.flags & FLAG_DONE) != 0) {
        m.req = a.request;
        if (matched) match(p, m);
        complete(a.request, p);
      }
  }
}

// waitall, waitany, waitsome, testall, testany, testsome, startall
void Parser::several_requests(const Word &word, Action &a) {
  Extension *const ext = state_[static_cast<size_t>(rank_)].more.get();
  if (!given_.has(Key::Reqs)) {
    if ((given_.mask & ~bit(Key::Flag)) != 0) fail("'reqs=' is missing: done=, from= and mtag= are of the requests that it names");
    if (given_.has(Key::Flag)) a.flags |= static_cast<uint8_t>(FLAG_TOLD | (flag() ? FLAG_DONE : 0));
    if (ext == nullptr || a.op == Op::Startall) return;
    if (a.op == Op::Waitall || (a.flags & FLAG_DONE) != 0)
      ext->all_complete = ext->order, ext->wild = 0;
    else if ((a.flags & FLAG_TOLD) == 0)
      ext->doubtful = ext->order;
    return;
  }
  const std::vector<int32_t> reqs = list(Key::Reqs, 1);
  std::vector<int32_t> sorted = reqs;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    fail("request " + std::to_string(*twice) + " stands twice in 'reqs='");
  auto &x = a.get<action::SeveralRequests>();
  x.count = static_cast<int64_t>(reqs.size());
  std::vector<int64_t> kept(reqs.begin(), reqs.end());
  if (a.op == Op::Startall) {
    for (const int32_t r : reqs) restart(outstanding(r), r);
    for (const Match &m : matches(sorted)) {
      Match whole = m;
      const Pending &p = outstanding(m.req);
      if (!p.receive) fail("'from=' and 'mtag=' are of receives, request " + std::to_string(m.req) + " is not");
      fill_match(whole, p.source, p.tag, *p.comm);
      if (!whole.wild) continue;
      kept.insert(kept.end(), {whole.req, whole.source, whole.tag});
      a.flags |= FLAG_MATCHED;
      ++x.completed;
    }
    x.list = store(std::move(kept));
    return;
  }
  std::vector<int32_t> done;
  bool known = true;
  if (a.op == Op::Waitall) {
    done = reqs;
  } else if (given_.has(Key::Done)) {
    done = list(Key::Done, 1);
    if (given_.has(Key::Flag) && flag() == done.empty() && !reqs.empty()) fail("'done=' and 'flag=' say different things");
  } else if (given_.has(Key::Flag)) {
    if (flag()) done = reqs;
  } else {
    known = false;
  }
  std::vector<int32_t> among = done;
  std::sort(among.begin(), among.end());
  for (size_t i = 0; i < among.size(); ++i)
    if (!std::binary_search(sorted.begin(), sorted.end(), among[i]) || (i > 0 && among[i] == among[i - 1]))
      fail("request " + std::to_string(among[i]) + " of 'done=' is not once in 'reqs='");
  if ((a.op == Op::Waitany || a.op == Op::Testany) && done.size() > 1)
    fail(quoted(word.name) + " completes one request, 'done=' names " + std::to_string(done.size()));
  if (a.op == Op::Testall && !done.empty() && done.size() != reqs.size()) fail("'testall' completes all of its requests or none");
  for (const int32_t r : reqs) outstanding(r).doubtful |= !known;
  for (const Match &m : matches(among)) match(outstanding(m.req), m);
  for (const int32_t r : done) complete(r, outstanding(r));
  if (a.op != Op::Waitall && known) {
    a.flags |= FLAG_TOLD;
    const bool test = a.op != Op::Waitany && a.op != Op::Waitsome;
    if (test && (!done.empty() || (given_.has(Key::Flag) && flag()))) a.flags |= FLAG_DONE;
    kept.insert(kept.end(), done.begin(), done.end());
    x.completed = static_cast<int64_t>(done.size());
  }
  x.list = store(std::move(kept));
}

// from= and mtag= of a line that refers to one message
Parser::Match Parser::own_match() const {
  Match m;
  if (given_.has(Key::From)) {
    m.has_source = true;
    m.source = attribute(Key::From, 0);
    member(m.source, given_[Key::From], "the source that matched, rank");
  }
  if (given_.has(Key::Mtag)) {
    m.has_tag = true;
    m.tag = attribute(Key::Mtag, 0);
  }
  return m;
}

// from= and mtag= by request, in the order of their identities; each must be one of `among`, which is sorted
std::vector<Parser::Match> Parser::matches(const std::vector<int32_t> &among) const {
  std::vector<Match> out;
  const auto belongs = [&](int32_t req, const char *key) {
    if (!std::binary_search(among.begin(), among.end(), req))
      fail("request " + std::to_string(req) + " of '" + key + "=' is not among those that this call completes or starts");
  };
  if (given_.has(Key::From)) {
    for (const auto &[req, source] : pairs(Key::From, 0)) {
      belongs(req, "from");
      member(source, std::to_string(source), "the source that matched, rank");
      Match &m = out.emplace_back();
      m.req = req;
      m.has_source = true;
      m.source = source;
    }
  }
  if (given_.has(Key::Mtag)) {
    const size_t sources = out.size();
    size_t at = 0;  // both lists are sorted
    for (const auto &[req, tag] : pairs(Key::Mtag, 0)) {
      belongs(req, "mtag");
      while (at < sources && out[at].req < req) ++at;
      Match &m = at < sources && out[at].req == req ? out[at] : out.emplace_back();
      m.req = req;
      m.has_tag = true;
      m.tag = tag;
    }
    std::sort(out.begin(), out.end(), [](const Match &x, const Match &y) { return x.req < y.req; });
  }
  return out;
}

// The match on the line must agree with the receive's arguments, and is required where these are wildcards.
void Parser::fill_match(Match &m, int32_t source, int32_t tag, const Membership &comm) {
  m.wild = source == ANY_SOURCE || tag == ANY_TAG;
  if (source == ANY_SOURCE) {
    if (!m.has_source) fail("'from=' is missing: the receive is from any source");
    if (!is_member(comm, m.source)) fail("the source that matched, rank " + std::to_string(m.source) + ", is not in the receive's communicator");
  } else if (m.has_source && m.source != source) {
    fail("the receive is from rank " + std::to_string(source) + ", but 'from=' says " + std::to_string(m.source));
  } else {
    m.source = source;
  }
  if (tag == ANY_TAG) {
    if (!m.has_tag) fail("'mtag=' is missing: the receive is of any tag");
  } else if (m.has_tag && m.tag != tag) {
    fail("the receive is of tag " + std::to_string(tag) + ", but 'mtag=' says " + std::to_string(m.tag));
  } else {
    m.tag = tag;
  }
}

// Where an action stores the match of its receive or probe.
static action::Envelope &matched_of(Action &a) {
  switch (a.kind()) {
    case ActionKind::OneRequest:
      return a.get<action::OneRequest>().matched;
    case ActionKind::SendReceive:
      return a.get<action::SendReceive>().matched;
    default:
      return a.get<action::PointToPoint>().matched;
  }
}

void Parser::put_match(Action &a, const Match &m) {
  if (!m.wild) return;
  a.flags |= FLAG_MATCHED;
  matched_of(a) = {m.source, m.tag};
}

// A line that completes a receive states its match, which is stored with the action that posted or started it.
void Parser::match(const Pending &p, Match m) {
  const std::string name = "request " + std::to_string(m.req);
  if (!p.receive) fail("'from=' or 'mtag=' of " + name + ", which is not of a receive");
  if (p.persistent && !p.active) fail("'from=' or 'mtag=' of " + name + ", which no line that names it has started");
  fill_match(m, p.source, p.tag, *p.comm);
  if (!m.wild) return;
  const auto rank = static_cast<size_t>(rank_);
  Action a = action(rank, p.index);
  const auto again = [&](int64_t source, int64_t tag) {
    if (source != m.source || tag != m.tag)
      fail("what " + name + " matched is told a second time, and otherwise than in line " + std::to_string(a.line));
  };
  if (a.op == Op::Startall) {
    auto &x = a.get<action::SeveralRequests>();
    const std::vector<int64_t> &now = trace_.vec[static_cast<size_t>(x.list)];
    for (size_t i = static_cast<size_t>(x.count); i + 2 < now.size(); i += 3)
      if (now[i] == m.req) return again(now[i + 1], now[i + 2]);
    if (!a.matched()) {  // other lines may share the vector
      std::vector<int64_t> copy = now;
      trace_.vec.push_back(std::move(copy));
      x.list = static_cast<int32_t>(trace_.vec.size() - 1);
    }
    std::vector<int64_t> &own = trace_.vec[static_cast<size_t>(x.list)];
    own.insert(own.end(), {m.req, m.source, m.tag});
    ++x.completed;
    a.flags |= FLAG_MATCHED;
  } else if (a.matched()) {
    const action::Envelope &now = matched_of(a);
    return again(now.source, now.tag);
  } else {
    put_match(a, m);
  }
  replace(rank, p.index, a);
}

// from= and mtag= on the receive, probe or sendRecv itself; also of an irecv, where to_ti writes it
void Parser::direct_match(Action &a, int32_t source, int32_t tag) {
  const bool probe = a.op == Op::Iprobe;
  if (probe && given_.has(Key::Flag)) a.flags |= static_cast<uint8_t>(FLAG_TOLD | (flag() ? FLAG_DONE : 0));
  if (!given_.has(Key::From) && !given_.has(Key::Mtag)) return;
  if (probe && (a.flags & FLAG_TOLD) != 0 && (a.flags & FLAG_DONE) == 0) fail("'from=' and 'mtag=' are of a message that has come, but flag=0");
  Match m = own_match();
  fill_match(m, source, tag, *here_);
  put_match(a, m);
}

}  // namespace retrompi::parsing
