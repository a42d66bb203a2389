// Writes a trace in the reader's format. A trace without the extension is written as SMPI's replay reads it.
#include <algorithm>
#include <charconv>

#include "trace/trace.hpp"
#include "trace/words.hpp"
#include "trace/write.hpp"

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
  const std::vector<int64_t> &list(int32_t index) const { return t_.vec[static_cast<size_t>(index)]; }
  bool far(const Comm &c) const {  // the rank is of the remote group
    return c.kind == Comm::Inter && std::find(c.group.begin(), c.group.end(), rank_) == c.group.end();
  }
  void collective(const action::Collective &x, const Layout &form);
  void new_communicator(const action::NewComm &x, Form form);
  void topology(const action::NewComm &x);
  void some(const Action &a);
  void matched(const Action &a, const action::Envelope &with) {
    if (!a.matched()) return;
    key(out_, "from", with.source);
    key(out_, "mtag", with.tag);
  }
  void in_communicator(const Action &a) {
    if (a.comm != 0) key(out_, "comm", t_.comms[static_cast<size_t>(a.comm)].id);
  }

  const Trace &t_;
  int32_t rank_;
  std::string &out_;
};

void Writer::arguments(const Action &a, Form form) {
  std::string &out = out_;
  switch (a.kind()) {
    case ActionKind::Compute:
      put(out, a.get<action::Compute>().flops);
      break;
    case ActionKind::Sleep:
      put(out, a.get<action::Sleep>().seconds);
      break;
    case ActionKind::Kernel: {
      const auto &x = a.get<action::Kernel>();
      (out += ' ') += t_.labels[static_cast<size_t>(x.label)];
      put(out, x.length);
      put(out, x.times);
      break;
    }
    case ActionKind::PointToPoint: {
      const auto &x = a.get<action::PointToPoint>();
      put(out, x.peer);
      put(out, x.tag);
      if (form == Form::Probe) break;
      put(out, x.bytes);
      out += " 6";
      break;
    }
    case ActionKind::SendReceive: {
      const auto &x = a.get<action::SendReceive>();
      put(out, x.bytes);
      put(out, x.destination);
      put(out, x.receive_bytes);
      put(out, x.source);
      out += " 6 6";
      break;
    }
    case ActionKind::OneRequest: {
      const auto &x = a.get<action::OneRequest>();
      if (x.source == -1) break;
      put(out, x.source);
      put(out, x.destination);
      put(out, x.tag);
      break;
    }
    case ActionKind::SeveralRequests:
      if (const auto &x = a.get<action::SeveralRequests>(); x.count >= 0) put(out, x.count);
      break;
    case ActionKind::Collective:
      collective(a.get<action::Collective>(), layout_of(form));
      break;
    case ActionKind::NewComm:
      new_communicator(a.get<action::NewComm>(), form);
      break;
    case ActionKind::NewWindow: {
      const auto &x = a.get<action::NewWindow>();
      put(out, x.window);
      if (form == Form::WinNew) put(out, x.bytes);
      break;
    }
    case ActionKind::Rma: {
      const auto &x = a.get<action::Rma>();
      put(out, x.target);
      put(out, x.tag);
      put(out, x.bytes);
      out += " 6";
      break;
    }
    case ActionKind::WindowSync: {
      const auto &x = a.get<action::WindowSync>();
      if (form == Form::WinAll && x.argument >= 0) put(out, x.argument);
      if (form == Form::WinTarget || form == Form::WinLock) put(out, x.target);
      if (form == Form::WinLock) put(out, x.exclusive ? 1 : 0);
      if (form == Form::WinGroup) put_group(out, list(x.ranks));
      break;
    }
    case ActionKind::None:
    case ActionKind::Mark:
      break;
  }
}

