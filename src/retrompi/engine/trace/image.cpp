// A trace as a binary image, for a worker process: written, read, and checked when it is read.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "trace/trace.hpp"
#include "trace/words.hpp"

namespace retrompi {
namespace {

constexpr char MAGIC[8] = {'R', 'T', 'R', 'A', 'C', 'E', '0', '5'};

// Writing and reading the binary image. It never leaves the machine that created it, so bytes are copied unchanged.
void raw(std::string &out, const void *data, size_t size) { out.append(static_cast<const char *>(data), size); }
void number(std::string &out, uint64_t value) { raw(out, &value, sizeof value); }
void text(std::string &out, const std::string &s) {
  number(out, s.size());
  out += s;
}
template <class T>
void array(std::string &out, const std::vector<T> &values) {
  number(out, values.size());
  raw(out, values.data(), values.size() * sizeof(T));
}
void remarks(std::string &out, const std::vector<Remark> &list, size_t total) {
  number(out, total);
  number(out, list.size());
  for (const Remark &r : list) {
    number(out, static_cast<uint64_t>(r.rank));
    number(out, r.line);
    text(out, r.action);
    text(out, r.reason);
  }
}

class Image {
 public:
  explicit Image(std::string_view bytes) : rest_(bytes) {}
  const char *take(uint64_t size) {
    if (size > rest_.size()) broken();
    const char *p = rest_.data();
    rest_.remove_prefix(size);
    return p;
  }
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  // a count of items of at least `size` bytes each, so that a corrupt count cannot request excessive memory
  size_t count(size_t size) {
    const uint64_t n = number();
    if (n > rest_.size() / size) broken();
    return n;
  }
  std::string text() {
    const uint64_t n = number();
    const char *p = take(n);
    return {p, n};
  }
  template <class T>
  std::vector<T> array() {
    std::vector<T> values(count(sizeof(T)));
    const char *from = take(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(static_cast<void *>(values.data()), from, values.size() * sizeof(T));
    return values;
  }
  std::vector<Remark> remarks(size_t &total, size_t ranks) {
    total = number();
    std::vector<Remark> list(count(32));
    for (Remark &r : list) {
      const uint64_t rank = number();
      if (rank >= ranks) broken();
      r.rank = static_cast<int32_t>(rank);
      r.line = static_cast<uint32_t>(number());
      r.action = text();
      r.reason = text();
    }
    return list;
  }
  void actions(std::vector<ActionList> &ranks, const std::shared_ptr<ActionList::File> &file) {
    ListReader in(rest_, file);
    for (ActionList &r : ranks) r = in.next();
    rest_ = in.rest();
  }
  bool empty() const { return rest_.empty(); }
  [[noreturn]] static void broken() { throw TraceError("trace image", 0, "not the image of a parsed trace"); }

 private:
  std::string_view rest_;
};

}  // namespace

std::string Trace::dump(ActionList::File *actions) const {
  std::string out;
  raw(out, MAGIC, sizeof MAGIC);
  number(out, ranks.size());
  for (const std::string &f : files) text(out, f);
  number(out, labels.size());
  for (const std::string &l : labels) text(out, l);
  number(out, vec.size());
  for (const auto &v : vec) array(out, v);
  number(out, comms.size());
  for (const Comm &c : comms) {
    number(out, c.kind);
    number(out, static_cast<uint64_t>(c.id));
    array(out, c.group);
    array(out, c.remote);
    array(out, c.dims);
    array(out, c.periods);
    for (const auto *lists : {&c.sources, &c.destinations}) {
      number(out, lists->size());
      for (const auto &list : *lists) array(out, list);
    }
  }
  ListWriter lists(actions);
  for (const auto &r : ranks) lists.add(r);
  lists.finish(out);
  remarks(out, refused, refused_total);
  remarks(out, warned, warned_total);
  remarks(out, cut, cut_total);
  remarks(out, uneven, uneven_total);
  return out;
}

namespace {

bool ranks_in(const std::vector<int32_t> &list, int64_t below, bool null = false) {
  return std::all_of(list.begin(), list.end(), [&](int32_t r) { return (r >= 0 && r < below) || (null && r == PROC_NULL); });
}

bool valid(const Comm &c, int64_t n, bool world) {
  if (c.kind > Comm::Graph || c.group.empty() || !ranks_in(c.group, n) || !ranks_in(c.remote, n) || c.dims.size() != c.periods.size()) return false;
  if ((c.kind == Comm::Inter) == c.remote.empty() || (c.kind == Comm::Cart) == c.dims.empty() || world != (c.id == 0)) return false;
  const bool topology = c.kind == Comm::Cart || c.kind == Comm::Graph;
  const auto size = static_cast<int64_t>(c.group.size());
  for (const auto *lists : {&c.sources, &c.destinations}) {
    if (lists->size() != (topology ? c.group.size() : 0)) return false;
    for (const auto &list : *lists)
      if (!ranks_in(list, size, c.kind == Comm::Cart)) return false;
  }
  if (c.kind == Comm::Cart) {
    int64_t product = 1;
    for (const int32_t d : c.dims)
      if (d < 1 || (product *= d) > n) return false;
    if (product != size) return false;
  }
  if (world) {
    if (c.kind != Comm::Intra || size != n) return false;
    for (int64_t r = 0; r < n; ++r)
      if (c.group[static_cast<size_t>(r)] != r) return false;
  }
  return true;
}

// Checks the indices that the engine uses without further checks.
class Valid {
 public:
  explicit Valid(const Trace &t) : t_(t), n_(static_cast<int64_t>(t.ranks.size())) {}

