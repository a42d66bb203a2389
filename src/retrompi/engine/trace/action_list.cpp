#include "trace/action_list.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <tuple>
#include <utility>

#include "trace/packing.hpp"
#include "trace/trace.hpp"

namespace retrompi {

using packing::broken;
using packing::Decoder;
using packing::encode;
using packing::Input;
using packing::put_number;

namespace {

std::atomic<uint64_t> g_serial{1};

struct Held {
  explicit Held(std::string b) : bytes(std::move(b)) { TraceMemory::hold(bytes.size()); }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;
  ~Held() { TraceMemory::release(bytes.size()); }
  std::string bytes;
};

}  // namespace

struct ActionList::Block {
  std::shared_ptr<const Held> held;  // or
  std::shared_ptr<File> file;
  uint64_t offset = 0;
  uint64_t first = 0;  // index of its first action in the list
  uint32_t size = 0;
  uint16_t count = 0;
  uint64_t serial = 0;  // unique among blocks
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
  if (TraceMemory::has_room(bytes.size()))
    b.held = std::make_shared<const Held>(std::move(bytes));
  else
    std::tie(b.file, b.offset) = File::spill(bytes);
  blocks_.push_back(std::move(b));
}

namespace {
// The blocks that a thread accessed last, unpacked.
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
