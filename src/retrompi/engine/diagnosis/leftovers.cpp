#include "diagnosis/leftovers.hpp"

#include <set>

#include "diagnosis/run_view.hpp"

namespace retrompi {

namespace {

constexpr size_t kKindsShown = 3;

/// The sentence of one kind: counted, and the first ones described.
class Kind {
 public:
  Kind(const char* one, const char* several) : one_(one), several_(several) {}
  template <class F>
  void add(F describe) {
    if (++count_ <= kKindsShown) shown_ += (shown_.empty() ? "" : "; ") + describe();
  }
  void tell(std::vector<std::string>& out) const {
    if (count_ == 0) return;
    out.push_back(std::to_string(count_) + " " + (count_ == 1 ? one_ : several_) + ": " + shown_ +
                  (count_ > kKindsShown ? " and " + std::to_string(count_ - kKindsShown) + " more" : ""));
  }

 private:
  const char *one_, *several_;
  std::string shown_;
  size_t count_ = 0;
};

std::string source_name(int32_t rank) { return rank == ANY_SOURCE ? "any source" : "rank " + std::to_string(rank); }

std::string kind_name(const Request& r) {
  if (r.kind == Request::Collective) return "a collective";
  if (r.kind == Request::OneSided) return "a one-sided operation";
  return (r.kind == Request::Send ? "a send to " + source_name(r.peer) : "a receive from " + source_name(r.peer)) + ", " + tag_name(r.tag);
}

}  // namespace

std::vector<std::string> leftovers(const World& world, const Job& job, const std::vector<const Chan*>& chans) {
  Kind messages("message was sent and never received", "messages were sent and never received");
  Kind receives("receive was posted and never matched", "receives were posted and never matched");
  Kind requests("request was never completed by a wait or a test", "requests were never completed by a wait or a test");
  Kind windows("window was never freed", "windows were never freed");
  Kind locks("lock on a window was never released", "locks on windows were never released");

  std::vector<const Message*> lost;
  for (const Message& m : job.messages())
    if (!m.delivered && !m.rreq && m.line > 0) lost.push_back(&m);
  if (!lost.empty()) {
    std::stable_sort(lost.begin(), lost.end(),
                     [](const Message* a, const Message* b) { return std::pair(a->at, a->src) < std::pair(b->at, b->src); });
    const RunView view(world, job, chans);
    for (const Message* m : lost) messages.add([&] { return view.describe(*m); });
  }
  std::set<int32_t> open;
  for (const Rank* r : job.ranks) {
    const std::string& file = job.trace.files[static_cast<size_t>(r->id)];
    const std::string who = "rank " + std::to_string(r->id);
    const auto at = [&file](uint32_t line) { return " at " + file + ":" + std::to_string(line); };
    for (const Request* q : r->receiver.posted())
      receives.add([&] { return who + " from " + source_name(q->peer) + ", " + tag_name(q->tag) + ", posted" + at(q->line); });
    for (const RequestTable::Filed& f : r->requests.filed()) {
      const Request* q = f.r;
      if (!q || !q->active || (q->kind == Request::Recv && !q->done && !q->m)) continue;  // such a receive is among those never matched
      requests.add([&] { return who + ", of " + kind_name(*q) + ", begun" + at(q->line); });
    }
    for (const auto& [window, line] : r->one_sided.open())
      if (open.insert(window).second) windows.add([&, w = window, l = line] { return "window " + std::to_string(w) + ", made" + at(l); });
    for (const auto& [window, target] : r->one_sided.locks_held())
      locks.add([&, w = window, t = target] { return who + " on rank " + std::to_string(t) + " in window " + std::to_string(w); });
  }
  std::vector<std::string> out;
  for (const Kind* k : {&messages, &receives, &requests, &windows, &locks}) k->tell(out);
  return out;
}

}  // namespace retrompi
