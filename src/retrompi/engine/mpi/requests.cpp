#include "mpi/requests.hpp"

#include "mpi/rank.hpp"

namespace retrompi {

void RequestTable::file(Request& r, int32_t req) {
  if (r.kind == Request::Send)
    r.src = rank_.id, r.dst = r.peer;
  else
    r.src = r.peer, r.dst = rank_.id;
  filed_.push_back({r.src, r.dst, r.tag, req, &r});
}

Request* RequestTable::find(const Action& a, bool& marker) {
  marker = false;
  if (a.request > 0) {
    marker = a.op != Op::Start && a.op != Op::RequestFree && place_of(a.request) == kNone;
    return marker ? nullptr : filed_[index_of(a, a.request)].r;
  }
  const auto& x = a.get<action::OneRequest>();
  for (size_t i = 0; i < filed_.size(); ++i) {
    Filed& f = filed_[i];
    if (f.src != x.source || f.dst != x.destination || f.tag != x.tag) continue;
    if (a.op == Op::Start) {  // the first that can be started: MPI 1.1, 3.9 allows no start of an active one
      if (f.r && f.r->persistent && !f.r->active) return f.r;
      continue;
    }
    if (!f.r) {  // completed by a test: this is the wait that belongs to it
      const bool past = posted_since(i);
      filed_.erase(filed_.begin() + static_cast<std::ptrdiff_t>(i));
      if (past) {
        --i;
        continue;
      }
      marker = true;
      return nullptr;
    }
    if (f.r->persistent && !f.r->active && a.op != Op::RequestFree) continue;
    return f.r;
  }
  return nullptr;
}

/// Whether a call with this key is not about the request that a test completed: that is known of a recorded success, after which the program
/// has no such request any more, where another has been posted. Of a test without a record it is not known; SMPI's replay takes the older.
bool RequestTable::posted_since(size_t mark) const {
  const Filed& f = filed_[mark];
  return f.req == kSucceeded && std::any_of(filed_.begin() + static_cast<std::ptrdiff_t>(mark) + 1, filed_.end(), [&f](const Filed& later) {
           return later.r && later.src == f.src && later.dst == f.dst && later.tag == f.tag && (!later.r->persistent || later.r->active);
         });
}

size_t RequestTable::index_of(const Request& r) const {
  size_t i = 0;
  while (filed_[i].r != &r) {
    ++i;
    RETROMPI_ASSERT(i < filed_.size());
  }
  return i;
}

/// Where the request of this identity is filed; most often right after the last one looked up.
size_t RequestTable::place_of(int64_t req, size_t hint) const {
  for (size_t k = 0; k < filed_.size(); ++k) {
    const size_t i = hint + k < filed_.size() ? hint + k : hint + k - filed_.size();
    if (filed_[i].req == req) return i;
  }
  return kNone;
}

size_t RequestTable::index_of(const Action& a, int64_t req, size_t hint) const {
  const size_t i = place_of(req, hint);
  if (i == kNone) rank_.fail(a, "request " + std::to_string(req) + " is not outstanding on rank " + std::to_string(rank_.id));
  return i;
}

void RequestTable::retire(size_t i) {
  Request* r = filed_[i].r;
  if (r && r->persistent) {
    r->active = false;
    return;
  }
  if (r) rank_.job.free_request(*r);
  filed_.erase(filed_.begin() + static_cast<std::ptrdiff_t>(i));
}

/// Retires the requests that are complete, or the first of them only.
void RequestTable::retire_complete(bool one) {
  for (size_t i = 0; i < filed_.size();) {
    const Request* r = filed_[i].r;
    if (!r || !r->active || !r->done) {
      ++i;
      continue;
    }
    const bool stays = r->persistent;
    retire(i);
    if (one) return;
    if (stays) ++i;
  }
}

/// A persistent request; the filed one keeps the wildcards that a recorded match replaces.
Task RequestTable::start(size_t i, std::optional<action::Envelope> matched) {
  const Filed& f = filed_[i];
  Request& r = *f.r;
  r.active = true;
  if (r.kind == Request::Send) return rank_.sender.isend(f.dst, f.tag, r.ctx, r.bytes, r.mode, r);
  const action::Envelope from = matched && !rank_.job.free_wildcards ? *matched : action::Envelope{f.src, f.tag};
  return rank_.receiver.irecv(from.source, from.tag, r.ctx, r.bytes, r);
}

Task RequestTable::wait_for(const Action& a) {
  bool marker = false;
  Request* r = find(a, marker);
  if (!r) {
    // As in SMPI's replay: a key without a request was completed earlier, unless the rank never filed any request.
    if (!marker && filed_.empty()) rank_.fail(a, "no request is outstanding on rank " + std::to_string(rank_.id));
    co_return;
  }
  if (r->persistent && !r->active) co_return;  // MPI 1.1, 3.9: returns at once
  const SiteOf here([&](State& s) { put_request(s, r); });
  co_await Task::At{here};
  co_await rank_.wait(*r);
  retire(index_of(*r));
}

Task RequestTable::test(const Action& a) {
  bool marker = false;
  Request* r = find(a, marker);
  const auto& x = a.get<action::OneRequest>();
  const int32_t mark = a.told() && a.done() ? kSucceeded : 0;  // takes the place of its number, which may be given to another
  if (marker && a.request == 0) filed_.push_back({x.source, x.destination, x.tag, mark, nullptr});
  co_await rank_.library_call(rank_number::test);
  co_await rank_.progress();
  if (!r) co_return;
  if (a.told()) {
    if (!a.done()) co_return;
    if (!r->persistent || r->active) co_await rank_.wait(*r);
  }
  if (!r->done) co_return;
  const size_t i = index_of(*r);
  if (a.request == 0 && !r->persistent) {
    filed_[i].r = nullptr;
    filed_[i].req = mark;
    rank_.job.free_request(*r);
  } else {
    retire(i);
  }
}

/// The line names its requests and those that it completed (Waitall: all of them).
Task RequestTable::complete_listed(const Action& a) {
  const auto& x = a.get<action::SeveralRequests>();
  const auto& list = rank_.job.vector(x.list);
  const std::span<const int64_t> all(list.data(), static_cast<size_t>(x.count));
  std::span<const int64_t> done(list.data() + x.count, static_cast<size_t>(x.completed));
  const bool looks = a.op == Op::Testall || a.op == Op::Testany || a.op == Op::Testsome;
  if (looks) {
    co_await rank_.library_call(rank_number::test);
    co_await rank_.progress();
  }
  auto active = [](const Request& r) { return !r.persistent || r.active; };
  std::vector<int64_t> found;
  if (a.op == Op::Waitall || (a.op == Op::Testall && a.done())) {
    done = all;
  } else if (!a.told()) {
    // The outcome is not recorded: take what is complete now.
    std::vector<Request*> rs;
    size_t at = 0;
    std::vector<int64_t> named;
    for (const int64_t req : all)
      if (const size_t i = place_of(req, at); i != kNone) {
        rs.push_back(filed_[at = i].r);
        named.push_back(req);
      }
    auto complete = [&active](const Request* r) { return active(*r) && r->done; };
    if (!looks && std::any_of(rs.begin(), rs.end(), [&active](const Request* r) { return active(*r); }))
      co_await rank_.until([&] { return std::any_of(rs.begin(), rs.end(), complete); }, rank_.spec.recv_wait, true);
    const bool one = a.op == Op::Waitany || a.op == Op::Testany;
    if (a.op != Op::Testall || std::all_of(rs.begin(), rs.end(), [](const Request* r) { return r->done; }))
      for (size_t i = 0; i < rs.size() && !(one && !found.empty()); ++i)
        if (complete(rs[i])) found.push_back(named[i]);
    done = found;
  }
  size_t at = 0, known = 0;
  std::vector<size_t> complete_at;
  const SiteOf here([&](State& s) {
    s.put(done.size());
    s.put(known);
    s.put(at);
    for (const size_t each : complete_at) s.put(each);
  });
  co_await Task::At{here};
  for (const int64_t req : done) {
    ++known;
    const size_t i = place_of(req, at);
    if (i == kNone) continue;
    at = i;
    Request& r = *filed_[at].r;
    if (!active(r)) continue;
    co_await rank_.wait(r);
    if (r.persistent) {
      r.active = false;
    } else {
      rank_.job.free_request(r);
      complete_at.push_back(at);
    }
  }
  take_out(std::move(complete_at));
}

void RequestTable::take_out(std::vector<size_t> indices) {
  if (indices.empty()) return;
  std::sort(indices.begin(), indices.end());
  size_t next = 0, to = indices.front();
  for (size_t i = to; i < filed_.size(); ++i) {
    if (next < indices.size() && indices[next] == i)
      ++next;
    else
      filed_[to++] = filed_[i];
  }
  filed_.resize(to);
}

/// The next requests will be looked at: their state comes into the cache.
void RequestTable::fetch_from(size_t i) const {
  constexpr size_t kAhead = 8;
  for (const size_t end = std::min(i + kAhead, filed_.size()); i < end; ++i) fetch_lines(filed_[i].r, 2);
}

/// The line names no request: it refers to all outstanding ones.
Task RequestTable::complete_all(const Action& a) {
  size_t i = 0;
  const SiteOf here([&](State& s) { s.put(i); });
  co_await Task::At{here};
  switch (a.op) {
    case Op::Waitall:
      fetch_from(0);
      for (; i < filed_.size(); ++i) {
        Request* r = filed_[i].r;
        if (!r || r->done || (r->persistent && !r->active)) continue;
        co_await rank_.wait(*r);
        fetch_from(i + 1);
      }
      for (i = filed_.size(); i-- > 0;) retire(i);
      break;
    case Op::Waitany:
    case Op::Waitsome: {
      auto ready = [this] { return std::any_of(filed_.begin(), filed_.end(), [](const Filed& f) { return f.r && f.r->active && f.r->done; }); };
      const bool any = std::any_of(filed_.begin(), filed_.end(), [](const Filed& f) { return f.r && f.r->active; });
      if (!any) break;  // MPI 1.1, 3.7.5: no active request, returns at once
      co_await rank_.until(ready, rank_.spec.recv_wait, true);
      retire_complete(a.op == Op::Waitany);
      break;
    }
    default: {  // Testall, Testany, Testsome
      co_await rank_.library_call(rank_number::test);
      co_await rank_.progress();
      if (a.told()) {
        if (!a.done()) break;
        if (a.op == Op::Testall)
          for (size_t i = 0; i < filed_.size(); ++i)
            if (filed_[i].r && filed_[i].r->active) co_await rank_.wait(*filed_[i].r);
      }
      auto open = [](const Filed& f) { return f.r && f.r->active && !f.r->done; };
      if (a.op == Op::Testall && std::any_of(filed_.begin(), filed_.end(), open)) break;
      retire_complete(a.op == Op::Testany);
    }
  }
}

Task RequestTable::start_listed(const Action& a) {
  const auto& x = a.get<action::SeveralRequests>();
  if (x.list < 0) {
    for (size_t i = 0; i < filed_.size(); ++i)
      if (filed_[i].r && filed_[i].r->persistent && !filed_[i].r->active) co_await start(i, {});
    co_return;
  }
  const auto& list = rank_.job.vector(x.list);
  size_t at = 0;
  for (int64_t k = 0; k < x.count; ++k) {
    const int64_t req = list[static_cast<size_t>(k)];
    at = index_of(a, req, at);
    if (!filed_[at].r->persistent) rank_.fail(a, "request " + std::to_string(req) + " is not persistent");
    if (filed_[at].r->active) rank_.fail(a, "request " + std::to_string(req) + " is started already");
    std::optional<action::Envelope> matched;
    if (a.matched())
      for (int64_t j = 0; j < x.completed; ++j) {
        const int64_t* m = list.data() + x.count + 3 * j;
        if (m[0] == req) matched = action::Envelope{static_cast<int32_t>(m[1]), static_cast<int32_t>(m[2])};
      }
    co_await start(at, matched);
  }
}

/// MPI lets an active request complete; for the program it is gone at once.
void RequestTable::release(const Action& a) {
  bool marker = false;
  Request* r = find(a, marker);
  if (!r) rank_.fail(a, "no request of this key");
  filed_.erase(filed_.begin() + static_cast<std::ptrdiff_t>(index_of(*r)));
  if (r->done || !r->active)
    rank_.job.free_request(*r);
  else
    r->detached = true;
}

Task RequestTable::execute(const Action& a) {
  switch (a.op) {
    case Op::Wait:
      return wait_for(a);
    case Op::Test:
      return test(a);
    case Op::Startall:
      return start_listed(a);
    case Op::RequestFree:
      release(a);
      return {};
    case Op::Start: {
      bool marker = false;
      Request* r = find(a, marker);
      if (!r || !r->persistent) rank_.fail(a, "no inactive persistent request of this key");
      if (r->active) rank_.fail(a, "request " + std::to_string(a.request) + " is started already");
      std::optional<action::Envelope> matched;
      if (a.matched()) matched = a.get<action::OneRequest>().matched;
      return start(index_of(*r), matched);
    }
    default:
      return a.get<action::SeveralRequests>().list >= 0 ? complete_listed(a) : complete_all(a);
  }
}

}  // namespace retrompi
