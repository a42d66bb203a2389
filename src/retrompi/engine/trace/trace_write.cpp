// Writing a trace again, in the words of the reader. A trace without the extension is written as SMPI's replay reads it.
#include "trace/trace_write.hpp"

#include <algorithm>
#include <charconv>

#include "trace/trace.hpp"
#include "trace/trace_actions.hpp"

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

// GROUP: runs of ranks with equal steps, of three ranks and more.
template <class T>
void put_group(std::string &out, const std::vector<T> &ranks) {
  const auto digits = [&](int64_t value) {
    char text[24];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  for (size_t i = 0; i < ranks.size();) {
    out += i == 0 ? ' ' : ',';
    const int64_t first = ranks[i];
    size_t end = i + 1;
    const int64_t step = end < ranks.size() ? static_cast<int64_t>(ranks[end]) - first : 0;
    while (end < ranks.size() && static_cast<int64_t>(ranks[end]) - ranks[end - 1] == step) ++end;
    digits(first);
    if (end - i < 3) {
      ++i;
      continue;
    }
    out += '-';
    digits(ranks[end - 1]);
    if (step != 1 && step != -1) {
      out += ':';
      digits(step < 0 ? -step : step);
    }
    i = end;
  }
}

void key(std::string &out, const char *name, int64_t value) {
  char text[24];
  ((out += ' ') += name) += '=';
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <class T>
void key_list(std::string &out, const char *name, const T *values, size_t n, char between = ',') {
  char text[24];
  ((out += ' ') += name) += '=';
  if (n == 0) out += "none";
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) out += between;
    out.append(text, std::to_chars(text, text + sizeof text, static_cast<int64_t>(values[i])).ptr);
  }
}

class Writer {
 public:
  Writer(const Trace &trace, size_t rank, std::string &out) : t_(trace), rank_(static_cast<int32_t>(rank)), out_(out) {}
  void arguments(const Action &a, Form form);
  void attributes(const Action &a, Form form);

 private:
  const std::vector<int64_t> &list(const Action &a) const { return t_.vec[static_cast<size_t>(a.aux)]; }
  bool far(const Comm &c) const {  // the rank is of the remote group
    return c.kind == Comm::Inter && std::find(c.group.begin(), c.group.end(), rank_) == c.group.end();
  }
  void some(const Action &a);
  void in_communicator(const Action &a) {
    if (a.comm != 0) key(out_, "comm", t_.comms[static_cast<size_t>(a.comm)].id);
  }

  const Trace &t_;
  int32_t rank_;
  std::string &out_;
};

void Writer::arguments(const Action &a, Form form) {
  std::string &out = out_;
  const int64_t *counts = a.aux < 0 || a.op == Op::Sendrecv ? nullptr : list(a).data();
  const size_t all = counts == nullptr ? 0 : list(a).size(), n = form == Form::Alltoallv ? all / 2 : all;
  switch (form) {
    case Form::Compute:
    case Form::Sleep:
      put(out, a.amount);
      break;
    case Form::Kernel:
      (out += ' ') += t_.labels[static_cast<size_t>(a.tag)];
      put(out, a.bytes);
      put(out, a.amount);
      break;
    case Form::Send:
    case Form::Recv:
    case Form::OneSided:
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
      if (a.peer == -1) break;
      put(out, a.peer);
      put(out, a.peer2);
      put(out, a.tag);
      break;
    case Form::All:
    case Form::WinAll:
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
    case Form::NeighborAllgatherv:
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
    case Form::NeighborAlltoallv:
      put_all(out, counts, n);
      out += " 6 6";
      break;
    case Form::Alltoallw:
    case Form::NeighborAlltoallw:
      put_all(out, counts, n);
      break;
    case Form::CommNew:
    case Form::IntercommCreate: {
      if (a.peer < 0) {
        out += " -1";
        break;
      }
      const Comm &c = t_.comms[static_cast<size_t>(a.peer)];
      put(out, c.id);
      put_group(out, far(c) ? c.remote : c.group);
      if (form == Form::IntercommCreate) put_group(out, far(c) ? c.group : c.remote);
      break;
    }
    case Form::WinNew:
      put(out, a.peer2);
      put(out, a.bytes);
      break;
    case Form::WinFree:
      put(out, a.peer2);
      break;
    case Form::WinTarget:
      put(out, a.peer);
      break;
    case Form::WinLock:
      put(out, a.peer);
      put(out, a.tag);
      break;
    case Form::WinGroup:
      put_group(out, list(a));
      break;
    default:  // Bare
      break;
  }
}

