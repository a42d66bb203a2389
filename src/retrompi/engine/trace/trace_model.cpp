// What a parsed trace can do: be compared, carry further marks, travel to a worker. trace_write.cpp writes it again.
#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "trace/trace.hpp"
#include "trace/trace_actions.hpp"

namespace retrompi {
namespace {

std::string place(const std::string &file, size_t line) { return line == 0 ? file : file + ":" + std::to_string(line); }

constexpr char MAGIC[8] = {'R', 'T', 'R', 'A', 'C', 'E', '0', '3'};

// Writing and reading the binary image. It never leaves the machine that made it, so bytes go as they are.
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
  // a count of things of at least `size` bytes each, so that a broken count cannot ask for memory
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
  ActionList actions(const std::shared_ptr<ActionList::File> &file) { return ActionList::unpack(rest_, file); }
  bool empty() const { return rest_.empty(); }
  [[noreturn]] static void broken() { throw TraceError("trace image", 0, "not the image of a parsed trace"); }

 private:
  std::string_view rest_;
};

}  // namespace

TraceError::TraceError(std::string file_, size_t line_, std::string message_)
    : std::runtime_error(place(file_, line_) + ": " + message_), file(std::move(file_)), line(line_), message(std::move(message_)) {}

size_t Trace::actions() const {
  size_t n = 0;
  for (const auto &r : ranks) n += static_cast<size_t>(std::count_if(r.begin(), r.end(), [](const Action &a) { return a.op != Op::Mark; }));
  return n;
}

int64_t Trace::bytes_sent() const {
  int64_t sum = 0;
  for (const auto &r : ranks)
    for (const Action &a : r)
      if (is_send(a.op) && a.peer != PROC_NULL)
        if (__builtin_add_overflow(sum, a.bytes, &sum)) return std::numeric_limits<int64_t>::max();
  return sum;
}

std::string Trace::where(size_t rank, const Action &a) const { return place(files[rank], a.line); }

Trace Trace::with_marks(std::vector<MarkAt> marks) const {
  Trace out = *this;
  std::stable_sort(marks.begin(), marks.end(), [](const MarkAt &x, const MarkAt &y) {
    return std::pair{x.rank, x.line} < std::pair{y.rank, y.line};
  });
  for (size_t m = 0; m < marks.size();) {
    const size_t rank = marks[m].rank;
    if (rank >= ranks.size())
      throw TraceError(files.empty() ? "trace" : files[0], 0,
                       "a mark for rank " + std::to_string(rank) + ": ranks are 0.." + std::to_string(ranks.size() - 1));
    ActionList merged;
    auto next = ranks[rank].begin();
    for (; m < marks.size() && marks[m].rank == rank; ++m) {
      const std::string &label = marks[m].label;
      if (label.empty() || label.front() == ' ' || label.back() == ' ' || !is_text(label))
        throw TraceError(files[rank], marks[m].line, "the label of a mark, " + quoted(label) + ", must be printable UTF-8 without blanks around it");
      for (; next != ranks[rank].end() && next->line < marks[m].line; ++next) merged.push_back(*next);
      const auto found = std::find(out.labels.begin(), out.labels.end(), label);
      Action a;
      a.op = Op::Mark;
      a.tag = static_cast<int32_t>(found - out.labels.begin());
      a.line = marks[m].line;
      if (found == out.labels.end()) out.labels.push_back(label);
      merged.push_back(a);
    }
    for (; next != ranks[rank].end(); ++next) merged.push_back(*next);
    merged.seal();
    out.ranks[rank] = std::move(merged);
  }
  return out;
}

