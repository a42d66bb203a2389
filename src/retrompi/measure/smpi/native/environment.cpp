#include "environment.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace retrompi::online {

void refuse(const std::string& why) {
  std::fflush(nullptr);
  std::cerr << "retrompi smpi: " << why << std::endl;
  std::_Exit(2);
}

bool Environment::asks(int from, int to, int64_t bytes) const {
  for (const PairKind::Range& r : pair(from, to).protocol)
    if (bytes >= r.from && bytes < r.to) return r.asks;
  return false;
}

namespace {

/// The lines of the file; a missing word or an invalid number ends the program.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(path) {
    if (!file_) refuse(path + " cannot be read: $RETROMPI_SMPI_EXPORT must name a file of 'retrompi smpi export'");
  }
  bool next() {
    std::string text;
    while (std::getline(file_, text)) {
      ++number_;
      if (text.empty() || text[0] == '#') continue;
      words_ = std::istringstream(text);
      return true;
    }
    return false;
  }
  template <class T>
  T take() {
    std::conditional_t<std::is_same_v<T, Ps>, int64_t, T> value{};
    if (!(words_ >> value)) fail("a value is missing or no number");
    return value;
  }
  /// A size, or INT64_MAX for `none`.
  int64_t bound() {
    const auto word = take<std::string>();
    return word == "none" ? INT64_MAX : std::strtoll(word.c_str(), nullptr, 10);
  }
  std::string rest() {
    std::string text;
    std::getline(words_ >> std::ws, text);
    return text;
  }
  [[noreturn]] void fail(const std::string& why) const { refuse(path_ + ":" + std::to_string(number_) + ": " + why); }

 private:
  std::string path_;
  std::ifstream file_;
  std::istringstream words_;
  int number_ = 0;
};

CurvePoint point(Lines& l) {
  CurvePoint p;
  p.size = l.take<int64_t>();
  for (Ps* t : {&p.send, &p.transit, &p.recv, &p.gap, &p.port, &p.both, &p.wire}) *t = l.take<Ps>();
  return p;
}

Op operation(const Lines& l, const std::string& name) {
  for (int i = 0; i < OP_COUNT; ++i)
    if (name == op_name(static_cast<Op>(i))) return static_cast<Op>(i);
  l.fail("no operation '" + name + "'");
}

void collective(Lines& l, std::map<Op, std::vector<coll::Row>>& rows) {
  const Op op = operation(l, l.take<std::string>());
  const auto name = l.take<std::string>();
  coll::Row row;
  row.algorithm = coll::find(op, name);
  if (!row.algorithm) l.fail("no algorithm '" + name + "' of " + op_name(op));
  row.from = l.take<int64_t>();
  row.to = l.bound();
  row.ranks_from = l.take<int32_t>();
  row.ranks_to = static_cast<int32_t>(std::min<int64_t>(l.bound(), INT32_MAX));
  const auto count = l.take<std::string>();
  row.count = count == "power" ? coll::Row::PowerOfTwo : count == "other" ? coll::Row::NotPowerOfTwo : coll::Row::Any;
  row.nodes = l.take<int>() != 0;
  rows[op].push_back(row);
}

HostSpec host(Lines& l) {
  HostSpec h;
  h.name = l.take<std::string>();
  h.flops = l.take<double>();
  h.clock = l.take<double>();
  h.work = l.take<double>();
  h.syscall = l.take<Ps>();
  h.cores = l.take<int>();
  h.tick = l.take<Ps>();
  h.tick_phase = l.take<Ps>();
  h.quantum = l.take<Ps>();
  h.wait_charge = l.take<Ps>();
  h.boost = l.take<int>();
  h.quantum_carry = l.take<int>() != 0;
  h.quantum_at_tick = l.take<int>() != 0;
  h.l1 = l.take<double>();
  h.l2 = l.take<double>();
  h.l2_ways = static_cast<int>(l.take<double>());
  for (double* v : {&h.copy_l1, &h.copy_l2, &h.copy_mem}) *v = l.take<double>();
  return h;
}

