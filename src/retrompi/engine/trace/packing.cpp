#include "trace/packing.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "trace/trace.hpp"

namespace retrompi::packing {

void broken() { throw TraceError("trace image", 0, "not the image of a parsed trace"); }

namespace {

// ---------------------------------------------------------------- rows: the parts of an action that tend to repeat

struct Row {
  uint8_t op, flags, has, zero = 0;
  int32_t peer, tag, peer2, vec, comm;
  int64_t bytes, bytes2;
  Row(const FlatAction &a, int32_t rank)
      : op(static_cast<uint8_t>(a.op)),
        flags(a.flags),
        has(static_cast<uint8_t>((std::bit_cast<uint64_t>(a.amount) != 0 ? HAS_AMOUNT : 0) | (a.request != 0 ? HAS_REQUEST : 0) | peers(a))),
        peer(a.peer - ((has & PEER) != 0 ? rank : 0)),
        tag(a.tag),
        peer2(a.peer2 - ((has & PEER2) != 0 ? rank : 0)),
        vec(a.vec),
        comm(a.comm),
        bytes(a.bytes),
        bytes2(a.bytes2) {}
  /// The columns that name a rank of the world (negative: any source, none).
  static uint8_t peers(const FlatAction &a) {
    const bool first = a.peer >= 0, second = a.peer2 >= 0;
    switch (kind_of_op(a.op)) {
      case ActionKind::PointToPoint:
      case ActionKind::Rma:
      case ActionKind::WindowSync:
        return first ? PEER : 0;
      case ActionKind::SendReceive:
      case ActionKind::OneRequest:
        return static_cast<uint8_t>((first ? PEER : 0) | (second ? PEER2 : 0));
      default:
        return 0;
    }
  }
  bool operator==(const Row &) const = default;
  [[nodiscard]] size_t hash() const {
    uint64_t h = static_cast<uint64_t>(op) << 16 ^ static_cast<uint64_t>(flags) << 8 ^ has;
    for (const uint64_t part : {static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32 | static_cast<uint32_t>(tag),
                                static_cast<uint64_t>(static_cast<uint32_t>(peer2)) << 32 | static_cast<uint32_t>(vec),
                                static_cast<uint64_t>(static_cast<uint32_t>(comm)), static_cast<uint64_t>(bytes), static_cast<uint64_t>(bytes2)})
      h = (h ^ part) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
    return static_cast<size_t>(h);
  }
};

// The fields of a row, in the order of their columns.
template <class F>
void each_field(F f) {
  f([](auto &r) -> auto & { return r.op; });
  f([](auto &r) -> auto & { return r.flags; });
  f([](auto &r) -> auto & { return r.peer; });
  f([](auto &r) -> auto & { return r.tag; });
  f([](auto &r) -> auto & { return r.peer2; });
  f([](auto &r) -> auto & { return r.vec; });
  f([](auto &r) -> auto & { return r.comm; });
  f([](auto &r) -> auto & { return r.bytes; });
  f([](auto &r) -> auto & { return r.bytes2; });
}

// An amount: a whole number as the difference to the last one of the same row, which is likely the same place of a loop; any other amount verbatim.
constexpr double WHOLE = 9007199254740992.0;  // 2^53
bool whole(double v) {
  return v >= -WHOLE && v <= WHOLE && static_cast<double>(static_cast<int64_t>(v)) == v && std::bit_cast<uint64_t>(v) != 1ULL << 63;
}
enum AmountCode : uint8_t { Difference = 0, Same = 1, Bits = 3 };  // in the lowest bit, or two

void put_amount(std::string &out, LastAmount &last, double v) {
  if (std::bit_cast<uint64_t>(v) == std::bit_cast<uint64_t>(last.value)) {
    put_number(out, Same);
  } else if (whole(v)) {
    const auto n = static_cast<int64_t>(v);
    put_number(out, zigzag(static_cast<uint64_t>(n) - static_cast<uint64_t>(last.number)) << 1 | Difference);
    last.number = n;
  } else {
    put_number(out, Bits);
    const auto bits = std::bit_cast<uint64_t>(v);
    out.append(reinterpret_cast<const char *>(&bits), sizeof bits);
  }
  last.value = v;
}

}  // namespace

double take_amount(Input &in, LastAmount &last) {
  const uint64_t code = in.number();
  if (code == Same) return last.value;
  if (code == Bits) {
    std::memcpy(&last.value, in.take(sizeof last.value), sizeof last.value);
    return last.value;
  }
  if ((code & 1) != 0) broken();
  last.number = static_cast<int64_t>(static_cast<uint64_t>(last.number) + unzigzag(code >> 1));
  return last.value = static_cast<double>(last.number);
}

// ---------------------------------------------------------------- a block

// rows, width of an entry's number, bytes of lines, bytes of amounts; the rows by column; entries; lines; amounts; requests
std::string encode(std::span<const Action> actions, int32_t rank) {
  std::vector<Row> rows;
  std::array<uint16_t, 4 * ActionList::kBlock> table;  // open addressing; 0: free
  table.fill(0);
  std::vector<uint16_t> entries;
  entries.reserve(actions.size());
  struct Own {
    double amount;
    int32_t request;
  };
  std::vector<Own> own;  // values that do not repeat
  own.reserve(actions.size());
  for (const Action &a : actions) {
    const FlatAction flat = flatten(a);
    own.push_back({flat.amount, flat.request});
    const Row row(flat, rank);
    size_t slot = row.hash() % table.size();
    while (table[slot] != 0 && !(rows[table[slot] - 1U] == row)) slot = (slot + 1) % table.size();
    if (table[slot] == 0) {
      rows.push_back(row);
      table[slot] = static_cast<uint16_t>(rows.size());
    }
    entries.push_back(static_cast<uint16_t>(table[slot] - 1));
  }

  std::string lines, amounts, requests;
  uint64_t last = 0, step = 0, run = 0;
  for (const Action &a : actions) {
    const uint64_t d = a.line - last;
    last = a.line;
    if (run > 0 && d == step) {
      ++run;
      continue;
    }
    if (run > 0) put_number(lines, zigzag(step)), put_number(lines, run);
    step = d;
    run = 1;
  }
  if (run > 0) put_number(lines, zigzag(step)), put_number(lines, run);
  std::vector<LastAmount> amount(rows.size());
  uint64_t request = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    const Row &row = rows[entries[i]];
    if (row.has & HAS_AMOUNT) put_amount(amounts, amount[entries[i]], own[i].amount);
    if (row.has & HAS_REQUEST) {
      const auto r = static_cast<uint64_t>(own[i].request);
      put_number(requests, zigzag(r - request));
      request = r;
    }
  }

