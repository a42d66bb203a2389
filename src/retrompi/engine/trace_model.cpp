// What a parsed trace can do: be written again, be compared, carry further marks, travel to a worker.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "trace.hpp"
#include "trace_actions.hpp"

namespace retrompi {
namespace {

template <class T>
void put(std::string &out, T value) {
  char text[32];  // the shortest form that reads back as the same double has at most 24 characters
  out += ' ';
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void put_all(std::string &out, const int64_t *values, size_t n) {
  for (size_t i = 0; i < n; ++i) put(out, values[i]);
}

bool is_send(Op op) { return (op >= Op::Send && op <= Op::Irsend) || op == Op::Sendrecv; }

std::string place(const std::string &file, size_t line) { return line == 0 ? file : file + ":" + std::to_string(line); }

constexpr char MAGIC[8] = {'R', 'T', 'R', 'A', 'C', 'E', '0', '2'};

// Writing and reading the binary image. It never leaves the machine that made it, so bytes go as they are.
void raw(std::string &out, const void *data, size_t size) { out.append(static_cast<const char *>(data), size); }
void number(std::string &out, uint64_t value) { raw(out, &value, sizeof value); }
void text(std::string &out, const std::string &s) {
  number(out, s.size());
  out += s;
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
  ActionList actions() { return ActionList::unpack(rest_, nullptr); }
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

std::string Trace::to_ti(size_t rank, bool shared) const {
  const std::string prefix = std::to_string(rank);
  const size_t n = ranks.size();
  std::string out;
  out.reserve(ranks[rank].size() * 24);
  for (const Action &a : ranks[rank]) {
    const int64_t *counts = a.aux < 0 ? nullptr : vec[static_cast<size_t>(a.aux)].data();
    if (a.op == Op::Mark) {
      out += shared ? "# " + prefix + " mark " : "# mark ";
      (out += labels[static_cast<size_t>(a.tag)]) += '\n';
      continue;
    }
    ((out += prefix) += ' ') += op_name(a.op);
    switch (form_of(a.op)) {
      case Form::Compute:
      case Form::Sleep:
        put(out, a.amount);
        break;
      case Form::Kernel:
        (out += ' ') += labels[static_cast<size_t>(a.tag)];
        put(out, a.bytes);
        put(out, a.amount);
        break;
      case Form::Send:
      case Form::Recv:
        put(out, a.peer);
        put(out, a.tag);
        put(out, a.bytes);
        out += " 6";
        break;
      case Form::Sendrecv:
        put(out, a.bytes);
        put(out, a.peer);
        put(out, a.bytes2);
        put(out, a.peer2);
        out += " 6 6";
        break;
      case Form::Request:
        put(out, a.peer);
        put(out, a.peer2);
        put(out, a.tag);
        break;
      case Form::All:
        if (a.bytes >= 0) put(out, a.bytes);
        break;
      case Form::Probe:
        put(out, a.peer);
        put(out, a.tag);
        break;
      case Form::Bcast:
        put(out, a.bytes);
        put(out, a.peer2);
        out += " 6";
        break;
      case Form::Reduce:
        put(out, a.bytes);
        put(out, a.amount);
        put(out, a.peer2);
        out += " 6";
        break;
      case Form::Allreduce:
        put(out, a.bytes);
        put(out, a.amount);
        out += " 6";
        break;
      case Form::ReduceScatter:
        put_all(out, counts, n);
        put(out, a.amount);
        out += " 6";
        break;
      case Form::Alltoall:
        put(out, a.bytes);
        put(out, a.bytes2);
        out += " 6 6";
        break;
      case Form::Alltoallv:
        put(out, a.bytes);
        put_all(out, counts, n);
        put(out, a.bytes2);
        put_all(out, counts + n, n);
        out += " 6 6";
        break;
      case Form::Rooted:
        put(out, a.bytes);
        put(out, a.bytes2);
        put(out, a.peer2);
        out += " 6 6";
        break;
      case Form::Gatherv:
        put(out, a.bytes);
        put_all(out, counts, n);
        put(out, a.peer2);
        out += " 6 6";
        break;
      case Form::Allgatherv:
        put(out, a.bytes);
        put_all(out, counts, n);
        out += " 6 6";
        break;
      case Form::Scatterv:
        put_all(out, counts, n);
        put(out, a.bytes2);
        put(out, a.peer2);
        out += " 6 6";
        break;
      default:  // Bare
        break;
    }
    out += '\n';
  }
  return out;
}

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
  const auto collective = [](const Action &a) { return a.op >= Op::Barrier && a.op <= Op::Scatterv; };
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
  if (ranks.size() != other.ranks.size()) return false;
  const auto same = [&](const Action &x, const Action &y) {
    if (x.op != y.op || x.flags != y.flags || x.peer != y.peer || x.peer2 != y.peer2 || x.bytes != y.bytes || x.bytes2 != y.bytes2 ||
        x.amount != y.amount)
      return false;
    if (x.op == Op::Mark || x.op == Op::Kernel)  // where labels and vectors are kept is not part of what a trace says
      return labels[static_cast<size_t>(x.tag)] == other.labels[static_cast<size_t>(y.tag)];
    if ((x.aux < 0) != (y.aux < 0)) return false;
    return x.tag == y.tag && (x.aux < 0 || vec[static_cast<size_t>(x.aux)] == other.vec[static_cast<size_t>(y.aux)]);
  };
  for (size_t r = 0; r < ranks.size(); ++r)
    if (!std::equal(ranks[r].begin(), ranks[r].end(), other.ranks[r].begin(), other.ranks[r].end(), same)) return false;
  return true;
}

std::string Trace::dump() const {
  std::string out;
  size_t size = 4096;
  for (const auto &r : ranks) size += r.memory_use();
  out.reserve(size);
  raw(out, MAGIC, sizeof MAGIC);
  number(out, ranks.size());
  for (const std::string &f : files) text(out, f);
  number(out, labels.size());
  for (const std::string &l : labels) text(out, l);
  number(out, vec.size());
  for (const auto &v : vec) {
    number(out, v.size());
    raw(out, v.data(), v.size() * sizeof(int64_t));
  }
  for (const auto &r : ranks) {
    r.pack(out, nullptr);
  }
  remarks(out, refused, refused_total);
  remarks(out, warned, warned_total);
  return out;
}

Trace Trace::load(std::string_view image) {
  Image in(image);
  if (std::memcmp(in.take(sizeof MAGIC), MAGIC, sizeof MAGIC) != 0) Image::broken();
  Trace t;
  t.ranks.resize(in.count(8));
  const auto n = static_cast<int64_t>(t.ranks.size());
  for (int64_t i = 0; i < n; ++i) t.files.push_back(in.text());
  t.labels.resize(in.count(8));
  for (std::string &l : t.labels) l = in.text();
  t.vec.resize(in.count(8));
  for (auto &v : t.vec) {
    v.resize(in.count(sizeof(int64_t)));
    const char *from = in.take(v.size() * sizeof(int64_t));
    if (!v.empty()) std::memcpy(v.data(), from, v.size() * sizeof(int64_t));
  }
  for (auto &r : t.ranks) {
    r = in.actions();
    // The engine indexes by these fields without looking again.
    for (const Action &a : r) {
      const auto in_range = [&](int32_t rank) { return rank < n && (rank >= 0 || rank == ANY_SOURCE || rank == PROC_NULL); };
      const bool vector = a.op == Op::ReduceScatter || a.op == Op::Alltoallv || a.op == Op::Gatherv || a.op == Op::Allgatherv || a.op == Op::Scatterv;
      const size_t counts = static_cast<size_t>(a.op == Op::Alltoallv ? 2 * n : n);
      if (static_cast<int>(a.op) >= OP_COUNT || !in_range(a.peer) || !in_range(a.peer2) || vector != (a.aux >= 0) ||
          ((a.op == Op::Mark || a.op == Op::Kernel) && (a.tag < 0 || static_cast<size_t>(a.tag) >= t.labels.size())) ||
          (vector && (static_cast<size_t>(a.aux) >= t.vec.size() || t.vec[static_cast<size_t>(a.aux)].size() != counts)))
        Image::broken();
    }
  }
  t.refused = in.remarks(t.refused_total, t.ranks.size());
  t.warned = in.remarks(t.warned_total, t.ranks.size());
  if (!in.empty()) Image::broken();
  return t;
}

}  // namespace retrompi
