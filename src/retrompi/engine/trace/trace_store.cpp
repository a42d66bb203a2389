#include "trace/trace_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>

#include "trace/trace.hpp"

namespace retrompi {

namespace {

// ---------------------------------------------------------------- numbers of few bytes

[[noreturn]] void broken() { throw TraceError("trace image", 0, "not the image of a parsed trace"); }

void put_number(std::string &out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  out += static_cast<char>(v);
}

constexpr uint64_t zigzag(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
constexpr uint64_t unzigzag(uint64_t v) { return (v >> 1) ^ (0 - (v & 1)); }

struct Input {
  const char *p = nullptr, *end = nullptr;
  uint64_t number() {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (p == end) broken();
      const auto byte = static_cast<uint8_t>(*p++);
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    broken();
  }
  uint64_t signed_number() { return unzigzag(number()); }
  const char *take(uint64_t n) {
    if (n > static_cast<uint64_t>(end - p)) broken();
    const char *at = p;
    p += n;
    return at;
  }
};

// ---------------------------------------------------------------- rows: what of an action tends to repeat

constexpr uint8_t HAS_AMOUNT = 1, HAS_REQUEST = 2;

struct Row {
  uint8_t op, flags, has, zero = 0;
  int32_t peer, tag, peer2, aux, comm;
  int64_t bytes, bytes2;
  explicit Row(const Action &a)
      : op(static_cast<uint8_t>(a.op)),
        flags(a.flags),
        has(static_cast<uint8_t>((std::bit_cast<uint64_t>(a.amount) != 0 ? HAS_AMOUNT : 0) | (a.req != 0 ? HAS_REQUEST : 0))),
        peer(a.peer),
        tag(a.tag),
        peer2(a.peer2),
        aux(a.aux),
        comm(a.comm),
        bytes(a.bytes),
        bytes2(a.bytes2) {}
  bool operator==(const Row &) const = default;
  [[nodiscard]] size_t hash() const {
    uint64_t h = static_cast<uint64_t>(op) << 16 ^ static_cast<uint64_t>(flags) << 8 ^ has;
    for (const uint64_t part : {static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32 | static_cast<uint32_t>(tag),
                                static_cast<uint64_t>(static_cast<uint32_t>(peer2)) << 32 | static_cast<uint32_t>(aux),
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
  f([](auto &r) -> auto & { return r.aux; });
  f([](auto &r) -> auto & { return r.comm; });
  f([](auto &r) -> auto & { return r.bytes; });
  f([](auto &r) -> auto & { return r.bytes2; });
}

// An amount: a whole number as the difference to the last one of the same row, which is likely the same place of a loop, anything else as it is.
constexpr double WHOLE = 9007199254740992.0;  // 2^53
bool whole(double v) {
  return v >= -WHOLE && v <= WHOLE && static_cast<double>(static_cast<int64_t>(v)) == v && std::bit_cast<uint64_t>(v) != 1ULL << 63;
}
enum AmountCode : uint8_t { Difference = 0, Same = 1, Bits = 3 };  // in the lowest bit, or two

struct LastAmount {
  double value = 0;
  int64_t number = 0;
};

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
std::string encode(std::span<const Action> actions) {
  std::vector<Row> rows;
  std::array<uint16_t, 4 * ActionList::kBlock> table;  // open addressing; 0: free
  table.fill(0);
  std::vector<uint16_t> entries;
  entries.reserve(actions.size());
  for (const Action &a : actions) {
    const Row row(a);
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
    if (row.has & HAS_AMOUNT) put_amount(amounts, amount[entries[i]], actions[i].amount);
    if (row.has & HAS_REQUEST) {
      const auto r = static_cast<uint64_t>(actions[i].req);
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

// Takes a block apart, action by action.
class Decoder {
 public:
  void open(std::string_view bytes, size_t count) {
    Input in{bytes.data(), bytes.data() + bytes.size()};
    const uint64_t n = in.number(), lines = in.number(), amounts = in.number();
    if (n == 0 || n > ActionList::kBlock || count == 0 || count > ActionList::kBlock) broken();
    rows_.assign(static_cast<size_t>(n), Action{});
    const char *has = in.take(n);
    has_.assign(has, has + n);
    each_field([&](auto field) {
      uint64_t v = 0;
      for (Action &a : rows_) {
        v += in.signed_number();
        using T = std::remove_reference_t<decltype(field(a))>;
        field(a) = static_cast<T>(v);
      }
    });
    amount_.assign(rows_.size(), {});
    narrow_ = n <= 256;
    entries_ = reinterpret_cast<const uint8_t *>(in.take(narrow_ ? count : 2 * count));
    lines_ = {in.take(lines), nullptr};
    lines_.end = lines_.p + lines;
    amounts_ = {in.take(amounts), nullptr};
    amounts_.end = amounts_.p + amounts;
    requests_ = in;
    line_ = run_ = request_ = 0;
    left_ = count;
  }
  [[nodiscard]] size_t left() const { return left_; }
  void next(Action &a) {
    --left_;
    size_t e = *entries_++;
    if (!narrow_) e |= static_cast<size_t>(*entries_++) << 8;
    if (e >= rows_.size()) broken();
    a = rows_[e];
    if (run_ == 0) {
      step_ = lines_.signed_number();
      run_ = lines_.number();
      if (run_ == 0) broken();
    }
    --run_;
    line_ += step_;
    a.line = static_cast<uint32_t>(line_);
    if (has_[e] == 0) return;
    if (has_[e] & HAS_AMOUNT) a.amount = take_amount(amounts_, amount_[e]);
    if (has_[e] & HAS_REQUEST) {
      request_ += requests_.signed_number();
      a.req = static_cast<int32_t>(request_);
    }
  }

 private:
  std::vector<Action> rows_;
  std::vector<uint8_t> has_;
  std::vector<LastAmount> amount_;
  const uint8_t *entries_ = nullptr;
  Input lines_, amounts_, requests_;
  uint64_t line_ = 0, step_ = 0, run_ = 0, request_ = 0;
  size_t left_ = 0;
  bool narrow_ = true;
};

// ---------------------------------------------------------------- memory and file

uint64_t initial_limit() {
  const char *text = std::getenv("RETROMPI_TRACE_MEMORY");
  if (text == nullptr || *text == 0) return TraceMemory::kDefault;
  char *end = nullptr;
  const unsigned long long v = std::strtoull(text, &end, 10);
  return *end == 0 ? v : TraceMemory::kDefault;
}

std::atomic<uint64_t> g_limit{initial_limit()}, g_held{0}, g_spilled{0}, g_serial{1};
std::mutex g_spill_lock;
std::weak_ptr<ActionList::File> g_spill;

struct Held {
  explicit Held(std::string b) : bytes(std::move(b)) { g_held += bytes.size(); }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;
  ~Held() { g_held -= bytes.size(); }
  std::string bytes;
};

std::string folder() {
  const char *name = std::getenv("TMPDIR");
  return name != nullptr && *name != 0 ? name : "/tmp";
}

[[noreturn]] void file_error(const std::string &what) {
  throw TraceError("trace", 0,
                   what + " the temporary file in " + folder() + ": " + std::strerror(errno) +
                       "; name a folder with more room in TMPDIR, or more memory (bytes) in RETROMPI_TRACE_MEMORY");
}

}  // namespace

uint64_t TraceMemory::limit() { return g_limit; }
void TraceMemory::set_limit(uint64_t bytes) { g_limit = bytes; }
uint64_t TraceMemory::held() { return g_held; }
uint64_t TraceMemory::spilled() { return g_spilled; }

ActionList::File::~File() {
  if (owner_ != 0) g_spilled -= end_;
  ::close(fd_);
}

ActionList::File::File(const std::string &path, bool make)
    : fd_(::open(path.c_str(), make ? O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600)) {
  if (fd_ < 0) file_error("cannot open");
  if (!make) end_ = static_cast<uint64_t>(::lseek(fd_, 0, SEEK_END));
}

std::shared_ptr<ActionList::File> ActionList::File::temporary() {
  std::string path = folder() + "/retrompi-trace-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) file_error("cannot open");
  ::unlink(path.c_str());
  auto f = std::make_shared<File>(fd);
  f->owner_ = ::getpid();
  return f;
}

uint64_t ActionList::File::append(std::string_view bytes) {
  const uint64_t at = end_;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) file_error("no more of the trace can be written to");
    done += static_cast<size_t>(n);
  }
  end_ += bytes.size();
  if (owner_ != 0) g_spilled += bytes.size();
  return at;
}

void ActionList::File::read(uint64_t offset, size_t size, std::string &out) const {
  out.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::pread(fd_, out.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) file_error("cannot read the trace back from");
    done += static_cast<size_t>(n);
  }
}

// ---------------------------------------------------------------- the list

struct ActionList::Block {
  std::shared_ptr<const Held> held;  // or
  std::shared_ptr<File> file;
  uint64_t offset = 0;
  uint64_t first = 0;  // index of its first action in the list
  uint32_t size = 0;
  uint16_t count = 0;
  uint64_t serial = 0;  // no other block has it
  std::string_view bytes(std::string &buffer) const {
    if (held) return held->bytes;
    file->read(offset, size, buffer);
    return buffer;
  }
};

class ActionList::Cursor {
 public:
  Cursor(const ActionList &list, size_t first) : list_(&list) {
    const size_t packed = list.size_ - list.tail_.size();
    if (first >= packed) {
      block_ = list.blocks_.size();
      tail_ = first - packed;
      return;
    }
    block_ = list.block_of(first);
    first -= list.blocks_[block_].first;
    for (open(); first > 0; --first) decoder_.next(current_);
  }
  const Action *next() {
    if (decoder_.left() == 0 && block_ < list_->blocks_.size()) open();
    if (decoder_.left() > 0) {
      decoder_.next(current_);
    } else {
      current_ = list_->tail_[tail_++];
    }
    return &current_;
  }

 private:
  void open() {
    if (block_ >= list_->blocks_.size()) return;
    const Block &b = list_->blocks_[block_++];
    decoder_.open(b.bytes(buffer_), b.count);
  }
  const ActionList *list_;
  size_t block_ = 0, tail_ = 0;  // the next ones
  Decoder decoder_;
  std::string buffer_;
  Action current_;
};

ActionList::ActionList() = default;
ActionList::ActionList(const ActionList &) = default;
ActionList &ActionList::operator=(const ActionList &) = default;
ActionList::ActionList(ActionList &&o) noexcept : blocks_(std::move(o.blocks_)), tail_(std::move(o.tail_)), size_(std::exchange(o.size_, 0)) {}
ActionList &ActionList::operator=(ActionList &&o) noexcept {
  blocks_ = std::move(o.blocks_);
  tail_ = std::move(o.tail_);
  size_ = std::exchange(o.size_, 0);
  return *this;
}
ActionList::~ActionList() = default;

void ActionList::push_back(const Action &a) {
  tail_.push_back(a);
  ++size_;
  if (tail_.size() == kBlock) {
    put_block(encode(tail_), kBlock);
    tail_.clear();
  }
}

void ActionList::seal() {
  if (!tail_.empty()) put_block(encode(tail_), tail_.size());
  std::vector<Action>().swap(tail_);
  blocks_.shrink_to_fit();
}

void ActionList::put_block(std::string bytes, size_t count) {
  Block b;
  b.first = blocks_.empty() ? 0 : blocks_.back().first + blocks_.back().count;
  b.size = static_cast<uint32_t>(bytes.size());
  b.count = static_cast<uint16_t>(count);
  b.serial = g_serial++;
  if (g_held + bytes.size() <= g_limit) {
    b.held = std::make_shared<const Held>(std::move(bytes));
  } else {
    const std::lock_guard guard(g_spill_lock);
    b.file = g_spill.lock();
    if (!b.file || b.file->owner() != ::getpid()) g_spill = b.file = File::temporary();
    b.offset = b.file->append(bytes);
  }
  blocks_.push_back(std::move(b));
}

namespace {
// The blocks that a thread looked into last, unpacked.
struct Unpacked {
  uint64_t serial = 0;
  std::vector<Action> actions;
};
thread_local std::array<Unpacked, 4> t_unpacked;
thread_local size_t t_oldest = 0;
}  // namespace

Action ActionList::operator[](size_t i) const {
  size_t packed = size_ - tail_.size();
  if (i >= packed) return tail_[i - packed];
  const Block &b = blocks_[block_of(i)];
  for (const Unpacked &u : t_unpacked)
    if (u.serial == b.serial) return u.actions[i - b.first];
  Unpacked &u = t_unpacked[t_oldest++ % t_unpacked.size()];
  std::string buffer;
  Decoder d;
  d.open(b.bytes(buffer), b.count);
  u.serial = 0;
  u.actions.resize(b.count);
  for (Action &a : u.actions) d.next(a);
  u.serial = b.serial;
  return u.actions[i - b.first];
}

Action ActionList::back() const { return (*this)[size_ - 1]; }

void ActionList::set(size_t i, const Action &a) {
  const size_t packed = size_ - tail_.size();
  if (i >= packed) {
    tail_[i - packed] = a;
    return;
  }
  const size_t k = block_of(i);
  const uint64_t first = blocks_[k].first;
  std::vector<Action> actions(blocks_[k].count);
  std::string buffer;
  Decoder d;
  d.open(blocks_[k].bytes(buffer), blocks_[k].count);
  for (Action &x : actions) d.next(x);
  actions[i - first] = a;
  put_block(encode(actions), actions.size());
  blocks_.back().first = first;
  blocks_[k] = std::move(blocks_.back());
  blocks_.pop_back();
}

size_t ActionList::block_of(size_t i) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), i, [](size_t at, const Block &b) { return at < b.first; });
  return static_cast<size_t>(after - blocks_.begin()) - 1;
}

size_t ActionList::memory_use() const {
  size_t n = blocks_.capacity() * sizeof(Block) + tail_.capacity() * sizeof(Action);
  for (const Block &b : blocks_)
    if (b.held) n += b.held->bytes.capacity();
  return n;
}

void ActionList::pack(std::string &out, File *file) const {
  std::string buffer;
  put_number(out, blocks_.size() + (tail_.empty() ? 0 : 1));
  const auto one = [&](std::string_view bytes, size_t count) {
    put_number(out, count);
    put_number(out, bytes.size());
    if (file != nullptr)
      put_number(out, file->append(bytes));
    else
      out += bytes;
  };
  for (const Block &b : blocks_) one(b.bytes(buffer), b.count);
  if (!tail_.empty()) one(encode(tail_), tail_.size());
}

ActionList ActionList::unpack(std::string_view &bytes, const std::shared_ptr<File> &file) {
  Input in{bytes.data(), bytes.data() + bytes.size()};
  ActionList list;
  const uint64_t n = in.number();
  if (n > bytes.size()) broken();
  list.blocks_.reserve(static_cast<size_t>(n));
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t count = in.number(), size = in.number();
    if (count == 0 || count > kBlock || size > std::numeric_limits<uint32_t>::max()) broken();
    if (file) {
      Block b;
      b.first = list.size_;
      b.file = file;
      b.offset = in.number();
      b.size = static_cast<uint32_t>(size);
      b.count = static_cast<uint16_t>(count);
      b.serial = g_serial++;
      list.blocks_.push_back(std::move(b));
    } else {
      list.put_block(std::string(in.take(size), size), static_cast<size_t>(count));
    }
    list.size_ += static_cast<size_t>(count);
  }
  bytes.remove_prefix(static_cast<size_t>(in.p - bytes.data()));
  return list;
}

// ---------------------------------------------------------------- reading in order

ActionList::const_iterator::const_iterator(const ActionList &list, size_t first) : left_(list.size() - std::min(first, list.size())) {
  if (left_ == 0) return;
  cursor_ = std::make_shared<Cursor>(list, first);
  current_ = cursor_->next();
}

ActionList::const_iterator &ActionList::const_iterator::operator++() {
  if (--left_ > 0) current_ = cursor_->next();
  return *this;
}

}  // namespace retrompi