  std::string out;
  put_number(out, rows.size());
  put_number(out, lines.size());
  put_number(out, amounts.size());
  for (const Row &r : rows) out += static_cast<char>(r.has);
  each_field([&](auto field) {
    uint64_t before = 0;
    for (const Row &r : rows) {
      const auto v = static_cast<uint64_t>(static_cast<int64_t>(field(r)));
      put_number(out, zigzag(v - before));
      before = v;
    }
  });
  const bool narrow = rows.size() <= 256;
  for (const uint16_t e : entries) {
    out += static_cast<char>(e & 0xff);
    if (!narrow) out += static_cast<char>(e >> 8);
  }
  out += lines;
  out += amounts;
  out += requests;
  out.shrink_to_fit();
  return out;
}

std::shared_ptr<const Dictionary> decode(std::string_view held, std::string own, size_t count) {
  auto made = std::make_shared<Dictionary>();
  Dictionary &d = *made;
  d.own = std::move(own);
  d.count = count;
  const std::string_view bytes = d.own.empty() ? held : std::string_view(d.own);
  Input in{bytes.data(), bytes.data() + bytes.size()};
  const uint64_t n = in.number(), lines = in.number(), amounts = in.number();
  if (n == 0 || n > ActionList::kBlock || count == 0 || count > ActionList::kBlock) broken();
  std::vector<FlatAction> rows(static_cast<size_t>(n));
  const char *has = in.take(n);
  d.has.assign(has, has + n);
  each_field([&](auto field) {
    uint64_t v = 0;
    for (FlatAction &a : rows) {
      v += in.signed_number();
      using T = std::remove_reference_t<decltype(field(a))>;
      field(a) = static_cast<T>(v);
    }
  });
  d.rows.reserve(rows.size());
  for (const FlatAction &row : rows) {
    if (static_cast<int>(row.op) >= OP_COUNT) broken();
    d.rows.push_back(unflatten(row));
  }
  for (const uint8_t each : d.has) d.amounts_differ |= (each & HAS_AMOUNT) != 0;
  d.narrow = n <= 256;
  d.entries = reinterpret_cast<const uint8_t *>(in.take(d.narrow ? count : 2 * count));
  d.lines = {in.take(lines), nullptr};
  d.lines.end = d.lines.p + lines;
  d.amounts = {in.take(amounts), nullptr};
  d.amounts.end = d.amounts.p + amounts;
  d.requests = in;
  return made;
}

}  // namespace retrompi::packing
