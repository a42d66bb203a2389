#include "trace/action_list.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
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
using packing::unzigzag;
using packing::zigzag;

namespace {

std::atomic<uint64_t> g_serial{1};
std::mutex g_blocks_lock;  // of the dictionaries and of the latest blocks

}  // namespace

/// A block, which never changes: shared by all lists that have the same actions in it.
class ActionList::Packed {
 public:
  Packed(std::string bytes, size_t count) : size(static_cast<uint32_t>(bytes.size())), count(static_cast<uint16_t>(count)) {
    if (TraceMemory::has_space(bytes.size())) {
      held_ = std::move(bytes);
      TraceMemory::hold(held_.size());
    } else {
      std::tie(file_, offset_) = File::spill(bytes);
    }
  }
  Packed(std::shared_ptr<File> file, uint64_t offset, uint32_t size_, size_t count)
      : size(size_), count(static_cast<uint16_t>(count)), file_(std::move(file)), offset_(offset) {}
  Packed(const Packed &) = delete;
  Packed &operator=(const Packed &) = delete;
  ~Packed() { TraceMemory::release(held_.size()); }

  std::string_view bytes(std::string &buffer) const {
    if (!file_) return held_;
    file_->read(offset_, size, buffer);
    return buffer;
  }
  [[nodiscard]] bool in_memory() const { return !file_; }
  /// Unpacked, as long as somebody reads it.
  std::shared_ptr<const packing::Dictionary> open() const {
    const std::lock_guard guard(g_blocks_lock);
    std::shared_ptr<const packing::Dictionary> d = open_.lock();
    if (d) return d;
    std::string own;
    if (file_) file_->read(offset_, size, own);
    open_ = d = packing::decode(held_, std::move(own), count);
    return d;
  }
  const uint32_t size;
  const uint16_t count;
  const uint64_t serial = g_serial++;  // unique among blocks

 private:
  std::string held_;  // or
  std::shared_ptr<File> file_;
  uint64_t offset_ = 0;
  mutable std::weak_ptr<const packing::Dictionary> open_;
};

struct ActionList::Block {
  std::shared_ptr<const Packed> of;
  uint64_t first = 0;  // index of its first action in the list
};

namespace {

/// The block with these bytes: one of the latest, if it is the same. Ranks that do the same towards their neighbours follow each other.
template <class Packed>
std::shared_ptr<const Packed> shared_block(std::string bytes, size_t count) {
  static std::array<std::weak_ptr<const Packed>, 4096> latest;
  std::weak_ptr<const Packed> &slot = latest[std::hash<std::string_view>{}(bytes) % latest.size()];
  std::shared_ptr<const Packed> known;
  {
    const std::lock_guard guard(g_blocks_lock);
    known = slot.lock();
  }
  std::string buffer;
  if (known && known->count == count && known->size == bytes.size() && known->bytes(buffer) == bytes) return known;
  auto made = std::make_shared<const Packed>(std::move(bytes), count);
  const std::lock_guard guard(g_blocks_lock);
  slot = made;
  return made;
}

}  // namespace

class ActionList::Cursor {
 public:
  Cursor(const ActionList &list, size_t first) : list_(&list) {
    const size_t packed = list.size_ - list.tail_.size();
    if (first >= packed) {
      block_ = static_cast<uint32_t>(list.blocks_.size());
      tail_ = static_cast<uint32_t>(first - packed);
      return;
    }
    block_ = static_cast<uint32_t>(list.block_of(first));
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
    decoder_.open(list_->blocks_[block_++].of->open(), list_->rank_);
  }
  const ActionList *list_;
  uint32_t block_ = 0, tail_ = 0;  // the next ones
  Decoder decoder_;
  Action current_;
};

ActionList::ActionList() = default;
ActionList::ActionList(const ActionList &) = default;
ActionList &ActionList::operator=(const ActionList &) = default;
ActionList::ActionList(ActionList &&o) noexcept
    : blocks_(std::move(o.blocks_)), tail_(std::move(o.tail_)), size_(std::exchange(o.size_, 0)), rank_(o.rank_) {}
ActionList &ActionList::operator=(ActionList &&o) noexcept {
  blocks_ = std::move(o.blocks_);
  tail_ = std::move(o.tail_);
  size_ = std::exchange(o.size_, 0);
  rank_ = o.rank_;
  return *this;
}
ActionList::~ActionList() = default;

void ActionList::push_back(const Action &a) {
  tail_.push_back(a);
  ++size_;
  if (tail_.size() == kBlock) {
    put_block(encode(tail_, rank_), kBlock);
    tail_.clear();
  }
}

void ActionList::seal() {
  if (!tail_.empty()) put_block(encode(tail_, rank_), tail_.size());
  std::vector<Action>().swap(tail_);
  blocks_.shrink_to_fit();
}

