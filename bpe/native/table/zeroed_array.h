// A large array of zeros for tables that are read at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace bpe {

#ifdef __linux__
// Advice on the pages that are entirely in the memory. It may fail.
inline void advise(void* data, size_t bytes, int advice) {
  constexpr uintptr_t kPage = 4096;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = (address + bytes) & ~(kPage - 1);
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}
#endif

// Asks the system for huge pages, if the memory is large. With pages of 4 KiB nearly every access
// to a table of tens of MB misses the TLB, and not even a prefetch goes out before the page is
// found (a third of the time of counting); and each page that is written to first takes a fault.
inline void advise_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  constexpr size_t kHugePage = size_t{1} << 21;
  if (bytes > 2 * kHugePage) advise(data, bytes, MADV_HUGEPAGE);
#endif
}

// Tells the system that it may take the pages of this memory until they are written to again.
inline void let_go([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  advise(data, bytes, MADV_FREE);
#endif
}

// Fixed size, all bytes zero at first. Fresh pages come zeroed from the system. It begins with a
// cache line, so that an element whose size divides that of a line is in one line.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));

 public:
  ZeroedArray() = default;

  explicit ZeroedArray(size_t size) : size_(size) {
    if (size == 0) return;
    if (size > (SIZE_MAX - kLine) / sizeof(T)) throw std::bad_alloc();
    void* const memory = std::calloc(size * sizeof(T) + kLine, 1);
    if (!memory) throw std::bad_alloc();
    void* at = memory;
    size_t left = size * sizeof(T) + kLine;
    std::align(kLine, size * sizeof(T), at, left);
    data_ = {static_cast<T*>(at), Free{memory}};
    advise_huge_pages(at, size * sizeof(T));
  }

  size_t size() const { return size_; }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  static constexpr size_t kLine = 64;  // bytes

  struct Free {
    void* memory = nullptr;  // in which the array is aligned
    void operator()(T*) const { std::free(memory); }
  };

  std::unique_ptr<T[], Free> data_;
  size_t size_ = 0;
};

}  // namespace bpe