void Writer::some(const Action &a) {
  const std::vector<int64_t> &all = list(a);
  const auto n = static_cast<size_t>(a.bytes), more = static_cast<size_t>(a.bytes2);
  key_list(out_, "reqs", all.data(), n);
  if (a.op == Op::Startall && more > 0) {
    for (const size_t field : {1, 2}) {
      out_ += field == 1 ? " from=" : " mtag=";
      for (size_t i = 0; i < more; ++i) {
        const int64_t *m = all.data() + n + 3 * i;
        if (i > 0) out_ += ',';
        (out_ += std::to_string(m[0])) += ':';
        out_ += std::to_string(m[field]);
      }
    }
  }
  if ((a.flags & FLAG_TOLD) == 0) return;
  if (a.op == Op::Testall)
    key(out_, "flag", (a.flags & FLAG_DONE) != 0);
  else
    key_list(out_, "done", all.data() + n, more);
}

void Writer::attributes(const Action &a, Form form) {
  const bool matched = (a.flags & FLAG_MATCHED) != 0;
  switch (form) {
    case Form::OneSided:
    case Form::WinAll:
    case Form::WinTarget:
    case Form::WinLock:
    case Form::WinGroup:
    case Form::WinBare:
      if (a.req != 0) key(out_, "req", a.req);
      if (a.peer2 != 0) key(out_, "win", a.peer2);
      return;
    case Form::WinFree:
      return;
    case Form::All:
      if (a.aux >= 0)
        some(a);
      else if ((a.flags & FLAG_TOLD) != 0)
        key(out_, "flag", (a.flags & FLAG_DONE) != 0);
      return;
    case Form::Sendrecv:
      in_communicator(a);
      if (matched) {
        key(out_, "from", a.req);
        key(out_, "mtag", static_cast<int64_t>(a.amount));
      }
      if (a.tag != 0) key(out_, "stag", a.tag);
      if (a.aux != -1) key(out_, "rtag", a.aux);
      return;
    case Form::CommNew:
      in_communicator(a);
      if (a.peer >= 0) {
        const Comm &c = t_.comms[static_cast<size_t>(a.peer)];
        if (a.tag == static_cast<int32_t>(CommHow::Cart)) {
          key_list(out_, "dims", c.dims.data(), c.dims.size(), 'x');
          key_list(out_, "periods", c.periods.data(), c.periods.size(), 'x');
        } else if (a.tag == static_cast<int32_t>(CommHow::Graph)) {
          const auto me = static_cast<size_t>(std::find(c.group.begin(), c.group.end(), rank_) - c.group.begin());
          key_list(out_, "in", c.sources[me].data(), c.sources[me].size());
          key_list(out_, "out", c.destinations[me].data(), c.destinations[me].size());
        }
      }
      return;
    default:
      in_communicator(a);
      if (a.req != 0) key(out_, "req", a.req);
      if ((a.flags & FLAG_TOLD) != 0) key(out_, "flag", (a.flags & FLAG_DONE) != 0);
      if (matched) {
        key(out_, "from", a.op == Op::Start ? a.bytes : a.peer2);
        key(out_, "mtag", a.bytes2);
      }
  }
}

}  // namespace

void write_line(const Trace &trace, size_t rank, const Action &a, bool shared, std::string &out) {
  const std::string prefix = std::to_string(rank);
  if (a.op == Op::Mark) {
    out += shared ? "# " + prefix + " mark " : "# mark ";
    (out += trace.labels[static_cast<size_t>(a.tag)]) += '\n';
    return;
  }
  const Word &word = word_of(a);
  ((out += prefix) += ' ') += word.name;
  Writer writer(trace, rank, out);
  writer.arguments(a, word.form);
  writer.attributes(a, word.form);
  out += '\n';
}

void Trace::write_ti(size_t rank, bool shared, const std::function<void(std::string_view)> &sink) const {
  constexpr size_t kEnough = size_t{1} << 20;
  std::string out;
  for (const Action &a : ranks[rank]) {
    if (out.size() >= kEnough) {
      sink(out);
      out.clear();
    }
    write_line(*this, rank, a, shared, out);
  }
  sink(out);
}

std::string Trace::to_ti(size_t rank, bool shared) const {
  std::string text;
  write_ti(rank, shared, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace retrompi