void ActionList::put_block(std::string bytes, size_t count) {
  blocks_.push_back({shared_block<Packed>(std::move(bytes), count), blocks_.empty() ? 0 : blocks_.back().first + blocks_.back().of->count});
}

ActionList ActionList::of_rank(int32_t rank) const {
  RETROMPI_ASSERT(tail_.empty());
  ActionList moved = *this;
  moved.rank_ = rank;
  return moved;
}

namespace {
// The blocks that a thread accessed last, unpacked.
struct Unpacked {
  uint64_t serial = 0;
  int32_t rank = 0;
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
    if (u.serial == b.of->serial && u.rank == rank_) return u.actions[i - b.first];
  Unpacked &u = t_unpacked[t_oldest++ % t_unpacked.size()];
  Decoder d;
  d.open(b.of->open(), rank_);
  u.serial = 0;
  u.actions.resize(b.of->count);
  for (Action &a : u.actions) d.next(a);
  u.serial = b.of->serial;
  u.rank = rank_;
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
  std::vector<Action> actions(blocks_[k].of->count);
  Decoder d;
  d.open(blocks_[k].of->open(), rank_);
  for (Action &x : actions) d.next(x);
  actions[i - first] = a;
  put_block(encode(actions, rank_), actions.size());
  blocks_.back().first = first;
  blocks_[k] = std::move(blocks_.back());
  blocks_.pop_back();
}

size_t ActionList::block_of(size_t i) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), i, [](size_t at, const Block &b) { return at < b.first; });
  return static_cast<size_t>(after - blocks_.begin()) - 1;
}

size_t ActionList::memory_use(std::unordered_set<const void *> &counted) const {
  size_t n = blocks_.capacity() * sizeof(Block) + tail_.capacity() * sizeof(Action);
  for (const Block &b : blocks_)
    if (b.of->in_memory() && counted.insert(b.of.get()).second) n += b.of->size + sizeof(Packed);
  return n;
}

size_t ActionList::memory_use() const {
  std::unordered_set<const void *> counted;
  return memory_use(counted);
}

// ---------------------------------------------------------------- as bytes

void ListWriter::add(const ActionList &list) {
  put_number(lists_, zigzag(static_cast<uint64_t>(static_cast<int64_t>(list.rank_))));
  put_number(lists_, list.blocks_.size() + (list.tail_.empty() ? 0 : 1));
  std::string buffer;
  for (const auto &b : list.blocks_) {
    const auto [at, fresh] = known_.try_emplace(b.of.get(), count_);
    if (fresh) block(b.of->bytes(buffer), b.of->count);
    put_number(lists_, at->second);
  }
  if (list.tail_.empty()) return;
  put_number(lists_, count_);
  block(encode(list.tail_, list.rank_), list.tail_.size());
}

void ListWriter::block(std::string_view bytes, size_t count) {
  ++count_;
  put_number(blocks_, count);
  put_number(blocks_, bytes.size());
  if (file_ != nullptr)
    put_number(blocks_, file_->append(bytes));
  else
    blocks_ += bytes;
}

void ListWriter::finish(std::string &out) const {
  put_number(out, count_);
  out += blocks_;
  out += lists_;
}

ListReader::ListReader(std::string_view &bytes, const std::shared_ptr<ActionList::File> &file) : rest_(bytes) {
  Input in{bytes.data(), bytes.data() + bytes.size()};
  const uint64_t n = in.number();
  if (n > bytes.size()) broken();
  blocks_.reserve(static_cast<size_t>(n));
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t count = in.number(), size = in.number();
    if (count == 0 || count > ActionList::kBlock || size == 0 || size > std::numeric_limits<uint32_t>::max()) broken();
    if (file)
      blocks_.push_back(std::make_shared<const ActionList::Packed>(file, in.number(), static_cast<uint32_t>(size), static_cast<size_t>(count)));
    else
      blocks_.push_back(shared_block<ActionList::Packed>(std::string(in.take(size), size), static_cast<size_t>(count)));
  }
  rest_.remove_prefix(static_cast<size_t>(in.p - bytes.data()));
}

ActionList ListReader::next() {
  Input in{rest_.data(), rest_.data() + rest_.size()};
  ActionList list;
  const auto rank = static_cast<int64_t>(unzigzag(in.number()));
  if (rank < 0 || rank > std::numeric_limits<int32_t>::max()) broken();
  list.rank_ = static_cast<int32_t>(rank);
  const uint64_t n = in.number();
  if (n > rest_.size()) broken();
  list.blocks_.reserve(static_cast<size_t>(n));
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t at = in.number();
    if (at >= blocks_.size()) broken();
    list.blocks_.push_back({blocks_[static_cast<size_t>(at)], list.size_});
    list.size_ += blocks_[static_cast<size_t>(at)]->count;
  }
  rest_.remove_prefix(static_cast<size_t>(in.p - rest_.data()));
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
