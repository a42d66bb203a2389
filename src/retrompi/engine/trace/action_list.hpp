// Storage of the actions of a trace: blocks of columns, a few bytes per action, in memory up to a limit and in a file beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace retrompi {

struct Action;

// One rank's actions, in order. Written at the end, read from the beginning; reading in order costs some nanoseconds per action.
//
// They are packed in blocks (packing.hpp). An iterative program repeats a few actions, so that most of them take one or two bytes.
//
// Blocks never change, so copies of a list share them; peers are packed relative to the list's rank, so that the lists of ranks that do the
// same towards their neighbours share theirs as well: a halo of a million ranks has nine. Those beyond the memory limit (TraceMemory) go to an
// unlinked temporary file and are read back one at a time.
class ActionList {
 public:
  static constexpr size_t kBlock = 512;  // actions; every rank holds its last ones unpacked, and a dictionary while it is read

  ActionList();
  explicit ActionList(int32_t rank) : ActionList() { rank_ = rank; }
  ActionList(const ActionList&);
  ActionList(ActionList&&) noexcept;
  ActionList& operator=(const ActionList&);
  ActionList& operator=(ActionList&&) noexcept;
  ~ActionList();

  void push_back(const Action& a);  // TraceError when the temporary file cannot be written
  void seal();                      // packs the last actions too, when no more are expected for now
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Action operator[](size_t i) const;  // unpacks a block unless the thread's cache has it
  [[nodiscard]] Action back() const;
  void set(size_t i, const Action& a);                                // repacks a block
  [[nodiscard]] size_t memory_use() const;                            // bytes held here, not in the file
  size_t memory_use(std::unordered_set<const void*>& counted) const;  // without blocks counted before
  // The same actions of another rank, with the peers at the same distances. Sealed lists only.
  [[nodiscard]] ActionList of_rank(int32_t rank) const;

  class Cursor;
  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Action;
    using difference_type = std::ptrdiff_t;
    using pointer = const Action*;
    using reference = const Action&;  // valid until the iterator moves on

    const_iterator() = default;
    explicit const_iterator(const ActionList& list, size_t first = 0);
    reference operator*() const { return *current_; }
    pointer operator->() const { return current_; }
    const_iterator& operator++();
    bool operator==(const const_iterator& o) const { return left_ == o.left_; }  // of one list

   private:
    std::shared_ptr<Cursor> cursor_;  // as with any input iterator, advancing invalidates the copies
    const Action* current_ = nullptr;
    size_t left_ = 0;
  };
  [[nodiscard]] const_iterator begin() const { return const_iterator(*this); }
  [[nodiscard]] const_iterator end() const { return {}; }
  [[nodiscard]] const_iterator from(size_t i) const { return const_iterator(*this, i); }

  class File;

 private:
  class Packed;
  struct Block;
  friend class Cursor;
  friend class ListWriter;
  friend class ListReader;
  void put_block(std::string bytes, size_t count);
  [[nodiscard]] size_t block_of(size_t i) const;

  std::vector<Block> blocks_;
  std::vector<Action> tail_;
  size_t size_ = 0;
  int32_t rank_ = 0;  // that peers are packed relative to
};

// An open file that blocks are appended to and read from; unlinked, so that it disappears with the process.
class ActionList::File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const std::string& path, bool make);  // TraceError when it cannot be opened
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();
  static std::shared_ptr<File> temporary();
  // Appends to the temporary file of this process; returns the offset of the bytes.
  static std::pair<std::shared_ptr<File>, uint64_t> spill(std::string_view bytes);
  uint64_t append(std::string_view bytes);  // returns their offset; TraceError when there is no space
  void read(uint64_t offset, size_t size, std::string& out) const;
  [[nodiscard]] uint64_t size() const { return end_; }
  [[nodiscard]] long owner() const { return owner_; }

 private:
  int fd_;
  uint64_t end_ = 0;
  long owner_ = 0;  // the process that may append: a forked one shares the file with it
};

// Lists as bytes: every block once, or (with a file) its offset in the file, then the blocks of each list.
class ListWriter {
 public:
  explicit ListWriter(ActionList::File* file) : file_(file) {}
  void add(const ActionList& list);
  void finish(std::string& out) const;

 private:
  void block(std::string_view bytes, size_t count);
  ActionList::File* file_;
  std::string blocks_, lists_;
  std::unordered_map<const void*, uint64_t> known_;
  uint64_t count_ = 0;
};
// The inverse; TraceError when they are not lists. Lists read with a file keep it open.
class ListReader {
 public:
  ListReader(std::string_view& bytes, const std::shared_ptr<ActionList::File>& file);
  ActionList next();
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::vector<std::shared_ptr<const ActionList::Packed>> blocks_;
};

// The memory limit of the blocks of all lists of this process, bytes. Blocks beyond it go to the file.
struct TraceMemory {
  static constexpr uint64_t kDefault = uint64_t{256} << 20;
  static uint64_t limit();  // of RETROMPI_TRACE_MEMORY (bytes), unless it was set here
  static void set_limit(uint64_t bytes);
  static uint64_t held();     // in memory
  static uint64_t spilled();  // in the file
  static bool has_space(uint64_t bytes);
  static void hold(uint64_t bytes);
  static void release(uint64_t bytes);
};

}  // namespace retrompi