std::vector<double> Trace::section_compute(uint32_t first, uint32_t last) const {
  const auto collective = [](const Action &a) { return is_collective(a.op) && a.comm == 0; };  // those that all ranks call
  size_t before = 0, within = 0;
  std::vector<double> sums(ranks.size(), 0.0);
  if (ranks.empty()) return sums;
  for (const Action &a : ranks[0]) {
    if (a.line > last) break;
    if (collective(a)) ++(a.line < first ? before : within);
    if (a.line >= first && a.op == Op::Compute) sums[0] += a.amount;
  }
  for (size_t r = 1; r < ranks.size(); ++r) {
    size_t seen = 0;
    for (const Action &a : ranks[r]) {
      if (collective(a) && ++seen > before + within) break;
      if (seen >= before && a.op == Op::Compute) sums[r] += a.amount;
    }
  }
  return sums;
}

bool Trace::operator==(const Trace &other) const {
  if (ranks.size() != other.ranks.size() || comms.size() != other.comms.size()) return false;
  // Where communicators, labels and vectors are kept is not part of what a trace says.
  const auto by_id = [](const std::vector<Comm> &list) {
    std::vector<const Comm *> sorted;
    for (const Comm &c : list) sorted.push_back(&c);
    std::sort(sorted.begin(), sorted.end(), [](const Comm *x, const Comm *y) { return x->id < y->id; });
    return sorted;
  };
  const auto own = by_id(comms), others = by_id(other.comms);
  if (!std::equal(own.begin(), own.end(), others.begin(), others.end(), [](const Comm *x, const Comm *y) { return *x == *y; })) return false;
  const auto id = [](const Trace &t, int32_t index) { return index < 0 ? index : t.comms[static_cast<size_t>(index)].id; };
  const auto same = [&](const Action &x, const Action &y) {
    if (x.op != y.op || x.flags != y.flags || x.peer2 != y.peer2 || x.bytes != y.bytes || x.bytes2 != y.bytes2 || x.amount != y.amount ||
        x.req != y.req || id(*this, x.comm) != id(other, y.comm))
      return false;
    if (x.op == Op::CommNew ? id(*this, x.peer) != id(other, y.peer) : x.peer != y.peer) return false;
    if (x.op == Op::Mark || x.op == Op::Kernel) return labels[static_cast<size_t>(x.tag)] == other.labels[static_cast<size_t>(y.tag)];
    if (x.tag != y.tag) return false;
    if (x.op == Op::Sendrecv) return x.aux == y.aux;
    return (x.aux < 0) == (y.aux < 0) && (x.aux < 0 || vec[static_cast<size_t>(x.aux)] == other.vec[static_cast<size_t>(y.aux)]);
  };
  for (size_t r = 0; r < ranks.size(); ++r)
    if (!std::equal(ranks[r].begin(), ranks[r].end(), other.ranks[r].begin(), other.ranks[r].end(), same)) return false;
  return true;
}

