// Requests: waiting, testing, starting, freeing. A request is known by its identity (`req=`) or, where the trace has none, by its key, as
// SMPI's replay files them. What a trace says of an outcome is followed: the recorded one completes, and the rank waits for it if need be.
#include "mpi/rank.hpp"

namespace retrompi {

void Rank::file(Request& r, int32_t req) {
  if (r.kind == Request::Send)
    r.src = id, r.dst = r.peer;
  else
    r.src = r.peer, r.dst = id;
  store_.push_back({r.src, r.dst, r.tag, req, &r});
}

Request* Rank::filed(const Action& a, bool& marker) {
  marker = false;
  if (a.request > 0) return store_[listed(a, a.request)].r;
  const auto& x = a.get<action::OneRequest>();
  for (size_t i = 0; i < store_.size(); ++i) {
    Filed& f = store_[i];
    if (f.src != x.source || f.dst != x.destination || f.tag != x.tag) continue;
    if (!f.r) {  // completed by a test: this is the wait that belongs to it
      store_.erase(store_.begin() + static_cast<std::ptrdiff_t>(i));
      marker = true;
      return nullptr;
    }
    if (f.r->persistent && !f.r->active && a.op != Op::Start && a.op != Op::RequestFree) continue;
    return f.r;
  }
  return nullptr;
}

size_t Rank::place(const Request& r) const {
  size_t i = 0;
  while (store_[i].r != &r) ++i;
  return i;
}

/// Where the request of this identity is filed; most often the one after the last that was asked for.
size_t Rank::listed(const Action& a, int64_t req, size_t hint) const {
  for (size_t k = 0; k < store_.size(); ++k) {
    const size_t i = hint + k < store_.size() ? hint + k : hint + k - store_.size();
    if (store_[i].req == req) return i;
  }
  bad(a, "request " + std::to_string(req) + " is not outstanding on rank " + std::to_string(id));
}

void Rank::settle(size_t i) {
  Request* r = store_[i].r;
  if (r && r->persistent) {
    r->active = false;
    return;
  }
  if (r) drop(*r);
  store_.erase(store_.begin() + static_cast<std::ptrdiff_t>(i));
}

/// Settles the requests that are complete, or the first of them only.
void Rank::settle_complete(bool one) {
  for (size_t i = 0; i < store_.size();) {
    const Request* r = store_[i].r;
    if (!r || !r->active || !r->done) {
      ++i;
      continue;
    }
    const bool stays = r->persistent;
    settle(i);
    if (one) return;
    if (stays) ++i;
  }
}

/// A persistent request; what is filed keeps the wildcards that a recorded match replaces.
Task Rank::start(size_t i, std::optional<action::Envelope> matched) {
  const Filed& f = store_[i];
  Request& r = *f.r;
  r.active = true;
  if (r.kind == Request::Send) return isend(f.dst, f.tag, r.ctx, r.bytes, r.mode, r);
  const action::Envelope from = matched && !job_.free_wildcards ? *matched : action::Envelope{f.src, f.tag};
  return irecv(from.source, from.tag, r.ctx, r.bytes, r);
}

Task Rank::wait_for(const Action& a) {
  bool marker = false;
  Request* r = filed(a, marker);
  if (!r) {
    // As in SMPI's replay: a key without a request was completed earlier, unless the rank never filed any request.
    if (!marker && store_.empty()) bad(a, "no request is outstanding on rank " + std::to_string(id));
    co_return;
  }
  if (r->persistent && !r->active) co_return;  // MPI 1.1, 3.9: returns at once
  co_await wait(*r);
  settle(place(*r));
}

Task Rank::test(const Action& a) {
  bool marker = false;
  Request* r = filed(a, marker);
  const auto& x = a.get<action::OneRequest>();
  if (marker) store_.push_back({x.source, x.destination, x.tag, 0, nullptr});
  co_await library_call(spec_.test_cpu);
  co_await progress();
  if (!r) co_return;
  if (a.told()) {
    if (!a.done()) co_return;
    if (!r->persistent || r->active) co_await wait(*r);
  }
  if (!r->done) co_return;
  const size_t i = place(*r);
  if (a.request == 0 && !r->persistent) {
    store_[i].r = nullptr;
    drop(*r);
  } else {
    settle(i);
  }
}

/// The line names its requests, and which of them it completed (Waitall: all of them).
Task Rank::completion_of_listed(const Action& a) {
  const auto& x = a.get<action::SeveralRequests>();
  const auto& list = job_.trace.vec[static_cast<size_t>(x.list)];
  const std::span<const int64_t> all(list.data(), static_cast<size_t>(x.count));
  std::span<const int64_t> done(list.data() + x.count, static_cast<size_t>(x.completed));
  const bool looks = a.op == Op::Testall || a.op == Op::Testany || a.op == Op::Testsome;
  if (looks) {
    co_await library_call(spec_.test_cpu);
    co_await progress();
  }
  auto active = [](const Request& r) { return !r.persistent || r.active; };
  std::vector<int64_t> found;
  if (a.op == Op::Waitall || (a.op == Op::Testall && a.done())) {
    done = all;
  } else if (!a.told()) {
    // Nobody says how it ended: whatever is complete now.
    std::vector<Request*> rs;
    size_t at = 0;
    for (const int64_t req : all) rs.push_back(store_[at = listed(a, req, at)].r);
    auto complete = [&active](const Request* r) { return active(*r) && r->done; };
    if (!looks && std::any_of(rs.begin(), rs.end(), [&active](const Request* r) { return active(*r); }))
      co_await until([&] { return std::any_of(rs.begin(), rs.end(), complete); }, spec_.recv_wait, true);
    const bool one = a.op == Op::Waitany || a.op == Op::Testany;
    if (a.op != Op::Testall || std::all_of(rs.begin(), rs.end(), [](const Request* r) { return r->done; }))
      for (size_t i = 0; i < rs.size() && !(one && !found.empty()); ++i)
        if (complete(rs[i])) found.push_back(all[i]);
    done = found;
  }
  size_t at = 0;
  std::vector<size_t> settled;
  for (const int64_t req : done) {
    at = listed(a, req, at);
    Request& r = *store_[at].r;
    if (!active(r)) continue;
    co_await wait(r);
    if (r.persistent) {
      r.active = false;
    } else {
      drop(r);
      settled.push_back(at);
    }
  }
  if (settled.empty()) co_return;
  std::sort(settled.begin(), settled.end());
  size_t next = 0, to = settled.front();
  for (size_t i = to; i < store_.size(); ++i) {
    if (next < settled.size() && settled[next] == i)
      ++next;
    else
      store_[to++] = store_[i];
  }
  store_.resize(to);
}

/// The line names no request: it is about every one that is outstanding.
Task Rank::completion_of_all(const Action& a) {
  switch (a.op) {
    case Op::Waitall:
      for (size_t i = 0; i < store_.size(); ++i)
        if (store_[i].r && (!store_[i].r->persistent || store_[i].r->active)) co_await wait(*store_[i].r);
      for (size_t i = store_.size(); i-- > 0;) settle(i);
      break;
    case Op::Waitany:
    case Op::Waitsome: {
      auto ready = [this] { return std::any_of(store_.begin(), store_.end(), [](const Filed& f) { return f.r && f.r->active && f.r->done; }); };
      const bool any = std::any_of(store_.begin(), store_.end(), [](const Filed& f) { return f.r && f.r->active; });
      if (!any) break;  // MPI 1.1, 3.7.5: no active request, returns at once
      co_await until(ready, spec_.recv_wait, true);
      settle_complete(a.op == Op::Waitany);
      break;
    }
    default: {  // Testall, Testany, Testsome
      co_await library_call(spec_.test_cpu);
      co_await progress();
      if (a.told()) {
        if (!a.done()) break;
        if (a.op == Op::Testall)
          for (size_t i = 0; i < store_.size(); ++i)
            if (store_[i].r && store_[i].r->active) co_await wait(*store_[i].r);
      }
      auto open = [](const Filed& f) { return f.r && f.r->active && !f.r->done; };
      if (a.op == Op::Testall && std::any_of(store_.begin(), store_.end(), open)) break;
      settle_complete(a.op == Op::Testany);
    }
  }
}

Task Rank::start_listed(const Action& a) {
  const auto& x = a.get<action::SeveralRequests>();
  if (x.list < 0) {
    for (size_t i = 0; i < store_.size(); ++i)
      if (store_[i].r && store_[i].r->persistent && !store_[i].r->active) co_await start(i, {});
    co_return;
  }
  const auto& list = job_.trace.vec[static_cast<size_t>(x.list)];
  size_t at = 0;
  for (int64_t k = 0; k < x.count; ++k) {
    const int64_t req = list[static_cast<size_t>(k)];
    at = listed(a, req, at);
    if (!store_[at].r->persistent) bad(a, "request " + std::to_string(req) + " is not persistent");
    std::optional<action::Envelope> matched;
    if (a.matched())
      for (int64_t j = 0; j < x.completed; ++j) {
        const int64_t* m = list.data() + x.count + 3 * j;
        if (m[0] == req) matched = action::Envelope{static_cast<int32_t>(m[1]), static_cast<int32_t>(m[2])};
      }
    co_await start(at, matched);
  }
}

/// MPI lets an active one complete; it is gone for the program at once.
Task Rank::release(const Action& a) {
  bool marker = false;
  Request* r = filed(a, marker);
  if (!r) bad(a, "no request of this key");
  const size_t i = place(*r);
  store_.erase(store_.begin() + static_cast<std::ptrdiff_t>(i));
  if (r->done || !r->active)
    drop(*r);
  else
    r->detached = true;
  co_return;
}

Task Rank::completion(const Action& a) {
  switch (a.op) {
    case Op::Wait:
      return wait_for(a);
    case Op::Test:
      return test(a);
    case Op::Startall:
      return start_listed(a);
    case Op::RequestFree:
      return release(a);
    case Op::Start: {
      bool marker = false;
      Request* r = filed(a, marker);
      if (!r || !r->persistent) bad(a, "no persistent request of this key");
      std::optional<action::Envelope> matched;
      if (a.matched()) matched = a.get<action::OneRequest>().matched;
      return start(place(*r), matched);
    }
    default:
      return a.get<action::SeveralRequests>().list >= 0 ? completion_of_listed(a) : completion_of_all(a);
  }
}

}  // namespace retrompi
