// The Python binding of the collective algorithms: their list, and the steps of one member with the data that each moves.
#include "bind/rows.hpp"
#include "coll/data.hpp"

namespace py = pybind11;

namespace retrompi::coll {
namespace {

Op operation(const std::string& name) {
  for (int i = 0; i < OP_COUNT; ++i)
    if (name == op_name(static_cast<Op>(i)) && !names(static_cast<Op>(i)).empty()) return static_cast<Op>(i);
  throw ConfigError("no collective operation '" + name + "'");
}

const Algorithm& algorithm(Op op, const std::string& name) {
  if (const Algorithm* a = find(op, name)) return *a;
  throw ConfigError(std::string(op_name(op)) + ": no algorithm '" + name + "'");
}

/// Records what the algorithm reports.
class Notes final : public Listener {
 public:
  Notes() { now = this; }
  ~Notes() override { now = nullptr; }
  void sent(const Part& p, uint8_t buffer) override { notes_.push_back(note(p, buffer, false)); }
  void received(const Part& p, Into into) override { notes_.push_back(note(p, into.buffers, into.combine)); }
  py::dict next() {
    if (given_ == notes_.size()) throw ConfigError("a send or a receive does not say what it moves");
    return notes_[given_++];
  }
  [[nodiscard]] bool all_given() const { return given_ == notes_.size(); }

 private:
  static py::dict note(const Part& p, uint8_t buffers, bool combine) {
    py::list ranges;
    if (p.list)
      for (const int64_t id : *p.list) ranges.append(row_of({id, id + 1}));
    else
      for (const auto& [from, to] : {std::pair{p.from, p.to}, {p.from2, p.to2}})
        if (to > from) ranges.append(row_of({from, to}));
    py::dict d;
    d["unit"] = p.unit == Part::Bytes ? "bytes" : "blocks";
    d["ranges"] = ranges;
    d["buffers"] = static_cast<int>(buffers);
    d["combine"] = combine;
    return d;
  }
  std::vector<py::dict> notes_;
  size_t given_ = 0;
};

const char* kind_name(Step::Kind k) {
  switch (k) {
    case Step::Isend:
      return "isend";
    case Step::Irecv:
      return "irecv";
    case Step::Wait:
      return "wait";
    case Step::WaitAll:
      return "waitall";
    case Step::Copy:
      return "copy";
    case Step::Combine:
      return "combine";
    case Step::Put:
      return "put";
    case Step::Taken:
      return "taken";
    case Step::Work:
      return "work";
    default:
      return "all_taken";
  }
}

py::list steps(const std::string& op_text, const std::string& name, int32_t n, int32_t me, int32_t root, int64_t bytes, int64_t bytes_in,
               const std::vector<int64_t>& out, const std::vector<int64_t>& in, const std::map<std::string, std::string>& choices,
               const std::vector<int32_t>& hosts) {
  if (n < 1 || me < 0 || me >= n || root < 0 || root >= n) throw ConfigError("the member or the root is not in the communicator");
  for (const auto* counts : {&out, &in})
    if (!counts->empty() && counts->size() != static_cast<size_t>(n)) throw ConfigError("one count a member is needed");
  if (!hosts.empty() && hosts.size() != static_cast<size_t>(n)) throw ConfigError("one host a member is needed");
  Table table;
  for (const auto& [other, chosen] : choices) {
    const Op o = operation(other);
    table.prefer(o, {Row{.algorithm = &algorithm(o, chosen)}});
  }
  Args a;
  a.n = n;
  a.me = me;
  a.root = root;
  a.bytes = bytes;
  a.bytes_in = bytes_in;
  a.out = out;
  a.in = in;
  a.host = hosts;
  a.table = &table;
  Notes notes;
  py::list result;
  for (Steps s = algorithm(operation(op_text), name).make(a); s.next();) {
    const Step& t = s.step();
    py::dict d;
    d["kind"] = kind_name(t.kind);
    d["peer"] = t.peer;
    d["slot"] = t.slot;
    d["bytes"] = t.bytes;
    d["copies"] = t.copies;
    d["sync"] = t.sync;
    if (t.kind == Step::Isend || t.kind == Step::Irecv) d["moves"] = notes.next();
    result.append(d);
  }
  if (!notes.all_given()) throw ConfigError("a send or a receive was told of and not made");
  return result;
}

std::map<std::string, std::vector<std::string>> algorithms() {
  std::map<std::string, std::vector<std::string>> all;
  for (int i = 0; i < OP_COUNT; ++i)
    for (const std::string_view name : names(static_cast<Op>(i))) all[op_name(static_cast<Op>(i))].emplace_back(name);
  return all;
}

}  // namespace
}  // namespace retrompi::coll

void bind_coll(py::module_& m) {
  m.def("collective_algorithms", &retrompi::coll::algorithms, "Operation, named as in a trace -> its algorithms, sorted.");
  m.def("collective_steps", &retrompi::coll::steps, py::arg("operation"), py::arg("algorithm"), py::arg("n"), py::arg("me"), py::arg("root") = 0,
        py::arg("bytes") = 0, py::arg("bytes_in") = 0, py::arg("out") = std::vector<int64_t>{}, py::arg("in_") = std::vector<int64_t>{},
        py::arg("choices") = std::map<std::string, std::string>{}, py::arg("hosts") = std::vector<int32_t>{},
        "The steps of member `me` of `n`, with what each send and receive moves; `choices` are the algorithms of the operations that it is made "
        "of.");
}