std::string Trace::dump(ActionList::File *actions) const {
  std::string out;
  size_t size = 4096;
  if (actions == nullptr)
    for (const auto &r : ranks) size += r.memory_use();
  out.reserve(size);
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
  for (const auto &r : ranks) r.pack(out, actions);
  remarks(out, refused, refused_total);
  remarks(out, warned, warned_total);
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

// What the engine indexes by without looking again.
class Valid {
 public:
  explicit Valid(const Trace &t) : t_(t), n_(static_cast<int64_t>(t.ranks.size())) {}

  bool action(const Action &a, int64_t rank) {
    if (static_cast<int>(a.op) >= OP_COUNT || a.comm < 0 || static_cast<size_t>(a.comm) >= t_.comms.size() || a.req < 0) return false;
    if (a.op == Op::Mark || a.op == Op::Kernel) return a.tag >= 0 && static_cast<size_t>(a.tag) < t_.labels.size();
    if (a.comm != 0 && !choose(a.comm, rank)) return false;
    const Comm &c = t_.comms[static_cast<size_t>(a.comm)];
    const bool far = a.comm != 0 && c.kind == Comm::Inter && me_ < 0;  // the rank is one of the remote group
    const auto own = static_cast<int64_t>(far ? c.remote.size() : c.group.size());
    const auto size = static_cast<int64_t>(c.kind == Comm::Inter && !far ? c.remote.size() : c.group.size());
    const bool matched = (a.flags & FLAG_MATCHED) != 0;
    if (is_window(a.op) || a.op == Op::WinNew || a.op == Op::WinFree) {
      if (a.peer2 < 0 || (a.peer != -1 && a.peer != PROC_NULL && !in(a.peer, n_))) return false;
      if (is_one_sided(a.op) && a.peer == -1) return false;
      return a.op == Op::WinPost || a.op == Op::WinStart ? list(a, -1) : a.aux == -1;
    }
    if (is_collective(a.op)) {
      const bool special = c.kind == Comm::Inter && (a.peer2 == ROOT || a.peer2 == PROC_NULL);
      if (is_rooted(a.op) ? !in(a.peer2, size) && !special : a.peer2 != 0) return false;
      if (a.op < Op::NeighborAllgather) return is_vector(a.op) ? list(a, vectors(a.op, own, size)) : a.aux == -1;
      if (c.sources.empty() || me_ < 0) return false;
      const auto sources = static_cast<int64_t>(c.sources[static_cast<size_t>(me_)].size());
      const auto destinations = static_cast<int64_t>(c.destinations[static_cast<size_t>(me_)].size());
      return is_vector(a.op) ? list(a, sources + (a.op == Op::NeighborAllgatherv ? 0 : destinations)) : a.aux == -1;
    }
    if (a.op == Op::CommNew)
      return a.tag >= 0 && a.tag <= static_cast<int32_t>(CommHow::Graph) && a.aux == -1 && a.peer2 == 0 &&
             (a.peer == -1 || (a.peer > 0 && static_cast<size_t>(a.peer) < t_.comms.size() && choose(a.peer, rank)));
    if (is_some(a.op)) {
      if (a.aux < 0) return a.bytes >= -1 && !matched;
      const int64_t extra = a.op == Op::Startall ? 3 * a.bytes2 : a.bytes2;
      return a.bytes >= 0 && a.bytes2 >= 0 && a.bytes2 < (int64_t{1} << 40) && a.bytes < (int64_t{1} << 40) && list(a, a.bytes + extra);
    }
    const auto end = [&](int32_t r) { return in(r, n_) || r == ANY_SOURCE || r == PROC_NULL; };
    if (a.op == Op::Wait || a.op == Op::Test || a.op == Op::Start || a.op == Op::RequestFree)
      return a.aux == -1 && ((end(a.peer) && end(a.peer2)) || (a.req > 0 && a.peer == -1 && a.peer2 == -1)) && (!matched || in64(a.bytes));
    if (a.op == Op::Sendrecv) return end(a.peer) && end(a.peer2) && (!matched || in(a.req, n_));
    return a.aux == -1 && end(a.peer) && end(a.peer2) && (!matched || in(a.peer2, n_));
  }

 private:
  static bool in(int64_t r, int64_t below) { return r >= 0 && r < below; }
  bool in64(int64_t r) const { return in(r, n_); }
  static int64_t vectors(Op op, int64_t own, int64_t other) {
    return op == Op::Alltoallv || op == Op::Alltoallw ? 2 * other : op == Op::ReduceScatter ? own : other;
  }
  bool list(const Action &a, int64_t size) const {
    if (a.aux < 0 || static_cast<size_t>(a.aux) >= t_.vec.size()) return false;
    const auto &v = t_.vec[static_cast<size_t>(a.aux)];
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
  Valid check(t);
  for (auto &r : t.ranks) {
    r = in.actions(actions);
    if (actions) continue;  // what it was made from has been looked at
    for (const Action &a : r)
      if (!check.action(a, &r - t.ranks.data())) Image::broken();
  }
  t.refused = in.remarks(t.refused_total, t.ranks.size());
  t.warned = in.remarks(t.warned_total, t.ranks.size());
  if (!in.empty()) Image::broken();
  return t;
}

// A file is the packed actions, the image without them, and eight bytes: where the image begins.
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