  bool action(const Action &a, int64_t rank) {
    if (a.comm < 0 || static_cast<size_t>(a.comm) >= t_.comms.size() || a.request < 0) return false;
    if (a.comm != 0 && !choose(a.comm, rank)) return false;
    const Comm &c = t_.comms[static_cast<size_t>(a.comm)];
    return a.visit([&](const auto &arguments) { return valid(a, arguments, c, rank); });
  }

 private:
  static bool valid(const Action &, const action::None &, const Comm &, int64_t) { return true; }
  static bool valid(const Action &, const action::Compute &, const Comm &, int64_t) { return true; }
  static bool valid(const Action &, const action::Sleep &, const Comm &, int64_t) { return true; }
  bool valid(const Action &, const action::Kernel &x, const Comm &, int64_t) { return label(x.label); }
  bool valid(const Action &, const action::Mark &x, const Comm &, int64_t) { return label(x.label); }
  bool valid(const Action &a, const action::PointToPoint &x, const Comm &, int64_t) {
    return end(x.peer) && (!a.matched() || in(x.matched.source, n_));
  }
  bool valid(const Action &a, const action::SendReceive &x, const Comm &, int64_t) {
    return end(x.destination) && end(x.source) && (!a.matched() || in(x.matched.source, n_));
  }
  bool valid(const Action &a, const action::OneRequest &x, const Comm &, int64_t) {
    const bool by_key = end(x.source) && end(x.destination), by_request = a.request > 0 && x.source == -1 && x.destination == -1;
    return (by_key || by_request) && (!a.matched() || in(x.matched.source, n_));
  }
  bool valid(const Action &a, const action::SeveralRequests &x, const Comm &, int64_t) {
    constexpr int64_t kMost = int64_t{1} << 40;
    if (x.list < 0) return x.count >= -1 && !a.matched();
    if (x.count < 0 || x.completed < 0 || x.count >= kMost || x.completed >= kMost) return false;
    return list(x.list, x.count + (a.op == Op::Startall ? 3 * x.completed : x.completed));
  }
  bool valid(const Action &a, const action::Collective &x, const Comm &c, int64_t) {
    const bool far = a.comm != 0 && c.kind == Comm::Inter && me_ < 0;  // the rank is one of the remote group
    const auto own = static_cast<int64_t>(far ? c.remote.size() : c.group.size());
    const auto size = static_cast<int64_t>(c.kind == Comm::Inter && !far ? c.remote.size() : c.group.size());
    const bool special = c.kind == Comm::Inter && (x.root == ROOT || x.root == PROC_NULL);
    if (is_rooted(a.op) && !in(x.root, size) && !special) return false;
    const bool near = is_neighbour(a.op);
    if (near && (c.sources.empty() || me_ < 0)) return false;
    const Layout &form = layout_of(a.op);
    if (!form.vector()) return x.counts == -1;
    const auto many = [&](Many m, const std::vector<std::vector<int32_t>> &neighbours) {
      if (!Layout::several(m)) return int64_t{0};
      return near ? static_cast<int64_t>(neighbours[static_cast<size_t>(me_)].size()) : a.op == Op::ReduceScatter ? own : size;
    };
    return list(x.counts, many(form.sent, c.destinations) + many(form.received, c.sources));
  }
  bool valid(const Action &, const action::NewComm &x, const Comm &, int64_t rank) {
    const auto how = static_cast<int32_t>(x.how);
    return how >= 0 && how <= static_cast<int32_t>(CommHow::Graph) &&
           (x.made == -1 || (x.made > 0 && static_cast<size_t>(x.made) < t_.comms.size() && choose(x.made, rank)));
  }
  static bool valid(const Action &, const action::NewWindow &x, const Comm &, int64_t) { return x.window >= 0; }
  bool valid(const Action &, const action::Rma &x, const Comm &, int64_t) { return x.window >= 0 && (x.target == PROC_NULL || in(x.target, n_)); }
  bool valid(const Action &a, const action::WindowSync &x, const Comm &, int64_t) {
    const bool targeted = a.op == Op::Lock || a.op == Op::Unlock;
    if (x.window < 0 || !(in(x.target, n_) || (!targeted && x.target == -1))) return false;
    return a.op == Op::WinPost || a.op == Op::WinStart ? list(x.ranks, -1) : x.ranks == -1;
  }