void Writer::collective(const action::Collective &x, const Layout &form) {
  const int64_t *counts = x.counts < 0 ? nullptr : list(x.counts).data();
  const size_t all = counts == nullptr ? 0 : list(x.counts).size();
  // Two vectors that nothing stands between are written as they are stored, one after the other.
  const size_t first = !Layout::several(form.sent) ? 0 : form.buffers ? all / 2 : all;
  if (form.buffers || form.sent == Many::One) put(out_, x.bytes);
  put_all(out_, counts, first);
  if (form.buffers || form.received == Many::One) put(out_, x.receive_bytes);
  put_all(out_, counts + first, all - first);
  if (form.flops) put(out_, x.flops);
  if (form.root) put(out_, x.root);
  for (uint8_t i = 0; i < form.types; ++i) out_ += " 6";
}

void Writer::new_communicator(const action::NewComm &x, Form form) {
  if (x.made < 0) {
    out_ += " -1";
    return;
  }
  const Comm &c = t_.comms[static_cast<size_t>(x.made)];
  put(out_, c.id);
  put_group(out_, far(c) ? c.remote : c.group);
  if (form == Form::IntercommCreate) put_group(out_, far(c) ? c.group : c.remote);
}

void Writer::topology(const action::NewComm &x) {
  if (x.made < 0) return;
  const Comm &c = t_.comms[static_cast<size_t>(x.made)];
  if (x.how == CommHow::Cart) {
    key_list(out_, "dims", c.dims.data(), c.dims.size(), 'x');
    key_list(out_, "periods", c.periods.data(), c.periods.size(), 'x');
  } else if (x.how == CommHow::Graph) {
    const auto me = static_cast<size_t>(std::find(c.group.begin(), c.group.end(), rank_) - c.group.begin());
    key_list(out_, "in", c.sources[me].data(), c.sources[me].size());
    key_list(out_, "out", c.destinations[me].data(), c.destinations[me].size());
  }
}

void Writer::some(const Action &a) {
  const auto &x = a.get<action::SeveralRequests>();
  if (x.list < 0) {
    if (a.told()) key(out_, "flag", a.done());
    return;
  }
  const std::vector<int64_t> &all = list(x.list);
  const auto n = static_cast<size_t>(x.count), more = static_cast<size_t>(x.completed);
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
  if (!a.told()) return;
  if (a.op == Op::Testall)
    key(out_, "flag", a.done());
  else
    key_list(out_, "done", all.data() + n, more);
}

void Writer::attributes(const Action &a, Form form) {
  switch (a.kind()) {
    case ActionKind::Rma:
    case ActionKind::WindowSync: {
      const int32_t window = a.kind() == ActionKind::Rma ? a.get<action::Rma>().window : a.get<action::WindowSync>().window;
      if (a.request != 0) key(out_, "req", a.request);
      if (window != 0) key(out_, "win", window);
      return;
    }
    case ActionKind::SeveralRequests:
      return some(a);
    case ActionKind::SendReceive: {
      const auto &x = a.get<action::SendReceive>();
      in_communicator(a);
      matched(a, x.matched);
      if (x.send_tag != 0) key(out_, "stag", x.send_tag);
      if (x.receive_tag != 0) key(out_, "rtag", x.receive_tag);
      return;
    }
    default:
      break;
  }
  if (form == Form::WinFree) return;
  in_communicator(a);
  if (form == Form::CommNew) return topology(a.get<action::NewComm>());
  if (a.request != 0) key(out_, "req", a.request);
  if (a.told()) key(out_, "flag", a.done());
  if (const auto *x = a.get_if<action::PointToPoint>()) matched(a, x->matched);
  if (const auto *x = a.get_if<action::OneRequest>()) matched(a, x->matched);
}

}  // namespace

void write_line(const Trace &trace, size_t rank, const Action &a, bool shared, std::string &out) {
  const std::string prefix = std::to_string(rank);
  if (a.op == Op::Mark) {
    out += shared ? "# " + prefix + " mark " : "# mark ";
    (out += trace.labels[static_cast<size_t>(a.get<action::Mark>().label)]) += '\n';
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
