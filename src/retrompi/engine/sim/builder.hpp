// The processes of one job and the channels between them, created on demand.
#pragma once
#include <algorithm>
#include <set>

#include "channel/forwarder.hpp"
#include "channel/shared_parts.hpp"
#include "sim/sim.hpp"

namespace retrompi {

class Builder final : public ChannelMaker {
 public:
  Builder(const JobConfig& c, World& w, Job& job) : c_(c), w_(w), job_(job) {}

  /// `placed`: host -> how many ranks of any job have been put on it so far.
  void build(std::vector<int>& placed) {
    const std::set<size_t> mine(c_.placement.begin(), c_.placement.end());
    for (const auto* route : {&c_.same, &c_.remote, &c_.same_bulk})
      for (const HopSpec& h : *route)
        for (const std::string* role : {&common(h).between.from, &common(h).between.to})
          if (*role != "rank") roles_.insert(role->substr(0, role->find('@')));
    for (const std::string& role : roles_)
      for (const size_t h : mine) forwarder(role, h);
    for (size_t r = 0; r < c_.placement.size(); ++r) {
      const size_t h = c_.placement[r];
      auto rank = std::make_unique<Rank>(job_, w_, *w_.hosts[h], h, static_cast<int32_t>(r), c_.rank);
      const int nth = placed[h]++ % w_.hosts[h]->spec.cores;
      rank->core = c_.cores.empty() ? nth : c_.cores[r];
      if (!c_.cores.empty()) rank->thread.pin(rank->core);
      rank->out.made_by(*this, *rank);
      if (!c_.same_bulk.empty()) rank->bulk.made_by(*this, *rank);
      job_.ranks.push_back(rank.get());
      procs_.push_back(rank.get());
      w_.procs.push_back(std::move(rank));
    }
  }
  void start() {
    for (auto& [key, f] : forwarders_) f->thread.start(f->main());
    for (Rank* r : job_.ranks) r->thread.start(r->main());
  }

  [[nodiscard]] const std::vector<Proc*>& processes() const { return procs_; }
  void put_channels(State& s) const {
    s.put(chans_.size());
    for (const auto& [key, chan] : chans_) chan->state(s);
  }
  [[nodiscard]] std::vector<const Chan*> channels() const {
    std::vector<const Chan*> all;
    for (const auto& [key, chan] : chans_) all.push_back(chan.get());
    for (const auto& chan : direct_) all.push_back(chan.get());
    return all;
  }

 private:
  using Key = std::tuple<const MediumSpec*, const Proc*, const Proc*>;

  Forwarder& forwarder(const std::string& role, size_t host) {
    auto& f = forwarders_[{role, host}];
    if (!f) {
      auto p = std::make_unique<Forwarder>(w_, job_, *w_.hosts[host], role + " on " + w_.hosts[host]->name + job_.suffix, host);
      p->idle = c_.idle.at(role);
      p->cost = c_.forward_cost.at(role);
      f = p.get();
      procs_.push_back(f);
      w_.procs.push_back(std::move(p));
    }
    return *f;
  }
  Proc& node(const std::string& role, Rank& a, Rank& b, bool last) {
    if (role == "rank") return last ? static_cast<Proc&>(b) : a;
    const auto at = role.find('@');
    return forwarder(role.substr(0, at), role.substr(at + 1) == "dst" ? b.host_index : a.host_index);
  }
  // A pair is connected when either of the two first needs the other, in both directions, because some channels answer on the
  // opposite one. Creating a channel costs no simulated time and draws no random number, so the moment does not matter.
  void connect(Proc& from, size_t to) override {
    Rank &a = static_cast<Rank&>(from), &b = *job_.ranks[to];
    if (&a == &b) return;
    fresh_.clear();
    connect(a, b);
    connect(b, a);
    for (Chan* c : fresh_) {
      if (c->medium == Medium::Curve) join_curves(*c, *static_cast<Rank&>(c->to).out.find(static_cast<size_t>(static_cast<Rank&>(c->from).id)));
      if (c->medium != Medium::Stream) continue;
      const auto back = streams_.find({&c->to, &c->from});
      if (back != streams_.end()) join_streams(*c, *back->second);
    }
  }
  void connect(Rank& a, Rank& b) {
    const bool same = a.host_index == b.host_index;
    connect(a, b, same ? c_.same : c_.remote, a.out);
    if (c_.same_bulk.empty()) return;
    if (same)
      connect(a, b, c_.same_bulk, a.bulk);
    else
      a.bulk.put(static_cast<size_t>(b.id), nullptr);
  }
  void connect(Rank& a, Rank& b, const std::vector<HopSpec>& route, ChannelMap& first) {
    const auto to = static_cast<size_t>(b.id);
    if (route.empty()) first.put(to, nullptr);
    // The only channel of a pair: nobody else looks for it. A curve's ranks have millions of them.
    if (route.size() == 1 && std::holds_alternative<CurveSpec>(route.front())) {
      direct_.push_back(make_chan(w_, shared_, std::get<CurveSpec>(route.front()), a, b));
      fresh_.push_back(direct_.back().get());
      return first.put(to, fresh_.back());
    }
    for (size_t i = 0; i < route.size(); ++i) {
      const HopSpec& h = route[i];
      Proc& x = node(common(h).between.from, a, b, false);
      Proc& y = node(common(h).between.to, a, b, true);
      Chan& ch = chan(h, x, y);
      if (i == 0) {
        first.put(to, &ch);
        continue;
      }
      ChannelMap& next = static_cast<Forwarder&>(x).next;
      if (Chan* other = next.find(to); other && other != &ch)
        throw ConfigError("the model gives " + x.thread.name() + " two ways to rank " + std::to_string(to));
      next.put(to, &ch);
    }
  }
  Chan& chan(const HopSpec& given, Proc& x, Proc& y) {
    // A hop that is the same on both paths, as that between a rank and its daemon, is one channel.
    const auto known = std::find(c_.same.begin(), c_.same.end(), given);
    const HopSpec& h = known == c_.same.end() ? given : *known;
    auto& slot = chans_[{&common(h), &x, &y}];
    if (slot) return *slot;
    slot = std::visit([&](const auto& medium) { return make_chan(w_, shared_, medium, x, y); }, h);
    if (slot->medium == Medium::Stream) streams_[{&x, &y}] = slot.get();
    fresh_.push_back(slot.get());
    return *slot;
  }

  const JobConfig& c_;
  World& w_;
  Job& job_;
  std::vector<Proc*> procs_;
  std::set<std::string> roles_;
  std::map<std::pair<std::string, size_t>, Forwarder*> forwarders_;
  std::map<Key, std::unique_ptr<Chan>> chans_;
  std::vector<std::unique_ptr<Chan>> direct_;
  std::vector<Chan*> fresh_;  // channels newly created for the current pair
  std::map<std::pair<const Proc*, const Proc*>, Chan*> streams_;
  SharedParts shared_;
};

}  // namespace retrompi