/// "work call OPERATION", "work combine", "work buffers 1" or "2"; the operations of a file are consecutive.
coll::Cost& work(Lines& l, coll::Work& all) {
  const auto what = l.take<std::string>();
  if (what == "combine") return all.combine;
  if (what == "buffers") {
    const int held = l.take<int>();
    if (held != 1 && held != 2) l.fail("buffers are 1 or 2");
    return all.buffers[static_cast<size_t>(held - 1)];
  }
  if (what != "call") l.fail("work is call, combine or buffers, not '" + what + "'");
  return all.call.emplace_back(operation(l, l.take<std::string>()), coll::Cost{}).second;
}

void load(Environment& e, Lines& l) {
  std::map<Op, std::vector<coll::Row>> rows;
  CurveTable* curve = nullptr;
  coll::Cost* cost = nullptr;
  while (l.next()) {
    const auto word = l.take<std::string>();
    auto pair = [&]() -> PairKind& {
      const auto which = l.take<std::string>();
      if (which != "same" && which != "remote") l.fail("'" + which + "' is neither same nor remote");
      return which == "same" ? e.same : e.remote;
    };
    if (word == "retrompi-smpi") {
      if (const int version = l.take<int>(); version != 2) l.fail("version " + std::to_string(version) + " of the format; this plug-in reads 2");
    } else if (word == "model") {
      e.model = l.rest();
    } else if (word == "platform") {
      e.platform = l.rest();
    } else if (word == "host") {
      e.hosts.push_back(host(l));
    } else if (word == "rank") {
      Environment::Place p;
      p.host = l.take<int>();
      p.kind = l.take<int>();
      if (p.host < 0 || static_cast<size_t>(p.host) >= e.hosts.size()) l.fail("there is no host " + std::to_string(p.host));
      e.ranks.push_back(p);
    } else if (word == "ports") {
      e.rank_ports = l.take<std::string>() == "rank";
    } else if (word == "test") {
      e.test.work = {l.take<Ps>()};
      e.test.system = {l.take<Ps>()};
    } else if (word == "work") {
      cost = &work(l, e.collectives.work);
    } else if (word == "cost") {
      if (!cost) l.fail("a cost before any work");
      const auto size = l.take<int64_t>();
      if (!cost->points.empty() && size <= cost->points.back().first) l.fail("sizes of a work must rise");
      cost->points.emplace_back(size, l.take<Ps>());
    } else if (word == "unexpected") {
      e.unexpected_limit = l.take<int64_t>();
    } else if (word == "broadcast-copies") {
      e.collectives.copies_root = l.take<double>();
      e.collectives.copies_leaf = l.take<double>();
    } else if (word == "communicators") {
      e.collectives.context_bytes = l.take<int64_t>();
      e.collectives.split_gathers = l.take<int>() != 0;
    } else if (word == "collective") {
      collective(l, rows);
    } else if (word == "connect") {
      PairKind& kind = pair();
      kind.connect = l.take<Ps>();
    } else if (word == "protocol") {
      PairKind& kind = pair();
      PairKind::Range r;
      r.from = l.take<int64_t>();
      r.to = l.bound();
      r.asks = l.take<std::string>() != "eager";
      kind.protocol.push_back(r);
    } else if (word == "curve") {
      PairKind& kind = pair();
      curve = &kind.curves.emplace_back();
      curve->limit = l.bound();
      curve->reason = l.rest();
    } else if (word == "put") {
      curve = &pair().put;
    } else if (word == "point") {
      if (!curve) l.fail("a point before any curve");
      curve->points.push_back(point(l));
    } else if (word == "between") {
      PairKind& kind = pair();
      const int from = l.take<int>(), to = l.take<int>();
      kind.of[{from, to}] = l.take<int>();
    } else if (word == "set") {
      const auto key = l.take<std::string>();
      e.settings.emplace_back(key, l.rest());
    } else {
      l.fail("no entry '" + word + "'");
    }
  }
  for (auto& [op, list] : rows) e.collectives.prefer(op, std::move(list));
}

}  // namespace

Environment& environment() {
  static Environment& known = *[] {
    const char* path = std::getenv("RETROMPI_SMPI_EXPORT");
    if (!path) refuse("$RETROMPI_SMPI_EXPORT must name a file of 'retrompi smpi export'");
    auto* e = new Environment;
    Lines lines(path);
    load(*e, lines);
    if (e->ranks.empty()) refuse(std::string(path) + " places no rank");
    return e;
  }();
  return known;
}

}  // namespace retrompi::online