  bool label(int32_t i) const { return i >= 0 && static_cast<size_t>(i) < t_.labels.size(); }
  bool end(int32_t r) const { return in(r, n_) || r == ANY_SOURCE || r == PROC_NULL; }
  static bool in(int64_t r, int64_t below) { return r >= 0 && r < below; }
  bool list(int32_t index, int64_t size) const {
    if (index < 0 || static_cast<size_t>(index) >= t_.vec.size()) return false;
    const auto &v = t_.vec[static_cast<size_t>(index)];
    if (size >= 0) return v.size() == static_cast<size_t>(size);
    return std::all_of(v.begin(), v.end(), [&](int64_t r) { return in(r, n_); });
  }
  // The rank's place in a communicator (Inter: -1 when it is in the remote group); false: it is no member.
  bool choose(int32_t comm, int64_t rank) {
    if (rank != rank_) places_.clear();
    rank_ = rank;
    const auto [place, fresh] = places_.try_emplace(comm, -1);
    if (fresh) {
      const Comm &c = t_.comms[static_cast<size_t>(comm)];
      const auto at = std::find(c.group.begin(), c.group.end(), static_cast<int32_t>(rank));
      if (at != c.group.end())
        place->second = at - c.group.begin();
      else if (std::find(c.remote.begin(), c.remote.end(), static_cast<int32_t>(rank)) == c.remote.end())
        place->second = -2;
    }
    me_ = place->second;
    return me_ > -2;
  }

  const Trace &t_;
  int64_t n_;
  std::unordered_map<int32_t, int64_t> places_;
  int64_t rank_ = -1, me_ = -1;
};

}  // namespace

Trace Trace::load(std::string_view image, const std::shared_ptr<ActionList::File> &actions) {
  Image in(image);
  if (std::memcmp(in.take(sizeof MAGIC), MAGIC, sizeof MAGIC) != 0) Image::broken();
  Trace t;
  t.ranks.resize(in.count(8));
  const auto n = static_cast<int64_t>(t.ranks.size());
  for (int64_t i = 0; i < n; ++i) t.files.push_back(in.text());
  t.labels.resize(in.count(8));
  for (std::string &l : t.labels) l = in.text();
  t.vec.resize(in.count(8));
  for (auto &v : t.vec) v = in.array<int64_t>();
  t.comms.resize(in.count(64));
  for (Comm &c : t.comms) {
    c.kind = static_cast<Comm::Kind>(std::min<uint64_t>(in.number(), 255));
    c.id = static_cast<int32_t>(in.number());
    c.group = in.array<int32_t>();
    c.remote = in.array<int32_t>();
    c.dims = in.array<int32_t>();
    c.periods = in.array<uint8_t>();
    for (auto *lists : {&c.sources, &c.destinations}) {
      lists->resize(in.count(8));
      for (auto &list : *lists) list = in.array<int32_t>();
    }
    if (!valid(c, n, &c == t.comms.data())) Image::broken();
  }
  if (t.comms.empty()) Image::broken();
  in.actions(t.ranks, actions);
  if (!actions) {  // else its source has been checked
    Valid check(t);
    for (const auto &r : t.ranks)
      for (const Action &a : r)
        if (!check.action(a, &r - t.ranks.data())) Image::broken();
  }
  t.refused = in.remarks(t.refused_total, t.ranks.size());
  t.warned = in.remarks(t.warned_total, t.ranks.size());
  t.cut = in.remarks(t.cut_total, t.ranks.size());
  t.uneven = in.remarks(t.uneven_total, t.ranks.size());
  if (!in.empty()) Image::broken();
  return t;
}

// A file has the packed actions, the image without them, and eight bytes: the offset of the image.
void Trace::save(const std::string &path) const {
  ActionList::File file(path, true);
  const std::string image = dump(&file);
  const uint64_t at = file.append(image);
  file.append({reinterpret_cast<const char *>(&at), sizeof at});
}

Trace Trace::open(const std::string &path) {
  const auto file = std::make_shared<ActionList::File>(path, false);
  std::string image;
  uint64_t at = 0;
  if (file->size() < sizeof at) Image::broken();
  file->read(file->size() - sizeof at, sizeof at, image);
  std::memcpy(&at, image.data(), sizeof at);
  if (at > file->size() - sizeof at) Image::broken();
  file->read(at, file->size() - sizeof at - at, image);
  return load(image, file);
}

}  // namespace retrompi
